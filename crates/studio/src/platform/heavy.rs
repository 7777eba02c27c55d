//! Stands in for `pg-limits` until its first version is merged: the same names, no limits.

#![expect(
    clippy::return_self_not_must_use,
    clippy::unused_async,
    reason = "stands in for pg-limits"
)]

use std::time::{Duration, Instant};

use uuid::Uuid;

/// See `pg_limits::Endpoint`.
#[derive(Debug)]
pub struct Endpoint {
    name: &'static str,
    per_user: u32,
    time_bound: Duration,
    row_cap: u64,
    byte_cap: u64,
}

impl Endpoint {
    pub const fn new(name: &'static str, per_user: u32, time_bound: Duration) -> Self {
        Self { name, per_user, time_bound, row_cap: 0, byte_cap: 0 }
    }
    pub const fn rows(mut self, rows: u64) -> Self {
        self.row_cap = rows;
        self
    }
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.byte_cap = bytes;
        self
    }
    pub const fn name(&self) -> &'static str {
        self.name
    }
    pub const fn per_user(&self) -> u32 {
        self.per_user
    }
    pub const fn time_bound(&self) -> Duration {
        self.time_bound
    }
    pub const fn row_cap(&self) -> u64 {
        self.row_cap
    }
    pub const fn byte_cap(&self) -> u64 {
        self.byte_cap
    }
}

/// See `pg_limits::HeavyRequests`.
#[derive(Debug, Clone, Default)]
pub struct HeavyRequests;

impl HeavyRequests {
    /// Always grants.
    pub async fn claim(&self, endpoint: &Endpoint, _user: &str) -> Result<Claim, LimitsError> {
        Ok(Claim::Granted(Permit {
            id: Uuid::now_v7(),
            end: Instant::now() + endpoint.time_bound(),
        }))
    }
}

/// See `pg_limits::Claim`.
#[derive(Debug)]
pub enum Claim {
    /// A permit.
    Granted(Permit),
    /// A refusal.
    Refused(Refusal),
}

/// See `pg_limits::Permit`.
#[derive(Debug)]
pub struct Permit {
    id: Uuid,
    end: Instant,
}

impl Permit {
    pub fn id(&self) -> Uuid {
        self.id
    }
    pub fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
    pub async fn bound_reached(&self) {
        tokio::time::sleep(self.remaining()).await;
    }
    pub async fn release(self) {}
}

/// See `pg_limits::Scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's own cap.
    User,
    /// The installation's cap.
    Installation,
}

/// See `pg_limits::Refusal`.
#[derive(Debug)]
pub struct Refusal {
    pub endpoint: String,
    pub scope: Scope,
    pub limit: u32,
    pub retry_after: Option<Duration>,
}

/// See `pg_limits::LimitsError`.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// The limits' database cannot be reached.
    #[error("the limits are unavailable")]
    Unavailable,
    /// The claim was neither granted nor refused in time.
    #[error("the claim was not decided in time")]
    Undecided,
}

/// Connects to the limits.
///
/// # Errors
/// When they cannot be reached.
pub async fn connect(_settings: &crate::settings::Settings) -> anyhow::Result<HeavyRequests> {
    Ok(HeavyRequests)
}

/// Installs the limits and lets a role claim.
///
/// # Errors
/// The database's.
pub async fn migrate(_client: &mut tokio_postgres::Client, _role: &str) -> anyhow::Result<()> {
    Ok(())
}

/// See `pg_limits::ReplicaState`.
#[derive(Debug, Clone, Copy)]
pub enum ReplicaState {
    Ready,
    Draining,
}

impl HeavyRequests {
    pub async fn set_state(&self, _state: ReplicaState) {}
    pub async fn shutdown(&self) {}
}
