//! Requests on their way to a gate: whoever says so early goes in with others by one call.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::limits::{Inner, Limits};

/// How long a call waits at most for those who are on their way.
const PATIENCE: Duration = Duration::from_millis(1);

/// A request that will ask to go in as soon as it is known what by: its token is being looked up, say.
///
/// A call that would let in others waits for it, a millisecond at most, so that they share one call.
/// [`enter`](Self::enter) ends it, and so does dropping it.
#[must_use = "dropping it says that the request will not come"]
pub struct Approach {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Approach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approach").finish_non_exhaustive()
    }
}

impl Drop for Approach {
    fn drop(&mut self) {
        self.inner.approaches.end();
    }
}

impl Limits {
    /// Says that a request is about to ask to go in, before it is known by which key. It costs no call.
    ///
    /// ```no_run
    /// # async fn key_of(secret: &str) -> Option<String> { Some(secret.to_owned()) }
    /// # async fn run(limits: pg_limits::Limits, secret: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use pg_limits::InFlight;
    ///
    /// const IN_FLIGHT: InFlight = InFlight::new("request_in_flight", 8);
    ///
    /// let approach = limits.approach();
    /// if let Some(key) = key_of(secret).await {
    ///     let entry = approach.enter(Some((IN_FLIGHT, &key)), &[], Duration::from_secs(60)).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn approach(&self) -> Approach {
        self.inner.approaches.begin();
        Approach { inner: Arc::clone(&self.inner) }
    }
}

/// Those on their way to any gate of this process.
#[derive(Debug, Default)]
pub(crate) struct Approaches(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    on_their_way: u64,
    /// How many have ever arrived, or turned away.
    ended: u64,
    /// Who is to be told when so many have.
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Approaches {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) {
        self.lock().on_their_way += 1;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.on_their_way -= 1;
        state.ended += 1;
        let ended = state.ended;
        for (_, waiter) in state.waiting.extract_if(.., |(goal, _)| *goal <= ended) {
            waiter.send(()).ok();
        }
    }

    /// Waits until half as many have come as are on their way now, but not for long. The other half is then
    /// looked up while the call is under way, so that neither processor nor database stands idle.
    pub(crate) async fn gather(&self) {
        if let Some(gathered) = self.gathered() {
            tokio::time::timeout(PATIENCE, gathered).await.ok();
        }
    }

    /// Tells when half of them have come; nothing where nobody is on the way.
    fn gathered(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        if state.on_their_way == 0 {
            return None;
        }
        let (waiter, gathered) = oneshot::channel();
        let goal = state.ended + state.on_their_way.div_ceil(2);
        state.waiting.push((goal, waiter));
        Some(gathered)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn nobody_waits_where_nobody_is_on_the_way() {
        let approaches = Approaches::default();
        approaches.begin();
        approaches.end();
        assert!(poll!(pin!(approaches.gather())).is_ready());
    }

    #[tokio::test]
    async fn a_call_waits_for_half_of_those_who_were_on_the_way() {
        let approaches = Approaches::default();
        for _ in 0..3 {
            approaches.begin();
        }
        let mut gathered = pin!(approaches.gathered().unwrap());
        assert!(poll!(gathered.as_mut()).is_pending());
        approaches.end();
        approaches.begin();
        assert!(poll!(gathered.as_mut()).is_pending(), "one of three, and another one set out");
        approaches.end();
        assert!(poll!(gathered.as_mut()).is_ready(), "two of three");
    }

    #[tokio::test]
    async fn a_call_does_not_wait_for_one_who_never_comes() {
        let approaches = Approaches::default();
        approaches.begin();
        approaches.gather().await;
        approaches.end();
        assert!(approaches.lock().waiting.is_empty(), "and leaves nothing behind");
    }
}
