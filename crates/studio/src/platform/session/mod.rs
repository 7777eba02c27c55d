//! Sessions: a random id in the browser's cookie, its hash in the database, ends in the database's time.

use http::{HeaderMap, HeaderValue, header};
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use tokio_postgres::GenericClient;
use uuid::Uuid;

use super::access::{Role, SignedIn};
use super::problem::Problem;
use crate::app::App;
use crate::settings::HttpSettings;

const CREATE: &str = include_str!("create.sql");
const FIND: &str = include_str!("find.sql");
const TOUCH: &str = include_str!("touch.sql");
const DELETE: &str = include_str!("delete.sql");
const DELETE_ALL: &str = include_str!("delete_all.sql");
const DELETE_ENDED: &str = include_str!("delete_ended.sql");

/// The secret that the browser holds: 256 random bits in hexadecimal.
#[derive(Clone)]
pub struct SessionId(String);

impl std::fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SessionId(..)")
    }
}

impl SessionId {
    fn random() -> Self {
        use std::fmt::Write as _;
        let mut bytes = [0_u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        let mut text = String::with_capacity(64);
        for byte in bytes {
            // Writing to a String does not fail.
            write!(text, "{byte:02x}").ok();
        }
        Self(text)
    }

    fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.0.as_bytes()).to_vec()
    }

    /// The id in a request's cookie.
    pub fn of(headers: &HeaderMap, settings: &HttpSettings) -> Option<Self> {
        let name = cookie_name(settings);
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find(|(key, value)| {
                *key == name
                    && value.len() == 64
                    && value.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
            .map(|(_, value)| Self(value.to_owned()))
    }
}

/// Whether cookies need a secure transport: everywhere but on loopback.
fn needs_secure(settings: &HttpSettings) -> bool {
    let is_https = settings
        .public_origin
        .as_deref()
        .is_some_and(|origin| origin.to_ascii_lowercase().starts_with("https://"));
    is_https || !settings.listen.ip().is_loopback()
}

fn cookie_name(settings: &HttpSettings) -> &'static str {
    if needs_secure(settings) { "__Host-studio_session" } else { "studio_session" }
}

/// The `Set-Cookie` that gives the browser its session.
///
/// # Errors
/// None in practice: the id is hexadecimal.
pub fn cookie(id: &SessionId, settings: &HttpSettings) -> Result<HeaderValue, Problem> {
    let secure = if needs_secure(settings) { "; Secure" } else { "" };
    let text =
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict{secure}", cookie_name(settings), id.0);
    HeaderValue::from_str(&text).map_err(|error| Problem::internal(&error))
}

/// The `Set-Cookie` that makes the browser forget its session.
///
/// # Errors
/// None in practice.
pub fn forget_cookie(settings: &HttpSettings) -> Result<HeaderValue, Problem> {
    let secure = if needs_secure(settings) { "; Secure" } else { "" };
    let text =
        format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{secure}", cookie_name(settings));
    HeaderValue::from_str(&text).map_err(|error| Problem::internal(&error))
}

/// Begins a session under a new id, for whoever signed in by the password of this hash. A session that the browser
/// held before ends. Nothing is begun when the account was disabled or its password changed since it was checked.
///
/// # Errors
/// The database's.
pub async fn begin(
    client: &impl GenericClient,
    account: Uuid,
    password_hash: &str,
    before: Option<&SessionId>,
) -> Result<Option<SessionId>, tokio_postgres::Error> {
    let id = SessionId::random();
    let before = before.map(SessionId::hash);
    let begun = client.execute(CREATE, &[&id.hash(), &account, &before, &password_hash]).await?;
    Ok((begun > 0).then_some(id))
}

/// Ends all sessions of an account, whose row the transaction has changed or locked; gives how many.
///
/// # Errors
/// The database's.
pub async fn end_all(
    client: &impl GenericClient,
    account: Uuid,
) -> Result<u64, tokio_postgres::Error> {
    client.execute(DELETE_ALL, &[&account]).await
}

/// Ends a session.
///
/// # Errors
/// The database's.
pub async fn end(app: &App, id: &SessionId) -> Result<(), Problem> {
    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(DELETE).await?;
    connection.execute(&statement, &[&id.hash()]).await?;
    Ok(())
}

/// The account of a session that has not ended.
///
/// # Errors
/// The database's.
pub async fn find(
    app: &App,
    id: &SessionId,
    request_id: &str,
) -> Result<Option<SignedIn>, Problem> {
    let hash = id.hash();
    let connection = app.pools.main().await?;
    let statement = connection.prepare_cached(FIND).await?;
    let Some(row) = connection.query_opt(&statement, &[&hash]).await? else { return Ok(None) };
    if row.get("is_stale") {
        let statement = connection.prepare_cached(TOUCH).await?;
        connection.execute(&statement, &[&hash]).await?;
    }
    let role: &str = row.get("role");
    let role = Role::parse(role).ok_or_else(|| Problem::internal(&"an unknown role"))?;
    let (account, name) = (row.get("account_id"), row.get("name"));
    Ok(Some(SignedIn::by_session(account, name, role, request_id.to_owned())))
}

/// Deletes sessions that have ended; gives how many.
///
/// # Errors
/// The database's.
pub async fn delete_ended(app: &App) -> Result<u64, Problem> {
    let connection = app.pools.main().await?;
    Ok(connection.execute(DELETE_ENDED, &[]).await?)
}
