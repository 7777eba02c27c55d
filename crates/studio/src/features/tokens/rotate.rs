//! `POST /api/v1/tokens/{id}/rotate`: a new secret.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::json;

use super::{IS_THERE, Token, TokenWithSecret, target};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::PathId;
use crate::platform::token::{TokenId, TokenSecret};

const ROTATE: &str = include_str!("queries/rotate.sql");

/// Gives a live token of your own a new secret, which is in this answer and nowhere else. The one before goes on for
/// 24 hours; one from before a rotation within those ends now. The token expires when it would have.
#[utoipa::path(
    post,
    path = "/api/v1/tokens/{id}/rotate",
    tag = "tokens",
    params(("id" = TokenId, Path, description = "The token")),
    responses(
        (status = 200, description = "The token with its new secret", body = TokenWithSecret),
        (status = 404, description = "You have no such token", body = ProblemDocument),
        (status = 409, description = "The token has expired or was revoked", body = ProblemDocument),
    )
)]
pub(super) async fn rotate(
    State(app): State<App>,
    who: SignedIn,
    PathId(id): PathId,
) -> ApiResult<Json<TokenWithSecret>> {
    let id = TokenId(id);
    let secret = TokenSecret::random(id);
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let statement = transaction.prepare_cached(ROTATE).await?;
    let row = transaction.query_opt(&statement, &[&id.0, &who.account, &secret.hash()]).await?;
    let Some(row) = row else {
        let statement = transaction.prepare_cached(IS_THERE).await?;
        let is_there = transaction.query_one(&statement, &[&id.0, &Some(who.account)]).await?;
        return Err(if is_there.get(0) { ended() } else { Problem::not_found() });
    };
    let token = Token::read(&row)?;
    let detail = json!({ "name": token.name });
    app.audit.record_in(&transaction, &who, Action::TokenRotate, &target(id), detail).await?;
    transaction.commit().await?;
    Ok(Json(TokenWithSecret { token, secret: secret.expose().to_owned() }))
}

fn ended() -> Problem {
    Problem::new(StatusCode::CONFLICT, "token-ended", "The token has ended")
        .detail("It has expired or was revoked. Make a new one.")
}
