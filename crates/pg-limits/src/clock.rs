//! A local clock that a suspended machine cannot stop.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment of `CLOCK_BOOTTIME`: it runs on while the process is stopped and while the machine
/// sleeps, so a holder that wakes late knows that its permit has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Duration);

/// The longest single timer: tokio's clock stands still while the machine sleeps, ours does not.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

impl BootInstant {
    /// The present moment.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanos))
    }

    /// How long until this moment; zero once it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }

    /// How long ago this moment was; zero while it lies ahead.
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }

    /// Waits until this moment.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future only stops the wait.
    pub async fn reached(self) {
        loop {
            let remaining = self.remaining();
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining.min(LONGEST_SLEEP)).await;
        }
    }
}

impl std::ops::Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_moment_that_has_passed_is_reached_at_once() {
        let start = BootInstant::now();
        start.reached().await;
        assert!(start.remaining().is_zero());
        assert!((start + Duration::from_mins(1)).remaining() > Duration::from_secs(59));
    }
}
