//! How many plugins a user uploads in an hour.

use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};
use pg_limits::{Count, Counted, LimitReached, Window};

use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::problem::Problem;

const UPLOADS: Window = Window::new("upload_window", 5, Duration::from_hours(1));

/// Counts an upload before its first byte is read.
///
/// # Errors
/// 429 when the window is full, 503 when that could not be decided.
pub(super) async fn count(app: &App, who: &SignedIn) -> Result<Counted, Problem> {
    match app.heavy.count(&UPLOADS, &who.user()).await? {
        Count::Counted(counted) => Ok(counted),
        Count::Full(limit) => Err(full(&limit)),
    }
}

/// Takes a count back, for an upload that failed through a fault of ours.
pub(super) async fn give_back(counted: Counted) {
    if let Err(error) = counted.give_back().await {
        tracing::warn!(error = %error, "An upload that failed stays counted");
    }
}

fn full(limit: &LimitReached) -> Problem {
    let window = limit.window.unwrap_or_default().as_secs();
    let seconds = limit.retry_after.as_secs() + u64::from(limit.retry_after.subsec_nanos() > 0);
    let policy = format!("\"{}\";q={};w={window}", limit.name, limit.limit);
    let state = format!("\"{}\";r=0;t={seconds}", limit.name);
    let mut problem =
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-uploads", "Too many uploads")
            .member("limit", limit.limit)
            .member("windowSeconds", window)
            .retry_after(limit.retry_after);
    for (name, text) in [("ratelimit-policy", policy), ("ratelimit", state)] {
        if let Ok(value) = HeaderValue::from_str(&text) {
            problem = problem.header(HeaderName::from_static(name), value);
        }
    }
    problem
}
