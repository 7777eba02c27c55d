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
    /// Runs a statement of the limits on a line, and takes its only row. Where the answer is lost nobody
    /// knows whether it ran: call it for what may run unseen.
    pub(crate) async fn call(
        &self,
        line: usize,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Row, LimitsError> {
        let rows = self.rows(line, sql, params).await?;
        rows.into_iter().next().ok_or(LimitsError::Undecided)
    }

    /// As [`Self::call`], with all rows.
    pub(crate) async fn rows(
        &self,
        line: usize,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Vec<Row>, LimitsError> {
        let line = self.lines.at(line).ok_or(LimitsError::Unavailable(None))?;
        let _busy = line.busy();
        for _ in 0..TRIES {
            if let Some(rows) = self.send(line, sql, params).await? {
                return Ok(rows);
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
    ) -> Result<Option<Vec<Row>>, LimitsError> {
        let connection = self.lines.open(line).await?;
        let timeout = self.config.claim_timeout;
        let answer = tokio::time::timeout(timeout, connection.query(sql, params)).await;
        let error = match answer {
            Ok(Ok(rows)) => return Ok(Some(rows)),
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
        self.lines.query(&statements::REPAIR, &[]).await.map(drop)
    }
}
