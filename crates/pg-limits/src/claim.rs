//! One claim, from its user's turn to its permit: sent again where nothing happened, mended where
//! something is missing, settled where its answer was lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::clock::BootInstant;
use crate::endpoint::Endpoint;
use crate::error::{Kind, LimitsError, kind};
use crate::heavy_requests::Claim;
use crate::limits::Inner;
use crate::line::{Connection, Line};
use crate::metering;
use crate::permit::{Permit, Refusal, Scope};
use crate::registry;
use crate::release::{Release, Unknown};
use crate::statements;

/// How often one claim is sent again after the database rolled it back.
const TRIES: u32 = 4;

impl Inner {
    pub(crate) async fn claim(
        inner: &Arc<Self>,
        endpoint: Endpoint,
        user: &str,
    ) -> Result<Claim, LimitsError> {
        let wait = tokio::time::timeout(inner.config.claim_timeout, inner.turns.wait(user)).await;
        let Ok(_turn) = wait else { return Err(LimitsError::Undecided) };
        let line =
            inner.lines.at(inner.lines.index_of(user)).ok_or(LimitsError::Unavailable(None))?;
        let permit = Uuid::now_v7();
        // Read before the claim is sent: the local deadline never lies behind the database's.
        let claimed_at = BootInstant::now();
        let _busy = line.busy();
        for _ in 0..TRIES {
            let connection = inner.lines.open(line).await?;
            match inner.send_claim(&connection, permit, &endpoint, user).await {
                Sent::Answered(row) => {
                    return Self::read_claim(inner, &row, permit, endpoint, claimed_at);
                }
                Sent::Again => {}
                Sent::Lost(error) => {
                    line.retire(&connection).await;
                    Self::settle(inner, permit, &endpoint, &connection, claimed_at);
                    return Err(LimitsError::Unavailable(error));
                }
                Sent::Mend(mend) => inner.mend(line, &connection, mend, &endpoint).await?,
                Sent::Failed(error) => return Err(error),
            }
        }
        Err(LimitsError::Undecided)
    }

    async fn send_claim(
        &self,
        connection: &Connection,
        permit: Uuid,
        endpoint: &Endpoint,
        user: &str,
    ) -> Sent {
        let bound_ms = millis(endpoint.time_bound());
        let margin_ms = millis(self.config.margin);
        let name = endpoint.name();
        let answer = tokio::time::timeout(
            self.config.claim_timeout,
            connection.query_one(
                &statements::CLAIM,
                &[&permit, &name, &user, &self.replica, &bound_ms, &margin_ms],
            ),
        )
        .await;
        let error = match answer {
            Ok(Ok(row)) => return Sent::Answered(row),
            Ok(Err(error)) => error,
            Err(_elapsed) => return Sent::Lost(None),
        };
        match kind(&error) {
            Kind::TableLost => Sent::Mend(Mend::Table),
            Kind::Unregistered => Sent::Mend(Mend::Registration),
            Kind::Standby => Sent::Mend(Mend::Connection),
            Kind::RolledBack => Sent::Again,
            Kind::ConnectionLost => Sent::Lost(Some(error)),
            Kind::Other => Sent::Failed(LimitsError::Database(error)),
        }
    }

    async fn mend(
        &self,
        line: &Line,
        connection: &Arc<Connection>,
        mend: Mend,
        endpoint: &Endpoint,
    ) -> Result<(), LimitsError> {
        match mend {
            Mend::Table => self.repair().await,
            Mend::Registration if registry::is_declared(self, endpoint) => {
                registry::register(self).await
            }
            Mend::Registration => Err(LimitsError::Config(format!(
                "endpoint `{}` was not declared in the limits' Config",
                endpoint.name()
            ))),
            Mend::Connection => {
                line.retire(connection).await;
                Ok(())
            }
        }
    }

    fn read_claim(
        inner: &Arc<Self>,
        row: &Row,
        permit: Uuid,
        endpoint: Endpoint,
        claimed_at: BootInstant,
    ) -> Result<Claim, LimitsError> {
        let failed = LimitsError::Database;
        let outcome: &str = row.try_get("outcome").map_err(failed)?;
        match outcome {
            "granted" => {
                let lapses_at = claimed_at + endpoint.time_bound() + inner.config.margin;
                let scope = row.try_get("scope").map_err(failed)?;
                let slot = row.try_get("slot").map_err(failed)?;
                let release = Release::new(permit, scope, slot, lapses_at);
                let shadow = inner.read_refusal(row, Scope::User, &endpoint).map_err(failed)?;
                Ok(Claim::Granted(Permit::new(
                    Arc::clone(inner),
                    endpoint,
                    claimed_at,
                    release,
                    shadow,
                )))
            }
            "refused" => {
                let scope: &str = row.try_get("scope").map_err(failed)?;
                let scope = if scope == "user" { Scope::User } else { Scope::Installation };
                let refusal = inner.read_refusal(row, scope, &endpoint).map_err(failed)?;
                refusal.map(Claim::Refused).ok_or(LimitsError::Undecided)
            }
            _ => Err(LimitsError::Undecided),
        }
    }

    /// The refusal of an answer, or the one that shadow mode held back; none where no cap is named.
    fn read_refusal(
        &self,
        row: &Row,
        scope: Scope,
        endpoint: &Endpoint,
    ) -> Result<Option<Refusal>, tokio_postgres::Error> {
        let Some(limit) = row.try_get::<_, Option<i32>>("cap")? else { return Ok(None) };
        let live: Option<i32> = row.try_get("live")?;
        let earliest_ms: Option<i64> = row.try_get("earliest_ms")?;
        Ok(Some(Refusal {
            endpoint: endpoint.name(),
            scope,
            limit: u32::try_from(limit).unwrap_or(0),
            live: live.and_then(|live| u32::try_from(live).ok()).unwrap_or(0),
            retry_after: earliest_ms.map(|ms| {
                let earliest = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
                self.holds.retry_after(endpoint.name(), earliest)
            }),
        }))
    }

    /// Hands a claim of unknown outcome to a task that finds out, and gives back what it finds.
    fn settle(
        inner: &Arc<Self>,
        permit: Uuid,
        endpoint: &Endpoint,
        connection: &Connection,
        claimed_at: BootInstant,
    ) {
        let unknown = Unknown {
            permit,
            backend: connection.backend,
            // A claim that arrives late writes a later end: twice the lease is beyond any of them.
            lapses_at: claimed_at + (endpoint.time_bound() + inner.config.margin) * 2,
        };
        let inner = Arc::clone(inner);
        let tracked = Arc::clone(&inner);
        inner.permits_unknown.fetch_add(1, Ordering::Relaxed);
        metering::unknown(1.0);
        inner.tasks.spawn(async move {
            unknown.settle(Arc::clone(&tracked)).await;
            tracked.permits_unknown.fetch_sub(1, Ordering::Relaxed);
            metering::unknown(-1.0);
        });
    }
}

/// What became of one sending of a claim.
enum Sent {
    Answered(Row),
    /// Rolled back: nothing happened, and it may be sent again.
    Again,
    /// Something must be mended before it is sent again; nothing happened.
    Mend(Mend),
    /// Nobody knows whether it was granted.
    Lost(Option<tokio_postgres::Error>),
    Failed(LimitsError),
}

enum Mend {
    Table,
    Registration,
    Connection,
}

pub(crate) fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
