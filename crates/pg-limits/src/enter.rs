//! Requests that go in by an in-flight cap and by windows: one round trip in, nothing on the way out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;

use crate::clock::BootInstant;
use crate::error::LimitsError;
use crate::finish::Finish;
use crate::gate::attend::attend_first;
use crate::gate::door::{DoorKey, Request};
use crate::in_flight::InFlight;
use crate::limits::{Inner, Limits};
use crate::metering;
use crate::statements;
use crate::window::{LimitReached, Window, WindowState};

/// What asking to go in came to. A refusal is an answer, not an error.
#[derive(Debug)]
#[must_use = "a request is in flight for as long as its admission is kept"]
pub enum Entry {
    /// The request is in: counted in every window, and in flight until the admission is dropped.
    Admitted(Admitted),
    /// A limit is reached. The request is counted nowhere.
    Refused(LimitReached),
}

/// A request that is in. Keep it until the last byte of the answer; dropping it tells the limits,
/// off the request's path.
pub struct Admitted {
    inner: Arc<Inner>,
    /// The door whose key it holds; none where no in-flight cap was asked.
    door: Option<DoorKey>,
    /// The windows it was counted in, by their keys, and how each then was.
    counted_in: Vec<(Window, String)>,
    windows: Vec<WindowState>,
    shadow: Option<LimitReached>,
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").field("windows", &self.windows).finish_non_exhaustive()
    }
}

impl Admitted {
    pub(crate) fn new(
        inner: Arc<Inner>,
        door: Option<DoorKey>,
        counted_in: Vec<(Window, String)>,
        windows: Vec<WindowState>,
        shadow: Option<LimitReached>,
    ) -> Self {
        Self { inner, door, counted_in, windows, shadow }
    }

    /// The windows it was counted in, as they then were.
    pub fn windows(&self) -> &[WindowState] {
        &self.windows
    }

    /// The limit in shadow mode that would have refused it.
    pub fn would_have_been_refused(&self) -> Option<&LimitReached> {
        self.shadow.as_ref()
    }

    /// Takes the request back, as if it had not come: out of each of its windows that has not ended
    /// meanwhile, and out of what is in flight. For one that failed through no fault of the keys' owners,
    /// or turned out not to be theirs.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked: a count then stays until its window ends.
    ///
    /// # Cancel safety
    ///
    /// Of each window, the count may or may not be taken back, never twice.
    pub async fn give_back(self) -> Result<(), LimitsError> {
        let states = self.windows.iter();
        let given_back = self.counted_in.iter().zip(states).map(|((window, key), state)| {
            let line = self.inner.lines.index_of(key);
            self.inner.uncount(line, window, key, state.ends_us)
        });
        join_all(given_back).await.into_iter().collect()
    }
}

impl Inner {
    async fn uncount(
        &self,
        line: usize,
        window: &Window,
        key: &str,
        ends_us: i64,
    ) -> Result<(), LimitsError> {
        let values: [&(dyn ToSql + Sync); 4] = [&window.name(), &key, &1_i32, &ends_us];
        self.call(line, &statements::UNCOUNT, &values).await.map(drop)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(door) = self.door.take() {
            self.inner.leave(&door);
        }
    }
}

impl Limits {
    /// Asks to let one request in: by an in-flight cap of a key, and by windows of keys. All or
    /// nothing: a request that one of them refuses counts in none.
    ///
    /// Requests that arrive while a call is under way, of whatever key, go in together by the next one.
    /// `ends_in` is when the request will have ended at the latest: should this replica die, its share
    /// of the key comes back a second later. Where it is known by which key a request will ask, but not
    /// yet whether it may, ask meanwhile, and [give it back](Admitted::give_back) should it not.
    ///
    /// ```no_run
    /// # async fn run(limits: pg_limits::Limits) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use pg_limits::{Entry, InFlight, Window};
    ///
    /// const IN_FLIGHT: InFlight = InFlight::new("request_in_flight", 8);
    /// const A_MINUTE: Window = Window::new("api_request_window", 600, Duration::from_secs(60));
    ///
    /// let time_limit = Duration::from_secs(60);
    /// match limits.enter(Some((IN_FLIGHT, "token-7")), &[(A_MINUTE, "token-7")], time_limit).await? {
    ///     Entry::Admitted(admitted) => {
    ///         println!("{} left this minute", admitted.windows()[0].remaining);
    ///         // the request runs here
    ///         drop(admitted);
    ///     }
    ///     Entry::Refused(limit) => println!("{} is reached: {}", limit.name, limit.limit),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unavailable`] and [`LimitsError::Undecided`]: answer 503 and never admit.
    ///
    /// # Cancel safety
    ///
    /// Safe: of a caller that left, what was let in leaves again. Its windows keep the count.
    pub async fn enter(
        &self,
        in_flight: Option<(InFlight, &str)>,
        windows: &[(Window, &str)],
        ends_in: Duration,
    ) -> Result<Entry, LimitsError> {
        let inner = Arc::clone(&self.inner);
        inner.check_open()?;
        // One order for all callers, so that no two of them wait for each other.
        let mut windows: Vec<_> =
            windows.iter().map(|(window, key)| (*window, (*key).to_owned())).collect();
        windows.sort_by(|(one, key), (other, other_key)| {
            (one.name(), key).cmp(&(other.name(), other_key))
        });
        let door = match (in_flight, windows.first()) {
            (Some((cap, key)), _) => DoorKey::of_cap(cap.name(), key),
            (None, Some((window, key))) => DoorKey::of_window(window.name(), key),
            (None, None) => {
                return Ok(Entry::Admitted(Admitted::new(
                    inner,
                    None,
                    Vec::new(),
                    Vec::new(),
                    None,
                )));
            }
        };
        let request = Request {
            in_flight: in_flight.map(|(cap, _)| cap),
            windows,
            ends_at: BootInstant::now() + ends_in,
        };
        let (answer, answered) = oneshot::channel();
        let name = door.name();
        let index = inner.gate_for(&door);
        let gate = inner.gates.get(index).ok_or(LimitsError::Unavailable(None))?;
        let attends = gate.arrive(&door, request, answer);
        let entered = async {
            if attends {
                let attending = attend_first(Arc::clone(&inner), index);
                Finish::new(&inner.tasks, attending).await;
            }
            answered.await
        };
        let entry = match tokio::time::timeout(inner.config.claim_timeout, entered).await {
            Ok(Ok(entry)) => entry,
            Ok(Err(_closed)) => Err(LimitsError::Unavailable(None)),
            Err(_elapsed) => Err(LimitsError::Undecided),
        };
        metering::entry(name, &entry);
        entry
    }
}
