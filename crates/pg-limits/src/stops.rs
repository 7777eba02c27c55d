//! Stopping work under a permit from any replica: somebody asks in the database, the replica that holds the
//! permit looks there, and its work ends by itself. A permit is freed by its holder, and by nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::BootInstant;
use crate::error::{Kind, LimitsError};
use crate::heavy_requests::HeavyRequests;
use crate::limits::Inner;
use crate::permit::BoundReached;
use crate::statements;

/// How often a replica that holds permits looks for what was asked.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often somebody who asked looks whether the permit is free.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Somebody asked for the work under a permit to stop ([`HeavyRequests::stop`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("work of endpoint `{endpoint}` was asked to stop")]
#[non_exhaustive]
pub struct StopAsked {
    /// The endpoint whose work it is.
    pub endpoint: &'static str,
}

/// Why the work under a permit was stopped before its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// At its time bound.
    #[error(transparent)]
    BoundReached(#[from] BoundReached),
    /// Because somebody asked.
    #[error(transparent)]
    StopAsked(#[from] StopAsked),
}

/// What asking for work to stop came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "work that was asked to stop may still run"]
pub enum Stop {
    /// No live permit has this id: it never had, or the work had ended before.
    NotHeld,
    /// The permit is free: its holder gave it back, or its lease came to its end.
    Ended,
    /// Within the patience nobody gave it back: its replica is gone or cut off, or its work does not
    /// obey. It was asked, and the permit stays what it was; the lease ends it.
    StillHeld,
}

/// The permits of this replica, each with what tells its work that it was asked to stop.
#[derive(Debug, Default)]
pub(crate) struct Held {
    permits: Mutex<HashMap<Uuid, CancellationToken>>,
    begun: Notify,
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, CancellationToken>> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, permit: Uuid) -> CancellationToken {
        let asked = CancellationToken::new();
        self.lock().insert(permit, asked.clone());
        self.begun.notify_one();
        asked
    }

    pub(crate) fn end(&self, permit: Uuid) {
        self.lock().remove(&permit);
    }

    /// Those that nobody has asked for yet.
    fn unasked(&self) -> Vec<Uuid> {
        self.lock()
            .iter()
            .filter(|(_, asked)| !asked.is_cancelled())
            .map(|(permit, _)| *permit)
            .collect()
    }

    fn ask(&self, permit: Uuid) {
        if let Some(asked) = self.lock().get(&permit) {
            asked.cancel();
        }
    }

    /// Waits until there is one that nobody has asked for yet.
    async fn some(&self) {
        loop {
            let begun = self.begun.notified();
            if self.lock().values().any(|asked| !asked.is_cancelled()) {
                return;
            }
            begun.await;
        }
    }
}

/// Runs until shutdown: tells permits of this replica that they were asked for. While there is none it sends
/// nothing, and one that is given back soon is never looked for.
pub(crate) async fn watch(inner: Arc<Inner>) {
    let look = async {
        loop {
            inner.held.some().await;
            tokio::time::sleep(LOOK_EVERY).await;
            look(&inner).await;
        }
    };
    tokio::select! {
        () = inner.shutdown.cancelled() => {}
        () = look => {}
    }
}

async fn look(inner: &Inner) {
    let permits = inner.held.unasked();
    if permits.is_empty() {
        return;
    }
    let asked = match inner.lines.query(&statements::STOP_REQUESTS, &[&permits]).await {
        Ok(rows) => rows,
        Err(error) => {
            // The next look asks again: what was asked stays as long as the permit.
            tracing::debug!(%error, "Whether work was asked to stop could not be read");
            if error.kind() == Some(Kind::TableLost)
                && let Err(error) = inner.repair().await
            {
                tracing::warn!(%error, "A table of the limits could not be made anew");
            }
            return;
        }
    };
    for permit in asked.iter().filter_map(|row| row.try_get::<_, Uuid>(0).ok()) {
        tracing::info!(%permit, "Work under a permit was asked to stop");
        inner.held.ask(permit);
    }
}

impl HeavyRequests {
    /// Asks the replica that holds a permit to stop its work, and waits until the permit is free.
    ///
    /// The holder hears of it within about half a second, by [`crate::Permit::stop_asked`], and gives
    /// the permit back when its work has ended. Nothing else frees it: a permit whose replica does not
    /// answer stays until its lease ends. Asking twice, or from two replicas, is harmless.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked, or lost its tables meanwhile: nobody can tell then
    /// whether the work has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the waiting; what was asked stays asked.
    pub async fn stop(&self, permit: Uuid, patience: Duration) -> Result<Stop, LimitsError> {
        self.inner.check_open()?;
        let give_up_at = BootInstant::now() + patience;
        let line = self.inner.lines.index_of(&permit.to_string());
        let row = self.inner.call(line, &statements::ASK_STOP, &[&permit]).await?;
        let place = |index: usize| row.try_get::<_, Option<String>>(index);
        let scope = place(0).map_err(LimitsError::Database)?;
        let slot: Option<i32> = row.try_get(1).map_err(LimitsError::Database)?;
        let (Some(scope), Some(slot)) = (scope, slot) else { return Ok(Stop::NotHeld) };
        loop {
            tokio::time::sleep(CHECK_EVERY.min(give_up_at.remaining())).await;
            let is_late = give_up_at.remaining().is_zero();
            match self.is_held(&scope, slot, permit).await {
                Ok(false) => return Ok(Stop::Ended),
                Ok(true) if is_late => return Ok(Stop::StillHeld),
                Err(error) if is_late || !error.is_transient() => return Err(error),
                Ok(true) | Err(_) => {}
            }
        }
    }

    async fn is_held(&self, scope: &str, slot: i32, permit: Uuid) -> Result<bool, LimitsError> {
        let rows = self.inner.lines.query(&statements::IS_HELD, &[&scope, &slot, &permit]).await?;
        // A place stays for ever: without it the table was emptied, and what ran may still run.
        let row = rows.first().ok_or(LimitsError::Unavailable(None))?;
        row.try_get(0).map_err(LimitsError::Database)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_waiting(held: &Held) -> bool {
        pin!(held.some()).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    #[test]
    fn there_is_nothing_to_look_for_while_nothing_is_held_or_all_was_asked() {
        let (held, permit) = (Held::default(), Uuid::now_v7());
        assert!(is_waiting(&held));
        let asked = held.begin(permit);
        assert!(!is_waiting(&held));
        assert_eq!(held.unasked(), [permit]);
        held.ask(permit);
        assert!(asked.is_cancelled() && held.unasked().is_empty() && is_waiting(&held));
        held.end(permit);
        held.ask(permit);
        let other = Uuid::now_v7();
        held.begin(other);
        assert!(!is_waiting(&held));
        held.end(other);
        assert!(is_waiting(&held));
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_first_that_begins() {
        let held = Arc::new(Held::default());
        let waiting = wait_for_some(&held);
        held.begin(Uuid::now_v7());
        waiting.await.unwrap();
    }

    fn wait_for_some(held: &Arc<Held>) -> tokio::task::JoinHandle<()> {
        let held = Arc::clone(held);
        tokio::spawn(async move { held.some().await })
    }
}
