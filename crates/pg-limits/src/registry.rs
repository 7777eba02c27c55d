//! This replica's place in the registry: registration, heartbeats and, in its turn, housekeeping.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use crate::LimitsError;
use crate::endpoint::Endpoint;
use crate::limits::Inner;
use crate::statements;

/// Rows that one sweep removes at most: few enough that no statement waits for it.
const SWEEP_BATCH: i32 = 500;
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// What a replica says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplicaState {
    /// Not serving yet.
    #[default]
    Starting,
    /// Serving.
    Ready,
    /// Serving what it has, and taking no more.
    Draining,
    /// Ended in good order.
    Stopped,
}

impl ReplicaState {
    /// The word for it in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }
}

pub(crate) async fn register(inner: &Inner) -> Result<(), LimitsError> {
    let config = &inner.config;
    let caps = config
        .endpoints
        .iter()
        .map(|endpoint| (endpoint.name(), endpoint.per_user()))
        .chain([("installation", config.installation_cap)]);
    let (names, caps): (Vec<&str>, Vec<i32>) =
        caps.map(|(name, cap)| (name, i32::try_from(cap).unwrap_or(i32::MAX))).unzip();
    let state = inner.state().as_str();
    inner
        .lines
        .query(
            &statements::REGISTER,
            &[&inner.replica, &config.replica_name, &config.replica_version, &state, &names, &caps],
        )
        .await?;
    Ok(())
}

/// Says once that this replica lives, and registers it anew where the registry has forgotten it.
pub(crate) async fn heartbeat(inner: &Inner) -> Result<(), LimitsError> {
    let state = inner.state().as_str();
    let rows = inner.lines.query(&statements::HEARTBEAT, &[&inner.replica, &state]).await?;
    let is_known = rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false));
    if is_known { Ok(()) } else { register(inner).await }
}

/// Removes one batch; how many rows, or none when another replica is at it.
pub(crate) async fn sweep(inner: &Inner) -> Result<Option<u32>, LimitsError> {
    let rows = inner.lines.query(&statements::SWEEP, &[&SWEEP_BATCH]).await?;
    let removed: i32 = rows.first().map_or(0, |row| row.try_get(0).unwrap_or(0));
    Ok(u32::try_from(removed).ok())
}

/// Runs until shutdown: a heartbeat at each interval, and now and then a sweep.
pub(crate) async fn keep(inner: Arc<Inner>) {
    // The registration was the first sign of life.
    let start = tokio::time::Instant::now();
    let mut beat = tokio::time::interval_at(start + inner.config.heartbeat, inner.config.heartbeat);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut housekeeping = tokio::time::interval_at(
        start + SWEEP_EVERY.mul_f64(rand::rng().random_range(0.5..1.5)),
        SWEEP_EVERY,
    );
    loop {
        let outcome = tokio::select! {
            biased;
            () = inner.shutdown.cancelled() => return,
            _ = beat.tick() => heartbeat(&inner).await,
            _ = housekeeping.tick() => sweep_all(&inner).await,
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "The replica registry could not be written");
        }
    }
}

async fn sweep_all(inner: &Inner) -> Result<(), LimitsError> {
    let full = u32::try_from(SWEEP_BATCH).unwrap_or(u32::MAX);
    while sweep(inner).await?.is_some_and(|removed| removed >= full) {}
    Ok(())
}

/// An endpoint that the claim knew and the registration did not: registered from then on.
pub(crate) fn is_declared(inner: &Inner, endpoint: &Endpoint) -> bool {
    inner.config.endpoints.iter().any(|declared| declared.name() == endpoint.name())
}
