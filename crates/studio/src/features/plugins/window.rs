//! How many plugins a user uploads in an hour.

use http::StatusCode;
use pg_limits::{Count, Counted, LimitReached, Window};

use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::api_requests;
use crate::platform::heavy::is_first_this_minute;
use crate::platform::in_force::Mode;
use crate::platform::in_force::catalogue::upload_window;
use crate::platform::problem::Problem;

const NAME: &str = "upload_window";

/// Counts an upload before its first byte is read.
///
/// # Errors
/// 429 when the window is full, 503 when that could not be decided.
pub(super) async fn count(app: &App, who: &SignedIn) -> Result<Counted, Problem> {
    match app.heavy.count(&window(app), &who.user()).await? {
        Count::Counted(counted) => {
            if counted.would_have_been_refused().is_some() {
                tell(who, "An upload would have been refused");
                app.refusals.count(NAME, "user", true);
            }
            Ok(counted)
        }
        Count::Full(limit) => {
            tell(who, "An upload was refused");
            app.refusals.count(NAME, "user", false);
            Err(full(&limit))
        }
    }
}

/// One event a user and minute.
fn tell(who: &SignedIn, what: &'static str) {
    if is_first_this_minute(&format!("{NAME} {}", who.account)) {
        tracing::info!(user = %who.account, "{what}");
    }
}

/// The window in force.
fn window(app: &App) -> Window {
    let uploads = u32::try_from(app.in_force.number(&upload_window::UPLOADS)).unwrap_or(u32::MAX);
    let length = app.in_force.seconds(&upload_window::SECONDS);
    Window::new(NAME, uploads, length)
        .shadow(app.in_force.mode(&upload_window::MODE) == Mode::Shadow)
}

/// Takes a count back, for an upload that failed through a fault of ours.
pub(super) async fn give_back(counted: Counted) {
    if let Err(error) = counted.give_back().await {
        tracing::warn!(error = %error, "An upload that failed stays counted");
    }
}

fn full(limit: &LimitReached) -> Problem {
    let problem =
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-uploads", "Too many uploads");
    api_requests::with_window(problem, limit, limit.window.unwrap_or_default())
}
