//! One call of the limits that may be sent again: mended where a table was lost, repeated where it was
//! rolled back. A claim has its own way (claim.rs), since the answer to it must be found out.

use tokio_postgres::Row;

use crate::error::{Kind, LimitsError, kind};
use crate::limits::Inner;
use crate::line::{Line, Params};
use crate::metering;
use crate::statements::{self, Sql};

/// How often one call is sent again after the database rolled it back.
const TRIES: u32 = 4;

impl Inner {
    /// Runs a function of the limits on the line of `key`, and takes its only row. Where the answer is
    /// lost nobody knows whether it ran: call it for what may run unseen.
    pub(crate) async fn call(
        &self,
        key: &str,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Row, LimitsError> {
        let line = self.lines.of_user(key).ok_or(LimitsError::Unavailable(None))?;
        let _busy = line.busy();
        for _ in 0..TRIES {
            if let Some(row) = self.send(line, sql, params).await? {
                return Ok(row);
            }
        }
        Err(LimitsError::Undecided)
    }

    /// Sends it once; nothing when it may be sent again.
    async fn send(
        &self,
        line: &Line,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Option<Row>, LimitsError> {
        let connection = self.lines.open(line).await?;
        let timeout = self.config.claim_timeout;
        let answer = tokio::time::timeout(timeout, connection.query_one(sql, params)).await;
        let error = match answer {
            Ok(Ok(row)) => return Ok(Some(row)),
            Ok(Err(error)) => error,
            Err(_elapsed) => {
                line.retire(&connection).await;
                return Err(LimitsError::Unavailable(None));
            }
        };
        match kind(&error) {
            Kind::TableLost => self.repair().await.map(|()| None),
            Kind::RolledBack => Ok(None),
            Kind::Standby => {
                line.retire(&connection).await;
                Ok(None)
            }
            Kind::ConnectionLost => {
                line.retire(&connection).await;
                Err(LimitsError::Unavailable(Some(error)))
            }
            Kind::Unregistered | Kind::Other => Err(LimitsError::Database(error)),
        }
    }

    /// Makes anew what was lost.
    pub(crate) async fn repair(&self) -> Result<(), LimitsError> {
        metering::repair();
        tracing::warn!("A table of the limits was lost and is made anew");
        self.lines.query(&statements::REPAIR, &[]).await.map(drop)
    }
}
