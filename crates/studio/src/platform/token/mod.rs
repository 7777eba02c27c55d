//! API tokens: the account behind a secret, and when it was last used.

mod owners;
mod secret;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub use self::owners::TokenOwners;
pub use self::secret::TokenSecret;
pub(crate) use self::secret::invalid;
use super::access::{Permission, Role, SignedIn};
use super::problem::Problem;
use crate::app::App;

const FIND: &str = include_str!("find.sql");
const TOUCH: &str = include_str!("touch.sql");
const REVOKE_ALL: &str = include_str!("revoke_all.sql");
const DELETE_ENDED: &str = include_str!("delete_ended.sql");

/// The immutable id of a token, which is no secret.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
pub struct TokenId(pub Uuid);

/// Which tokens this replica has noted as used within the last minute. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct UsesNoted(Arc<Mutex<HashMap<TokenId, Instant>>>);

impl UsesNoted {
    /// Whether the use of that token is still to be noted. A burst of requests notes it once.
    fn is_due(&self, id: TokenId) -> bool {
        const MINUTE: Duration = Duration::from_mins(1);
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.retain(|_, when| when.elapsed() < MINUTE);
        if noted.contains_key(&id) {
            return false;
        }
        noted.insert(id, Instant::now());
        true
    }
}

/// The account behind a secret, with what the token may do of what the account may do now; nothing when the token is
/// unknown, has ended, or its owner is disabled.
///
/// # Errors
/// The database's.
pub async fn find(
    app: &App,
    secret: &TokenSecret,
    request_id: &str,
) -> Result<Option<SignedIn>, Problem> {
    let id = secret.id();
    let row = {
        let connection = app.pools.main().await?;
        let statement = connection.prepare_cached(FIND).await?;
        connection.query_opt(&statement, &[&id.0]).await?
    };
    let Some(row) = row else { return Ok(None) };
    let mut hashes: Vec<&[u8]> = vec![row.get("secret_hash")];
    hashes.extend(row.get::<_, Option<&[u8]>>("previous_hash"));
    if !secret.has_hash_among(&hashes) {
        return Ok(None);
    }
    if row.get("is_stale") {
        note_use(app, id);
    }
    let role: &str = row.get("role");
    let role = Role::parse(role).ok_or_else(|| Problem::internal(&"an unknown role"))?;
    let grants: Vec<&str> = row.get("grants");
    // A name that this version does not know grants nothing.
    let grants = grants.into_iter().filter_map(Permission::parse).collect();
    let (account, name) = (row.get("account_id"), row.get("name"));
    Ok(Some(SignedIn::by_token(account, name, role, request_id.to_owned(), id, grants)))
}

/// Off the request's path; should it fail, the next minute tries again.
fn note_use(app: &App, id: TokenId) {
    if !app.token_uses.is_due(id) {
        return;
    }
    let pools = app.pools.clone();
    app.tasks.spawn(async move {
        let noted = async {
            let connection = pools.main().await?;
            let statement = connection.prepare_cached(TOUCH).await?;
            connection.execute(&statement, &[&id.0]).await?;
            Ok::<_, Problem>(())
        };
        // Logged where it becomes a problem.
        noted.await.ok();
    });
}

/// Revokes all live tokens of an account, whose row the transaction has changed or locked; gives how many.
///
/// # Errors
/// The database's.
pub async fn revoke_all(
    client: &impl GenericClient,
    account: Uuid,
) -> Result<u64, tokio_postgres::Error> {
    client.execute(REVOKE_ALL, &[&account]).await
}

/// Deletes tokens that ended long ago; gives how many.
///
/// # Errors
/// The database's.
pub async fn delete_ended(app: &App) -> Result<u64, Problem> {
    let connection = app.pools.main().await?;
    Ok(connection.execute(DELETE_ENDED, &[]).await?)
}
