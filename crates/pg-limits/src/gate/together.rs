//! One call for all doors of a round that let in by a cap, or by several windows: all of them, or none.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::claim::millis;
use crate::error::LimitsError;
use crate::gate::alone::{cap_limit, ends_ms, window_limit};
use crate::gate::answer::{Answered, fail, hand_out};
use crate::gate::attend::all_alone;
use crate::gate::door::Batch;
use crate::limits::Inner;
use crate::statements;

/// How a window of one key is counted in by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    limit: i32,
    length_ms: i64,
    count: i32,
}

type Windows<'a> = BTreeMap<(&'static str, &'a str), Asked>;

pub(super) async fn let_in_together(inner: &Arc<Inner>, index: usize, mut batches: Vec<Batch>) {
    if batches.is_empty() {
        return;
    }
    // One order for all callers, so that no two of them wait for each other.
    batches.sort_by(|one, other| one.door.cmp(&other.door));
    let odd = set_odd_apart(&mut batches);
    match call(inner, index, &batches).await {
        Ok(Some(answers)) => {
            for (batch, answered) in batches.into_iter().zip(answers) {
                hand_out(inner, index, batch, &answered);
            }
        }
        Ok(None) => all_alone(inner, index, batches).await,
        // It may be one door's fault.
        Err(LimitsError::Database(_)) if batches.len() > 1 => {
            all_alone(inner, index, batches).await;
        }
        Err(error) => fail(inner, index, batches, error),
    }
    all_alone(inner, index, odd).await;
}

/// Takes out those that ask for a window of another size than somebody before them, as happens while
/// a setting changes: one statement cannot hold one window to two limits.
fn set_odd_apart(batches: &mut Vec<Batch>) -> Vec<Batch> {
    let mut sizes = HashMap::new();
    let fits = |batch: &Batch| {
        batch.windows().iter().all(|(window, key)| {
            let known = sizes.entry((window.name(), key.clone())).or_insert(*window);
            known == window
        })
    };
    let (even, odd) = std::mem::take(batches).into_iter().partition(fits);
    *batches = even;
    odd
}

/// What is asked of each window, by all batches together.
fn windows(batches: &[Batch]) -> Windows<'_> {
    let mut windows = Windows::new();
    for batch in batches {
        for (window, key) in batch.windows() {
            let asked = windows.entry((window.name(), key)).or_insert(Asked {
                limit: window_limit(window),
                length_ms: millis(window.length()),
                count: 0,
            });
            asked.count += batch.wanted();
        }
    }
    windows
}

/// What became of each batch in turn; nothing when not all of them fit, and so none was let in.
async fn call(
    inner: &Inner,
    index: usize,
    batches: &[Batch],
) -> Result<Option<Vec<Answered>>, LimitsError> {
    let windows = windows(batches);
    let caps = || batches.iter().filter(|batch| batch.tells);
    let names: Vec<&str> = caps().map(|batch| batch.door.name()).collect();
    let keys: Vec<&str> = caps().map(|batch| batch.door.key()).collect();
    let limits: Vec<i32> =
        caps().map(|batch| batch.in_flight().map_or(0, |cap| cap_limit(&cap))).collect();
    let held: Vec<i32> = caps().map(|batch| batch.held).collect();
    let wanted: Vec<i32> = caps().map(Batch::wanted).collect();
    let ends: Vec<i64> = caps().map(ends_ms).collect();
    let window_names: Vec<&str> = windows.keys().map(|(name, _)| *name).collect();
    let window_keys: Vec<&str> = windows.keys().map(|(_, key)| *key).collect();
    let window_limits: Vec<i32> = windows.values().map(|asked| asked.limit).collect();
    let window_lengths: Vec<i64> = windows.values().map(|asked| asked.length_ms).collect();
    let counts: Vec<i32> = windows.values().map(|asked| asked.count).collect();
    let row = inner
        .call(
            index,
            &statements::ENTER_TOGETHER,
            &[
                &inner.replica,
                &batches.iter().map(|batch| batch.call).max().unwrap_or(0),
                &names,
                &keys,
                &limits,
                &held,
                &wanted,
                &ends,
                &window_names,
                &window_keys,
                &window_limits,
                &window_lengths,
                &counts,
            ],
        )
        .await?;
    let numbers: Option<Vec<i64>> = row.try_get(0).map_err(LimitsError::Database)?;
    Ok(numbers.map(|numbers| answers(batches, &windows, &numbers)))
}

/// Each batch's share of what `enter_v2` gave.
fn answers(batches: &[Batch], windows: &Windows<'_>, numbers: &[i64]) -> Vec<Answered> {
    let caps = batches.iter().filter(|batch| batch.tells).count();
    let (before, counted) = numbers.split_at_checked(caps).unwrap_or_default();
    let (mut before, count) = (before.iter(), windows.len());
    let number = |row: usize, place: usize| counted.get(row * count + place).copied().unwrap_or(0);
    // The window as each batch in turn leaves it, as if they had come one after another.
    let mut states: HashMap<_, _> = windows
        .iter()
        .enumerate()
        .map(|(place, (window, asked))| {
            let first = number(0, place) - i64::from(asked.count);
            (*window, [first, number(1, place), number(2, place)])
        })
        .collect();
    let answered = batches.iter().map(|batch| {
        let of_batch = batch.windows().iter().map(|(window, key)| {
            let state = states.entry((window.name(), key.as_str())).or_default();
            state[0] += i64::from(batch.wanted());
            *state
        });
        Answered {
            admitted: batch.wanted(),
            refused_by: -1,
            windows: of_batch.collect(),
            in_flight_before: if batch.tells { before.next().copied().unwrap_or(0) } else { 0 },
        }
    });
    answered.collect()
}
