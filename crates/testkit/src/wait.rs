//! Waiting for a state, which is what a test does instead of sleeping.

use std::time::{Duration, Instant};

/// How often a state is looked at. Short against any test, long against a query.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a check passed to [`wait_until`] may answer: `bool`, or `Option<T>` to get at what was seen.
pub trait Observation {
    /// What the wait answers once the state has come.
    type Seen;

    /// `None` while the state has not come yet.
    fn seen(self) -> Option<Self::Seen>;
}

impl Observation for bool {
    type Seen = ();

    fn seen(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Observation for Option<T> {
    type Seen = T;

    fn seen(self) -> Option<T> {
        self
    }
}

/// Looks at a state every 10 ms until `look` answers `true` or `Some`, and returns what it saw.
///
/// The wait is for a state and not for an event: a state that came before the first look is seen too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// let mut looks = 0;
/// let seen = testkit::wait_until("the third look", Duration::from_secs(10), || {
///     looks += 1;
///     let answer = (looks == 3).then_some(looks);
///     async move { answer }
/// })
/// .await;
/// assert_eq!(seen, 3);
/// # }
/// ```
///
/// # Panics
/// When the state has not come after `within`, with `what` and the time waited; also when a single
/// look has not answered by then, so that a hung query fails the test instead of stopping the run.
#[track_caller]
pub fn wait_until<L, F>(
    what: &str,
    within: Duration,
    mut look: L,
) -> impl Future<Output = <F::Output as Observation>::Seen>
where
    L: FnMut() -> F,
    F: Future,
    F::Output: Observation,
{
    let asked_at = std::panic::Location::caller();
    async move {
        let start = Instant::now();
        let mut looks = 0_u64;
        loop {
            let left = within.saturating_sub(start.elapsed());
            let Ok(answer) = tokio::time::timeout(left, look()).await else {
                panic!(
                    "{asked_at}: waited {:.1?} for {what}, and look {} did not answer",
                    start.elapsed(),
                    looks + 1
                )
            };
            if let Some(seen) = answer.seen() {
                return seen;
            }
            looks += 1;
            assert!(
                start.elapsed() < within,
                "{asked_at}: waited {:.1?} for {what}, in vain after {looks} looks",
                start.elapsed()
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
