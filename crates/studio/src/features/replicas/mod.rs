//! The replicas of this installation.

use axum::Json;
use axum::extract::State;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::platform::problem::{ApiResult, ProblemDocument};
use crate::platform::route::{Access, Cost, Route};

/// The most replicas that are listed.
const REPLICAS: usize = 1_000;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let cost = Cost::Cheap { rows: 1_000, bytes: 512 << 10 };
    vec![Route::new(Access::SignedIn, cost, routes!(replicas))]
}

/// The replicas, those that stopped or went away lately included.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
struct Replicas {
    /// The replica that answers.
    this: Uuid,
    replicas: Vec<ReplicaEntry>,
}

/// One replica.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReplicaEntry {
    id: Uuid,
    name: String,
    version: String,
    /// `starting`, `ready`, `draining`, `stopped`, or `gone` after 15 s without a word.
    state: String,
    started_ago_ms: u64,
    heartbeat_ago_ms: u64,
}

/// The replicas of this installation.
#[utoipa::path(
    get,
    path = "/api/v1/replicas",
    tag = "replicas",
    responses(
        (status = 200, description = "The replicas", body = Replicas),
        (status = 401, description = "Nobody is signed in", body = ProblemDocument),
        (status = 503, description = "The registry cannot be asked", body = ProblemDocument),
    )
)]
async fn replicas(State(app): State<App>) -> ApiResult<Json<Replicas>> {
    let milliseconds =
        |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let replicas = app
        .heavy
        .replicas()
        .await?
        .into_iter()
        .take(REPLICAS)
        .map(|replica| ReplicaEntry {
            id: replica.id,
            name: replica.name,
            version: replica.version,
            state: replica.state,
            started_ago_ms: milliseconds(replica.started_ago),
            heartbeat_ago_ms: milliseconds(replica.heartbeat_ago),
        })
        .collect();
    Ok(Json(Replicas { this: app.replica, replicas }))
}
