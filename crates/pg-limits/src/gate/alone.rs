//! A door's own call: as many of those who wait as fit, and which limit refused the others.

use std::sync::Arc;
use std::time::Duration;

use crate::claim::millis;
use crate::error::LimitsError;
use crate::gate::answer::{Answered, fail, hand_out};
use crate::gate::door::Batch;
use crate::in_flight::InFlight;
use crate::limits::Inner;
use crate::statements;
use crate::window::Window;

pub(super) async fn let_in_alone(inner: &Arc<Inner>, index: usize, mut batch: Batch) {
    batch.tells = batch.door.is_cap();
    let called = if let Some((window, key)) = batch.only_window() {
        count(inner, index, window, key, batch.wanted()).await
    } else {
        enter(inner, index, &batch).await
    };
    match called {
        Ok(answered) => hand_out(inner, index, batch, &answered),
        Err(error) => fail(inner, index, vec![batch], error),
    }
}

async fn count(
    inner: &Inner,
    index: usize,
    window: &Window,
    key: &str,
    wanted: i32,
) -> Result<Answered, LimitsError> {
    let (limit, length_ms) = (window_limit(window), millis(window.length()));
    let row = inner
        .call(index, &statements::COUNT, &[&window.name(), &key, &limit, &length_ms, &wanted])
        .await?;
    let counted: Vec<i64> = row.try_get(0).map_err(LimitsError::Database)?;
    let number = |index: usize| counted.get(index).copied().unwrap_or(0);
    let is_full = number(0) < i64::from(wanted);
    Ok(Answered {
        admitted: i32::try_from(number(0)).unwrap_or(0),
        refused_by: if is_full { 1 } else { -1 },
        in_flight_before: 0,
        windows: vec![[number(1), number(2), number(3)]],
    })
}

async fn enter(inner: &Inner, index: usize, batch: &Batch) -> Result<Answered, LimitsError> {
    let windows = batch.windows();
    let cap_name = batch.door.is_cap().then(|| batch.door.name());
    let names: Vec<&str> = windows.iter().map(|(window, _)| window.name()).collect();
    let keys: Vec<&str> = windows.iter().map(|(_, key)| key.as_str()).collect();
    let limits: Vec<i32> = windows.iter().map(|(window, _)| window_limit(window)).collect();
    let lengths: Vec<i64> = windows.iter().map(|(window, _)| millis(window.length())).collect();
    let row = inner
        .call(
            index,
            &statements::ENTER,
            &[
                &inner.replica,
                &cap_name,
                &batch.door.key(),
                &batch.in_flight().map_or(0, |cap| cap_limit(&cap)),
                &batch.call,
                &batch.held,
                &ends_ms(batch),
                &batch.wanted(),
                &names,
                &keys,
                &limits,
                &lengths,
            ],
        )
        .await?;
    let numbers: Vec<i64> = row.try_get(0).map_err(LimitsError::Database)?;
    let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let windows = numbers.get(3..).unwrap_or_default().chunks_exact(3);
    Ok(Answered {
        admitted: i32::try_from(number(0)).unwrap_or(0),
        refused_by: number(1),
        in_flight_before: number(2),
        windows: windows.filter_map(|window| window.try_into().ok()).collect(),
    })
}

/// In shadow mode the database counts on, and what would have been refused is told here.
pub(super) fn window_limit(window: &Window) -> i32 {
    if window.is_shadow() { i32::MAX } else { i32::try_from(window.limit()).unwrap_or(i32::MAX) }
}

pub(super) fn cap_limit(cap: &InFlight) -> i32 {
    if cap.is_shadow() { i32::MAX } else { i32::try_from(cap.limit()).unwrap_or(i32::MAX) }
}

/// How long until the last of a door's requests has ended.
pub(super) fn ends_ms(batch: &Batch) -> i64 {
    millis(batch.until.remaining().max(Duration::from_secs(1)))
}
