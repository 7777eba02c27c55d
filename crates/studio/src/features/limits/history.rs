//! `GET /api/v1/limits/history`: refusals of all users together over time.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use crate::app::App;
use crate::platform::paging::Microseconds;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::refusals::SPANS;
use crate::platform::request::Query;
use crate::platform::timestamp;

const HISTORY: &str = include_str!("queries/history.sql");

/// The most rows of an answer.
pub(super) const ROWS: u32 = 1_500;

/// More than there are kinds of refusals: limits, whose they are, refused or in shadow.
const KINDS: i64 = 30;

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 1_440 * MINUTE;
/// The longest period: a day more than is kept.
const LONGEST: i64 = 31 * DAY;
/// The period that is shown unless one is asked for.
const USUAL: i64 = 60 * MINUTE;

/// Which refusals.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// The first time (RFC 3339); an hour before the last unless given. At most 31 days are shown, and 30 are kept.
    #[param(example = "2026-01-31T00:00:00Z")]
    from: Option<String>,
    /// The time to end before; now unless given.
    to: Option<String>,
    /// Only this limit.
    #[param(example = "sql_console")]
    limit: Option<String>,
}

/// Refusals over time. Replicas add theirs every ten seconds, so the last ones may be missing yet.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefusalHistory {
    from: String,
    to: String,
    /// How long a bucket is: 1, 10, 60, 360 or 1,440 minutes, the longer the longer the period.
    bucket_minutes: i32,
    /// At most 1,500, oldest first. Where nothing was refused there is none.
    counts: Vec<RefusalCount>,
}

/// Refusals of one kind in one bucket.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RefusalCount {
    /// When the bucket begins; the first may begin before `from`.
    at: String,
    #[schema(example = "sql_console")]
    limit: String,
    /// Whose limit it was: `user`, `token`, `network`, `installation` and so on.
    #[schema(example = "user")]
    scope: String,
    /// Whether nothing was refused, but only counted: the limit was in shadow.
    is_shadow: bool,
    count: i64,
}

impl RefusalCount {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let at: Microseconds = row.try_get("begins_at")?;
        Ok(Self {
            at: timestamp::text(at.0),
            limit: row.try_get("limit_name")?,
            scope: row.try_get("scope")?,
            is_shadow: row.try_get("is_shadow")?,
            count: row.try_get("count")?,
        })
    }
}

/// How often limits have refused, over time, all users and replicas together.
#[utoipa::path(
    get,
    path = "/api/v1/limits/history",
    tag = "limits",
    params(Which),
    responses(
        (status = 200, description = "Refusals by bucket", body = RefusalHistory),
        (status = 400, description = "A parameter does not fit", body = ProblemDocument),
    )
)]
pub(super) async fn history(
    State(app): State<App>,
    Query(which): Query<Which>,
) -> ApiResult<Json<RefusalHistory>> {
    let time = |name: &str, text: Option<String>| {
        let not_one = || Problem::bad_parameter(&format!("`{name}` is not an RFC 3339 time."));
        text.map(|text| timestamp::parse(&text).ok_or_else(not_one)).transpose()
    };
    let now = jiff::Timestamp::now().as_microsecond();
    let to = time("to", which.to)?.unwrap_or(now);
    let from = time("from", which.from)?.unwrap_or_else(|| to.saturating_sub(USUAL));
    let length = to.saturating_sub(from);
    if !(1..=LONGEST).contains(&length) {
        return Err(Problem::bad_parameter("`from` is before `to`, by 31 days at most."));
    }
    let minutes = bucket_minutes(length);
    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(HISTORY).await?;
    let (first, end, most) = (Microseconds(from), Microseconds(to), i64::from(ROWS));
    let rows = connection.query(&statement, &[&minutes, &first, &end, &which.limit, &most]).await?;
    let counts = rows.iter().rev().map(RefusalCount::read).collect::<Result<_, _>>()?;
    let (from, to) = (timestamp::text(from), timestamp::text(to));
    Ok(Json(RefusalHistory { from, to, bucket_minutes: minutes, counts }))
}

/// The shortest buckets of which the period has not too many.
fn bucket_minutes(length: i64) -> i32 {
    let fits = |minutes: i32| {
        // One more for each end that lies within a bucket.
        let buckets = length / (i64::from(minutes) * MINUTE) + 2;
        buckets * KINDS <= i64::from(ROWS)
    };
    let longest = SPANS.into_iter().max().unwrap_or(1);
    SPANS.into_iter().find(|minutes| fits(*minutes)).unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_with_the_period_and_never_exceed_an_answer() {
        assert_eq!(bucket_minutes(1), 1);
        assert_eq!(bucket_minutes(48 * MINUTE), 1);
        assert_eq!(bucket_minutes(USUAL), 10);
        assert_eq!(bucket_minutes(DAY), 60);
        assert_eq!(bucket_minutes(7 * DAY), 360);
        assert_eq!(bucket_minutes(LONGEST), 1_440);
        for length in (1..=LONGEST).step_by(7 * 3_600_000_000 + 1) {
            let buckets = length / (i64::from(bucket_minutes(length)) * MINUTE) + 2;
            assert!(buckets * KINDS <= i64::from(ROWS), "{length}");
        }
    }
}
