//! `GET /api/v1/users`: accounts, by name.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use super::User;
use crate::app::App;
use crate::platform::account::AccountName;
use crate::platform::paging::{Scope, invalid_cursor};
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Query;

const LIST: &str = include_str!("queries/list.sql");

/// The most rows of one page.
pub(super) const PAGE_ROWS: u32 = 200;

/// Which accounts.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only accounts whose name begins so, however it is written.
    name: Option<String>,
    /// Rows a page, 50 unless given, at most 200.
    size: Option<u32>,
    /// The `next` of an answer: the page behind it.
    after: Option<String>,
}

/// A page of accounts.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Users {
    /// In the order of the bytes of their names.
    items: Vec<User>,
    /// What to pass as `after` for the next page; null on the last one.
    next: Option<String>,
}

/// The accounts of this installation.
#[utoipa::path(
    get,
    path = "/api/v1/users",
    tag = "users",
    params(Which),
    responses(
        (status = 200, description = "A page", body = Users),
        (status = 400, description = "A parameter does not fit", body = ProblemDocument),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    Query(which): Query<Which>,
) -> ApiResult<Json<Users>> {
    let size = which.size.unwrap_or(50);
    if !(1..=PAGE_ROWS).contains(&size) {
        return Err(Problem::bad_parameter("`size` is between 1 and 200."));
    }
    let prefix = AccountName::prefix(which.name.as_deref().unwrap_or_default())
        .ok_or_else(|| Problem::bad_parameter("No name begins with such a `name`."))?;
    let scope = Scope::new("users, by name", prefix.as_bytes());
    let after = which
        .after
        .as_deref()
        .map(|cursor| scope.decode_text(cursor).ok_or_else(invalid_cursor))
        .transpose()?
        .unwrap_or_default();

    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(LIST).await?;
    let most = i64::from(size) + 1;
    let behind = AccountName::behind(&prefix);
    let rows = connection.query(&statement, &[&after, &prefix, &behind, &most]).await?;
    let mut items = rows.iter().map(User::read).collect::<ApiResult<Vec<_>>>()?;
    let size = usize::try_from(size).map_err(|error| Problem::internal(&error))?;
    let is_more = items.len() > size;
    items.truncate(size);
    let next = items.last().filter(|_| is_more).map(|last| scope.encode_text(&last.name));
    Ok(Json(Users { items, next }))
}
