//! What happens around every handler: request ids, problems, security headers, origin, access and time limits.

use std::any::Any;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tracing::Instrument as _;
use uuid::Uuid;

use super::{App, by_token};
use crate::platform::access::{SignedIn, SignedInBy};
use crate::platform::api_requests;
use crate::platform::heavy::{Admitted, Endpoint};
use crate::platform::problem::Problem;
use crate::platform::request::RequestId;
use crate::platform::route::{Access, Cost, Route};
use crate::platform::session::{self, SessionId};
use crate::platform::token::TokenSecret;

/// The total time limit of a cheap request.
const CHEAP_TIME: Duration = Duration::from_mins(1);

/// How much longer than its bound a heavy request may take until it answers: its claim, its audit row, its connection
/// and the draining of a stopped query.
const HEAVY_MARGIN: Duration = Duration::from_secs(30);

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The guard of one route.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    app: App,
    access: Access,
    /// Whose bound in force is part of the time limit.
    endpoint: Option<&'static Endpoint>,
    /// The route's time limit.
    time: Duration,
}

impl Guard {
    pub(super) fn new(app: App, route: &Route) -> Self {
        let endpoint = match route.cost {
            Cost::Heavy(endpoint) if route.time.is_none() => Some(endpoint),
            Cost::Heavy(_) | Cost::Cheap { .. } => None,
        };
        let time = route.time.unwrap_or(CHEAP_TIME);
        Self { app, access: route.access, endpoint, time }
    }

    /// The guard of one request: the time limit of a heavy route follows the bound in force.
    fn for_this_request(mut self) -> Self {
        if let Some(endpoint) = self.endpoint {
            self.time = self.app.in_force.endpoint(endpoint).time_bound() + HEAVY_MARGIN;
        }
        self
    }

    /// Whoever may go on; a request by token with its admission, which it keeps until its last byte.
    async fn admit(&self, request: &mut Request) -> Result<Option<Admitted>, Problem> {
        if self.access == Access::Public {
            self.check_origin(request.method(), request.headers())?;
            return Ok(None);
        }
        let request_id =
            request.extensions().get::<RequestId>().map_or_else(String::new, |id| id.0.clone());
        // A token wins over a session that comes along, also when it is a bad one: whoever sends one means it. No
        // browser adds one by itself, so that no foreign page can borrow it: the origin tells nothing.
        let (who, admitted) = match TokenSecret::of(request.headers())? {
            Some(secret) => {
                let admitted = by_token::admit(&self.app, &secret, &request_id, self.time).await?;
                (admitted.0, Some(admitted.1))
            }
            None => {
                (self.find_session(request.method(), request.headers(), &request_id).await?, None)
            }
        };
        self.authorise(&who)?;
        request.extensions_mut().insert(who);
        Ok(admitted)
    }

    /// Who asks by session.
    async fn find_session(
        &self,
        method: &Method,
        headers: &HeaderMap,
        request_id: &str,
    ) -> Result<SignedIn, Problem> {
        self.check_origin(method, headers)?;
        let id = SessionId::of(headers, &self.app.settings.http)
            .ok_or_else(Problem::sign_in_required)?;
        session::find(&self.app, &id, request_id).await?.ok_or_else(Problem::sign_in_required)
    }

    fn authorise(&self, who: &SignedIn) -> Result<(), Problem> {
        if self.access.is_session_only() && who.by != SignedInBy::Session {
            return Err(Problem::session_required());
        }
        self.access.permission().map_or(Ok(()), |permission| who.require(permission))
    }

    fn check_origin(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        let is_unsafe = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let own = self.app.settings.http.public_origin.as_deref();
        if is_unsafe && !is_own_origin(headers, own) {
            return Err(foreign_origin());
        }
        Ok(())
    }
}

/// Checks origin and access, then runs the handler within the route's time limit.
pub(super) async fn check(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let guard = guard.for_this_request();
    let answer = async {
        match guard.admit(&mut request).await {
            Ok(None) => next.run(request).await,
            Ok(Some(admitted)) => {
                let mut response = next.run(request).await;
                api_requests::tell(response.headers_mut(), admitted.windows());
                response.map(|body| Body::new(admitted.guard(body)))
            }
            Err(problem) => problem.into_response(),
        }
    };
    match tokio::time::timeout(guard.time, answer).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "request-timed-out",
            "The request took too long",
        )
        .into_response(),
    }
}

/// The outermost layer: gives the request its id, logs and counts it, and finishes the answer.
pub(super) async fn around(mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = Uuid::now_v7().to_string();
    let method = request.method().clone();
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "(none)".to_owned(), |path| path.as_str().to_owned());
    request.extensions_mut().insert(RequestId(id.clone()));
    let span = tracing::info_span!("request", id = %id, method = %method, path = %path);
    let mut response = next.run(request).instrument(span.clone()).await;

    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        // Headers that layers in between have added stay: what a token has left, say.
        let mut headers = std::mem::take(response.headers_mut());
        headers.remove(header::CONTENT_LENGTH);
        response = span.in_scope(|| problem.respond(Some(&id)));
        for (name, value) in response.headers() {
            headers.insert(name.clone(), value.clone());
        }
        *response.headers_mut() = headers;
    }
    finish_headers(response.headers_mut(), &id);
    let status = response.status().as_u16();
    let elapsed = begun.elapsed();
    metrics::counter!("studio_http_requests_total", "method" => method.to_string(), "path" => path.clone(), "status" => status.to_string()).increment(1);
    metrics::histogram!("studio_http_request_seconds", "path" => path)
        .record(elapsed.as_secs_f64());
    span.in_scope(|| tracing::debug!(status, elapsed_ms = elapsed.as_secs_f64() * 1e3, "Answered"));
    response
}

fn finish_headers(headers: &mut HeaderMap, id: &str) {
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID.clone(), id);
    }
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A download brings its own, stricter policy; what is said about one account is nobody else's.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(
        "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    ));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Whether a request that changes something comes from Studio's own pages.
fn is_own_origin(headers: &HeaderMap, public_origin: Option<&str>) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return false };
    match public_origin {
        Some(own) => origin.eq_ignore_ascii_case(own.trim_end_matches('/')),
        None => text(header::HOST).is_some_and(|host| {
            origin.split_once("://").is_some_and(|(scheme, authority)| {
                matches!(scheme, "http" | "https") && authority.eq_ignore_ascii_case(host)
            })
        }),
    }
}

fn foreign_origin() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "foreign-origin", "The request comes from a foreign page")
}

/// The answer to an address that names nothing.
pub(super) async fn nothing_here() -> Problem {
    Problem::not_found()
}

/// The answer to a method that does not fit.
pub(super) async fn wrong_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "The method does not fit the address",
    )
}

/// The answer when a handler panicked.
#[expect(clippy::needless_pass_by_value, reason = "the layer gives it by value")]
pub(super) fn panicked(cause: Box<dyn Any + Send + 'static>) -> Response {
    let text = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a panic");
    Problem::internal(&text).into_response()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::is_own_origin;

    fn headers(origin: &'static str, host: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        headers.insert(header::HOST, HeaderValue::from_static(host));
        headers
    }

    #[test]
    fn only_the_own_origin_may_change_something() {
        assert!(is_own_origin(&headers("http://127.0.0.1:8080", "127.0.0.1:8080"), None));
        assert!(!is_own_origin(&headers("http://127.0.0.1:8081", "127.0.0.1:8080"), None));
        assert!(!is_own_origin(&headers("null", "127.0.0.1:8080"), None));
        assert!(!is_own_origin(&HeaderMap::new(), None));
        let public = Some("https://studio.example.com");
        assert!(is_own_origin(&headers("https://studio.example.com", "10.0.0.1:8080"), public));
        assert!(!is_own_origin(&headers("http://studio.example.com", "10.0.0.1:8080"), public));
        assert!(!is_own_origin(&headers("http://10.0.0.1:8080", "10.0.0.1:8080"), public));
    }
}
