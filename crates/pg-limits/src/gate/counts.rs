//! One call for all doors of a round that count in one window: those that fit whole are counted.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_postgres::Row;

use crate::claim::millis;
use crate::error::LimitsError;
use crate::gate::alone::window_limit;
use crate::gate::answer::{Answered, fail, hand_out};
use crate::gate::attend::all_alone;
use crate::gate::door::Batch;
use crate::limits::Inner;
use crate::statements;

pub(super) async fn count_together(inner: &Arc<Inner>, index: usize, mut batches: Vec<Batch>) {
    if batches.is_empty() {
        return;
    }
    // One order for all callers, so that no two of them wait for each other.
    batches.sort_by(|one, other| one.door.cmp(&other.door));
    let counted = match call(inner, index, &batches).await {
        Ok(counted) => counted,
        // It may be one door's fault.
        Err(LimitsError::Database(_)) if batches.len() > 1 => vec![None; batches.len()],
        Err(error) => return fail(inner, index, batches, error),
    };
    let mut alone = Vec::new();
    for (batch, numbers) in batches.into_iter().zip(counted) {
        let Some(numbers) = numbers else {
            alone.push(batch);
            continue;
        };
        let (admitted, windows) = (batch.wanted(), vec![numbers]);
        let answered = Answered { admitted, refused_by: -1, in_flight_before: 0, windows };
        hand_out(inner, index, batch, &answered);
    }
    all_alone(inner, index, alone).await;
}

/// For each batch in turn the numbers of its window, if all of it was counted.
async fn call(
    inner: &Inner,
    index: usize,
    batches: &[Batch],
) -> Result<Vec<Option<[i64; 3]>>, LimitsError> {
    let windows = || batches.iter().filter_map(Batch::only_window);
    if let ([batch], Some((window, key))) = (batches, windows().next()) {
        let (limit, length_ms) = (window_limit(window), millis(window.length()));
        let (name, wanted) = (window.name(), batch.wanted());
        // The statement would count them all where the window has yet to begin.
        if wanted > limit {
            return Ok(vec![None]);
        }
        let rows = inner
            .rows(index, &statements::COUNT_ONE, &[&name, &key, &limit, &length_ms, &wanted])
            .await?;
        let counted = rows.first().map(|row| numbers(row, 0)).transpose();
        return counted.map(|counted| vec![counted]).map_err(LimitsError::Database);
    }
    let names: Vec<&str> = windows().map(|(window, _)| window.name()).collect();
    let keys: Vec<&str> = windows().map(|(_, key)| key).collect();
    let limits: Vec<i32> = windows().map(|(window, _)| window_limit(window)).collect();
    let lengths: Vec<i64> = windows().map(|(window, _)| millis(window.length())).collect();
    let counts: Vec<i32> = batches.iter().map(Batch::wanted).collect();
    let rows = inner
        .rows(index, &statements::COUNT_TOGETHER, &[&names, &keys, &limits, &lengths, &counts])
        .await?;
    // In the order that was asked, without those that did not fit.
    let mut rows = rows.iter().peekable();
    let counted = windows().map(|(window, key)| {
        let Some(row) = rows.peek() else { return Ok(None) };
        if row.try_get::<_, &str>(1)? != key || row.try_get::<_, &str>(0)? != window.name() {
            return Ok(None);
        }
        let numbers = numbers(row, 2)?;
        rows.next();
        Ok(Some(numbers))
    });
    counted.collect::<Result<_, _>>().map_err(LimitsError::Database)
}

/// Count, milliseconds until the end, and the end in microseconds since 1970: of a row that tells count,
/// end and time from that column on.
fn numbers(row: &Row, first: usize) -> Result<[i64; 3], tokio_postgres::Error> {
    let count: i32 = row.try_get(first)?;
    let (end, now): (SystemTime, SystemTime) = (row.try_get(first + 1)?, row.try_get(first + 2)?);
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let resets_us = micros(end.duration_since(now).unwrap_or_default());
    let ends_us = micros(end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    Ok([i64::from(count), (resets_us + 999) / 1000, ends_us])
}
