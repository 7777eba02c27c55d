//! How long permits of an endpoint were held of late: what a refusal says about when to return.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::Rng;

/// How many holds of an endpoint are remembered.
const REMEMBERED: usize = 64;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Holds {
    recent: Mutex<HashMap<&'static str, VecDeque<Duration>>>,
}

impl Holds {
    pub(crate) fn record(&self, endpoint: &'static str, held: Duration) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = recent.entry(endpoint).or_default();
        if holds.len() == REMEMBERED {
            holds.pop_front();
        }
        holds.push_back(held);
    }

    fn median(&self, endpoint: &str) -> Option<Duration> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut holds: Vec<_> = recent.get(endpoint)?.iter().copied().collect();
        holds.sort_unstable();
        holds.get(holds.len() / 2).copied()
    }

    /// When to come back: the smaller of the earliest holder's end and twice the recent median
    /// hold, from 1 to 30 s, and up to half as much again so that those refused do not return as one.
    pub(crate) fn retry_after(&self, endpoint: &str, earliest_end: Duration) -> Duration {
        let wait = self
            .median(endpoint)
            .map_or(earliest_end, |median| earliest_end.min(median.saturating_mul(2)))
            .clamp(SHORTEST, LONGEST);
        wait.mul_f64(rand::rng().random_range(1.0..1.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_holds_shorten_the_wait_and_bounds_hold() {
        let holds = Holds::default();
        let unknown = holds.retry_after("sql", Duration::from_mins(5));
        assert!((LONGEST..LONGEST.mul_f64(1.5)).contains(&unknown));
        for _ in 0..100 {
            holds.record("sql", Duration::from_secs(2));
        }
        let four = holds.retry_after("sql", Duration::from_mins(5));
        assert!((Duration::from_secs(4)..Duration::from_secs(6)).contains(&four));
        let soon = holds.retry_after("sql", Duration::from_millis(3));
        assert!((SHORTEST..SHORTEST.mul_f64(1.5)).contains(&soon));
    }
}
