//! A door: the requests of one key in this process, who waits and how many are in.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::clock::BootInstant;
use crate::enter::Entry;
use crate::error::LimitsError;
use crate::in_flight::InFlight;
use crate::window::Window;

/// The most requests of one door that go in by one call.
const BATCH: usize = 64;

/// How long departures wait for somebody who comes and takes the word along.
const LINGER: Duration = Duration::from_millis(10);

/// How long one who found the cap reached waits before the second look: longer than departures linger
/// on other replicas, and their call.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// How long a door stays tight after a refusal.
const TIGHT: Duration = Duration::from_secs(1);

/// How much longer than any of a door's requests the database is told that they may take, so that it need
/// not be told anew for each request that takes a departed one's place.
const SPARE: Duration = Duration::from_secs(1);

/// How long after a failed call what is untold is told again: twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What a door lets in by: an in-flight cap of a key, or the first window of those without a cap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// Where a door is on its way through the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nobody waits. Departures may linger until somebody comes who takes the word along.
    Open,
    /// In the queue for the next call.
    Queued,
    /// In the call that is under way.
    InCall,
    /// Those who found the cap reached wait for their second look, and whoever comes waits behind them.
    Resting { until: Instant },
}

/// What the database was told of a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(super) held: i32,
    /// What they were let in by, when it was more than before.
    pub(super) cap: Option<InFlight>,
    /// When it forgets them.
    pub(super) until: BootInstant,
    /// The connection that it was told by.
    pub(super) connection: u64,
}

#[derive(Debug)]
pub(super) struct Door {
    pub(super) waiting: VecDeque<Waiter>,
    pub(super) stage: Stage,
    pub(super) held: i32,
    /// What the database was last told; none when that is not known.
    pub(super) told: Option<Told>,
    /// When what is untold gets a call of its own, should nobody come who takes the word along.
    tells_at: Option<Instant>,
    pub(super) last_ends_at: BootInstant,
    /// Until when its calls are its own, because somebody was refused: another refusal then holds up no
    /// other door's requests, and takes no lock.
    pub(super) tight_until: Option<Instant>,
    /// When the gate will look after it, if it will.
    pub(super) listed: Option<Instant>,
    /// Calls in succession that were to tell something and failed.
    pub(super) failures: u32,
}

impl Door {
    pub(super) fn new(now: BootInstant) -> Self {
        Self {
            waiting: VecDeque::new(),
            stage: Stage::Open,
            held: 0,
            told: Some(Told { held: 0, cap: None, until: now, connection: 0 }),
            tells_at: None,
            last_ends_at: now,
            tight_until: None,
            listed: None,
            failures: 0,
        }
    }

    fn is_told(&self) -> bool {
        self.told.is_some_and(|told| told.held == self.held)
    }

    /// Whether these can take the places of departed ones that the database has not been told of, so that
    /// it need be told nothing at all.
    fn has_places_for(&self, waiters: &[Waiter], connection: u64, now: Instant) -> bool {
        let (Some(told), Some(first)) = (self.told, waiters.first()) else { return false };
        let wanted = i32::try_from(waiters.len()).unwrap_or(i32::MAX);
        // In shadow mode the database must say what would have been refused.
        let is_same_cap =
            told.cap.is_some_and(|cap| !cap.is_shadow()) && told.cap == first.request.in_flight;
        // Where there is no window, the call has nothing else to ask the database.
        is_same_cap
            && !first.request.windows.is_empty()
            && told.connection == connection
            && told.held >= self.held.saturating_add(wanted)
            && waiters.iter().all(|waiter| waiter.request.ends_at <= told.until)
            && !self.is_tight(now)
            && self.tells_at.is_none_or(|at| now < at)
    }

    fn is_tight(&self, now: Instant) -> bool {
        self.tight_until.is_some_and(|until| now < until)
    }

    /// Whether nothing would be lost with it.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Open && self.held == 0 && self.is_told() && self.listed.is_none()
    }

    /// Counts one out.
    pub(super) fn count_out(&mut self) {
        self.held -= 1;
        self.tells_at.get_or_insert_with(|| Instant::now() + LINGER);
    }

    /// When it is to be queued though nobody comes, if ever.
    pub(super) fn wants_a_call(&self) -> Option<Instant> {
        match self.stage {
            Stage::Open if self.is_told() => None,
            Stage::Open => self.tells_at,
            Stage::Resting { until } => Some(until),
            Stage::Queued | Stage::InCall => None,
        }
    }

    /// What its next call carries; nothing when there is nobody to let in, and nothing to tell.
    pub(super) fn next_batch(
        &mut self,
        key: &DoorKey,
        call: i64,
        connection: u64,
    ) -> Option<Batch> {
        // Nobody is let in for a caller that has left.
        self.waiting.retain(|waiter| !waiter.answer.is_closed());
        if self.waiting.is_empty() && self.is_told() {
            self.stage = Stage::Open;
            return None;
        }
        self.stage = Stage::InCall;
        let mut waiters: Vec<Waiter> = Vec::new();
        while let Some(next) = self.waiting.front() {
            let fits = waiters.first().is_none_or(|first| first.request.goes_with(&next.request));
            if !fits || waiters.len() == BATCH {
                break;
            }
            self.last_ends_at = self.last_ends_at.max(next.request.ends_at);
            waiters.extend(self.waiting.pop_front());
        }
        let now = Instant::now();
        let tells = key.is_cap() && !self.has_places_for(&waiters, connection, now);
        if tells {
            self.tells_at = None;
        }
        let asked = waiters.first().and_then(|first| first.request.in_flight);
        Some(Batch {
            door: key.clone(),
            cap: asked.or(self.told.and_then(|told| told.cap)),
            waiters,
            held: self.held,
            tells,
            until: self.last_ends_at + SPARE,
            connection,
            call,
            is_tight: self.is_tight(now),
        })
    }

    /// Moves on from a call; gives when it is to be looked after, if it is.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Option<Instant> {
        self.stage = if self.waiting.is_empty() { Stage::Open } else { Stage::Queued };
        match outcome {
            Outcome::Told { told, admitted, again, is_tight } => {
                if told.is_some() {
                    (self.told, self.failures) = (told, 0);
                }
                self.held += admitted;
                if self.is_told() {
                    self.tells_at = None;
                }
                let now = Instant::now();
                self.tight_until = is_tight.then(|| now + TIGHT);
                if !again.is_empty() {
                    for waiter in again.into_iter().rev() {
                        self.waiting.push_front(Waiter { has_looked: true, ..waiter });
                    }
                    let until = now + LOOK_AGAIN;
                    self.stage = Stage::Resting { until };
                    return Some(until);
                }
                // Else it is forgotten at once, and with it that it is tight.
                let tight_until = self.tight_until.filter(|_| self.stage == Stage::Open);
                self.wants_a_call().or(tight_until)
            }
            Outcome::Unknown => {
                // Whatever the database was told, it has lapsed by itself.
                let until = self.last_ends_at + SPARE;
                let has_lapsed = self.held == 0 && until.remaining().is_zero();
                self.told = has_lapsed.then_some(Told { held: 0, cap: None, until, connection: 0 });
                let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(10));
                self.failures += 1;
                self.tells_at = Some(Instant::now() + pause.min(LONGEST_PAUSE));
                self.wants_a_call()
            }
        }
    }
}

/// What became of a door's part of a call.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It came back.
    Told {
        /// What it told the database, if anything.
        told: Option<Told>,
        /// So many more are in.
        admitted: i32,
        /// These look a second time, before whoever waits.
        again: Vec<Waiter>,
        /// Somebody was refused, or is to look again.
        is_tight: bool,
    },
    /// Nobody knows whether the call ran: the next one tells all anew.
    Unknown,
}

impl Outcome {
    /// Of a call that failed. One that told nothing of the door has nothing to tell anew.
    pub(super) fn failed(batch: &Batch) -> Self {
        if batch.tells {
            return Self::Unknown;
        }
        Self::Told { told: None, admitted: 0, again: Vec::new(), is_tight: false }
    }
}

/// What one call carries of one door.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) door: DoorKey,
    /// Who asks to go in: all for the same. Nobody when there is only something to tell.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) held: i32,
    /// The cap by which they ask, or by which those who are in once did.
    cap: Option<InFlight>,
    /// Whether the call tells the database what is held. It does not where there is no cap, nor where all
    /// who wait take the places of departed ones.
    pub(crate) tells: bool,
    /// By when all of the door's requests have ended.
    pub(crate) until: BootInstant,
    connection: u64,
    /// Higher than that of any call before.
    pub(crate) call: i64,
    pub(crate) is_tight: bool,
}

impl Batch {
    pub(crate) fn wanted(&self) -> i32 {
        i32::try_from(self.waiters.len()).unwrap_or(i32::MAX)
    }

    /// What the database knows when the call has let in so many.
    pub(super) fn told(&self, admitted: i32) -> Option<Told> {
        let Self { held, cap, until, connection, .. } = *self;
        self.tells.then_some(Told { held: held + admitted, cap, until, connection })
    }

    pub(crate) fn in_flight(&self) -> Option<InFlight> {
        self.waiters.first().and_then(|waiter| waiter.request.in_flight)
    }

    pub(crate) fn windows(&self) -> &[(Window, String)] {
        self.waiters.first().map_or(&[], |waiter| &waiter.request.windows)
    }

    /// Its only window, of a door that has no cap.
    pub(crate) fn only_window(&self) -> Option<(&Window, &str)> {
        match self.windows() {
            [(window, key)] if !self.door.is_cap() => Some((window, key)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
