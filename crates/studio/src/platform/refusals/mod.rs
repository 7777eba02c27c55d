//! Refusals over time: counted in memory, added every ten seconds to what all replicas have counted.
//!
//! A replica that is killed loses what it had not flushed yet, at most some ten seconds. While the database is away
//! counts are kept. A flush whose answer was lost is sent again as the same batch, which the database adds once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::database::Pools;
use super::problem::Problem;

const FLUSH: &str = include_str!("queries/flush.sql");
const DELETE_OLD: &str = include_str!("queries/delete_old.sql");

/// How often counts are flushed, and how exactly their time is known.
pub const EVERY: Duration = Duration::from_secs(10);

/// The lengths of the rows in which refusals are counted, in minutes.
pub const SPANS: [i32; 5] = [1, 10, 60, 360, 1_440];

/// How many counts are kept while the database is away; more are added to the last of their kind.
const KEPT: usize = 20_000;

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    limit: &'static str,
    scope: &'static str,
    is_shadow: bool,
}

/// Counts by the ten seconds in which they were made, since this replica began.
type Counts = BTreeMap<(u64, Kind), i64>;

/// A number of counts that are added together or not at all.
#[derive(Debug)]
struct Batch {
    number: i64,
    counts: Counts,
}

#[derive(Debug)]
struct Inner {
    began: Instant,
    counts: Mutex<Counts>,
    /// The batch that was sent last, while nobody knows whether it was added.
    sent: tokio::sync::Mutex<Batch>,
}

/// The refusals of this replica. Clones share everything.
#[derive(Debug, Clone)]
pub struct Refusals(Arc<Inner>);

impl Default for Refusals {
    fn default() -> Self {
        let sent = tokio::sync::Mutex::new(Batch { number: 0, counts: Counts::new() });
        Self(Arc::new(Inner { began: Instant::now(), counts: Mutex::default(), sent }))
    }
}

impl Refusals {
    /// Counts one refusal. `scope` says whose limit it was: `user`, `token`, `network`, `installation`. In shadow
    /// nothing was refused. Takes no time; names are few and fixed.
    pub fn count(&self, limit: &'static str, scope: &'static str, is_shadow: bool) {
        metrics::counter!("studio_refusals_total", "limit" => limit, "scope" => scope, "shadow" => if is_shadow { "true" } else { "false" }).increment(1);
        let kind = Kind { limit, scope, is_shadow };
        let slot = self.0.began.elapsed().as_secs() / EVERY.as_secs();
        let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut counts, slot, kind, 1, KEPT);
    }

    /// Adds what was counted to what all replicas have counted. What could not be added, or perhaps was, is kept.
    ///
    /// # Errors
    /// A 503 or 500 problem; the next flush tries again.
    ///
    /// # Cancel safety
    /// Safe: what was sent is sent again.
    pub async fn flush(&self, pools: &Pools, replica: Uuid) -> Result<(), Problem> {
        let mut sent = self.0.sent.lock().await;
        if !sent.counts.is_empty() {
            self.send(pools, replica, &sent).await?;
            sent.counts.clear();
        }
        {
            let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
            sent.counts = std::mem::take(&mut counts);
        }
        if sent.counts.is_empty() {
            return Ok(());
        }
        sent.number += 1;
        self.send(pools, replica, &sent).await?;
        sent.counts.clear();
        Ok(())
    }

    async fn send(&self, pools: &Pools, replica: Uuid, batch: &Batch) -> Result<(), Problem> {
        let connection = pools.main().await?;
        let statement = connection.prepare_cached(FLUSH).await?;
        // Ages, for this replica's clock may be wrong; taken last, for a connection may have taken a while.
        let now = self.0.began.elapsed();
        let (mut ages, mut limits, mut scopes, mut shadows, mut counts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((slot, kind), count) in &batch.counts {
            let age = now.saturating_sub(EVERY * u32::try_from(*slot).unwrap_or(u32::MAX));
            // A slot lasts ten seconds: its middle is nearest to what was counted in it.
            let age = age.saturating_sub(EVERY / 2);
            ages.push(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
            limits.push(kind.limit);
            scopes.push(kind.scope);
            shadows.push(kind.is_shadow);
            counts.push(*count);
        }
        connection
            .execute(
                &statement,
                &[
                    &replica,
                    &batch.number,
                    &ages,
                    &limits,
                    &scopes,
                    &shadows,
                    &counts,
                    &SPANS.as_slice(),
                ],
            )
            .await?;
        Ok(())
    }

    /// Flushes again and again, until shutdown. The last flush is its caller's, when the last request has ended.
    pub async fn keep(self, pools: Pools, replica: Uuid, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            // Logged where it became a problem.
            self.flush(&pools, replica).await.ok();
        }
    }
}

/// Adds to a count. Beyond so many kept ones, to the last of its kind: when is then less exact, how many is not.
fn add(counts: &mut Counts, slot: u64, kind: Kind, count: i64, kept: usize) {
    let place = (slot, kind);
    if counts.len() >= kept
        && !counts.contains_key(&place)
        && let Some(last) = counts.iter_mut().rev().find(|((_, own), _)| *own == kind)
    {
        *last.1 += count;
        return;
    }
    *counts.entry(place).or_default() += count;
}

/// Deletes a batch of what is older than 30 days of each length; gives how many counts.
///
/// # Errors
/// The database's.
pub async fn delete_old(pools: &Pools) -> Result<u64, Problem> {
    let connection = pools.main().await?;
    let statement = connection.prepare_cached(DELETE_OLD).await?;
    let mut deleted = 0;
    for minutes in SPANS {
        deleted += connection.execute(&statement, &[&minutes]).await?;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::{Counts, Kind, add};

    #[test]
    fn what_does_not_fit_is_added_to_the_last_of_its_kind() {
        let [user, token] =
            ["user", "token"].map(|scope| Kind { limit: "a", scope, is_shadow: false });
        let mut counts = Counts::new();
        for slot in 0..3 {
            add(&mut counts, slot, user, 1, 3);
        }
        add(&mut counts, 4, user, 1, 3);
        add(&mut counts, 5, token, 1, 3);
        add(&mut counts, 5, token, 1, 3);
        let kept: Vec<_> = counts.into_iter().collect();
        assert_eq!(
            kept,
            [((0, user), 1), ((1, user), 1), ((2, user), 2), ((5, token), 2)],
            "a kind that is new has a place"
        );
    }
}
