//! What requests by API token are counted by: windows of the token and of its user, and what the token has in flight.
//! One call of the limits lets a request in; on the way out it costs nothing.

use std::fmt::Write as _;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::heavy::{
    Admitted, Entry, InFlight, LimitReached, LimitsError, Window, WindowState, is_first_this_minute,
};
use super::in_force::catalogue::{api_request_window, request_in_flight};
use super::in_force::{InForce, Mode};
use super::problem::Problem;
use super::token::TokenId;
use crate::app::App;

/// The limits' names: a window of each token, and one of each user over all of his tokens.
const OF_TOKEN: &str = "api_request_window.token";
const OF_USER: &str = "api_request_window.user";
const IN_FLIGHT: &str = "request_in_flight";

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Asks to let a token's request in. `time` is the longest that the request may take: should this replica die, the
/// token gets its place back then.
///
/// # Errors
/// When it could not be decided.
pub async fn enter(
    app: &App,
    user: &str,
    token: TokenId,
    time: Duration,
) -> Result<Entry, LimitsError> {
    let token = token.0.to_string();
    let windows = windows(&app.in_force)
        .map(|[of_token, of_user]| [(of_token, token.as_str()), (of_user, user)]);
    let in_flight = in_flight(&app.in_force).map(|cap| (cap, token.as_str()));
    let windows = windows.as_ref().map_or(&[][..], |windows| windows);
    app.heavy.enter(in_flight, windows, time).await
}

/// What a token's request came in by, or the problem to answer with.
///
/// # Errors
/// 429 when a limit is reached, 503 when that could not be decided.
pub fn admit(
    app: &App,
    token: TokenId,
    entered: Result<Entry, LimitsError>,
) -> Result<Admitted, Problem> {
    match entered? {
        Entry::Admitted(admitted) => {
            if let Some(limit) = admitted.would_have_been_refused() {
                tell_refusal(limit, token, "A token's request would have been refused");
                count(app, limit, true);
            }
            Ok(admitted)
        }
        Entry::Refused(limit) => {
            tell_refusal(&limit, token, "A token's request was refused");
            count(app, &limit, false);
            Err(refusal(&limit))
        }
    }
}

fn windows(in_force: &InForce) -> Option<[Window; 2]> {
    let mode = in_force.mode(&api_request_window::MODE);
    if mode == Mode::Off {
        return None;
    }
    let length = in_force.seconds(&api_request_window::SECONDS);
    let window = |name, limit| {
        let limit = u32::try_from(in_force.number(limit)).unwrap_or(u32::MAX);
        Window::new(name, limit, length).shadow(mode == Mode::Shadow)
    };
    Some([window(OF_TOKEN, &api_request_window::TOKEN), window(OF_USER, &api_request_window::USER)])
}

fn in_flight(in_force: &InForce) -> Option<InFlight> {
    let mode = in_force.mode(&request_in_flight::MODE);
    let limit = u32::try_from(in_force.number(&request_in_flight::TOKEN)).unwrap_or(u32::MAX);
    (mode != Mode::Off).then(|| InFlight::new(IN_FLIGHT, limit).shadow(mode == Mode::Shadow))
}

/// Counts a refusal over time by the limit and by whose it is.
fn count(app: &App, limit: &LimitReached, is_shadow: bool) {
    let (name, scope) = match limit.name {
        OF_USER => ("api_request_window", "user"),
        OF_TOKEN => ("api_request_window", "token"),
        _ => (IN_FLIGHT, "token"),
    };
    app.refusals.count(name, scope, is_shadow);
}

/// One event a token, limit and minute.
fn tell_refusal(limit: &LimitReached, token: TokenId, what: &'static str) {
    let token = token.0;
    if is_first_this_minute(&format!("{} {token}", limit.name)) {
        tracing::info!(limit = limit.name, %token, "{what}");
    }
}

fn refusal(limit: &LimitReached) -> Problem {
    let Some(window) = limit.window else {
        return Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-in-flight",
            "Too many requests in flight",
        )
        .detail("The token has as many requests under way as one token may, over all replicas.")
        .member("limit", limit.limit)
        .retry_after(limit.retry_after);
    };
    let whose =
        if limit.name == OF_USER { "all tokens of your account have" } else { "the token has" };
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", "Too many requests")
        .detail(format!(
            "In {} seconds {whose} {} requests, over all replicas.",
            window.as_secs(),
            limit.limit
        ));
    with_window(problem, limit, window)
}

/// A problem that tells of a full window: its size, its length, and when to come back.
pub fn with_window(problem: Problem, limit: &LimitReached, window: Duration) -> Problem {
    let mut problem = problem
        .member("limit", limit.limit)
        .member("windowSeconds", window.as_secs())
        .retry_after(limit.retry_after);
    let mut headers = HeaderMap::new();
    tell_windows(&mut headers, &[(limit.name, limit.limit, window, 0, limit.retry_after)]);
    for (name, value) in &headers {
        problem = problem.header(name.clone(), value.clone());
    }
    problem
}

/// Tells the windows in the fields of draft-ietf-httpapi-ratelimit-headers.
pub fn tell(headers: &mut HeaderMap, windows: &[WindowState]) {
    let windows: Vec<_> = windows
        .iter()
        .map(|state| (state.name, state.limit, state.length, state.remaining, state.resets_in))
        .collect();
    tell_windows(headers, &windows);
}

/// A window's name, limit, length, what remains of it, and how long until it ends.
type Told = (&'static str, u32, Duration, u32, Duration);

fn tell_windows(headers: &mut HeaderMap, windows: &[Told]) {
    if windows.is_empty() {
        return;
    }
    let (mut limit, mut policy) = (String::new(), String::new());
    for (name, quota, length, remaining, resets_in) in windows {
        let name = name.rsplit('.').next().unwrap_or(name);
        let separator = if limit.is_empty() { "" } else { ", " };
        let seconds = resets_in.as_secs() + u64::from(resets_in.subsec_nanos() > 0);
        // Writing to a String does not fail.
        write!(limit, "{separator}\"{name}\";r={remaining};t={seconds}").ok();
        write!(policy, "{separator}\"{name}\";q={quota};w={}", length.as_secs()).ok();
    }
    for (name, value) in [(&RATE_LIMIT, limit), (&RATE_LIMIT_POLICY, policy)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name.clone(), value);
        }
    }
}
