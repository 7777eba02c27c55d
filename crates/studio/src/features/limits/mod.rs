//! Limits in force, who holds permits, and ending what they run.

mod evict;

mod history;

use axum::Json;
use axum::extract::State;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::platform::access::{Permission, SignedIn};
use crate::platform::problem::{ApiResult, ProblemDocument};
use crate::platform::route::{Access, Cost, Route};

/// The most holders that are listed; totals count all.
const HOLDERS: usize = 1_000;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let cost = Cost::Cheap { rows: 2_000, bytes: 512 << 10 };
    let history = Cost::Cheap { rows: history::ROWS, bytes: 256 << 10 };
    // Reads a row a permit.
    let evict = Cost::Cheap { rows: 2_000, bytes: 4 << 10 };
    vec![
        Route::new(Access::SignedIn, cost, routes!(limits)),
        Route::new(Access::SignedIn, history, routes!(history::history)),
        Route::new(Access::SessionNeeds(Permission::LimitsEvict), evict, routes!(evict::evict)),
    ]
}

/// Limits and their use over all replicas, as one moment showed them.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
struct Limits {
    limits: Vec<Limit>,
    /// Your own permits; everybody's for administrators. At most 1,000, those that end first.
    holders: Vec<PermitHolder>,
}

/// One limit.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct Limit {
    /// An endpoint, whose limit is each user's, or `installation`, whose limit all users share.
    #[schema(example = "sql_console")]
    name: String,
    #[serde(rename = "limit")]
    in_force: u32,
    /// Permits held by all users together.
    held: u32,
    /// Permits held by you.
    held_by_you: u32,
}

/// A heavy request under way.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct PermitHolder {
    permit: Uuid,
    endpoint: String,
    /// The account's id.
    user: String,
    replica: Option<Uuid>,
    held_ms: u64,
    /// Until its time bound.
    remaining_ms: u64,
}

/// The limits on heavy requests, and who uses them up.
#[utoipa::path(
    get,
    path = "/api/v1/limits",
    tag = "limits",
    responses(
        (status = 200, description = "Limits and holders", body = Limits),
        (status = 401, description = "Nobody is signed in", body = ProblemDocument),
        (status = 503, description = "The limits cannot be asked", body = ProblemDocument),
    )
)]
async fn limits(State(app): State<App>, who: SignedIn) -> ApiResult<Json<Limits>> {
    let (caps, held) = (app.heavy.caps().await?, app.heavy.holders().await?);
    let user = who.user();
    let count = |name: &str, by_you: bool| {
        let held = held.iter().filter(|holder| {
            (name == "installation" || holder.endpoint == name) && (!by_you || holder.user == user)
        });
        u32::try_from(held.count()).unwrap_or(u32::MAX)
    };
    let limits = caps
        .into_iter()
        .map(|cap| Limit {
            held: count(&cap.name, false),
            held_by_you: count(&cap.name, true),
            in_force: cap.in_force,
            name: cap.name,
        })
        .collect();
    let sees_all = who.may(Permission::LimitsEvict);
    let mut holders: Vec<PermitHolder> = held
        .into_iter()
        .filter(|holder| sees_all || holder.user == user)
        .map(|holder| PermitHolder {
            permit: holder.permit,
            endpoint: holder.endpoint,
            user: holder.user,
            replica: holder.replica,
            held_ms: u64::try_from(holder.held.as_millis()).unwrap_or(u64::MAX),
            remaining_ms: u64::try_from(holder.remaining.as_millis()).unwrap_or(u64::MAX),
        })
        .collect();
    holders.sort_by_key(|holder| holder.remaining_ms);
    holders.truncate(HOLDERS);
    Ok(Json(Limits { limits, holders }))
}
