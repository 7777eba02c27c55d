//! How an attempt ended: failed, succeeded, or withdrawn by the drop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::Throttled;
use super::attempt::mend;
use super::keys::{Keys, millis};
use crate::LimitsError;
use crate::clock::BootInstant;
use crate::finish::Finish;
use crate::limits::Inner;
use crate::metering;
use crate::statements;

/// How often one statement is sent again after the database rolled it back.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An attempt under way, with a place in the row of each of its keys.
///
/// Say how it ended; dropping it withdraws it, which counts neither way. The attempt of a replica
/// that dies gives its places back by itself after [`crate::Config::reservation`].
#[must_use = "an attempt that is dropped at once counts nothing"]
pub struct Attempt {
    inner: Arc<Inner>,
    keys: Keys,
    id: Uuid,
    began_at: BootInstant,
    shadow: Option<Throttled>,
    is_settled: bool,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Failed,
    Succeeded,
    Withdrawn,
}

impl Attempt {
    pub(super) fn new(
        inner: Arc<Inner>,
        keys: Keys,
        id: Uuid,
        began_at: BootInstant,
        shadow: Option<Throttled>,
    ) -> Self {
        Self { inner, keys, id, began_at, shadow, is_settled: false }
    }

    /// How long its places are kept for it, by a clock that goes on while the process is stopped.
    /// Begin no check that may not end within this time.
    pub fn remaining(&self) -> Duration {
        (self.began_at + self.inner.config.reservation).remaining()
    }

    /// What a throttle in shadow would have said.
    pub fn would_be_throttled(&self) -> Option<&Throttled> {
        self.shadow.as_ref()
    }

    /// Counts a failure for every key, and blocks those that have reached their limit.
    ///
    /// # Errors
    ///
    /// When the limits' database did not answer: the failure is then counted behind the scenes, and
    /// the caller should not tell how the check ended.
    ///
    /// # Cancel safety
    ///
    /// Safe: the failure is counted without the caller.
    pub async fn failed(mut self) -> Result<(), LimitsError> {
        self.end(End::Failed).await
    }

    /// Gives the places back, and clears the failures of keys whose throttle says so.
    ///
    /// # Errors
    ///
    /// When the limits' database did not answer: what is to be cleared is cleared behind the scenes.
    ///
    /// # Cancel safety
    ///
    /// Safe: it goes on without the caller.
    pub async fn succeeded(mut self) -> Result<(), LimitsError> {
        self.end(End::Succeeded).await
    }

    fn end(&mut self, end: End) -> Finish<Result<(), LimitsError>> {
        self.is_settled = true;
        for (throttle, _) in self.keys.iter() {
            metering::attempt(throttle.name(), end.word());
        }
        let settlement = Settlement {
            inner: Arc::clone(&self.inner),
            keys: self.keys.clone(),
            id: self.id,
            began_at: self.began_at,
            end,
        };
        Finish::new(&self.inner.tasks, settlement.run())
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_settled {
            // What nobody waits for goes to a task of the library's own.
            drop(self.end(End::Withdrawn));
        }
    }
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
            Self::Withdrawn => "withdrawn",
        }
    }
}

struct Settlement {
    inner: Arc<Inner>,
    keys: Keys,
    id: Uuid,
    began_at: BootInstant,
    end: End,
}

impl Settlement {
    /// Tries once for the caller; what the database did not answer a task of our own repeats.
    async fn run(self) -> Result<(), LimitsError> {
        // The database keeps a reservation four times its length: until then a failure counts by it,
        // so that sending it twice counts once. After that it counts however often it is sent.
        let is_late = self.age() > self.inner.config.reservation * 3;
        let outcome = self.send(is_late).await;
        match &outcome {
            Err(error) if error.is_transient() && !is_late => {
                let inner = Arc::clone(&self.inner);
                inner.tasks.spawn(self.repeat());
            }
            Err(error) => self.give_up(error),
            Ok(()) => {}
        }
        outcome
    }

    async fn repeat(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let is_over = self.age() > self.inner.config.reservation * 3;
            match self.send(false).await {
                Ok(()) => return,
                Err(error) if is_over || !error.is_transient() => return self.give_up(&error),
                Err(_) => {}
            }
        }
    }

    fn give_up(&self, error: &LimitsError) {
        tracing::warn!(%error, end = self.end.word(), "The end of an attempt could not be told");
    }

    async fn send(&self, is_late: bool) -> Result<(), LimitsError> {
        for _ in 0..TRIES {
            match self.send_once(is_late).await {
                Ok(()) => {
                    for (throttle, key) in self.keys.iter() {
                        self.inner.queues.settled(throttle, key);
                    }
                    return Ok(());
                }
                Err(error) => mend(&self.inner, error).await?,
            }
        }
        Err(LimitsError::Undecided)
    }

    async fn send_once(&self, is_late: bool) -> Result<(), LimitsError> {
        let (names, texts) = (self.keys.names(), self.keys.keys());
        let lines = &self.inner.lines;
        if self.end != End::Failed {
            let clears =
                self.keys.each(|throttle| self.end == End::Succeeded && throttle.clears_on_success);
            lines.query(&statements::END_ATTEMPT, &[&self.id, &names, &texts, &clears]).await?;
            return Ok(());
        }
        let within = self.keys.each(|throttle| millis(throttle.within));
        let first = self.keys.each(|throttle| millis(throttle.first_wait));
        let longest = self.keys.each(|throttle| millis(throttle.longest_wait));
        let forgotten = self.keys.each(|throttle| millis(throttle.forgotten_after));
        lines
            .query(
                &statements::FAIL_ATTEMPT,
                &[
                    &self.id,
                    &names,
                    &texts,
                    &self.keys.failures(),
                    &within,
                    &first,
                    &longest,
                    &forgotten,
                    &is_late,
                ],
            )
            .await?;
        Ok(())
    }

    fn age(&self) -> Duration {
        self.began_at.elapsed()
    }
}
