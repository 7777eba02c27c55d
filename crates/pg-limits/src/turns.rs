//! Turns of a user's claims in this process: a user who hammers keeps few claims under way, so the
//! claims of others on the same connection wait behind few.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many claims of one user may be under way at a time in one process.
const WIDTH: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    users: Mutex<HashMap<String, User>>,
}

#[derive(Debug)]
struct User {
    width: Arc<Semaphore>,
    claims: usize,
}

impl Turns {
    /// Waits for this user's turn, first come, first served.
    pub(crate) async fn wait<'a>(&'a self, user: &'a str) -> Turn<'a> {
        let width = {
            let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = users
                .entry(user.to_owned())
                .or_insert_with(|| User { width: Arc::new(Semaphore::new(WIDTH)), claims: 0 });
            entry.claims += 1;
            Arc::clone(&entry.width)
        };
        // Made before the wait: a caller that leaves while it waits is counted out again.
        let mut turn = Turn { turns: self, user, permit: None };
        turn.permit = width.acquire_owned().await.ok();
        turn
    }

    #[cfg(test)]
    fn users(&self) -> usize {
        self.users.lock().unwrap().len()
    }
}

pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    user: &'a str,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut users = self.turns.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = users.get_mut(self.user) {
            user.claims -= 1;
            if user.claims == 0 {
                users.remove(self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_user_waits_for_his_own_claims_only_and_leaves_nothing_behind() {
        let turns = Turns::default();
        let mut held = Vec::new();
        for _ in 0..WIDTH {
            held.push(turns.wait("busy").await);
        }
        let mut waiting = pin!(turns.wait("busy"));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(turns.wait("calm").await);
        drop(held.pop());
        drop(waiting.await);
        held.clear();
        assert_eq!(turns.users(), 0);
    }
}
