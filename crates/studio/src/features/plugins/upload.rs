//! `POST /api/v1/plugins`: a plugin, streamed.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use http::StatusCode;
use http_body::Body as _;
use pg_limits::Counted;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::declared::Declared;
use super::pending::Pending;
use super::receive::{self, Failure, Received};
use super::{Plugin, UPLOAD_TIME, target, window};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::{Action, Outcome};
use crate::platform::problem::{ApiResult, ProblemDocument};
use crate::platform::request::Query;
use crate::platform::{timestamp, work};

/// What the body is.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Named {
    /// The file's name, 1 to 200 characters.
    #[param(example = "order-rules.jar")]
    name: String,
}

/// Uploads a plugin of at most 50 MB (52,428,800 bytes), at most 5 an hour a user. It is there when this answers, and
/// not before; an upload that ends early leaves nothing behind. One that stands still for 30 s, or takes longer than 10
/// minutes, is stopped. An upload that fails through a fault of ours is not counted.
#[utoipa::path(
    post,
    path = "/api/v1/plugins",
    tag = "plugins",
    params(
        Named,
        ("x-content-sha256" = Option<String>, Header, description = "The SHA-256 of the body in hexadecimal; a body with another is refused"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "The plugin", body = Plugin),
        (status = 400, description = "A name that cannot be, an empty body, or one that did not arrive whole", body = ProblemDocument),
        (status = 408, description = "It stood still or took too long", body = ProblemDocument),
        (status = 413, description = "More than 50 MB", body = ProblemDocument),
        (status = 429, description = "Too many uploads", body = ProblemDocument),
        (status = 503, description = "Limits or database away", body = ProblemDocument),
    )
)]
pub(super) async fn upload(
    State(app): State<App>,
    who: SignedIn,
    Query(named): Query<Named>,
    request: Request,
) -> ApiResult<(StatusCode, Json<Plugin>)> {
    let length = request.body().size_hint().exact();
    let declared = Declared::parse(&named.name, length, request.headers())?;
    // Counted before the first byte is read, so that those who are refused cost nothing.
    let counted = window::count(&app, &who).await?;
    let task = app.clone();
    let plugin = work::owned(&app, move |left| async move {
        store(&task, &who, &declared, request.into_body(), counted, &left).await
    })
    .await??;
    Ok((StatusCode::CREATED, Json(plugin)))
}

/// Goes on to its own end when the client leaves: then it deletes what came.
async fn store(
    app: &App,
    who: &SignedIn,
    declared: &Declared,
    body: Body,
    counted: Counted,
    left: &CancellationToken,
) -> ApiResult<Plugin> {
    let (id, received) = match begin_and_receive(app, who, declared, body, left).await {
        Ok(plugin) => plugin,
        Err(failure) => {
            return Err(match failure {
                Failure::Refused(problem) => problem,
                Failure::Cut => receive::broken().detail("It ended before it was whole."),
                Failure::Ours(_, problem) => {
                    window::give_back(counted).await;
                    problem
                }
            });
        }
    };
    Ok(Plugin {
        id,
        name: declared.name.clone(),
        size_bytes: received.size,
        sha256: received.sha256,
        uploaded_by: who.name.clone(),
        uploaded_at: timestamp::text(received.at.0),
    })
}

async fn begin_and_receive(
    app: &App,
    who: &SignedIn,
    declared: &Declared,
    body: Body,
    left: &CancellationToken,
) -> Result<(uuid::Uuid, Received), Failure> {
    let pending = Pending::begin(app, who, &declared.name).await.map_err(Failure::database)?;
    let id = pending.id;
    let detail = json!({ "name": declared.name });
    let event = app.audit.begin(who, Action::PluginUpload, &target(id), detail, UPLOAD_TIME).await;
    let event = match event {
        Ok(event) => event,
        Err(problem) => {
            pending.discard();
            return Err(Failure::database(problem));
        }
    };
    let stall = Duration::from_secs(app.settings.http.upload_stall_seconds);
    let received = receive::receive(&pending, body, declared, stall, (left, &app.stop_work)).await;
    let outcome = match &received {
        Ok(_) => Outcome::Complete { rows: 0 },
        Err(Failure::Refused(problem)) => Outcome::Failed { reason: problem.suffix(), rows: 0 },
        Err(Failure::Ours(reason, _)) => Outcome::Failed { reason, rows: 0 },
        Err(Failure::Cut) => Outcome::AbortedByClient { rows: 0 },
    };
    if received.is_err() {
        pending.discard();
    }
    event.finish(outcome).await;
    received.map(|received| (id, received))
}
