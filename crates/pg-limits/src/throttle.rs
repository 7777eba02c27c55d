//! Throttles: failures of keyed attempts, counted over all replicas.

mod attempt;
mod keys;
mod queues;
mod settle;

use std::time::Duration;

pub use attempt::{Attempted, Throttled};
pub(crate) use queues::Queues;
pub use settle::Attempt;

/// Counts the failures of attempts by key, and blocks a key that has had too many.
///
/// So many failures within a window block the key for the first wait; each failure after that
/// block, in the same window or after the limit is reached in a later one, blocks it twice as long,
/// up to the longest wait. The doubling is forgotten so long after the last failure. Checks under
/// way and failures together never exceed the limit, whatever arrives at once.
///
/// ```
/// use std::time::Duration;
/// use pg_limits::Throttle;
///
/// const SIGN_IN: Throttle = Throttle::new("sign-in", 5, Duration::from_mins(15)).clears_on_success();
/// const NETWORK: Throttle = Throttle::new("sign-in-network", 30, Duration::from_mins(10));
/// assert_eq!(SIGN_IN.name(), "sign-in");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    name: &'static str,
    failures: u32,
    within: Duration,
    first_wait: Duration,
    longest_wait: Duration,
    forgotten_after: Duration,
    clears_on_success: bool,
    is_shadow: bool,
}

impl Throttle {
    /// Declares a throttle: its name, and how many failures (at least one) within how long a window,
    /// which begins at a key's first failure. Blocks of 30 s, doubling to 15 min, forgotten 24 h
    /// after the last failure.
    ///
    /// # Panics
    ///
    /// In a constant, so at compile time: when `name` is empty.
    pub const fn new(name: &'static str, failures: u32, within: Duration) -> Self {
        assert!(!name.is_empty(), "a throttle needs a name");
        Self {
            name,
            failures: if failures == 0 { 1 } else { failures },
            within,
            first_wait: Duration::from_secs(30),
            longest_wait: Duration::from_mins(15),
            forgotten_after: Duration::from_hours(24),
            clears_on_success: false,
            is_shadow: false,
        }
    }

    /// How long the first block lasts, and how long the longest.
    #[must_use]
    pub const fn waits(mut self, first: Duration, longest: Duration) -> Self {
        self.first_wait = first;
        self.longest_wait = longest;
        self
    }

    /// How long after a key's last failure its next block is a first one again.
    #[must_use]
    pub const fn forgotten_after(mut self, forgotten_after: Duration) -> Self {
        self.forgotten_after = forgotten_after;
        self
    }

    /// A success clears the key's failures and its block: for a key that only its owner can make
    /// succeed.
    #[must_use]
    pub const fn clears_on_success(mut self) -> Self {
        self.clears_on_success = true;
        self
    }

    /// In shadow it counts, and says what it would refuse, and refuses nothing.
    #[must_use]
    pub const fn shadow(mut self, is_shadow: bool) -> Self {
        self.is_shadow = is_shadow;
        self
    }

    /// The name that refusals, metrics and rows use.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it refuses nothing.
    pub const fn is_shadow(&self) -> bool {
        self.is_shadow
    }
}
