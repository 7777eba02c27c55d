//! The gates of this process, one a connection of the limits. Behind a gate is a door for each key
//! whose calls go over that connection, and one call at a time lets in whoever waits at any of them:
//! the busier the gate, the less a request costs.

pub(crate) mod alone;
pub(crate) mod answer;
pub(crate) mod attend;
pub(crate) mod company;
pub(crate) mod counts;
pub(crate) mod door;
pub(crate) mod together;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::Inner;
use crate::line::Line;
use attend::watch;
use door::{Answer, Batch, Door, DoorKey, Outcome, Request, Stage, Waiter};

/// The gate of all that have a cap, and of whoever comes alone.
const FIRST: usize = 0;

/// The most doors that one round of calls serves.
const DOORS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    /// Rung when something is to be looked after earlier than all else.
    is_earlier: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// A door is there while somebody waits or is in, or while the database has not been told the last.
    doors: HashMap<DoorKey, Door>,
    queue: VecDeque<DoorKey>,
    /// When which door is to be looked after: to tell of departures, or to look a second time.
    later: BTreeSet<(Instant, DoorKey)>,
    calls: i64,
    arrived: u64,
    is_attended: bool,
    is_watched: bool,
}

/// What a look after the doors found.
#[derive(Debug)]
struct Look {
    /// When to look again; never, when nothing is left to look after.
    next: Option<Instant>,
    /// Whether the one who looked must see to it that the gate is attended.
    attends: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request into its door's queue; true when the caller must attend the gate.
    pub(crate) fn arrive(&self, key: &DoorKey, request: Request, answer: Answer) -> bool {
        let mut state = self.lock();
        let state = &mut *state;
        if !state.doors.contains_key(key) {
            state.doors.insert(key.clone(), Door::new(request.ends_at));
        }
        let Some(door) = state.doors.get_mut(key) else { return false };
        state.arrived += 1;
        door.waiting.push_back(Waiter { request, answer, has_looked: false });
        if door.stage != Stage::Open {
            return false;
        }
        state.enqueue(key)
    }

    /// How many requests have come here so far.
    fn arrived(&self) -> u64 {
        self.lock().arrived
    }

    fn has(&self, key: &DoorKey) -> bool {
        self.lock().doors.contains_key(key)
    }

    fn is_attended(&self) -> bool {
        self.lock().is_attended
    }

    /// Whether anything is to be done; where not, nobody attends the gate any more.
    fn is_waited_at(&self) -> bool {
        let mut state = self.lock();
        state.is_attended = !state.queue.is_empty();
        state.is_attended
    }

    /// What comes next for whoever attends the gate, over the connection of that number; nothing when that
    /// has ended.
    fn next(&self, connection: u64) -> Option<Vec<Batch>> {
        let mut state = self.lock();
        let state = &mut *state;
        let mut batches = Vec::new();
        while batches.len() < DOORS
            && let Some(key) = state.queue.pop_front()
        {
            let Some(door) = state.doors.get_mut(&key) else { continue };
            state.calls += 1;
            if let Some(batch) = door.next_batch(&key, state.calls, connection) {
                batches.push(batch);
            } else if door.is_idle() {
                state.doors.remove(&key);
            }
        }
        state.is_attended = !batches.is_empty();
        state.is_attended.then_some(batches)
    }

    /// Counts one out; true when somebody must begin to watch.
    fn count_out(&self, key: &DoorKey) -> bool {
        let mut state = self.lock();
        let Some(door) = state.doors.get_mut(key) else { return false };
        door.count_out();
        // At a stage where it wants none, a call of the door is to come, or its end, and sees to it.
        door.wants_a_call().is_some_and(|due| self.list(&mut state, key, due))
    }

    /// Notes what became of a door's part of a call; true when somebody must begin to watch.
    fn settle(&self, key: &DoorKey, outcome: Outcome) -> bool {
        let mut state = self.lock();
        let Some(door) = state.doors.get_mut(key) else { return false };
        let look_after = door.settle(outcome);
        if door.stage == Stage::Queued {
            state.queue.push_back(key.clone());
        } else if door.is_idle() {
            state.doors.remove(key);
        }
        look_after.is_some_and(|due| self.list(&mut state, key, due))
    }

    /// Has a door looked after at that time at the latest; true when somebody must begin to watch.
    fn list(&self, state: &mut State, key: &DoorKey, due: Instant) -> bool {
        let Some(door) = state.doors.get_mut(key) else { return false };
        match door.listed {
            Some(listed) if listed <= due => return false,
            Some(listed) => drop(state.later.remove(&(listed, key.clone()))),
            None => {}
        }
        door.listed = Some(due);
        if state.later.first().is_some_and(|(first, _)| due < *first) {
            self.is_earlier.notify_one();
        }
        state.later.insert((due, key.clone()));
        !std::mem::replace(&mut state.is_watched, true)
    }

    /// Queues the doors whose time has come.
    fn look(&self) -> Look {
        let mut state = self.lock();
        let state = &mut *state;
        let (now, mut attends) = (Instant::now(), false);
        while state.later.first().is_some_and(|(due, _)| *due <= now)
            && let Some((_, key)) = state.later.pop_first()
        {
            let Some(door) = state.doors.get_mut(&key) else { continue };
            door.listed = None;
            match door.wants_a_call() {
                Some(due) if due <= now => attends |= state.enqueue(&key),
                Some(due) => {
                    door.listed = Some(due);
                    state.later.insert((due, key));
                }
                None if door.is_idle() => drop(state.doors.remove(&key)),
                None => {}
            }
        }
        let next = state.later.first().map(|(due, _)| *due);
        state.is_watched = next.is_some();
        Look { next, attends }
    }
}

impl State {
    /// Queues a door for the next call; true when somebody must attend the gate.
    fn enqueue(&mut self, key: &DoorKey) -> bool {
        if let Some(door) = self.doors.get_mut(key) {
            door.stage = Stage::Queued;
            self.queue.push_back(key.clone());
        }
        !std::mem::replace(&mut self.is_attended, true)
    }
}

impl Inner {
    /// The number of the connection that a gate's calls go over now.
    fn connection_number(&self, index: usize) -> u64 {
        self.lines.at(index).map_or(0, Line::number)
    }

    /// Which gate one who comes goes to. All that have a cap go to one: their requests count in windows that
    /// they share, and would wait for each other's lock.
    pub(crate) fn gate_for(&self, key: &DoorKey) -> usize {
        if key.is_cap() {
            return FIRST;
        }
        // One server process that is kept busy answers sooner than two that take turns, so one who is
        // alone has one; and whoever comes for a key goes where others wait by it.
        let is_alone = self.company.is_alone(self.gates.iter().any(Gate::is_attended));
        if is_alone || self.gates.get(FIRST).is_some_and(|first| first.has(key)) {
            return FIRST;
        }
        self.lines.index_of(key.key())
    }

    /// Counts one out of its door.
    pub(crate) fn leave(self: &Arc<Self>, key: &DoorKey) {
        // Only a cap's door holds anybody.
        if self.gates.get(FIRST).is_some_and(|gate| gate.count_out(key)) {
            self.tasks.spawn_on(watch(Arc::clone(self), FIRST), &self.runtime);
        }
    }

    /// Notes what became of a door's part of a call.
    fn note(self: &Arc<Self>, index: usize, key: &DoorKey, outcome: Outcome) {
        if self.gates.get(index).is_some_and(|gate| gate.settle(key, outcome)) {
            self.tasks.spawn_on(watch(Arc::clone(self), index), &self.runtime);
        }
    }
}
