//! `GET /api/v1/tokens`: one's tokens.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{LISTED, Token};
use crate::app::App;
use crate::platform::access::{Permission, SignedIn};
use crate::platform::problem::{ApiResult, ProblemDocument};
use crate::platform::request::Query;

const LIST: &str = include_str!("queries/list.sql");

/// Whose tokens.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Whose {
    /// An account's id; your own unless given. Another's needs `users.admin`.
    user: Option<Uuid>,
}

/// The tokens of one account.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Tokens {
    /// All that live, and those that ended last, 100 in all; those that end last come first. A token is forgotten 30
    /// days after its end.
    items: Vec<Token>,
}

/// Your tokens, or those of an account that you administer. Never a secret.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    tag = "tokens",
    params(Whose),
    responses(
        (status = 200, description = "The tokens", body = Tokens),
        (status = 403, description = "Another's without `users.admin`, or no session", body = ProblemDocument),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    who: SignedIn,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Tokens>> {
    let owner = whose.user.unwrap_or(who.account);
    if owner != who.account {
        who.require(Permission::UsersAdmin)?;
    }
    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(LIST).await?;
    let rows = connection.query(&statement, &[&owner, &i64::from(LISTED)]).await?;
    let items = rows.iter().map(Token::read).collect::<Result<_, _>>()?;
    Ok(Json(Tokens { items }))
}
