//! Problems (RFC 9457): the one shape of every answer that is not a success.

mod kinds;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value};

pub use self::kinds::{KINDS, Kind};
use super::heavy::{LimitsError, Refusal, Scope};

/// What a handler gives.
pub type ApiResult<T> = Result<T, Problem>;

/// The document of a problem (RFC 9457). Problems may carry members of their own.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemDocument {
    /// `/problems/<suffix>`: a page that explains it.
    #[schema(example = "/problems/too-many-heavy-requests")]
    r#type: String,
    title: String,
    status: u16,
    /// A sentence about this very case.
    detail: Option<String>,
    /// The id under which the log tells more.
    request_id: String,
}

/// An answer that is not a success. It never carries internal text: what went wrong inside is logged where it is
/// turned into a problem, and the client gets a stable type, a sentence and the request's id.
#[derive(Debug, Clone)]
pub struct Problem(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    status: StatusCode,
    suffix: &'static str,
    title: &'static str,
    detail: Option<String>,
    members: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem whose type is `/problems/<suffix>`.
    pub fn new(status: StatusCode, suffix: &'static str, title: &'static str) -> Self {
        Self(Box::new(Content {
            status,
            suffix,
            title,
            detail: None,
            members: Map::new(),
            headers: Vec::new(),
        }))
    }

    /// Adds a sentence about this very case.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a member of its own.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.members.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Adds `Retry-After`, in whole seconds, at least one.
    #[must_use]
    pub fn retry_after(self, wait: std::time::Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The last part of the type.
    pub fn suffix(&self) -> &'static str {
        self.0.suffix
    }

    /// 401: nobody is signed in.
    pub fn sign_in_required() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "sign-in-required", "Sign in first")
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 403: the account lacks a permission, or may not see the thing named.
    pub fn forbidden(what: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Your role does not allow this")
            .detail(format!("This needs the permission {what}."))
            .member("permission", what)
    }

    /// 403: a token may not do this, whatever it was granted.
    pub fn session_required() -> Self {
        Self::new(StatusCode::FORBIDDEN, "session-required", "A token may not do this")
            .detail("Sign in with a password and do it in that session.")
    }

    /// 400 and its kin: the body is not what the operation takes.
    pub fn bad_body(status: StatusCode, why: &str) -> Self {
        Self::new(status, "bad-request", "The request is not well formed").detail(why)
    }

    /// 400: a parameter is not what the operation takes.
    pub fn bad_parameter(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "The request is not well formed")
            .detail(why)
    }

    /// 404.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here")
    }

    /// 500: a fault of ours. The cause is logged here, once, and goes no further.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(cause = %cause, "A request failed inside Studio");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Studio failed")
            .detail("The fault is logged under this request's id.")
    }

    /// 503: Studio's database cannot be reached, or has no connection to spare.
    pub fn database_unavailable(cause: &dyn std::fmt::Display) -> Self {
        tracing::warn!(cause = %cause, "The database is unavailable");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "database-unavailable",
            "The database is unavailable",
        )
        .retry_after(std::time::Duration::from_secs(2))
    }

    /// 503: a heavy read was stopped at its time bound before it had a page to give.
    pub fn timed_out(endpoint: &super::heavy::Endpoint) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "heavy-request-timed-out",
            "The request was stopped at its time bound",
        )
        .member("endpoint", endpoint.name())
        .member("timeBoundSeconds", endpoint.time_bound().as_secs())
    }

    /// 503: an administrator stopped the work, through its permit or in the database.
    pub fn query_stopped() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "query-stopped",
            "The query was stopped by an administrator",
        )
    }

    /// 503: this replica is shutting down.
    pub fn draining() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "This replica is shutting down")
    }

    /// The document as it is sent.
    pub fn to_json(&self, request_id: Option<&str>) -> Value {
        let mut members = self.0.members.clone();
        members.insert("type".into(), format!("/problems/{}", self.0.suffix).into());
        members.insert("title".into(), self.0.title.into());
        members.insert("status".into(), self.0.status.as_u16().into());
        if let Some(detail) = &self.0.detail {
            members.insert("detail".into(), detail.as_str().into());
        }
        if let Some(id) = request_id {
            members.insert("requestId".into(), id.into());
        }
        Value::Object(members)
    }

    /// The answer, with the request's id when it is known.
    pub fn respond(&self, request_id: Option<&str>) -> Response {
        let body = self.to_json(request_id).to_string();
        let mut response = (self.0.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        for (name, value) in &self.0.headers {
            headers.append(name.clone(), value.clone());
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.respond(None);
        // The outermost layer knows the request's id, and writes the body again with it.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-heavy-requests",
            "Too many heavy requests",
        )
        .detail(match refusal.scope {
            Scope::User => "You have as many of these requests under way as one user may.",
            Scope::Installation => "All users together have as many heavy requests under way as this installation allows.",
        })
        .member("endpoint", refusal.endpoint)
        .member("limit", refusal.limit)
        .member("scope", refusal.scope.as_str());
        match refusal.retry_after {
            Some(wait) => problem.retry_after(wait),
            None => problem,
        }
    }
}

impl From<LimitsError> for Problem {
    fn from(error: LimitsError) -> Self {
        tracing::warn!(cause = ?error, "A limit could not be checked");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "limits-unavailable",
            "The limits cannot be checked now",
        )
        .retry_after(error.retry_after())
    }
}

impl From<deadpool_postgres::PoolError> for Problem {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        if let deadpool_postgres::PoolError::Backend(error) = error {
            return Self::from(error);
        }
        Self::database_unavailable(&error)
    }
}

impl From<tokio_postgres::Error> for Problem {
    fn from(error: tokio_postgres::Error) -> Self {
        let cause = std::error::Error::source(&error);
        let is_broken =
            error.is_closed() || cause.is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        let code = error.code().map_or("", |code| code.code());
        // Class 57 and 53: shutting down, starting up, too many connections, out of resources.
        if is_broken || code.starts_with("57P") || code.starts_with("53") {
            return Self::database_unavailable(&error);
        }
        Self::internal(
            &cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")),
        )
    }
}
