//! `POST /api/v1/me/password`: one's own new password, for the old one.

use axum::extract::State;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::json;

use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::account::{self, AccountName};
use crate::platform::audit::Action;
use crate::platform::client_address::ClientAddress;
use crate::platform::login_attempt;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Json;
use crate::platform::session;

/// Both passwords.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Passwords {
    old_password: String,
    /// 12 characters to 1,024 bytes.
    new_password: String,
}

/// Changes your own password. The old one is checked, and its failures are throttled, as at the sign-in. All your sessions end but this one, which goes on under a new id. Your tokens go on.
#[utoipa::path(
    post,
    path = "/api/v1/me/password",
    tag = "session",
    request_body = Passwords,
    responses(
        (status = 204, description = "Changed; the new session is in the cookie"),
        (status = 400, description = "The new one is too short or too long", body = ProblemDocument),
        (status = 403, description = "The old one is wrong", body = ProblemDocument),
        (status = 429, description = "Too many wrong passwords", body = ProblemDocument),
    )
)]
pub(super) async fn change(
    State(app): State<App>,
    who: SignedIn,
    client: ClientAddress,
    Json(passwords): Json<Passwords>,
) -> ApiResult<(StatusCode, [(HeaderName, HeaderValue); 1])> {
    if let Some(fault) = account::fault(&passwords.new_password) {
        return Err(Problem::bad_parameter(&format!("Not a password: {fault}.")));
    }
    let name = AccountName::parse(&who.name).ok_or_else(Problem::sign_in_required)?;
    // A guess like any other: whoever has found a session must not find the password by it.
    let account = login_attempt::check(&app, name, client, passwords.old_password)
        .await?
        .ok_or_else(wrong_password)?;
    let hash = app.passwords.place().await?.hash(passwords.new_password).await?;

    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let old = Some(account.password_hash());
    // Somebody else was quicker: what was checked is no longer the password.
    account::set_password(&*transaction, account.id, &hash, old)
        .await?
        .ok_or_else(wrong_password)?;
    let sessions = session::end_all(&*transaction, account.id).await?;
    let begun = session::begin(&*transaction, account.id, &hash, None).await?;
    // Disabled since it was checked: then nobody is signed in any more.
    let id = begun.ok_or_else(Problem::sign_in_required)?;
    let detail = json!({ "sessionsEnded": sessions });
    app.audit.record_in(&transaction, &who, Action::AccountPassword, &who.name, detail).await?;
    transaction.commit().await?;
    let cookie = session::cookie(&id, &app.settings.http)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]))
}

/// Not 401: the session is good, and a browser should not forget it.
fn wrong_password() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "wrong-password", "The old password is wrong")
}
