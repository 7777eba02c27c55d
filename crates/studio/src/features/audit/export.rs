//! `GET /api/v1/audit/export`: the trail as a file, read in pieces and streamed.

mod body;
mod format;
mod pieces;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use self::body::{ExportBody, Progress};
use self::format::Format;
use self::stream::Export;
use super::filter::{Filter, FilterParameters};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Query;

/// Which events, and in which form.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportParameters {
    /// Only events at or after this time (RFC 3339).
    #[param(example = "2026-01-31T00:00:00Z")]
    from: Option<String>,
    /// Only events before this time (RFC 3339).
    to: Option<String>,
    /// Only events of this account, by its name.
    actor: Option<String>,
    /// Only events of this action.
    #[param(example = "sql.query")]
    action: Option<String>,
    /// Only events with this outcome, as it is when they are read: an outcome may come later.
    #[param(example = "partial")]
    outcome: Option<String>,
    /// `ndjson` unless given.
    format: Format,
}

/// The audit trail as a file, oldest first, as far as it was settled when the export began.
///
/// The last line says why the file ends, and how many events it has: in NDJSON
/// `{"$end":"COMPLETE|ROWS|TIME|BYTES","rows":N}`, in CSV `#END,COMPLETE|ROWS|TIME|BYTES,N`. A file without it is broken.
#[utoipa::path(
    get,
    path = "/api/v1/audit/export",
    tag = "audit",
    params(ExportParameters),
    responses(
        (status = 200, description = "The file", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 400, description = "A parameter does not fit", body = ProblemDocument),
        (status = 429, description = "Too many heavy requests", body = ProblemDocument),
        (status = 503, description = "Limits or database away", body = ProblemDocument),
    )
)]
pub(super) async fn export(
    State(app): State<App>,
    who: SignedIn,
    Query(parameters): Query<ExportParameters>,
) -> ApiResult<Response> {
    let ExportParameters { from, to, actor, action, outcome, format } = parameters;
    let asked = json!({
        "from": &from, "to": &to, "actor": &actor, "action": &action, "outcome": &outcome,
        "format": format.name(),
    });
    let filter = Filter::parse(FilterParameters { from, to, actor, action, outcome })?;

    // The token goes with the body: dropped with it when the client leaves, or with this future before.
    let left = app.stop_work.child_token();
    let guard = left.clone().drop_guard();
    let (sender, pieces) = mpsc::channel(1);
    let (begun, begins) = oneshot::channel();
    let progress = Arc::new(Progress::default());
    let export = Export {
        app: app.clone(),
        who,
        filter,
        format,
        left,
        sender,
        progress: Arc::clone(&progress),
    };
    app.tasks.spawn(export.run(asked, begun));
    begins.await.unwrap_or_else(|_| Err(Problem::internal(&"an export ended before it began")))?;

    let mut response = Response::new(Body::new(ExportBody::new(pieces, progress, guard)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(format.disposition()));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'"),
    );
    Ok(response)
}
