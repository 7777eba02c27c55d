//! `POST /api/v1/users`: a new account.

use axum::Json as Answer;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{NewPassword, User};
use crate::app::App;
use crate::platform::access::{Role, SignedIn};
use crate::platform::account::{self, AccountName};
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Json;
use crate::platform::timestamp;

/// What is asked for.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewUser {
    /// 1 to 128 characters; upper and lower case are the same.
    name: String,
    role: Role,
    /// 12 characters to 1,024 bytes. One is made up when this is left out.
    #[serde(default)]
    password: Option<String>,
}

/// An account with the password that was made up for it.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct UserWithPassword {
    user: User,
    /// Shown this once; null when it was given.
    password: Option<String>,
}

/// Creates an account.
#[utoipa::path(
    post,
    path = "/api/v1/users",
    tag = "users",
    request_body = NewUser,
    responses(
        (status = 201, description = "The account", body = UserWithPassword),
        (status = 400, description = "A name or a password that cannot be", body = ProblemDocument),
        (status = 409, description = "The name is taken", body = ProblemDocument),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    who: SignedIn,
    Json(asked): Json<NewUser>,
) -> ApiResult<(StatusCode, Answer<UserWithPassword>)> {
    let name = AccountName::parse(&asked.name)
        .ok_or_else(|| Problem::bad_parameter("An account has a name of 1 to 128 characters."))?;
    let (password, shown) = NewPassword { password: asked.password }.or_generated();
    let hash = app.passwords.place().await?.hash(password).await?;
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let created = account::insert(&*transaction, &name, asked.role, &hash).await?;
    let created = created.ok_or_else(name_taken)?;
    let detail = json!({ "role": asked.role, "id": created.id });
    let target = name.as_str();
    app.audit.record_in(&transaction, &who, Action::AccountCreate, target, detail).await?;
    transaction.commit().await?;
    let user = User {
        id: created.id,
        name: name.as_str().to_owned(),
        role: asked.role,
        is_disabled: false,
        created_at: timestamp::text(created.at.0),
    };
    Ok((StatusCode::CREATED, Answer(UserWithPassword { user, password: shown })))
}

fn name_taken() -> Problem {
    Problem::new(StatusCode::CONFLICT, "name-taken", "There is such an account already")
}
