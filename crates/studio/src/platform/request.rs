//! Extractors whose refusals are problems, and the request's id.

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::problem::Problem;

/// A JSON body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match axum::Json::<T>::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(Problem::bad_body(rejection.status(), &rejection.body_text())),
        }
    }
}

/// The query string.
#[derive(Debug, Clone, Copy, Default)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Problem::bad_parameter(&rejection.body_text())),
        }
    }
}

/// The id that an address names. What is no id names nothing.
#[derive(Debug, Clone, Copy)]
pub struct PathId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = axum::extract::Path::<Uuid>::from_request_parts(parts, state).await;
        id.map(|axum::extract::Path(id)| Self(id)).map_err(|_| Problem::not_found())
    }
}

/// The id of a request, in the answer's `x-request-id`, in problems, in logs and in audit rows.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);
