//! What operators' machines ask: alive, ready, metrics, and the API's document.

use std::sync::LazyLock;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use utoipa_axum::routes;

use crate::app::App;
use crate::platform::problem::{ApiResult, Problem};
use crate::platform::route::{Access, Cost, Route};
use crate::platform::telemetry;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let small = Cost::Cheap { rows: 1, bytes: 1_024 };
    let document = Cost::Cheap { rows: 0, bytes: 256 << 10 };
    vec![
        Route::new(Access::Public, small, routes!(livez)),
        Route::new(Access::Public, small, routes!(readyz)),
        Route::new(Access::Public, document, routes!(metrics)),
        Route::new(Access::Public, document, routes!(openapi)),
    ]
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/livez", tag = "health", responses((status = 200, description = "It does")))]
async fn livez() -> &'static str {
    "alive\n"
}

/// Whether this replica should get requests: its database answers, and it is not shutting down.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, description = "It should"),
        (status = 503, description = "It should not"),
    )
)]
async fn readyz(State(app): State<App>) -> ApiResult<&'static str> {
    if app.shutdown.is_cancelled() {
        return Err(Problem::draining());
    }
    app.pools.main().await?.execute("select 1", &[]).await?;
    Ok("ready\n")
}

/// The metrics of this replica, in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, description = "Metrics")))]
async fn metrics(State(app): State<App>) -> Response {
    let pool = app.pools.main.status();
    metrics::gauge!("studio_pool_connections").set(count(pool.size));
    metrics::gauge!("studio_pool_idle").set(count(pool.available));
    metrics::gauge!("studio_pool_waiting").set(count(pool.waiting));
    let text = telemetry::recorder().map(metrics_exporter_prometheus::PrometheusHandle::render);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text.unwrap_or_default()).into_response()
}

fn count(connections: usize) -> f64 {
    f64::from(u32::try_from(connections).unwrap_or(u32::MAX))
}

static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| crate::app::openapi().to_json().unwrap_or_default());

/// This document.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    tag = "health",
    responses((status = 200, description = "The OpenAPI document of this version", content_type = "application/json"))
)]
async fn openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], DOCUMENT.as_str()).into_response()
}
