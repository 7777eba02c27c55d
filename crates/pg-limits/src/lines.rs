//! The limiter's own few connections: pipelined, and never those of the pool that it protects, so
//! that a claim never waits for a connection that a heavy request holds.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_util::task::TaskTracker;

use crate::LimitsError;
use crate::config::Config;
use crate::error::{Kind, kind};
use crate::line::{Connection, Line, Params};
use crate::statements::Sql;

#[derive(Debug)]
pub(crate) struct Lines {
    all: Vec<Line>,
    config: Arc<Config>,
    tasks: TaskTracker,
}

impl Lines {
    pub(crate) fn new(config: Arc<Config>, tasks: TaskTracker) -> Self {
        let all = (0..config.connections).map(|_| Line::default()).collect();
        Self { all, config, tasks }
    }

    /// Which line all calls for one key go on: one server process then serves them in order, and they do
    /// not wait for each other's lock.
    pub(crate) fn index_of(&self, key: &str) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let count = u64::try_from(self.all.len()).unwrap_or(u64::MAX);
        let index = hasher.finish().checked_rem(count).unwrap_or(0);
        usize::try_from(index).unwrap_or(0)
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Line> {
        self.all.get(index)
    }

    /// The line with the fewest calls under way.
    pub(crate) fn quietest(&self) -> Option<&Line> {
        self.all.iter().min_by_key(|line| line.under_way())
    }

    pub(crate) async fn open(&self, line: &Line) -> Result<Arc<Connection>, LimitsError> {
        line.connection(&self.config, &self.tasks).await
    }

    /// Runs one statement on the quietest line.
    pub(crate) async fn query(
        &self,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Vec<Row>, LimitsError> {
        let line = self.quietest().ok_or(LimitsError::Unavailable(None))?;
        let _busy = line.busy();
        let connection = self.open(line).await?;
        let answer =
            tokio::time::timeout(self.config.claim_timeout, connection.query(sql, params)).await;
        match answer {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => {
                let kind = kind(&error);
                if matches!(kind, Kind::ConnectionLost | Kind::Standby) {
                    line.retire(&connection).await;
                    return Err(LimitsError::Unavailable(Some(error)));
                }
                if kind == Kind::RolledBack {
                    return Err(LimitsError::Unavailable(Some(error)));
                }
                Err(LimitsError::Database(error))
            }
            Err(_elapsed) => {
                line.retire(&connection).await;
                Err(LimitsError::Unavailable(None))
            }
        }
    }
}
