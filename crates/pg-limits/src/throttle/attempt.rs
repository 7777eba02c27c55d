//! Asking for an attempt: refused at once, admitted, or made to wait for others under way.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use uuid::Uuid;

use super::keys::{Keys, millis};
use super::queues::Waiter;
use super::{Attempt, Throttle};
use crate::LimitsError;
use crate::clock::BootInstant;
use crate::error::Kind;
use crate::finish::Finish;
use crate::limits::{Inner, Limits};
use crate::metering;
use crate::statements;

/// How often one statement is sent again after the database rolled it back.
const TRIES: u32 = 4;

/// What asking for an attempt came to. A refusal is an answer, not an error.
#[derive(Debug)]
#[must_use = "an attempt that is dropped at once counts nothing"]
pub enum Attempted {
    /// The attempt may be made; say how it ended.
    Admitted(Attempt),
    /// A key is blocked.
    Throttled(Throttled),
}

/// An attempt that was not made because a key is blocked. Nothing was written for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Throttled {
    /// The throttle whose key is blocked; of several the one that is blocked longest.
    pub name: &'static str,
    /// How long until the block ends.
    pub retry_after: Duration,
}

impl Limits {
    /// Asks to make an attempt that is counted by several keys at once: by all or by none.
    ///
    /// Where a key is blocked the answer comes at once, and nothing is written. Where only other
    /// attempts under way fill a key's limit the call waits for them, holding no connection, at
    /// most as long as [`crate::Config::attempt_wait`]. An admitted attempt has to be settled within
    /// [`crate::Config::reservation`]: later its places are free again, and it still counts.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unavailable`] and [`LimitsError::Undecided`] (too many wait, or for too long):
    /// answer 503 and make no attempt. [`LimitsError::Config`] for a key that is empty, longer than
    /// 1,024 bytes, or there twice.
    ///
    /// # Cancel safety
    ///
    /// Safe: what a caller who has gone was admitted to is withdrawn.
    pub async fn attempt(&self, keys: &[(Throttle, &str)]) -> Result<Attempted, LimitsError> {
        self.inner.check_open()?;
        let keys = Keys::new(keys)?;
        let outcome = ask_in_turn(&self.inner, &keys).await;
        count(&keys, &outcome);
        outcome
    }
}

fn count(keys: &Keys, outcome: &Result<Attempted, LimitsError>) {
    let word = match outcome {
        Ok(Attempted::Throttled(throttled)) => {
            metering::attempt(throttled.name, "throttled");
            return;
        }
        Ok(Attempted::Admitted(attempt)) => {
            if let Some(throttled) = attempt.would_be_throttled() {
                metering::attempt(throttled.name, "would_be_throttled");
            }
            "admitted"
        }
        Err(LimitsError::Undecided) => "undecided",
        Err(_) => "unavailable",
    };
    for (throttle, _) in keys.iter() {
        metering::attempt(throttle.name(), word);
    }
}

/// Asks until the answer is not that others under way fill a key, each time as the head of its queue.
async fn ask_in_turn(inner: &Arc<Inner>, keys: &Keys) -> Result<Attempted, LimitsError> {
    let deadline = Instant::now() + inner.config.attempt_wait;
    let mut waiter = keys
        .iter()
        .find(|(throttle, key)| inner.queues.is_waited_for(throttle, key))
        .map(|(throttle, key)| join(inner, throttle, key))
        .transpose()?;
    loop {
        let head = match &waiter {
            Some(waiter) => Some(in_time(deadline, waiter.head()).await?),
            None => None,
        };
        let next = loop {
            let asked = Finish::new(&inner.tasks, ask(Arc::clone(inner), keys.clone())).await?;
            let (throttle, key) = match asked {
                Asked::Answered(attempted) => return Ok(attempted),
                Asked::Full(place) => keys.at(place).ok_or(LimitsError::Undecided)?,
            };
            match (&head, &waiter) {
                (Some(head), Some(waiter)) if waiter.is_for(throttle, key) => {
                    in_time(deadline, head.settled()).await?;
                }
                _ => break join(inner, throttle, key)?,
            }
        };
        drop(head);
        waiter = Some(next);
    }
}

fn join<'a>(inner: &'a Inner, throttle: &Throttle, key: &str) -> Result<Waiter<'a>, LimitsError> {
    inner.queues.join(throttle, key).ok_or(LimitsError::Undecided)
}

async fn in_time<T>(deadline: Instant, wait: impl Future<Output = T>) -> Result<T, LimitsError> {
    timeout_at(deadline, wait).await.map_err(|_elapsed| LimitsError::Undecided)
}

/// One answer of the database.
enum Asked {
    Answered(Attempted),
    /// Only other attempts under way fill the key at this place.
    Full(i32),
}

async fn ask(inner: Arc<Inner>, keys: Keys) -> Result<Asked, LimitsError> {
    let id = Uuid::now_v7();
    let lapse_ms = millis(inner.config.reservation);
    let (names, texts, failures) = (keys.names(), keys.keys(), keys.failures());
    let shadows = keys.each(Throttle::is_shadow);
    for _ in 0..TRIES {
        // Read before the question is sent: locally a reservation never lapses later than there.
        let began_at = BootInstant::now();
        let answer = inner
            .lines
            .query(&statements::ATTEMPT, &[&id, &names, &texts, &failures, &shadows, &lapse_ms])
            .await;
        match answer {
            Ok(rows) => {
                let row = rows.first().ok_or(LimitsError::Undecided)?;
                return read(&inner, &keys, row, id, began_at).map_err(LimitsError::Database);
            }
            Err(error) => mend(&inner, error).await?,
        }
    }
    Err(LimitsError::Undecided)
}

fn read(
    inner: &Arc<Inner>,
    keys: &Keys,
    row: &Row,
    id: Uuid,
    began_at: BootInstant,
) -> Result<Asked, tokio_postgres::Error> {
    let throttled = |place: i32, retry_ms: i64| Throttled {
        name: keys.at(place).map_or("", |(throttle, _)| throttle.name()),
        retry_after: Duration::from_millis(u64::try_from(retry_ms).unwrap_or(0)),
    };
    let outcome: &str = row.try_get("outcome")?;
    Ok(match outcome {
        "throttled" => Asked::Answered(Attempted::Throttled(throttled(
            row.try_get("place")?,
            row.try_get("retry_ms")?,
        ))),
        "full" => Asked::Full(row.try_get("place")?),
        _ => {
            let reserved: Vec<bool> = row.try_get("reserved")?;
            let shadow = match row.try_get::<_, Option<i32>>("shadow_place")? {
                Some(place) => Some(throttled(place, row.try_get("shadow_retry_ms")?)),
                None => None,
            };
            let keys = keys.chosen(&reserved);
            Asked::Answered(Attempted::Admitted(Attempt::new(
                Arc::clone(inner),
                keys,
                id,
                began_at,
                shadow,
            )))
        }
    })
}

/// After a statement that failed without effect: mends what can be mended, so that it may be sent again.
pub(super) async fn mend(inner: &Inner, error: LimitsError) -> Result<(), LimitsError> {
    match error.kind() {
        Some(Kind::TableLost) => inner.repair().await,
        // The line was given up, and opens a connection to the server that accepts writes.
        Some(Kind::RolledBack | Kind::Standby) => Ok(()),
        Some(Kind::Unregistered | Kind::ConnectionLost | Kind::Other) | None => Err(error),
    }
}
