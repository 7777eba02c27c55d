//! `GET /api/v1/me`: who one is, and what one may do.

use super::Me;
use crate::platform::access::SignedIn;
use crate::platform::problem::ProblemDocument;

/// The account that one is signed in as, by what, and what one may do.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    tag = "session",
    responses(
        (status = 200, description = "The account", body = Me),
        (status = 401, description = "Nobody is signed in", body = ProblemDocument),
    )
)]
pub(super) async fn me(who: SignedIn) -> axum::Json<Me> {
    axum::Json(Me::from(who))
}
