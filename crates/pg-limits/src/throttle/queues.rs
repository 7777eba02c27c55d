//! Attempts that wait for others of the same key: one queue a key in this process, first come, first
//! served. Only the head of a queue asks the database, so a crowd costs no more than one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::Rng;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Notify};

use super::Throttle;

/// How many attempts may wait in one process, and how many of them for one key.
const WAITERS: usize = 1024;
const WAITERS_OF_A_KEY: usize = 128;

/// How often the head looks whether another replica has settled.
const LOOK_EVERY: Duration = Duration::from_millis(100);

type Id = (&'static str, String);

#[derive(Debug, Default)]
pub(crate) struct Queues {
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    queues: HashMap<Id, (Arc<Queue>, usize)>,
    waiters: usize,
}

#[derive(Debug, Default)]
struct Queue {
    head: AsyncMutex<()>,
    settled: Notify,
}

impl Queues {
    /// A place at the end of the key's queue; none when too many wait already.
    pub(super) fn join(&self, throttle: &Throttle, key: &str) -> Option<Waiter<'_>> {
        let id = (throttle.name(), key.to_owned());
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = all.queues.get(&id).is_some_and(|(_, waiters)| *waiters >= WAITERS_OF_A_KEY);
        if is_full || all.waiters >= WAITERS {
            return None;
        }
        all.waiters += 1;
        let (queue, waiters) = all.queues.entry(id.clone()).or_default();
        *waiters += 1;
        Some(Waiter { queues: self, id, queue: Arc::clone(queue) })
    }

    /// Whether somebody waits for this key: who comes later waits behind.
    pub(super) fn is_waited_for(&self, throttle: &Throttle, key: &str) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        !all.queues.is_empty() && all.queues.contains_key(&(throttle.name(), key.to_owned()))
    }

    /// Says that an attempt of this key was settled here.
    pub(super) fn settled(&self, throttle: &Throttle, key: &str) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.queues.is_empty() {
            return;
        }
        if let Some((queue, _)) = all.queues.get(&(throttle.name(), key.to_owned())) {
            queue.settled.notify_one();
        }
    }
}

/// One that waits; counted out when it is dropped.
pub(super) struct Waiter<'a> {
    queues: &'a Queues,
    id: Id,
    queue: Arc<Queue>,
}

impl Waiter<'_> {
    /// Waits to be the first in the queue.
    pub(super) async fn head(&self) -> Head<'_> {
        Head { _first: self.queue.head.lock().await, settled: &self.queue.settled }
    }

    pub(super) fn is_for(&self, throttle: &Throttle, key: &str) -> bool {
        self.id.0 == throttle.name() && self.id.1 == key
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut all = self.queues.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.waiters -= 1;
        if let Some((_, waiters)) = all.queues.get_mut(&self.id) {
            *waiters -= 1;
            if *waiters == 0 {
                all.queues.remove(&self.id);
            }
        }
    }
}

/// The first in its queue, while it lives.
pub(super) struct Head<'a> {
    _first: MutexGuard<'a, ()>,
    settled: &'a Notify,
}

impl Head<'_> {
    /// Waits until an attempt was settled here, or it is time to look again.
    pub(super) async fn settled(&self) {
        let pause = LOOK_EVERY.mul_f64(rand::rng().random_range(0.75..1.25));
        tokio::time::timeout(pause, self.settled.notified()).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    const SIGN_IN: Throttle = Throttle::new("sign-in", 5, Duration::from_mins(15));

    #[tokio::test]
    async fn who_waits_is_served_in_turn_and_leaves_nothing_behind() {
        let queues = Queues::default();
        let (first, second) =
            (queues.join(&SIGN_IN, "ada").unwrap(), queues.join(&SIGN_IN, "ada").unwrap());
        assert!(queues.is_waited_for(&SIGN_IN, "ada") && !queues.is_waited_for(&SIGN_IN, "grace"));
        let head = first.head().await;
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiting = pin!(second.head());
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            drop(head);
            drop(waiting.await);
        }
        drop((first, second));
        assert!(!queues.is_waited_for(&SIGN_IN, "ada"));
        assert_eq!(queues.all.lock().unwrap().waiters, 0);
    }

    #[tokio::test]
    async fn a_settlement_between_two_looks_is_not_missed() {
        let queues = Queues::default();
        let waiter = queues.join(&SIGN_IN, "ada").unwrap();
        let head = waiter.head().await;
        queues.settled(&SIGN_IN, "ada");
        // The settlement is kept for the wait that comes after it: ready at the first look.
        let mut wait = pin!(head.settled());
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[test]
    fn a_queue_has_an_end() {
        let queues = Queues::default();
        let mut waiters = Vec::new();
        while let Some(waiter) = queues.join(&SIGN_IN, "ada") {
            waiters.push(waiter);
        }
        assert_eq!(waiters.len(), WAITERS_OF_A_KEY);
        for key in 0.. {
            let Some(waiter) = queues.join(&SIGN_IN, &key.to_string()) else { break };
            waiters.push(waiter);
        }
        assert_eq!(waiters.len(), WAITERS);
    }
}
