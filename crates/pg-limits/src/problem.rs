use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::error::LimitsError;
use crate::permit::{BoundReached, Refusal, Scope};
use crate::stops::{StopAsked, Stopped};

/// An RFC 9457 problem that answers for a request which the limits did not let through, or stopped.
///
/// `type` is `/problems/<suffix>`: `too-many-heavy-requests` (429, with `endpoint`, `limit` and
/// `scope`), `limits-unavailable` (503), `heavy-request-timed-out` or `heavy-request-stopped` (503, with
/// `endpoint`).
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
    retry_after: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, suffix: &str, title: &str, detail: &str) -> Self {
        let mut members = Map::new();
        members.insert("type".into(), json!(format!("/problems/{suffix}")));
        members.insert("title".into(), json!(title));
        members.insert("status".into(), json!(status.as_u16()));
        members.insert("detail".into(), json!(detail));
        Self { status, members, retry_after: None }
    }

    /// Nobody is signed in, and no heavy request is anonymous.
    pub(crate) fn sign_in() -> Self {
        let detail = "A heavy request is counted for its user: sign in first.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", "Sign in first", detail)
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The members of the body.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// The `Retry-After` header in seconds, at least one; none where coming back is no use.
    pub fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    /// The answer, with its body as `application/problem+json`.
    pub fn into_http(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(Value::Object(self.members).to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let whose = match refusal.scope {
            Scope::User => "your own limit",
            Scope::Installation => "the installation's limit, which all users share",
        };
        let mut problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-heavy-requests",
            "Too many heavy requests",
            &format!("`{}` is at {whose}: {} under way.", refusal.endpoint, refusal.limit),
        );
        problem.members.insert("endpoint".into(), json!(refusal.endpoint));
        problem.members.insert("limit".into(), json!(refusal.limit));
        problem.members.insert("scope".into(), json!(refusal.scope.as_str()));
        problem.retry_after =
            refusal.retry_after.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        problem
    }
}

impl From<&LimitsError> for Problem {
    fn from(error: &LimitsError) -> Self {
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "limits-unavailable",
            "Limits unavailable",
            "Whether this request is within its limits could not be decided; it was not run.",
        );
        problem.retry_after = Some(error.retry_after().as_secs().max(1));
        problem
    }
}

impl From<&BoundReached> for Problem {
    fn from(reached: &BoundReached) -> Self {
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "heavy-request-timed-out",
            "Heavy request timed out",
            &format!("`{}` was stopped at its time bound.", reached.endpoint),
        );
        problem.members.insert("endpoint".into(), json!(reached.endpoint));
        problem
    }
}

impl From<&StopAsked> for Problem {
    fn from(asked: &StopAsked) -> Self {
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "heavy-request-stopped",
            "Heavy request stopped",
            &format!("`{}` was stopped by an operator.", asked.endpoint),
        );
        problem.members.insert("endpoint".into(), json!(asked.endpoint));
        problem
    }
}

impl From<&Stopped> for Problem {
    fn from(stopped: &Stopped) -> Self {
        match stopped {
            Stopped::BoundReached(reached) => reached.into(),
            Stopped::StopAsked(asked) => asked.into(),
        }
    }
}

#[cfg(feature = "axum")]
mod answer {
    use axum::body::Body;
    use axum::response::{IntoResponse, Response};

    use super::Problem;
    use crate::error::LimitsError;
    use crate::permit::{BoundReached, Refusal};
    use crate::stops::Stopped;

    impl IntoResponse for Problem {
        fn into_response(self) -> Response {
            self.into_http().map(Body::from)
        }
    }

    impl IntoResponse for Refusal {
        fn into_response(self) -> Response {
            Problem::from(&self).into_response()
        }
    }

    impl IntoResponse for LimitsError {
        fn into_response(self) -> Response {
            tracing::warn!(error = ?self, "The limits gave no answer");
            Problem::from(&self).into_response()
        }
    }

    impl IntoResponse for BoundReached {
        fn into_response(self) -> Response {
            Problem::from(&self).into_response()
        }
    }

    impl IntoResponse for Stopped {
        fn into_response(self) -> Response {
            Problem::from(&self).into_response()
        }
    }
}
