//! `DELETE /api/v1/limits/permits/{id}`: ending a heavy request, whoever asked for it and wherever it runs.

use std::time::Duration;

use axum::extract::State;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::{Action, Outcome};
use crate::platform::heavy::{Holder, Stop};
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::PathId;
use crate::platform::work;

/// How long the work has to end: a cancelled query may take five seconds until its backend is terminated, and then
/// its outcome is written.
const PATIENCE: Duration = Duration::from_secs(15);

const ACCOUNT_NAME: &str = include_str!("queries/account_name.sql");

/// Ends a heavy request. The replica that runs it stops its work, and only when that has ended is the permit free:
/// this waits for it, at most 15 seconds. A permit whose work does not end, or whose replica is gone, stays as it is.
#[utoipa::path(
    delete,
    path = "/api/v1/limits/permits/{id}",
    tag = "limits",
    params(("id" = Uuid, Path, description = "The permit, as `GET /api/v1/limits` shows it")),
    responses(
        (status = 204, description = "The work has ended, and its permit is free"),
        (status = 404, description = "There is no such permit, or its work has ended already", body = ProblemDocument),
        (status = 503, description = "The work did not end in time, or the limits cannot be asked", body = ProblemDocument),
    )
)]
pub(super) async fn evict(
    State(app): State<App>,
    who: SignedIn,
    PathId(id): PathId,
) -> ApiResult<StatusCode> {
    let held = app.heavy.holders().await?;
    let holder = held.into_iter().find(|holder| holder.permit == id);
    let holder = holder.ok_or_else(Problem::not_found)?;
    let task = app.clone();
    // Asked is asked, also when whoever asked does not wait: the trail says how it ended.
    work::owned(&app, move |_left| async move { stop(&task, &who, &holder).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Audits, asks, waits, tells the outcome.
async fn stop(app: &App, who: &SignedIn, holder: &Holder) -> ApiResult<()> {
    let Holder { permit, endpoint, user, replica, .. } = holder;
    let name = account_name(app, user).await?;
    let detail = json!({ "endpoint": endpoint, "user": user, "name": name, "replica": replica });
    let target = format!("permit {permit}");
    let event = app.audit.begin(who, Action::PermitEvict, &target, detail, PATIENCE).await?;
    let stopped = tokio::select! {
        stopped = app.heavy.stop(*permit, PATIENCE) => stopped,
        () = app.stop_work.cancelled() => {
            event.finish(Outcome::Failed { reason: "replica shut down", rows: 0 }).await;
            return Err(Problem::draining());
        }
    };
    let (reason, problem) = match stopped {
        Ok(Stop::Ended) => {
            event.finish(Outcome::Complete { rows: 0 }).await;
            return Ok(());
        }
        // By itself, between the look and the question.
        Ok(Stop::NotHeld) => ("ended before", Problem::not_found()),
        Ok(Stop::StillHeld) => ("still held", still_held(app, holder).await),
        Err(error) => ("limits unavailable", error.into()),
    };
    event.finish(Outcome::Failed { reason, rows: 0 }).await;
    Err(problem)
}

/// What the account is called that the permit is counted for.
async fn account_name(app: &App, user: &str) -> ApiResult<Option<String>> {
    let Ok(account) = Uuid::parse_str(user) else { return Ok(None) };
    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(ACCOUNT_NAME).await?;
    let row = connection.query_opt(&statement, &[&account]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// 503: nothing was freed, and why it may take longer.
async fn still_held(app: &App, holder: &Holder) -> Problem {
    let replicas = app.heavy.replicas().await.unwrap_or_default();
    let replica = replicas.into_iter().find(|replica| Some(replica.id) == holder.replica);
    let state = replica.map_or_else(|| "gone".to_owned(), |replica| replica.state);
    let detail = if matches!(state.as_str(), "gone" | "stopped") {
        "The replica that ran the work is gone. Nobody can tell whether the work has ended, so its permit stays until its lease ends: its time bound and the margin."
    } else {
        "The work was asked to stop and has not ended. Its permit is not free before it has; its time bound stops it too."
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "permit-still-held", "The work has not ended")
        .detail(detail)
        .member("endpoint", holder.endpoint.as_str())
        .member("replica", holder.replica.map(|id| id.to_string()))
        .member("replicaState", state)
}
