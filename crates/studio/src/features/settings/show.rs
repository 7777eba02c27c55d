//! `GET /api/v1/settings`: every setting and its value in force.

use axum::extract::State;
use axum::response::Response;

use super::document::Settings;
use super::kept::KeptSettings;
use crate::app::App;
use crate::platform::problem::{ApiResult, ProblemDocument};

/// Every setting that changes at run time, with its value in force. The `ETag` is the version.
#[utoipa::path(
    get,
    path = "/api/v1/settings",
    tag = "settings",
    responses(
        (status = 200, description = "Every setting", body = Settings),
        (status = 503, description = "The limits' database or Studio's own is away", body = ProblemDocument),
    )
)]
pub(super) async fn show(State(app): State<App>) -> ApiResult<Response> {
    answer(&app).await
}

/// All settings as they are now.
pub(super) async fn answer(app: &App) -> ApiResult<Response> {
    // Before a connection is taken, for it may have to wait for the limits.
    let caps = app.heavy.caps().await?;
    let connection = app.pools.main().await?;
    let kept = KeptSettings::read(&**connection, caps).await?;
    Settings::new(&app.in_force, &kept).respond()
}
