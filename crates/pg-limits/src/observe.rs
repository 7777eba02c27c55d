//! What operators may see: caps in force, holders, replicas.

use std::time::Duration;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::LimitsError;
use crate::heavy_requests::HeavyRequests;
use crate::limits::Limits;
use crate::statements;

/// A cap as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapInForce {
    /// An endpoint's name, or `installation`.
    pub name: String,
    /// What an operator set, if anything.
    pub set: Option<u32>,
    /// What claims count against.
    pub in_force: u32,
    /// Whether it is in shadow mode, and refuses nothing.
    pub is_shadow: bool,
}

/// A live permit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The permit's id.
    pub permit: Uuid,
    /// What it was claimed for.
    pub endpoint: String,
    /// Who claimed it.
    pub user: String,
    /// The replica on which the work runs, where the claim said so.
    pub replica: Option<Uuid>,
    /// How long it has been held, by the database's clock.
    pub held: Duration,
    /// How long until its time bound, by the database's clock.
    pub remaining: Duration,
}

/// A replica in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replica {
    /// The id it chose at its start.
    pub id: Uuid,
    /// The name it gave.
    pub name: String,
    /// The version it gave.
    pub version: String,
    /// `starting`, `ready`, `draining`, `stopped`, or `gone` after 15 s without a heartbeat.
    pub state: String,
    /// How long ago it started, by the database's clock.
    pub started_ago: Duration,
    /// How long ago it last said that it lives, by the database's clock.
    pub heartbeat_ago: Duration,
}

fn millis(row: &Row, column: &str) -> Result<Duration, LimitsError> {
    let ms: i64 = row.try_get(column).map_err(LimitsError::Database)?;
    Ok(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

fn cap(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

impl HeavyRequests {
    /// The caps in force, by name.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe: a read.
    pub async fn caps(&self) -> Result<Vec<CapInForce>, LimitsError> {
        let rows = self.inner.lines.query(&statements::CAPS, &[]).await?;
        rows.iter()
            .map(|row| {
                Ok(CapInForce {
                    name: row.try_get("name")?,
                    set: row.try_get::<_, Option<i32>>("cap_set")?.map(cap),
                    in_force: cap(row.try_get("in_force")?),
                    is_shadow: row.try_get("is_shadow")?,
                })
            })
            .collect::<Result<_, _>>()
            .map_err(LimitsError::Database)
    }

    /// Sets the cap of an endpoint, or of `installation`, for all replicas; `None` returns it to
    /// the smallest that a live replica registered. In force for every claim that begins after
    /// the call. Permits above a lowered cap stay, and count.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// The cap may or may not be set; setting it again is harmless.
    pub async fn set_cap(&self, name: &str, cap: Option<u32>) -> Result<(), LimitsError> {
        let cap = cap.map(|cap| i32::try_from(cap).unwrap_or(i32::MAX));
        self.inner.lines.query(&statements::SET_CAP, &[&name, &cap]).await?;
        Ok(())
    }

    /// Puts the cap of an endpoint into shadow mode on all replicas, or back in force. In shadow
    /// mode a user's own cap refuses nothing, and a permit beyond it says so
    /// ([`crate::Permit::would_have_been_refused`]); the installation's cap, and the half of it that
    /// one user may hold, go on refusing. Holds for every claim that begins after the call.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Config`] for `installation`, which has no shadow mode; else when the limits'
    /// database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// The mode may or may not be set; setting it again is harmless.
    pub async fn set_shadow(&self, name: &str, is_shadow: bool) -> Result<(), LimitsError> {
        if is_shadow && name == "installation" {
            return Err(LimitsError::Config("`installation` has no shadow mode".to_owned()));
        }
        self.inner.lines.query(&statements::SET_SHADOW, &[&name, &is_shadow]).await?;
        Ok(())
    }

    /// The live permits of all replicas, oldest first.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe: a read.
    pub async fn holders(&self) -> Result<Vec<Holder>, LimitsError> {
        let rows = self.inner.lines.query(&statements::HOLDERS, &[]).await?;
        rows.iter()
            .map(|row| {
                let text = |column: &str| row.try_get(column).map_err(LimitsError::Database);
                Ok(Holder {
                    permit: row.try_get("permit").map_err(LimitsError::Database)?,
                    endpoint: text("endpoint")?,
                    user: text("user_id")?,
                    replica: row.try_get("replica").map_err(LimitsError::Database)?,
                    held: millis(row, "held_ms")?,
                    remaining: millis(row, "remaining_ms")?,
                })
            })
            .collect()
    }
}

impl Limits {
    /// The registered replicas, the longest running first.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe: a read.
    pub async fn replicas(&self) -> Result<Vec<Replica>, LimitsError> {
        let rows = self.inner.lines.query(&statements::REPLICAS, &[]).await?;
        rows.iter()
            .map(|row| {
                let text = |column: &str| row.try_get(column).map_err(LimitsError::Database);
                Ok(Replica {
                    id: row.try_get("id").map_err(LimitsError::Database)?,
                    name: text("name")?,
                    version: text("version")?,
                    state: text("state")?,
                    started_ago: millis(row, "started_ms_ago")?,
                    heartbeat_ago: millis(row, "heartbeat_ms_ago")?,
                })
            })
            .collect()
    }

    /// Removes one batch of rows that nobody will come back to, and says how many; `None` when
    /// another replica is at it. Runs by itself every minute; call it where a test or an operator
    /// will not wait.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe: a batch is one transaction.
    pub async fn sweep(&self) -> Result<Option<u32>, LimitsError> {
        crate::registry::sweep(&self.inner).await
    }
}
