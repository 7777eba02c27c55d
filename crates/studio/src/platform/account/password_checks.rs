//! Checking passwords: each with exactly one argon2id, on at most as many threads as there are cores.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordVerifier as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Account, PASSWORD_BYTES, fault, hash_any};
use crate::platform::problem::Problem;

/// What an unknown account's password is compared with, so that it costs the same: nobody knows what it is the hash of.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$7KDPCQYJdiuIKM2k9vSq9A$gIbubr63Sl1NLdPRFYjmHKWJlsoKwegK803CwNsoRhs";

/// The threads on which passwords are checked.
#[derive(Debug)]
pub struct PasswordChecks {
    threads: Arc<Semaphore>,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads: Arc::new(Semaphore::new(cores)) }
    }
}

impl PasswordChecks {
    /// Waits for a thread to check on.
    ///
    /// # Errors
    /// None in practice: the threads are there as long as this is.
    ///
    /// # Cancel safety
    /// Safe: dropping the future only stops the wait.
    pub async fn place(&self) -> Result<Place, Problem> {
        let threads = Arc::clone(&self.threads);
        let permit = threads.acquire_owned().await.map_err(|error| Problem::internal(&error))?;
        Ok(Place { permit })
    }
}

/// A thread to check one password on.
#[derive(Debug)]
pub struct Place {
    permit: OwnedSemaphorePermit,
}

impl Place {
    /// The account, if the password is its own. An unknown account takes as long as a wrong password.
    ///
    /// # Errors
    /// A 500 problem when the check itself fails.
    ///
    /// # Cancel safety
    /// A check that has begun goes on in its thread, and keeps its place until it ends.
    pub async fn check(
        self,
        account: Option<Account>,
        password: String,
    ) -> Result<Option<Account>, Problem> {
        metrics::counter!("studio_password_checks_total").increment(1);
        let checked = tokio::task::spawn_blocking(move || {
            let _place = self.permit;
            let is_right = {
                let hash = account.as_ref().map_or(NOBODY, |account| &account.password_hash);
                // Too long is wrong for everybody, and costs the same as a wrong one.
                let password = password.as_bytes();
                let password = password.get(..PASSWORD_BYTES + 1).unwrap_or(password);
                PasswordHash::new(hash)
                    .and_then(|hash| Argon2::default().verify_password(password, &hash))
                    .is_ok()
            };
            account.filter(|_| is_right)
        });
        checked.await.map_err(|error| Problem::internal(&error))
    }

    /// The PHC string of a new password.
    ///
    /// # Errors
    /// A 400 problem when it is too short or too long, a 500 problem when hashing fails.
    ///
    /// # Cancel safety
    /// As [`Place::check`].
    pub async fn hash(self, password: String) -> Result<String, Problem> {
        if let Some(fault) = fault(&password) {
            return Err(Problem::bad_parameter(&format!("Not a password: {fault}.")));
        }
        let hashed = tokio::task::spawn_blocking(move || {
            let _place = self.permit;
            hash_any(password.as_bytes())
        });
        hashed
            .await
            .map_err(|error| Problem::internal(&error))?
            .map_err(|error| Problem::internal(&format!("{error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordHash;

    use super::NOBODY;
    use crate::platform::account::hash;

    #[test]
    fn nobodys_hash_costs_what_a_real_one_costs() {
        let real = hash("a password for tests").unwrap();
        let (real, nobody) =
            (PasswordHash::new(&real).unwrap(), PasswordHash::new(NOBODY).unwrap());
        assert_eq!((real.algorithm, real.version), (nobody.algorithm, nobody.version));
        assert_eq!(real.params, nobody.params);
        assert_eq!(real.salt.map(|salt| salt.len()), nobody.salt.map(|salt| salt.len()));
        assert_eq!(real.hash.map(|hash| hash.len()), nobody.hash.map(|hash| hash.len()));
    }
}
