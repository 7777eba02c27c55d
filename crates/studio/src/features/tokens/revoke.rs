//! `DELETE /api/v1/tokens/{id}`: ending a token.

use axum::extract::State;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::{IS_THERE, target};
use crate::app::App;
use crate::platform::access::{Permission, SignedIn};
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::PathId;
use crate::platform::token::TokenId;

const REVOKE: &str = include_str!("queries/revoke.sql");

/// Revokes a token of your own, or anybody's with `users.admin`: both its secrets end at once, on all replicas, for
/// good. Revoking one that has ended changes nothing.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{id}",
    tag = "tokens",
    params(("id" = TokenId, Path, description = "The token")),
    responses(
        (status = 204, description = "It has ended"),
        (status = 404, description = "There is no such token, or it is another's", body = ProblemDocument),
    )
)]
pub(super) async fn revoke(
    State(app): State<App>,
    who: SignedIn,
    PathId(id): PathId,
) -> ApiResult<StatusCode> {
    let owner = (!who.may(Permission::UsersAdmin)).then_some(who.account);
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let statement = transaction.prepare_cached(REVOKE).await?;
    let Some(row) = transaction.query_opt(&statement, &[&id, &owner]).await? else {
        let statement = transaction.prepare_cached(IS_THERE).await?;
        let is_there = transaction.query_one(&statement, &[&id, &owner]).await?;
        return if is_there.get(0) {
            Ok(StatusCode::NO_CONTENT)
        } else {
            Err(Problem::not_found())
        };
    };
    let (owner, name): (Uuid, &str) = (row.get(0), row.get(1));
    let detail = json!({ "name": name, "owner": owner });
    let target = target(TokenId(id));
    app.audit.record_in(&transaction, &who, Action::TokenRevoke, &target, detail).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
