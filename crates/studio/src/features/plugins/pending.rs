//! An upload under way, as the database keeps it: seen by nobody until it is complete.

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::{MARGIN, UPLOAD_TIME};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::paging::Microseconds;
use crate::platform::problem::Problem;

const BEGIN: &str = include_str!("queries/begin.sql");
const WRITE_CHUNK: &str = include_str!("queries/write_chunk.sql");
const COMPLETE: &str = include_str!("queries/complete.sql");
const DISCARD: &str = include_str!("queries/discard.sql");
const SWEEP: &str = include_str!("queries/sweep.sql");

/// How often a failed upload is tried to be deleted while the database is away, and how long it waits between. Should
/// it never come back, the upload lapses.
const DISCARD_TRIES: u32 = 10;
const DISCARD_PAUSE: Duration = Duration::from_secs(1);

/// An upload under way. Each of its steps takes a connection for itself, so that none is held while the client takes
/// its time.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    app: App,
    pub(super) id: Uuid,
}

impl Pending {
    pub(super) async fn begin(app: &App, who: &SignedIn, name: &str) -> Result<Self, Problem> {
        let id = Uuid::now_v7();
        // Later than the guard's own end, so that no upload lapses under a request that goes on.
        let lapses = (UPLOAD_TIME + 2 * MARGIN).as_millis();
        let lapses = i64::try_from(lapses).unwrap_or(i64::MAX);
        let connection = app.pools.main().await?;
        let statement = connection.prepare_cached(BEGIN).await?;
        connection.execute(&statement, &[&id, &name, &who.account, &lapses]).await?;
        Ok(Self { app: app.clone(), id })
    }

    pub(super) async fn write(&self, number: i32, chunk: &Bytes) -> Result<(), Problem> {
        let connection = self.app.pools.main().await?;
        let statement = connection.prepare_cached(WRITE_CHUNK).await?;
        connection.execute(&statement, &[&self.id, &number, &&chunk[..]]).await?;
        Ok(())
    }

    /// Makes it a plugin that everybody sees; gives when.
    pub(super) async fn complete(
        &self,
        size: i32,
        sha256: &[u8],
        chunks: i32,
    ) -> Result<Microseconds, Problem> {
        let connection = self.app.pools.main().await?;
        let statement = connection.prepare_cached(COMPLETE).await?;
        let chunks = i64::from(chunks);
        let row = connection.query_opt(&statement, &[&self.id, &size, &sha256, &chunks]).await?;
        let row = row.ok_or_else(|| Problem::internal(&"an upload lapsed under its request"))?;
        Ok(row.get(0))
    }

    /// Deletes it, by a task that tries again while the database is away.
    pub(super) fn discard(self) {
        let tasks = self.app.tasks.clone();
        tasks.spawn(async move {
            for attempt in 0..DISCARD_TRIES {
                if attempt > 0 {
                    tokio::time::sleep(DISCARD_PAUSE).await;
                }
                if self.try_discard().await.is_ok() {
                    return;
                }
            }
            tracing::warn!(upload = %self.id, "A failed upload could not be deleted; it lapses");
        });
    }

    async fn try_discard(&self) -> Result<(), Problem> {
        let connection = self.app.pools.main().await?;
        connection.execute(DISCARD, &[&self.id]).await?;
        Ok(())
    }
}

/// Deletes uploads that were abandoned, because their replica died; gives how many.
///
/// # Errors
/// The database's.
pub async fn sweep(app: &App) -> Result<u64, Problem> {
    let connection = app.pools.main().await?;
    Ok(connection.execute(SWEEP, &[]).await?)
}
