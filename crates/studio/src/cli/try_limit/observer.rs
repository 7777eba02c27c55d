//! Counts live queries of the SQL console in the database, without asking Studio.

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::platform::schema;

const LIVE: &str = include_str!("live.sql");

/// Between two looks. A query of a few seconds is seen hundreds of times.
const LOOK: Duration = Duration::from_millis(10);

/// A task that looks again and again.
#[derive(Debug)]
pub(super) struct Observer {
    stop: oneshot::Sender<()>,
    watch: JoinHandle<anyhow::Result<i64>>,
}

impl Observer {
    pub(super) async fn start(database: &str) -> anyhow::Result<Self> {
        let config = database.parse().context("--database is not an address")?;
        let client = schema::connect(&config).await.context("connecting the observer")?;
        let statement = client.prepare(LIVE).await?;
        let (stop, mut stopped) = oneshot::channel();
        let watch = tokio::spawn(async move {
            let mut most = 0;
            loop {
                most = most.max(client.query_one(&statement, &[]).await?.get(0));
                tokio::select! {
                    _ = &mut stopped => return Ok(most),
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        });
        Ok(Self { stop, watch })
    }

    /// Stops; gives the most that were live at one time.
    pub(super) async fn most_at_once(self) -> anyhow::Result<i64> {
        drop(self.stop);
        self.watch.await?
    }
}
