//! The doors of this process, one a key: who waits, how many are in, and what the database was told.
//! A door is there while somebody waits or is in, or while the database has not been told the last.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::attend::watch;
use crate::clock::BootInstant;
use crate::enter::Entry;
use crate::error::LimitsError;
use crate::in_flight::InFlight;
use crate::limits::Inner;
use crate::window::Window;

/// The most requests that go in by one call.
const BATCH: usize = 64;

/// What a door lets in by: an in-flight cap of a key, or the first window of those without a cap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DoorKey {
    name: &'static str,
    is_cap: bool,
    key: String,
}

impl DoorKey {
    pub(crate) fn of_cap(name: &'static str, key: &str) -> Self {
        Self { name, is_cap: true, key: key.to_owned() }
    }

    pub(crate) fn of_window(name: &'static str, key: &str) -> Self {
        Self { name, is_cap: false, key: key.to_owned() }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn is_cap(&self) -> bool {
        self.is_cap
    }
}

/// What one request asks for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) windows: Vec<(Window, String)>,
    pub(crate) ends_at: BootInstant,
}

impl Request {
    /// Whether both can go in by one call.
    fn goes_with(&self, other: &Self) -> bool {
        self.in_flight == other.in_flight && self.windows == other.windows
    }
}

pub(crate) type Answer = oneshot::Sender<Result<Entry, LimitsError>>;

#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    /// Found the cap reached once. What left on another replica may not have been told yet, so it
    /// looks a second time before it is refused.
    pub(crate) has_looked: bool,
}

#[derive(Debug)]
struct Door {
    waiting: VecDeque<Waiter>,
    held: i32,
    /// What the database was last told; none when that is not known.
    told: Option<i32>,
    last_ends_at: BootInstant,
    is_attended: bool,
    /// Somebody will see to it that departures are told, should nobody come who takes the word along.
    is_watched: bool,
}

/// What is to be done at a door.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing: nobody waits, and all is told, or somebody will tell it.
    Rest,
    /// Nobody waits, and somebody has left: watch that it is told.
    Watch,
    /// One call: for these, and to tell what is held.
    Call(Batch),
}

/// What a watcher finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// All is told, and the watch has ended.
    Told,
    /// The door is attended: whoever does will tell, or hand it back.
    Attended,
    /// It is the watcher's turn to attend the door, and to tell.
    Untold,
}

/// What one call carries.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) waiters: VecDeque<Waiter>,
    pub(crate) held: i32,
    pub(crate) last_ends_at: BootInstant,
    /// Higher than that of any call before.
    pub(crate) call: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Doors {
    doors: Mutex<HashMap<DoorKey, Door>>,
    calls: AtomicI64,
}

impl Doors {
    fn lock(&self) -> MutexGuard<'_, HashMap<DoorKey, Door>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes next for whoever attends the door. `tells`: departures are told by a call of their
    /// own where nobody waits.
    pub(crate) fn next(&self, key: &DoorKey, tells: bool) -> Next {
        let mut doors = self.lock();
        let Some(door) = doors.get_mut(key) else { return Next::Rest };
        // Nobody is let in for a caller that has left.
        door.waiting.retain(|waiter| !waiter.answer.is_closed());
        let is_told = !key.is_cap || door.told == Some(door.held);
        if door.waiting.is_empty() && (is_told || !tells) {
            door.is_attended = false;
            if !is_told && !door.is_watched {
                door.is_watched = true;
                return Next::Watch;
            }
            if is_told && door.held == 0 && !door.is_watched {
                doors.remove(key);
            }
            return Next::Rest;
        }
        let mut waiters = VecDeque::new();
        while waiters.len() < BATCH
            && let Some(waiter) = door.waiting.pop_front()
        {
            if waiters
                .front()
                .is_some_and(|first: &Waiter| !first.request.goes_with(&waiter.request))
            {
                door.waiting.push_front(waiter);
                break;
            }
            door.last_ends_at = door.last_ends_at.max(waiter.request.ends_at);
            waiters.push_back(waiter);
        }
        Next::Call(Batch {
            waiters,
            held: door.held,
            last_ends_at: door.last_ends_at,
            call: self.calls.fetch_add(1, Ordering::Relaxed) + 1,
        })
    }

    /// What a watcher finds when its time has come.
    pub(crate) fn watch(&self, key: &DoorKey) -> Watched {
        let mut doors = self.lock();
        let Some(door) = doors.get_mut(key) else { return Watched::Told };
        if door.is_attended {
            return Watched::Attended;
        }
        door.is_watched = false;
        if door.told != Some(door.held) {
            door.is_attended = true;
            return Watched::Untold;
        }
        if door.held == 0 {
            doors.remove(key);
        }
        Watched::Told
    }

    /// The database was told `told` (none: nobody knows), and `admitted` more are in.
    pub(crate) fn tell(&self, key: &DoorKey, told: Option<i32>, admitted: i32) {
        if let Some(door) = self.lock().get_mut(key) {
            door.told = told;
            door.held += admitted;
        }
    }

    /// Gives up telling that nothing is held any more: the row has lapsed by itself.
    pub(crate) fn forget(&self, key: &DoorKey) {
        if let Some(door) = self.lock().get_mut(key).filter(|door| door.held == 0) {
            door.told = Some(0);
        }
    }

    /// Puts those back, in their order, who look a second time.
    pub(crate) fn wait_again(
        &self,
        key: &DoorKey,
        waiters: impl DoubleEndedIterator<Item = Waiter>,
    ) {
        if let Some(door) = self.lock().get_mut(key) {
            for waiter in waiters.rev() {
                door.waiting.push_front(waiter);
            }
        }
    }
}

impl Inner {
    /// Puts a request into its door's queue; true when the caller must attend the door.
    pub(crate) fn arrive(&self, key: &DoorKey, request: Request, answer: Answer) -> bool {
        let mut doors = self.doors.lock();
        let ends_at = request.ends_at;
        let waiter = Waiter { request, answer, has_looked: false };
        if let Some(door) = doors.get_mut(key) {
            door.waiting.push_back(waiter);
            return !std::mem::replace(&mut door.is_attended, true);
        }
        let door = Door {
            waiting: VecDeque::from([waiter]),
            held: 0,
            told: Some(0),
            last_ends_at: ends_at,
            is_attended: true,
            is_watched: false,
        };
        doors.insert(key.clone(), door);
        true
    }

    /// Counts one out of its door.
    pub(crate) fn leave(inner: &Arc<Self>, key: DoorKey) {
        {
            let mut doors = inner.doors.lock();
            let Some(door) = doors.get_mut(&key) else { return };
            door.held -= 1;
            if door.is_attended || std::mem::replace(&mut door.is_watched, true) {
                return;
            }
        }
        inner.tasks.spawn_on(watch(Arc::clone(inner), key), &inner.runtime);
    }
}
