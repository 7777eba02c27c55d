//! Whose the tokens are that this replica has seen, by their secrets.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::TokenSecret;

/// So many are remembered; with one more, all are forgotten, and each is looked up once before it is asked for again.
const MOST: usize = 10_000;

/// The owners of secrets that were valid when they were last looked up. A token's owner never changes, but the token
/// may have ended: this tells by whose limits to ask, and never that somebody may do anything. Clones share it.
#[derive(Clone, Default)]
pub struct TokenOwners(Arc<Mutex<Owners>>);

/// By the secrets' hashes: an id that somebody guesses is nobody's here.
type Owners = HashMap<Vec<u8>, Arc<str>>;

impl fmt::Debug for TokenOwners {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenOwners").finish_non_exhaustive()
    }
}

impl TokenOwners {
    fn lock(&self) -> MutexGuard<'_, Owners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user, as limits know it, whose token's secret this was.
    pub fn of(&self, secret: &TokenSecret) -> Option<Arc<str>> {
        let hash = secret.hash();
        self.lock().get(&hash).cloned()
    }

    /// Remembers whose a secret is that has just been looked up.
    pub fn remember(&self, secret: &TokenSecret, user: String) {
        let mut owners = self.lock();
        if owners.len() >= MOST {
            owners.clear();
        }
        owners.insert(secret.hash(), user.into());
    }

    /// Forgets a secret that is not valid any more.
    pub fn forget(&self, secret: &TokenSecret) {
        self.lock().remove(&secret.hash());
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{MOST, TokenOwners};
    use crate::platform::token::{TokenId, TokenSecret};

    fn secret() -> TokenSecret {
        TokenSecret::random(TokenId(Uuid::now_v7()))
    }

    #[test]
    fn an_owner_is_found_by_the_very_secret_until_it_is_forgotten() {
        let (owners, known) = (TokenOwners::default(), secret());
        owners.remember(&known, "ada".to_owned());
        assert_eq!(owners.of(&known).as_deref(), Some("ada"));
        assert_eq!(owners.of(&TokenSecret::random(known.id())), None, "another one of its id");
        owners.forget(&known);
        assert_eq!(owners.of(&known), None);
    }

    #[test]
    fn no_more_are_remembered_than_fit() {
        let (owners, last) = (TokenOwners::default(), secret());
        for _ in 0..MOST {
            owners.remember(&secret(), "ada".to_owned());
        }
        owners.remember(&last, "grace".to_owned());
        assert_eq!(owners.of(&last).as_deref(), Some("grace"));
        assert_eq!(owners.lock().len(), 1);
    }
}
