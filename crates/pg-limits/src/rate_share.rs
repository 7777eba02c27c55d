//! A rate that the ready replicas divide among themselves: no call of the database for each turn.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::BootInstant;
use crate::error::LimitsError;
use crate::limits::{Inner, Limits};
use crate::metering;

const SECOND: Duration = Duration::from_secs(1);

/// How long after it was sent a call has surely arrived, unless it was answered before: a call that
/// hangs keeps its turn so much longer than a second, and no more.
const ARRIVAL: Duration = Duration::from_millis(250);

/// How long a wait for a turn goes on before the share is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// This replica's share of a rate: calls a second divided by the ready replicas, rounded up, and at
/// least one. Clones share it.
///
/// In no second do more calls than the share arrive from this replica: a turn comes back a second after
/// its call was answered, or a second and a quarter after it was sent. Shares are whole, so a rate
/// that does not divide, or that is below the number of replicas, is exceeded by the rounding; and while
/// replicas come and go, until all have read the registry anew: within five seconds of one that comes,
/// twenty of one that dies.
#[derive(Clone)]
pub struct RateShare {
    inner: Arc<Inner>,
    pace: Arc<Pace>,
}

struct Pace {
    name: &'static str,
    per_second: AtomicU32,
    /// Who waits, in the order of arrival.
    queue: tokio::sync::Mutex<()>,
    turns: Mutex<Turns>,
    came_back: Notify,
}

#[derive(Default)]
struct Turns {
    next: u64,
    taken: Vec<Turn>,
}

#[derive(Clone, Copy)]
struct Turn {
    id: u64,
    /// When somebody else may have it; none before its call is sent.
    free_at: Option<BootInstant>,
}

impl fmt::Debug for RateShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateShare")
            .field("name", &self.pace.name)
            .field("per_second", &self.pace.per_second)
            .finish_non_exhaustive()
    }
}

/// Turns that were taken for one call. Drop it when the call has been answered.
#[must_use = "the turns come back when this is dropped: keep it until the call is answered"]
pub struct Pass {
    pace: Arc<Pace>,
    ids: Vec<u64>,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("turns", &self.ids.len()).finish_non_exhaustive()
    }
}

impl Limits {
    /// This replica's share of `per_second` calls of `name`, a node say. Keep it: each one made here
    /// counts its own turns.
    ///
    /// ```no_run
    /// # async fn run(limits: pg_limits::Limits) -> Result<(), Box<dyn std::error::Error>> {
    /// let node = limits.rate_share("node", 20);
    /// let pass = node.take(1).await?;
    /// // the call, and its answer
    /// drop(pass);
    /// # Ok(()) }
    /// ```
    pub fn rate_share(&self, name: &'static str, per_second: u32) -> RateShare {
        RateShare {
            inner: Arc::clone(&self.inner),
            pace: Arc::new(Pace {
                name,
                per_second: AtomicU32::new(per_second),
                queue: tokio::sync::Mutex::default(),
                turns: Mutex::default(),
                came_back: Notify::new(),
            }),
        }
    }
}

impl RateShare {
    /// Changes the rate of all replicas together; in force for the next turn on this one.
    pub fn set_rate(&self, per_second: u32) {
        self.pace.per_second.store(per_second, Ordering::Relaxed);
    }

    /// How many calls a second this replica may make now.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unavailable`] while the registry has never been read.
    ///
    /// # Cancel safety
    ///
    /// Safe: a read.
    pub async fn share(&self) -> Result<u32, LimitsError> {
        let ready = self.inner.ready.count(&self.inner).await?;
        Ok(self.pace.per_second.load(Ordering::Relaxed).div_ceil(ready).max(1))
    }

    /// Waits for as many turns as one call costs, first come, first served.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unavailable`] while the registry has never been read.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was taken comes back.
    pub async fn take(&self, turns: u32) -> Result<Pass, LimitsError> {
        let asked_at = BootInstant::now();
        let _place = self.pace.queue.lock().await;
        let mut pass = Pass { pace: Arc::clone(&self.pace), ids: Vec::new() };
        for _ in 0..turns {
            loop {
                let share = usize::try_from(self.share().await?).unwrap_or(usize::MAX);
                let taken = self.pace.lock().take(share);
                match taken {
                    Ok(id) => {
                        pass.ids.push(id);
                        break;
                    }
                    Err(wait) => {
                        // A turn that comes back early, or a share that grew, ends the wait.
                        let wait = wait.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN);
                        let came_back = self.pace.came_back.notified();
                        tokio::time::timeout(wait, came_back).await.ok();
                    }
                }
            }
        }
        self.pace.lock().free(&pass.ids, BootInstant::now() + ARRIVAL + SECOND);
        metering::rate_wait(self.pace.name, asked_at.elapsed());
        Ok(pass)
    }
}

impl Pace {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// A turn if fewer than `share` are taken; else how long until one comes back, if that is known.
    fn take(&mut self, share: usize) -> Result<u64, Option<Duration>> {
        self.taken.retain(|turn| turn.free_at.is_none_or(|at| !at.remaining().is_zero()));
        if self.taken.len() < share {
            self.next += 1;
            self.taken.push(Turn { id: self.next, free_at: None });
            return Ok(self.next);
        }
        Err(self.taken.iter().filter_map(|turn| turn.free_at).min().map(BootInstant::remaining))
    }

    /// Lets these come back at `at`, or earlier where that was said before.
    fn free(&mut self, ids: &[u64], at: BootInstant) {
        for turn in self.taken.iter_mut().filter(|turn| ids.contains(&turn.id)) {
            turn.free_at = Some(turn.free_at.map_or(at, |before| before.min(at)));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.pace.lock().free(&self.ids, BootInstant::now() + SECOND);
        self.pace.came_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_taken_until_its_time_has_come() {
        let mut turns = Turns::default();
        let first = turns.take(2).unwrap();
        let second = turns.take(2).unwrap();
        assert_eq!(turns.take(2), Err(None), "neither has been sent");
        turns.free(&[first], BootInstant::now() + SECOND);
        assert!(turns.take(2).unwrap_err().unwrap() <= SECOND);
        turns.free(&[second], BootInstant::now());
        assert!(turns.take(2).is_ok());
        assert!(turns.take(2).is_err());
        assert!(turns.take(3).is_ok(), "a larger share is in force at once");
    }

    #[test]
    fn an_answer_brings_a_turn_back_earlier_and_never_later() {
        let mut turns = Turns::default();
        let id = turns.take(1).unwrap();
        turns.free(&[id], BootInstant::now());
        turns.free(&[id], BootInstant::now() + SECOND);
        assert!(turns.take(1).is_ok());
    }
}
