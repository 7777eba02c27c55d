//! `PUT /api/v1/users/{id}`: an account's role, and whether it is disabled.

use axum::Json as Answer;
use axum::extract::State;
use deadpool_postgres::Transaction;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::User;
use crate::app::App;
use crate::platform::access::{Role, SignedIn};
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::{Json, PathId};
use crate::platform::{session, token};

const TAKE_TURN: &str = include_str!("queries/take_turn.sql");
const LOCK: &str = include_str!("queries/lock.sql");
const HAS_OTHER_ADMINISTRATOR: &str = include_str!("queries/has_other_administrator.sql");
const CHANGE: &str = include_str!("queries/change.sql");

/// What the account is from now on.
#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    role: Role,
    is_disabled: bool,
}

/// Changes an account's role, or disables or enables it, on all replicas at the next request. Either ends its
/// sessions; disabling it also revokes its tokens, and enabling it again brings nothing back.
#[utoipa::path(
    put,
    path = "/api/v1/users/{id}",
    tag = "users",
    params(("id" = uuid::Uuid, Path, description = "The account")),
    request_body = Wanted,
    responses(
        (status = 200, description = "The account as it is now", body = User),
        (status = 404, description = "There is no such account", body = ProblemDocument),
        (status = 409, description = "Your own account, or the last administrator's", body = ProblemDocument),
    )
)]
pub(super) async fn change(
    State(app): State<App>,
    who: SignedIn,
    PathId(id): PathId,
    Json(wanted): Json<Wanted>,
) -> ApiResult<Answer<User>> {
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let statement = transaction.prepare_cached(TAKE_TURN).await?;
    transaction.execute(&statement, &[]).await?;
    let statement = transaction.prepare_cached(LOCK).await?;
    let row = transaction.query_opt(&statement, &[&id]).await?.ok_or_else(Problem::not_found)?;
    let before = User::read(&row)?;
    let after = User { role: wanted.role, is_disabled: wanted.is_disabled, ..before.clone() };
    if (after.role, after.is_disabled) == (before.role, before.is_disabled) {
        return Ok(Answer(before));
    }
    if id == who.account {
        return Err(own_account());
    }
    if is_administrator(&before) && !is_administrator(&after) {
        let statement = transaction.prepare_cached(HAS_OTHER_ADMINISTRATOR).await?;
        if !transaction.query_one(&statement, &[&id]).await?.get::<_, bool>(0) {
            return Err(last_administrator());
        }
    }
    apply(&app, &transaction, &who, &before, &after).await?;
    transaction.commit().await?;
    Ok(Answer(after))
}

async fn apply(
    app: &App,
    transaction: &Transaction<'_>,
    who: &SignedIn,
    before: &User,
    after: &User,
) -> ApiResult<()> {
    let statement = transaction.prepare_cached(CHANGE).await?;
    transaction.execute(&statement, &[&after.id, &after.role.name(), &after.is_disabled]).await?;
    let sessions = session::end_all(&**transaction, after.id).await?;
    let tokens =
        if after.is_disabled { token::revoke_all(&**transaction, after.id).await? } else { 0 };
    let detail = json!({
        "role": after.role,
        "isDisabled": after.is_disabled,
        "before": { "role": before.role, "isDisabled": before.is_disabled },
        "sessionsEnded": sessions,
        "tokensRevoked": tokens,
    });
    app.audit.record_in(transaction, who, Action::AccountChange, &after.name, detail).await
}

fn is_administrator(user: &User) -> bool {
    user.role == Role::Administrator && !user.is_disabled
}

/// 409: whoever does this would be the one who cannot undo it.
pub(super) fn own_account() -> Problem {
    Problem::new(StatusCode::CONFLICT, "own-account", "This is your own account")
        .detail("Another administrator can change your role or disable you. Your own password is changed at /api/v1/me/password.")
}

fn last_administrator() -> Problem {
    Problem::new(StatusCode::CONFLICT, "last-administrator", "There would be no administrator left")
}
