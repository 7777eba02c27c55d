//! `POST /api/v1/sql/query`: one SELECT.

use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio_postgres::Config;
use tokio_util::sync::CancellationToken;

use super::bounds::{ENDPOINT, Reached};
use super::catalogue::Catalogue;
use super::check::{CheckedQuery, check};
use super::run::{self, Answer, Document, invalid_sql};
use super::{body, guard};
use crate::app::App;
use crate::platform::access::{Role, SignedIn, SignedInBy};
use crate::platform::audit::{Action, Bound, OpenEvent, Outcome};
use crate::platform::heavy::{self, Permit};
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Json;
use crate::platform::work;

/// What is kept in the trail as the thing that was asked.
const TARGET: &str = "console";

/// A query.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[schema(as = SqlQuestion)]
pub(super) struct Question {
    /// One SELECT, at most 64 KiB.
    sql: String,
}

/// Runs one SELECT over the views of the catalogue. Values are text as PostgreSQL writes them. An
/// answer that a bound cut says which: `ROWS`, `BYTES`, `TIME` or `CELL`.
#[utoipa::path(
    post,
    path = "/api/v1/sql/query",
    tag = "sql",
    request_body = Question,
    responses(
        (status = 200, description = "The rows, whole or cut at a bound that is named", body = Document),
        (status = 400, description = "Not a query that the console runs; the detail names the construct", body = ProblemDocument),
        (status = 403, description = "The role may not read one of the views", body = ProblemDocument),
        (status = 422, description = "The query needs too much space", body = ProblemDocument),
        (status = 429, description = "Too many heavy requests", body = ProblemDocument),
        (status = 503, description = "Stopped at its time bound before the first row, or the console is off", body = ProblemDocument),
    )
)]
pub(super) async fn query(
    State(app): State<App>,
    who: SignedIn,
    Json(question): Json<Question>,
) -> ApiResult<Response> {
    let begun = Instant::now();
    let checked = checked(&question.sql).await?;
    for view in checked.views() {
        if !who.may(view.needs) {
            return Err(Problem::forbidden(view.needs.name()).member("view", view.name).detail(
                format!("The view {} needs the permission {}.", view.name, view.needs.name()),
            ));
        }
    }
    let login = guard::login(&app, role_of_login(&who, &checked)).await?;
    let permit = heavy::claim(&app, &ENDPOINT, &who.user()).await?;
    let task = app.clone();
    let (pieces, permit) = work::owned(&app, move |left| async move {
        answer(&task, &who, &login, &question.sql, &checked, permit, &left, begun).await
    })
    .await??;
    Ok(body::respond(&app, pieces, permit))
}

/// The role whose login a query runs under. A token may be granted less than its owner: its queries run under the weakest
/// role that reads the views which they name, so that the server too holds them to that.
fn role_of_login(who: &SignedIn, checked: &CheckedQuery) -> Role {
    let reads_all = |role: &Role| checked.views().iter().all(|view| view.is_readable_by(*role));
    match who.by {
        SignedInBy::Session => who.role,
        SignedInBy::Token(_) => Role::ALL.into_iter().find(reads_all).unwrap_or(who.role),
    }
}

/// Checks the text on a thread that may block.
async fn checked(sql: &str) -> ApiResult<CheckedQuery> {
    let sql = sql.to_owned();
    tokio::task::spawn_blocking(move || check(&sql, &Catalogue::ALL))
        .await
        .map_err(|error| Problem::internal(&error))?
        .map_err(|refusal| invalid_sql(refusal.sentence()).member("construct", refusal.name()))
}

/// Audits, runs, tells the outcome. The permit is released here unless an answer goes out under it.
#[expect(clippy::too_many_arguments, reason = "the parts of one request, once")]
async fn answer(
    app: &App,
    who: &SignedIn,
    login: &Config,
    sql: &str,
    checked: &CheckedQuery,
    permit: Permit,
    left: &CancellationToken,
    begun: Instant,
) -> ApiResult<(Vec<Bytes>, Option<Permit>)> {
    let bound = permit.endpoint().time_bound();
    let opened = app.audit.begin(who, Action::SqlQuery, TARGET, json!({ "sql": sql }), bound).await;
    let event = match opened {
        Ok(event) => event,
        Err(problem) => {
            permit.release().await;
            return Err(problem);
        }
    };
    match run::run(app, login, checked.sql(), &permit, left).await {
        Ok(answer) => {
            finish(event, &answer).await;
            let is_late = answer.bound() == Some(Reached::Time);
            let pieces =
                answer.finish(begun.elapsed()).map_err(|error| Problem::internal(&error))?;
            if is_late {
                // The permit ends with the time bound: what was read has its own time to leave.
                permit.release().await;
                return Ok((pieces, None));
            }
            Ok((pieces, Some(permit)))
        }
        Err(failure) => {
            event.finish(failure.outcome()).await;
            permit.release().await;
            Err(failure.into())
        }
    }
}

async fn finish(event: OpenEvent, answer: &Answer) {
    let rows = answer.row_count();
    let outcome = match answer.bound() {
        None => Outcome::Complete { rows },
        Some(Reached::Rows) => Outcome::Partial { bound: Bound::Rows, rows },
        Some(Reached::Time) => Outcome::Partial { bound: Bound::Time, rows },
        Some(Reached::Bytes | Reached::Cell) => Outcome::Partial { bound: Bound::Bytes, rows },
    };
    event.finish(outcome).await;
}
