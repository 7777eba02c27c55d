//! `DELETE /api/v1/session`: signing out.

use axum::extract::State;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, ProblemDocument};
use crate::platform::session::{self, SessionId};

/// Signs out: the session ends on all replicas.
#[utoipa::path(
    delete,
    path = "/api/v1/session",
    tag = "session",
    responses(
        (status = 204, description = "Signed out"),
        (status = 401, description = "Nobody is signed in", body = ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    who: SignedIn,
    headers: HeaderMap,
) -> ApiResult<(StatusCode, [(HeaderName, HeaderValue); 1])> {
    app.audit.record(&who, Action::SignOut, "session", serde_json::json!({})).await?;
    if let Some(id) = SessionId::of(&headers, &app.settings.http) {
        session::end(&app, &id).await?;
    }
    let cookie = session::forget_cookie(&app.settings.http)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]))
}
