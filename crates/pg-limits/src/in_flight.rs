use std::time::Duration;

use crate::window::LimitReached;

/// A cap on what one key has in flight at one time, on all replicas together: cheap requests of a
/// token, say, each of which ends by itself within a known time.
///
/// Beside a permit it is cheap, and weaker: requests of one replica go in together by one call, and
/// what ended is told within milliseconds, unless another request has taken its place by then.
///
/// ```
/// use pg_limits::InFlight;
///
/// const REQUESTS: InFlight = InFlight::new("request_in_flight", 8);
/// assert_eq!(REQUESTS.limit(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    name: &'static str,
    limit: u32,
    is_shadow: bool,
}

impl InFlight {
    /// When somebody who found the cap reached may come back.
    const RETRY_AFTER: Duration = Duration::from_secs(1);

    /// Declares a cap: its name, and how many one key may have in flight (zero refuses everything).
    ///
    /// # Panics
    ///
    /// In a constant, so at compile time: when `name` is empty.
    pub const fn new(name: &'static str, limit: u32) -> Self {
        assert!(!name.is_empty(), "an in-flight cap needs a name");
        Self { name, limit, is_shadow: false }
    }

    /// Counts, and tells what it would refuse, but refuses nothing.
    #[must_use]
    pub const fn shadow(mut self, is_shadow: bool) -> Self {
        self.is_shadow = is_shadow;
        self
    }

    /// The name that refusals, metrics and settings use.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How many one key may have in flight.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether it only tells what it would refuse.
    pub const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    pub(crate) fn reached(&self) -> LimitReached {
        LimitReached {
            name: self.name,
            limit: self.limit,
            window: None,
            retry_after: Self::RETRY_AFTER,
        }
    }
}
