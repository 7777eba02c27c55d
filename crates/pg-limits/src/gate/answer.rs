//! What a call answered for one door, and handing it to those who wait there.

use std::sync::Arc;

use crate::enter::{Admitted, Entry};
use crate::error::LimitsError;
use crate::gate::door::{Batch, Outcome, Waiter};
use crate::in_flight::InFlight;
use crate::limits::Inner;
use crate::window::{LimitReached, Window, WindowState};

/// What a call let in of one door's batch.
#[derive(Debug)]
pub(super) struct Answered {
    /// The first so many are in.
    pub(super) admitted: i32,
    /// 0: the in-flight cap, n: the n-th window, less: none.
    pub(super) refused_by: i64,
    /// How many were in flight on all replicas before.
    pub(super) in_flight_before: i64,
    /// Count after this batch, milliseconds until the end, and the end, of each window up to a full one.
    pub(super) windows: Vec<[i64; 3]>,
}

impl Answered {
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

/// Tells those who wait what became of them.
pub(super) fn hand_out(inner: &Arc<Inner>, index: usize, batch: Batch, answered: &Answered) {
    // Of a window's door nothing is held.
    let in_now = if batch.door.is_cap() { answered.admitted } else { 0 };
    let told = batch.told(in_now);
    let Batch { door, waiters, .. } = batch;
    let is_tight = i64::from(answered.admitted) < i64::try_from(waiters.len()).unwrap_or(i64::MAX);
    let mut waiters = waiters.into_iter();
    let admitted: Vec<Waiter> =
        waiters.by_ref().take(usize::try_from(answered.admitted).unwrap_or(0)).collect();
    // A window is as full a moment later; of a cap, departures may be on their way.
    let (again, refused) =
        waiters.partition::<Vec<_>, _>(|waiter| answered.refused_by == 0 && !waiter.has_looked);
    // First, so that whoever is told, and leaves at once, is counted out of what was counted in.
    let outcome = Outcome::Told { told, admitted: in_now, again, is_tight };
    inner.note(index, &door, outcome);
    for (waiter, place) in admitted.into_iter().zip(1_i64..) {
        let (cap, windows) = (waiter.request.in_flight, waiter.request.windows);
        let leaves_by = door.is_cap().then(|| door.clone());
        let shadow = answered.shadow(place, cap, &windows);
        let states = answered.states(&windows);
        let admitted = Admitted::new(Arc::clone(inner), leaves_by, windows, states, shadow);
        // Of a caller that has left, this drops the admission, and so it leaves again.
        waiter.answer.send(Ok(Entry::Admitted(admitted))).ok();
    }
    for waiter in refused {
        let refusal = answered.refusal(waiter.request.in_flight, &waiter.request.windows);
        let entry = refusal.map(Entry::Refused).ok_or(LimitsError::Undecided);
        waiter.answer.send(entry).ok();
    }
}

/// Tells those who wait that there is no answer.
pub(super) fn fail(inner: &Arc<Inner>, index: usize, batches: Vec<Batch>, error: LimitsError) {
    tracing::debug!(%error, "Nobody could be let in");
    let mut error = Some(error);
    for batch in batches {
        inner.note(index, &batch.door, Outcome::failed(&batch));
        for waiter in batch.waiters {
            // An error has one owner: the others learn that there is no answer.
            let error = error.take().unwrap_or(LimitsError::Unavailable(None));
            waiter.answer.send(Err(error)).ok();
        }
    }
}
