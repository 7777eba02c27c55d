//! How many replicas are ready: read from the registry at most every five seconds.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::BootInstant;
use crate::error::LimitsError;
use crate::limits::Inner;
use crate::statements;

const READ_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct ReadyReplicas {
    seen: Mutex<Option<Seen>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    tried_at: BootInstant,
    ready: u32,
}

impl ReadyReplicas {
    /// How many there are, at least one. While the registry cannot be read the last figure holds.
    pub(crate) async fn count(&self, inner: &Inner) -> Result<u32, LimitsError> {
        // One reads, and the others wait for what it finds.
        let mut seen = self.seen.lock().await;
        if let Some(seen) = seen.filter(|seen| seen.tried_at.elapsed() < READ_EVERY) {
            return Ok(seen.ready);
        }
        let tried_at = BootInstant::now();
        let ready = match (read(inner).await, *seen) {
            (Ok(ready), _) => ready,
            (Err(error), Some(seen)) => {
                tracing::warn!(%error, ready = seen.ready, "The ready replicas could not be counted");
                seen.ready
            }
            (Err(error), None) => return Err(error),
        };
        *seen = Some(Seen { tried_at, ready });
        Ok(ready)
    }
}

async fn read(inner: &Inner) -> Result<u32, LimitsError> {
    let rows = inner.lines.query(&statements::READY_REPLICAS, &[]).await?;
    let ready: i64 = match rows.first() {
        Some(row) => row.try_get(0).map_err(LimitsError::Database)?,
        None => 0,
    };
    // One that is not ready yet, or not any more, counts itself.
    Ok(u32::try_from(ready).unwrap_or(u32::MAX).max(1))
}
