//! Giving permits back, off the request's path: every release is an owned task that repeats until
//! the database has answered or the lease has ended by itself.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::BootInstant;
use crate::error::{Kind, kind};
use crate::limits::Inner;
use crate::line::Backend;
use crate::statements;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Behind a pooler we cannot end the server process that serves a claim; its statements end by
/// themselves well within this time, so a claim still unseen after it will not arrive.
const POOLER_PATIENCE: Duration = Duration::from_secs(10);

/// What a release needs: the row's primary key, and the id that keeps it from freeing a successor.
#[derive(Debug)]
pub(crate) struct Release {
    permit: Uuid,
    scope: String,
    slot: i32,
    lapses_at: BootInstant,
}

impl Release {
    pub(crate) fn new(permit: Uuid, scope: String, slot: i32, lapses_at: BootInstant) -> Self {
        Self { permit, scope, slot, lapses_at }
    }

    pub(crate) fn permit(&self) -> Uuid {
        self.permit
    }

    pub(crate) async fn run(self, inner: Arc<Inner>) {
        let mut pause = FIRST_PAUSE;
        while !self.lapses_at.remaining().is_zero() {
            if self.attempt(&inner).await {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        tracing::warn!(permit = %self.permit, "A permit lapsed before its release arrived");
    }

    /// One attempt; true when there is nothing left to free.
    async fn attempt(&self, inner: &Inner) -> bool {
        let Some(line) = inner.lines.quietest() else { return true };
        let _busy = line.busy();
        let Ok(connection) = inner.lines.open(line).await else { return false };
        let answer = tokio::time::timeout(
            inner.config.claim_timeout,
            connection.query_one(&statements::RELEASE, &[&self.scope, &self.slot, &self.permit]),
        )
        .await;
        match answer {
            Ok(Ok(_freed)) => true,
            Ok(Err(error)) => match kind(&error) {
                // The table went, and our row with it.
                Kind::TableLost => true,
                Kind::ConnectionLost | Kind::Standby => {
                    line.retire(&connection).await;
                    false
                }
                Kind::RolledBack | Kind::Unregistered => false,
                Kind::Other => {
                    tracing::error!(permit = %self.permit, %error, "A permit cannot be released");
                    false
                }
            },
            Err(_elapsed) => {
                line.retire(&connection).await;
                false
            }
        }
    }
}

/// A claim whose answer was lost.
#[derive(Debug)]
pub(crate) struct Unknown {
    pub(crate) permit: Uuid,
    pub(crate) backend: Option<Backend>,
    pub(crate) lapses_at: BootInstant,
}

impl Unknown {
    /// Repeats the release by id until it finds the permit, or the claim can no longer arrive.
    pub(crate) async fn settle(self, inner: Arc<Inner>) {
        let asked_at = BootInstant::now();
        let mut pause = FIRST_PAUSE;
        while !self.lapses_at.remaining().is_zero() {
            // First make sure that the claim cannot arrive any more, then look for what it left.
            let is_over = self.cannot_arrive(&inner, asked_at).await;
            let freed = inner
                .lines
                .query(&statements::RELEASE_BY_ID, &[&self.permit])
                .await
                .ok()
                .and_then(|rows| rows.first().and_then(|row| row.try_get::<_, bool>(0).ok()));
            match freed {
                Some(true) => return,
                Some(false) if is_over => return,
                Some(false) | None => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        tracing::warn!(permit = %self.permit, "A permit of unknown outcome was left to lapse");
    }

    async fn cannot_arrive(&self, inner: &Inner, asked_at: BootInstant) -> bool {
        let Some(backend) = self.backend else { return asked_at.elapsed() > POOLER_PATIENCE };
        let still_ran = inner
            .lines
            .query(&statements::END_BACKEND, &[&backend.pid, &backend.started_us])
            .await
            .ok()
            .and_then(|rows| rows.first().and_then(|row| row.try_get::<_, bool>(0).ok()));
        still_ran == Some(false)
    }
}
