//! `POST /api/v1/session`: signing in.

use std::time::Duration;

use axum::extract::State;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::json;

use super::Me;
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::account::AccountName;
use crate::platform::audit::{Action, Outcome};
use crate::platform::client_address::ClientAddress;
use crate::platform::login_attempt;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::{Json, RequestId};
use crate::platform::session::{self, SessionId};

/// The longest that a sign-in takes: the total time limit of a cheap request.
const BOUND: Duration = Duration::from_mins(1);

/// A name and its password.
#[derive(Deserialize, utoipa::ToSchema)]
pub(super) struct Credentials {
    name: String,
    password: String,
}

/// Signs in. An unknown name and a wrong password get the same answer after the same work, and are throttled alike:
/// by name and network, by network, and by name.
#[utoipa::path(
    post,
    path = "/api/v1/session",
    tag = "session",
    request_body = Credentials,
    responses(
        (status = 200, description = "Signed in; the session is in the cookie", body = Me),
        (status = 401, description = "Unknown name or wrong password", body = ProblemDocument),
        (status = 429, description = "Too many failed sign-ins", body = ProblemDocument),
        (status = 503, description = "Failed sign-ins cannot be counted now, or too many sign in", body = ProblemDocument),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    axum::Extension(RequestId(request_id)): axum::Extension<RequestId>,
    client: ClientAddress,
    headers: HeaderMap,
    Json(credentials): Json<Credentials>,
) -> ApiResult<([(HeaderName, HeaderValue); 1], axum::Json<Me>)> {
    let name = AccountName::parse(&credentials.name)
        .ok_or_else(|| Problem::bad_parameter("An account has a name of 1 to 128 characters."))?;
    let account = login_attempt::check(&app, name, client, credentials.password)
        .await?
        .ok_or_else(wrong_credentials)?;

    let hash = account.password_hash().to_owned();
    let who = SignedIn::by_session(account.id, account.name, account.role, request_id);
    let event = app.audit.begin(&who, Action::SignIn, "session", json!({}), BOUND).await?;
    let before = SessionId::of(&headers, &app.settings.http);
    let begun = async {
        let connection = app.pools.main().await?;
        Ok(session::begin(&**connection, who.account, &hash, before.as_ref()).await?)
    };
    let id = match begun.await {
        Ok(Some(id)) => id,
        // Disabled, or given another password, since it was checked.
        Ok(None) => {
            event.finish(Outcome::Failed { reason: "refused", rows: 0 }).await;
            return Err(wrong_credentials());
        }
        Err(problem) => {
            event.finish(Outcome::Failed { reason: "database", rows: 0 }).await;
            return Err(problem);
        }
    };
    event.finish(Outcome::Complete { rows: 0 }).await;
    let cookie = session::cookie(&id, &app.settings.http)?;
    Ok(([(header::SET_COOKIE, cookie)], axum::Json(Me::from(who))))
}

fn wrong_credentials() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "wrong-credentials", "The name or the password is wrong")
}
