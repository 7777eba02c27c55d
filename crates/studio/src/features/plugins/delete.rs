//! `DELETE /api/v1/plugins/{id}`.

use axum::extract::State;
use http::StatusCode;
use serde_json::json;

use super::{hexadecimal, target};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::PathId;

const DELETE: &str = include_str!("queries/delete.sql");

/// Deletes a plugin.
#[utoipa::path(
    delete,
    path = "/api/v1/plugins/{id}",
    tag = "plugins",
    params(("id" = uuid::Uuid, Path, description = "The plugin")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, description = "There is no such plugin", body = ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    who: SignedIn,
    PathId(id): PathId,
) -> ApiResult<StatusCode> {
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let statement = transaction.prepare_cached(DELETE).await?;
    let row = transaction.query_opt(&statement, &[&id]).await?.ok_or_else(Problem::not_found)?;
    let (name, size): (&str, i32) = (row.get(0), row.get(1));
    let detail = json!({ "name": name, "sizeBytes": size, "sha256": hexadecimal(row.get(2)) });
    app.audit.record_in(&transaction, &who, Action::PluginDelete, &target(id), detail).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
