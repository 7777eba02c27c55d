//! Attending a gate: one round of calls after another while anybody waits, or something is to be told.

use std::sync::Arc;

use futures_util::future::{join_all, join3};

use crate::gate::alone::let_in_alone;
use crate::gate::counts::count_together;
use crate::gate::door::Batch;
use crate::gate::together::let_in_together;
use crate::limits::Inner;

/// So many turns of all other tasks without an arrival, and nobody else is about to arrive.
const QUIET: u32 = 3;

/// The first round of one who came to an unattended gate, in his own task, which spares a hand-over;
/// whoever came meanwhile is served by a task of ours.
pub(crate) async fn attend_first(inner: Arc<Inner>, index: usize) {
    let Some(gate) = inner.gates.get(index) else { return };
    let Some(batches) = gate.next(inner.connection_number(index)) else { return };
    round(&inner, index, batches).await;
    if gate.is_waited_at() {
        inner.tasks.spawn_on(attend(Arc::clone(&inner), index), &inner.runtime);
    }
}

/// Attends a gate until nobody waits.
async fn attend(inner: Arc<Inner>, index: usize) {
    let Some(gate) = inner.gates.get(index) else { return };
    loop {
        // Whoever is about to arrive goes along: the busier the process, the more they are.
        let (mut arrived, mut quiet) = (gate.arrived(), 0);
        loop {
            tokio::task::yield_now().await;
            let now = gate.arrived();
            quiet = if std::mem::replace(&mut arrived, now) == now { quiet + 1 } else { 0 };
            if quiet == QUIET {
                break;
            }
        }
        let Some(batches) = gate.next(inner.connection_number(index)) else { return };
        round(&inner, index, batches).await;
    }
}

/// Sees to it that departures are told when nobody came who took the word along, and that second
/// looks are taken.
pub(super) async fn watch(inner: Arc<Inner>, index: usize) {
    let Some(gate) = inner.gates.get(index) else { return };
    loop {
        let look = gate.look();
        if look.attends {
            inner.tasks.spawn_on(attend(Arc::clone(&inner), index), &inner.runtime);
        }
        let Some(next) = look.next else { return };
        // Woken by whatever is to be looked after earlier, or when the time has come.
        tokio::time::timeout_at(next, gate.is_earlier.notified()).await.ok();
    }
}

/// One round: a call for all that count in one window, a call for all others, and a call for each door
/// where somebody was refused by the last one, all of them under way at one time.
async fn round(inner: &Arc<Inner>, index: usize, mut batches: Vec<Batch>) {
    let alone: Vec<Batch> = batches.extract_if(.., |batch| batch.is_tight).collect();
    let counts: Vec<Batch> =
        batches.extract_if(.., |batch| batch.only_window().is_some()).collect();
    if batches.is_empty() && alone.is_empty() {
        return count_together(inner, index, counts).await;
    }
    join3(
        count_together(inner, index, counts),
        let_in_together(inner, index, batches),
        all_alone(inner, index, alone),
    )
    .await;
}

pub(super) async fn all_alone(inner: &Arc<Inner>, index: usize, batches: Vec<Batch>) {
    join_all(batches.into_iter().map(|batch| let_in_alone(inner, index, batch))).await;
}
