//! `POST /api/v1/users/{id}/password`: a new password, set by an administrator.

use axum::Json as Answer;
use axum::extract::State;
use serde::Serialize;
use serde_json::json;

use super::NewPassword;
use super::change::own_account;
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::account;
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::{Json, PathId};
use crate::platform::session;

/// The password that was made up.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct PasswordSet {
    /// Shown this once; null when it was given.
    password: Option<String>,
}

/// Gives another's account a new password and ends its sessions. Its tokens go on.
#[utoipa::path(
    post,
    path = "/api/v1/users/{id}/password",
    tag = "users",
    params(("id" = uuid::Uuid, Path, description = "The account")),
    request_body = NewPassword,
    responses(
        (status = 200, description = "It is set", body = PasswordSet),
        (status = 400, description = "Too short or too long", body = ProblemDocument),
        (status = 404, description = "There is no such account", body = ProblemDocument),
        (status = 409, description = "Your own account", body = ProblemDocument),
    )
)]
pub(super) async fn set(
    State(app): State<App>,
    who: SignedIn,
    PathId(id): PathId,
    Json(asked): Json<NewPassword>,
) -> ApiResult<Answer<PasswordSet>> {
    if id == who.account {
        return Err(own_account());
    }
    let (password, shown) = asked.or_generated();
    let hash = app.passwords.place().await?.hash(password).await?;
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let name = account::set_password(&*transaction, id, &hash, None).await?;
    let name = name.ok_or_else(Problem::not_found)?;
    let sessions = session::end_all(&*transaction, id).await?;
    let detail = json!({ "sessionsEnded": sessions });
    app.audit.record_in(&transaction, &who, Action::AccountPassword, &name, detail).await?;
    transaction.commit().await?;
    Ok(Answer(PasswordSet { password: shown }))
}
