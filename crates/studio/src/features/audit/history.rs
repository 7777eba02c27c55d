//! `GET /api/v1/audit`: the trail, page by page.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use http::{HeaderValue, StatusCode, header};
use http_body_util::Full;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::HISTORY;
use super::event::{AuditEvent, Event};
use super::filter::{COUNT, COUNT_TYPES, Filter, FilterParameters, PAGE, PAGE_TYPES, PLAN};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::heavy::{self, Permit};
use crate::platform::paging::{Key, NUMBERED_ROWS, Page, Position};
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Query;
use crate::platform::work::{self, Bounds};

/// Which events, and which page of them.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParameters {
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
    /// The number of the page, from 1. Numbers reach the first 10,000 rows.
    page: Option<u32>,
    /// Rows a page, 50 unless given, at most 500 or what is set at run time.
    size: Option<u32>,
    /// The `next` of an answer: the page behind it.
    after: Option<String>,
}

/// A page of the trail, as documented; it is written by hand.
#[derive(Debug, Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// Newest first.
    pub items: Vec<AuditEvent>,
    /// What to pass as `after` for the next page; null on the last one.
    pub next: Option<String>,
    /// How many rows the filter leaves; only with `page`, and only up to 10,000.
    pub total: Option<u32>,
    /// In place of `total` when there are more.
    pub total_is_at_least: Option<u32>,
}

/// The audit trail, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "audit",
    params(PageParameters),
    responses(
        (status = 200, description = "A page", body = AuditPage),
        (status = 400, description = "A parameter does not fit", body = ProblemDocument),
        (status = 429, description = "Too many heavy requests", body = ProblemDocument),
        (status = 503, description = "Stopped at its time bound, or limits or database away", body = ProblemDocument),
    )
)]
pub(super) async fn history(
    State(app): State<App>,
    who: SignedIn,
    Query(parameters): Query<PageParameters>,
) -> ApiResult<Response> {
    let PageParameters { from, to, actor, action, outcome, page, size, after } = parameters;
    let filter = Filter::parse(FilterParameters { from, to, actor, action, outcome })?;
    let rows = app.in_force.endpoint(&HISTORY).row_cap().unwrap_or(u64::MAX);
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let page = Page::parse(page, size, after.as_deref(), &filter.scope(), rows)?;
    let reader = app.clone();
    let (body, permit) =
        work::owned(&app, |left| async move { read(&reader, &who, &filter, page, &left).await })
            .await??;
    let mut response = Response::new(Body::new(permit.guard(Full::new(body))));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The cursor that leads behind `key` in the list that an address asks for, as an answer's `next` would; nothing when
/// its parameters do not fit. For programs that know where to go on, such as a benchmark at the end of a long trail.
pub fn cursor_behind(address: &http::Uri, key: Key) -> Option<String> {
    let parameters = axum::extract::Query::<PageParameters>::try_from_uri(address).ok()?.0;
    let PageParameters { from, to, actor, action, outcome, .. } = parameters;
    let filter = Filter::parse(FilterParameters { from, to, actor, action, outcome }).ok()?;
    Some(filter.scope().encode(key))
}

/// The page under its permit, which outlives it: it is freed with the last byte.
async fn read(
    app: &App,
    who: &SignedIn,
    filter: &Filter,
    page: Page,
    left: &CancellationToken,
) -> ApiResult<(Bytes, Permit)> {
    let permit = heavy::claim(app, &HISTORY, &who.user()).await?;
    let connection = app.pools.main().await?;
    let bounds = Bounds {
        permit: &permit,
        at_most: None,
        left,
        terminator: &app.pools.main,
        set_local: PLAN,
    };
    let filter = filter.clone();
    let bytes = permit.endpoint().byte_cap().unwrap_or(u64::MAX);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let (ended, connection) = bounds
        .run(connection, |connection| {
            Box::pin(async move { read_page(connection, &filter, page, bytes).await })
        })
        .await;
    drop(connection);
    let body = ended.done(permit.endpoint())??;
    Ok((body, permit))
}

async fn read_page(
    connection: &deadpool_postgres::Object,
    filter: &Filter,
    page: Page,
    most_bytes: usize,
) -> Result<ApiResult<Bytes>, tokio_postgres::Error> {
    let from = match page.position {
        Position::After(key) => key,
        Position::Number(_) | Position::First => Key { at: filter.to, id: i64::MIN },
    };
    let [actor, action, outcome] = filter.values();
    let statement = connection.prepare_typed_cached(PAGE.of(filter), &PAGE_TYPES).await?;
    let most = i64::from(page.size) + 1;
    let offset = page.offset();
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 8] =
        [&from.at, &from.id, &filter.from, &offset, &most, &actor, &action, &outcome];
    let rows = connection.query_raw(&statement, parameters).await?;
    let mut rows = std::pin::pin!(rows);

    let mut out = BytesMut::with_capacity(64 << 10);
    out.put_slice(b"{\"items\":[");
    let (mut last, mut count, mut is_more) = (None, 0_u32, false);
    while let Some(row) = rows.try_next().await? {
        // The rest is still read from the connection, which must be drained before it is used again.
        if is_more || count == page.size {
            is_more = true;
            continue;
        }
        let (before, event) = (out.len(), Event::read(&row)?);
        if count > 0 {
            out.put_u8(b',');
        }
        event.write_json(&mut out);
        if count > 0 && out.len() > most_bytes {
            out.truncate(before);
            is_more = true;
            continue;
        }
        (last, count) = (Some(event.key()), count + 1);
    }
    let is_cut = is_more && count < page.size;
    out.put_slice(b"],\"next\":");
    match last.filter(|_| is_more) {
        Some(key) => {
            out.put_u8(b'"');
            out.put_slice(filter.scope().encode(key).as_bytes());
            out.put_u8(b'"');
        }
        None => out.put_slice(b"null"),
    }
    if matches!(page.position, Position::Number(_)) {
        // A numbered page that lacks rows would put the rows of the next one out of place.
        if is_cut {
            return Ok(Err(too_large(most_bytes)));
        }
        let total = count_rows(connection, filter).await?;
        let total = if total > i64::from(NUMBERED_ROWS) {
            format!(",\"totalIsAtLeast\":{NUMBERED_ROWS}")
        } else {
            format!(",\"total\":{total}")
        };
        out.put_slice(total.as_bytes());
    }
    out.put_u8(b'}');
    Ok(Ok(out.freeze()))
}

async fn count_rows(
    connection: &deadpool_postgres::Object,
    filter: &Filter,
) -> Result<i64, tokio_postgres::Error> {
    let [actor, action, outcome] = filter.values();
    let statement = connection.prepare_typed_cached(COUNT.of(filter), &COUNT_TYPES).await?;
    let most = i64::from(NUMBERED_ROWS) + 1;
    let row = connection
        .query_one(
            &statement,
            &[&filter.to, &filter.from, &most, &0_i64, &0_i64, &actor, &action, &outcome],
        )
        .await?;
    row.try_get(0)
}

fn too_large(bytes: usize) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "answer-too-large", "The answer is too large")
        .detail(
            "The page has more bytes than one may have. Ask for fewer rows, or page by `after`.",
        )
        .member("byteLimit", bytes)
}
