//! `PUT /api/v1/settings`: changing settings on all replicas, all or none.

use axum::extract::State;
use axum::response::Response;
use deadpool_postgres::Transaction;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::{Map, Value as JsonValue, json};
use std::time::Duration;

use super::document::Settings;
use super::kept::{self, KeptSettings};
use super::show;
use super::wanted::Wanted;
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::{Action, OpenEvent, Outcome};
use crate::platform::bus::{self, Channel};
use crate::platform::in_force::{InForce, Kept, Setting, Value};
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Json;

const TAKE_TURN: &str = include_str!("queries/take_turn.sql");
const WRITE: &str = include_str!("queries/write.sql");

/// What is kept in the trail as the thing that was changed.
const TARGET: &str = "settings";

/// The longest that a change takes: the total time limit of a cheap request.
const BOUND: Duration = Duration::from_mins(1);

/// What to change. Settings that are not named stay as they are.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RuntimeSettingsChange)]
pub(super) struct Asked {
    /// Names with their new values; null for a setting that goes back to its default.
    #[schema(example = json!({ "sql_console.per_user": 3, "login_attempt.mode": "shadow", "audit_export.rows": null }))]
    settings: Map<String, JsonValue>,
}

/// One setting that changes, and its new value.
type Change = (Setting, Option<Value>);

/// Changes settings, all or none, on every replica within two seconds. With `If-Match` only while the version is that
/// one. `null` returns a setting to its default.
#[utoipa::path(
    put,
    path = "/api/v1/settings",
    tag = "settings",
    params(("If-Match" = Option<String>, Header, description = "The `ETag` that the change was decided on")),
    request_body = Asked,
    responses(
        (status = 200, description = "Every setting, as it is now", body = Settings),
        (status = 400, description = "A name or a value cannot be, or they do not fit together; `errors` names each", body = ProblemDocument),
        (status = 412, description = "Somebody changed a setting since", body = ProblemDocument),
        (status = 503, description = "The limits' database or Studio's own is away", body = ProblemDocument),
    )
)]
pub(super) async fn change(
    State(app): State<App>,
    who: SignedIn,
    headers: HeaderMap,
    Json(asked): Json<Asked>,
) -> ApiResult<Response> {
    let wanted = Wanted::read(&app.in_force, &asked.settings)?;
    let task = app.clone();
    // A task of its own: a client that leaves must not leave half of it behind.
    let changed = app.tasks.spawn(async move { apply(&task, &who, &headers, wanted).await });
    changed.await.map_err(|error| Problem::internal(&error))??;
    // At once here; a failure is made good by the next reading.
    app.in_force.read().await.ok();
    show::answer(&app).await
}

async fn apply(app: &App, who: &SignedIn, headers: &HeaderMap, wanted: Wanted) -> ApiResult<()> {
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    transaction.batch_execute(TAKE_TURN).await?;
    // Within the turn: whoever changes a cap has it.
    let kept = KeptSettings::read(&*transaction, app.heavy.caps().await?).await?;
    check_version(headers, kept.version())?;
    wanted.check(&app.in_force, &kept)?;
    let changes = wanted.changes(&kept);
    if changes.is_empty() {
        return Ok(());
    }
    write(&transaction, who, &changes, kept.version() + 1).await?;
    let detail = detail(&app.in_force, &kept, &changes);
    if changes.iter().all(|(setting, _)| setting.kept() == Kept::Here) {
        app.audit.record_in(&transaction, who, Action::SettingsChange, TARGET, detail).await?;
        return Ok(transaction.commit().await?);
    }
    // What changes in another database is in the trail before it does, and its outcome after.
    let event = app.audit.begin(who, Action::SettingsChange, TARGET, detail, BOUND).await?;
    for (setting, value) in &changes {
        if let Err(error) = kept::write_to_limits(&app.heavy, *setting, *value).await {
            return failed(event, "limits", error.into()).await;
        }
    }
    if let Err(error) = transaction.commit().await {
        return failed(event, "database", error.into()).await;
    }
    event.finish(Outcome::Complete { rows: 0 }).await;
    Ok(())
}

async fn write(
    transaction: &Transaction<'_>,
    who: &SignedIn,
    changes: &[Change],
    revision: i64,
) -> ApiResult<()> {
    let (names, values): (Vec<&str>, Vec<Option<String>>) =
        changes.iter().map(|(setting, value)| (setting.name(), value.map(Value::to_text))).unzip();
    let statement = transaction.prepare_cached(WRITE).await?;
    transaction.execute(&statement, &[&names, &values, &who.name, &revision]).await?;
    bus::tell_in(&**transaction, Channel::Setting).await?;
    Ok(())
}

async fn failed(event: OpenEvent, reason: &'static str, problem: Problem) -> ApiResult<()> {
    event.finish(Outcome::Failed { reason, rows: 0 }).await;
    Err(problem)
}

/// Old and new values, by name.
fn detail(in_force: &InForce, kept: &KeptSettings, changes: &[Change]) -> JsonValue {
    let settings: Map<String, JsonValue> = changes
        .iter()
        .map(|(setting, value)| {
            let new = value.unwrap_or_else(|| in_force.value(*setting, None));
            let change = json!({
                "old": kept.value(in_force, *setting),
                "new": new,
                "isDefault": value.is_none(),
            });
            (setting.name().to_owned(), change)
        })
        .collect();
    json!({ "settings": settings })
}

/// Whether the version is one that the change was decided on.
fn check_version(headers: &HeaderMap, version: i64) -> ApiResult<()> {
    let Some(wanted) = headers.get(header::IF_MATCH) else { return Ok(()) };
    let own = format!("\"{version}\"");
    let fits = wanted
        .to_str()
        .is_ok_and(|tags| tags.split(',').map(str::trim).any(|tag| tag == "*" || tag == own));
    if fits { Ok(()) } else { Err(changed_since(version)) }
}

fn changed_since(version: i64) -> Problem {
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "settings-changed",
        "Somebody changed the settings since",
    )
    .member("version", version.to_string())
}
