//! Attending a door: one call after another while somebody waits, or something is to be told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::millis;
use crate::doors::{Batch, DoorKey, Next, Waiter, Watched};
use crate::enter::{Admitted, Entry};
use crate::error::LimitsError;
use crate::in_flight::InFlight;
use crate::limits::Inner;
use crate::statements;
use crate::window::{LimitReached, Window, WindowState};

/// How long departures wait for somebody who comes and takes the word along.
const LINGER: Duration = Duration::from_millis(10);

/// How long one who found the cap reached waits before the second look: longer than departures linger
/// on other replicas, and their call.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Attends a door until nobody waits. Departures that nobody took along are left to a watcher.
pub(crate) async fn attend(inner: Arc<Inner>, key: DoorKey) {
    loop {
        match inner.doors.next(&key, false) {
            Next::Rest => return,
            Next::Watch => {
                let runtime = inner.runtime.clone();
                let tasks = inner.tasks.clone();
                tasks.spawn_on(watch(inner, key), &runtime);
                return;
            }
            Next::Call(batch) => drop(let_in(&inner, &key, batch).await),
        }
    }
}

/// Sees to it that departures are told: by whoever comes while they linger, else by a call of their own.
pub(crate) async fn watch(inner: Arc<Inner>, key: DoorKey) {
    loop {
        tokio::time::sleep(LINGER).await;
        match inner.doors.watch(&key) {
            Watched::Told => return,
            Watched::Attended => {}
            Watched::Untold => break,
        }
    }
    let mut pause = FIRST_PAUSE;
    while let Next::Call(batch) = inner.doors.next(&key, true) {
        let (is_telling, last_ends_at) = (batch.waiters.is_empty(), batch.last_ends_at);
        if let_in(&inner, &key, batch).await || !is_telling {
            continue;
        }
        if last_ends_at.remaining().is_zero() {
            inner.doors.forget(&key);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// One call; false when it failed.
async fn let_in(inner: &Arc<Inner>, key: &DoorKey, batch: Batch) -> bool {
    let wanted = i32::try_from(batch.waiters.len()).unwrap_or(i32::MAX);
    match call(inner, key, &batch, wanted).await {
        Ok(answer) => {
            let answer = EnterAnswer::read(&answer);
            let told = batch.held + answer.admitted;
            inner.doors.tell(key, Some(told), answer.admitted);
            distribute(inner, key, batch.waiters, &answer).await;
            true
        }
        Err(error) => {
            // Whether it was told is not known: the next call tells it anew.
            inner.doors.tell(key, None, 0);
            tracing::debug!(%error, limit = key.name(), "Nobody could be let in");
            let mut error = Some(error);
            for waiter in batch.waiters {
                // An error has one owner: the others learn that there is no answer.
                let error = error.take().unwrap_or(LimitsError::Unavailable(None));
                waiter.answer.send(Err(error)).ok();
            }
            false
        }
    }
}

async fn call(
    inner: &Inner,
    key: &DoorKey,
    batch: &Batch,
    wanted: i32,
) -> Result<Vec<i64>, LimitsError> {
    let first = batch.waiters.front().map(|waiter| &waiter.request);
    let cap = first.and_then(|request| request.in_flight);
    let windows = first.map_or(&[][..], |request| &request.windows);
    if let ([(window, window_key)], false) = (windows, key.is_cap()) {
        let (limit, length_ms) = (limit_in_sql(window), millis(window.length()));
        let row = inner
            .call(
                window_key,
                &statements::COUNT,
                &[&window.name(), window_key, &limit, &length_ms, &wanted],
            )
            .await?;
        let counted: Vec<i64> = row.try_get(0).map_err(LimitsError::Database)?;
        let added = counted.first().copied().unwrap_or(0);
        let refused_by = if added < i64::from(wanted) { 1 } else { -1 };
        return Ok([added, refused_by, 0].into_iter().chain(counted.into_iter().skip(1)).collect());
    }
    let cap_name = key.is_cap().then(|| key.name());
    let cap_limit = cap.map_or(0, |cap| {
        if cap.is_shadow() { i32::MAX } else { i32::try_from(cap.limit()).unwrap_or(i32::MAX) }
    });
    let ends_ms = millis(batch.last_ends_at.remaining().max(Duration::from_secs(1)));
    let names: Vec<&str> = windows.iter().map(|(window, _)| window.name()).collect();
    let keys: Vec<&str> = windows.iter().map(|(_, key)| key.as_str()).collect();
    let limits: Vec<i32> = windows.iter().map(|(window, _)| limit_in_sql(window)).collect();
    let lengths: Vec<i64> = windows.iter().map(|(window, _)| millis(window.length())).collect();
    let row = inner
        .call(
            key.key(),
            &statements::ENTER,
            &[
                &inner.replica,
                &cap_name,
                &key.key(),
                &cap_limit,
                &batch.call,
                &batch.held,
                &ends_ms,
                &wanted,
                &names,
                &keys,
                &limits,
                &lengths,
            ],
        )
        .await?;
    row.try_get(0).map_err(LimitsError::Database)
}

/// In shadow mode the database counts on, and what would have been refused is told here.
fn limit_in_sql(window: &Window) -> i32 {
    if window.is_shadow() {
        return i32::MAX;
    }
    i32::try_from(window.limit()).unwrap_or(i32::MAX)
}

/// What `enter_v1` gave.
struct EnterAnswer {
    admitted: i32,
    /// 0: the in-flight cap, n: the n-th window, less: none.
    refused_by: i64,
    in_flight_before: i64,
    /// Count, milliseconds until the end, and the end, of each window up to a full one.
    windows: Vec<[i64; 3]>,
}

impl EnterAnswer {
    fn read(numbers: &[i64]) -> Self {
        let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Self {
            admitted: i32::try_from(number(0)).unwrap_or(0),
            refused_by: number(1),
            in_flight_before: number(2),
            windows: numbers
                .get(3..)
                .unwrap_or_default()
                .chunks_exact(3)
                .filter_map(|window| window.try_into().ok())
                .collect(),
        }
    }

    fn states(&self, windows: &[(Window, String)]) -> Vec<WindowState> {
        windows
            .iter()
            .zip(&self.windows)
            .map(|((window, _), numbers)| window.state(*numbers))
            .collect()
    }

    /// The limit in shadow mode that the one who went in as the `place`-th exceeds.
    fn shadow(
        &self,
        place: i64,
        cap: Option<InFlight>,
        windows: &[(Window, String)],
    ) -> Option<LimitReached> {
        let in_flight = self.in_flight_before + place;
        let by_cap = cap.filter(|cap| cap.is_shadow() && in_flight > i64::from(cap.limit()));
        let behind = i64::from(self.admitted) - place;
        by_cap.map(|cap| cap.reached()).or_else(|| {
            windows.iter().zip(&self.windows).find_map(|((window, _), numbers)| {
                let is_over = window.is_shadow() && numbers[0] - behind > i64::from(window.limit());
                is_over.then(|| window.state(*numbers).into())
            })
        })
    }

    /// The limit that refused; none when that cannot be told.
    fn refusal(&self, cap: Option<InFlight>, windows: &[(Window, String)]) -> Option<LimitReached> {
        let Some(index) = usize::try_from(self.refused_by).ok()?.checked_sub(1) else {
            return cap.map(|cap| cap.reached());
        };
        let ((window, _), numbers) = (windows.get(index)?, self.windows.get(index)?);
        Some(window.state(*numbers).into())
    }
}

async fn distribute(
    inner: &Arc<Inner>,
    key: &DoorKey,
    waiters: VecDeque<Waiter>,
    answer: &EnterAnswer,
) {
    let mut again = Vec::new();
    for (waiter, place) in waiters.into_iter().zip(1_i64..) {
        let Waiter { request, answer: sender, has_looked } = waiter;
        let (cap, windows) = (request.in_flight, &request.windows);
        if place <= i64::from(answer.admitted) {
            let door = key.is_cap().then(|| key.clone());
            let shadow = answer.shadow(place, cap, windows);
            let admitted = Admitted::new(Arc::clone(inner), door, answer.states(windows), shadow);
            // Of a caller that has left, this drops the admission, and so it leaves again.
            sender.send(Ok(Entry::Admitted(admitted))).ok();
        } else if answer.refused_by == 0 && !has_looked {
            again.push(Waiter { request, answer: sender, has_looked: true });
        } else {
            let entry = answer.refusal(cap, windows).map(Entry::Refused);
            sender.send(entry.ok_or(LimitsError::Undecided)).ok();
        }
    }
    if !again.is_empty() {
        inner.doors.wait_again(key, again.into_iter());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
