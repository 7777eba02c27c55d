//! `GET /api/v1/plugins`: the plugins, newest first.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Plugin, hexadecimal};
use crate::app::App;
use crate::platform::paging::{Microseconds, Scope, invalid_cursor};
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Query;
use crate::platform::timestamp;

const LIST: &str = include_str!("queries/list.sql");

/// The most rows of one page.
pub(super) const PAGE_ROWS: u32 = 200;

/// Which page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Rows a page, 50 unless given, at most 200.
    size: Option<u32>,
    /// The `next` of an answer: the page behind it.
    after: Option<String>,
}

/// A page of plugins.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Plugins {
    /// Newest first.
    items: Vec<Plugin>,
    /// What to pass as `after` for the next page; null on the last one.
    next: Option<String>,
}

/// The plugins that were uploaded whole.
#[utoipa::path(
    get,
    path = "/api/v1/plugins",
    tag = "plugins",
    params(Which),
    responses(
        (status = 200, description = "A page", body = Plugins),
        (status = 400, description = "A parameter does not fit", body = ProblemDocument),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    Query(which): Query<Which>,
) -> ApiResult<Json<Plugins>> {
    let size = which.size.unwrap_or(50);
    if !(1..=PAGE_ROWS).contains(&size) {
        return Err(Problem::bad_parameter("`size` is between 1 and 200."));
    }
    let scope = Scope::new("plugins, newest first", b"");
    let before = match which.after {
        None => Uuid::max(),
        Some(cursor) => scope
            .decode_text(&cursor)
            .and_then(|id| Uuid::try_parse(&id).ok())
            .ok_or_else(invalid_cursor)?,
    };
    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(LIST).await?;
    let rows = connection.query(&statement, &[&before, &(i64::from(size) + 1)]).await?;
    let mut items = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let size = usize::try_from(size).map_err(|error| Problem::internal(&error))?;
    let is_more = items.len() > size;
    items.truncate(size);
    let next = items.last().filter(|_| is_more).map(|last| scope.encode_text(&last.id.to_string()));
    Ok(Json(Plugins { items, next }))
}

fn read(row: &Row) -> Result<Plugin, tokio_postgres::Error> {
    let at: Microseconds = row.try_get("completed_at")?;
    Ok(Plugin {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        size_bytes: row.try_get("size_bytes")?,
        sha256: hexadecimal(row.try_get("sha256")?),
        uploaded_by: row.try_get("uploaded_by")?,
        uploaded_at: timestamp::text(at.0),
    })
}
