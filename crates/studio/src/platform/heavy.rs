//! The limits on heavy requests, as Studio uses them.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
pub use pg_limits::{
    Admitted, Attempt, Attempted, BootInstant, CapInForce, Claim, Count, Counted, Endpoint, Entry,
    HeavyRequests, Holder, InFlight, LimitReached, LimitsError, Permit, Refusal, ReplicaState,
    Scope, Stop, Throttle, Throttled, Window, WindowState,
};

use super::problem::Problem;
use crate::app::App;
use crate::settings::Settings;

/// The limits' schema in their own database.
pub const SCHEMA: &str = "limits";

/// How long a replica that stops waits for its last releases.
pub const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// Connects to the limits and registers this replica with the caps of `endpoints`.
///
/// # Errors
/// When they cannot be reached, or have no schema yet.
pub async fn connect(settings: &Settings, endpoints: &[Endpoint]) -> anyhow::Result<HeavyRequests> {
    let database =
        settings.database.limits_url.parse().context("database.limits_url is not an address")?;
    let config = pg_limits::Config::new(database, settings.installation_cap(), endpoints)
        .schema(SCHEMA)
        .margin(settings.margin())
        .replica(settings.replica_name(), env!("CARGO_PKG_VERSION"));
    HeavyRequests::connect(config)
        .await
        .context("connecting to the limits (`studio migrate` sets them up)")
}

/// Claims a permit, or gives the problem to answer with. The permit carries the endpoint with its bounds in force, which
/// bound this request to its end, whatever is changed meanwhile.
///
/// # Errors
/// 429 when a limit is reached, 503 when that could not be decided.
pub async fn claim(app: &App, endpoint: &Endpoint, user: &str) -> Result<Permit, Problem> {
    let endpoint = app.in_force.endpoint(endpoint);
    match app.heavy.claim(&endpoint, user).await? {
        Claim::Granted(permit) => {
            if let Some(refusal) = permit.would_have_been_refused() {
                app.refusals.count(refusal.endpoint, refusal.scope.as_str(), true);
                log_refusal(user, refusal, true);
            }
            Ok(permit)
        }
        Claim::Refused(refusal) => {
            app.refusals.count(refusal.endpoint, refusal.scope.as_str(), false);
            log_refusal(user, &refusal, false);
            Err(refusal.into())
        }
    }
}

fn log_refusal(user: &str, refusal: &Refusal, is_shadow: bool) {
    if is_first_this_minute(user) {
        tracing::info!(
            user,
            endpoint = refusal.endpoint,
            scope = refusal.scope.as_str(),
            limit = refusal.limit,
            is_shadow,
            "A heavy request was refused, or would be without shadow mode"
        );
    }
}

/// Who was told of in the log, and when. Metrics count every refusal; the log need not.
static TOLD: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);

/// Whether nothing was told of this user, or other key, within the last minute.
pub fn is_first_this_minute(user: &str) -> bool {
    const MINUTE: Duration = Duration::from_mins(1);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.retain(|_, when| when.elapsed() < MINUTE);
    if told.contains_key(user) {
        return false;
    }
    told.insert(user.to_owned(), Instant::now());
    true
}
