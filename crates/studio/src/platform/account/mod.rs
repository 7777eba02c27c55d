//! Accounts: canonical names, password hashes, and creating one.

mod password_checks;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher as _, SaltString};
use rand::RngCore as _;
use tokio_postgres::GenericClient;
use unicode_normalization::UnicodeNormalization as _;
use uuid::Uuid;

pub use self::password_checks::PasswordChecks;
use super::access::Role;
use super::paging::Microseconds;
use super::problem::Problem;

const CREATE: &str = include_str!("create.sql");
const FIND: &str = include_str!("find.sql");
const SET_PASSWORD: &str = include_str!("set_password.sql");

/// The longest account name, in characters of its canonical form.
const NAME_CHARACTERS: usize = 128;

/// The longest password, in bytes; a longer one would only make argon2id work for nothing.
const PASSWORD_BYTES: usize = 1024;

/// The shortest password that an account can be created with, in characters.
const PASSWORD_CHARACTERS: usize = 12;

/// An account's name in the one form in which it is stored, looked up and limited: NFKC, case-folded, trimmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountName(String);

impl AccountName {
    /// The canonical form; nothing when it is empty, too long or holds control characters.
    pub fn parse(text: &str) -> Option<Self> {
        let folded = folded(text)?;
        let name = folded.trim();
        let is_name = !name.is_empty() && is_within_bounds(name);
        is_name.then(|| Self(name.to_owned()))
    }

    /// What canonical names begin with that begin like this text; nothing when no name can.
    pub fn prefix(text: &str) -> Option<String> {
        let folded = folded(text)?;
        let prefix = folded.trim_start();
        is_within_bounds(prefix).then(|| prefix.to_owned())
    }

    /// What stands behind every name that begins so, in the order of bytes.
    pub fn behind(prefix: &str) -> String {
        let mut text = prefix.to_owned();
        text.extend(std::iter::repeat_n(char::MAX, NAME_CHARACTERS + 1));
        text
    }

    /// The canonical form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_within_bounds(name: &str) -> bool {
    name.chars().count() <= NAME_CHARACTERS && !name.chars().any(char::is_control)
}

fn folded(text: &str) -> Option<String> {
    // Bounds the work before the work: normalising can only make so much of so little.
    if text.len() > NAME_CHARACTERS * 4 {
        return None;
    }
    // Lower, upper, lower, character by character, joins what lower case alone keeps apart: the two forms of sharp s
    // and their `ss`, the two small sigmas.
    Some(
        text.nfkc()
            .flat_map(char::to_lowercase)
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .nfkc()
            .collect(),
    )
}

/// An account as sign-in needs it.
#[derive(Debug)]
pub struct Account {
    /// The immutable id.
    pub id: Uuid,
    /// The canonical name.
    pub name: String,
    /// The role.
    pub role: Role,
    password_hash: String,
}

impl Account {
    /// The PHC string that its password was checked against.
    pub(crate) fn password_hash(&self) -> &str {
        &self.password_hash
    }
}

/// Finds an account that may sign in.
///
/// # Errors
/// The database's.
pub async fn find(
    connection: &deadpool_postgres::Client,
    name: &AccountName,
) -> Result<Option<Account>, Problem> {
    let statement = connection.prepare_cached(FIND).await?;
    let Some(row) = connection.query_opt(&statement, &[&name.as_str()]).await? else {
        return Ok(None);
    };
    let role: &str = row.get(2);
    let role = Role::parse(role).ok_or_else(|| Problem::internal(&"an unknown role"))?;
    Ok(Some(Account { id: row.get(0), name: row.get(1), role, password_hash: row.get(3) }))
}

/// Creates an account; gives its id, or nothing when the name is taken.
///
/// # Errors
/// The database's, or a password that is too short or too long.
pub async fn create(
    client: &impl GenericClient,
    name: &AccountName,
    role: Role,
    password: &str,
) -> anyhow::Result<Option<Uuid>> {
    let hash = hash(password)?;
    Ok(insert(client, name, role, &hash).await?.map(|created| created.id))
}

/// An account that was just created.
#[derive(Debug, Clone, Copy)]
pub struct Created {
    /// The immutable id.
    pub id: Uuid,
    /// When.
    pub at: Microseconds,
}

/// Creates an account with the hash of its password; gives nothing when the name is taken.
///
/// # Errors
/// The database's.
pub async fn insert(
    client: &impl GenericClient,
    name: &AccountName,
    role: Role,
    password_hash: &str,
) -> Result<Option<Created>, tokio_postgres::Error> {
    let row = client
        .query_opt(CREATE, &[&Uuid::now_v7(), &name.as_str(), &role.name(), &password_hash])
        .await?;
    row.map(|row| Ok(Created { id: row.try_get(0)?, at: row.try_get(1)? })).transpose()
}

/// Gives an account another password, and its name; nothing when there is no such account, or when its password is no
/// longer the `expected` one.
///
/// # Errors
/// The database's.
pub async fn set_password(
    client: &impl GenericClient,
    account: Uuid,
    password_hash: &str,
    expected: Option<&str>,
) -> Result<Option<String>, tokio_postgres::Error> {
    let row = client.query_opt(SET_PASSWORD, &[&account, &password_hash, &expected]).await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// A new password that nobody has to think of: 160 bits.
pub fn generated_password() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    bytes
        .iter()
        .filter_map(|byte| ALPHABET.get(usize::from(byte % 32)))
        .map(|byte| char::from(*byte))
        .collect()
}

/// The PHC string of a new password.
///
/// # Errors
/// When it is too short or too long.
pub fn hash(password: &str) -> anyhow::Result<String> {
    if let Some(fault) = fault(password) {
        anyhow::bail!(fault);
    }
    hash_any(password.as_bytes())
}

/// Why this cannot be an account's password; nothing when it can.
pub fn fault(password: &str) -> Option<String> {
    if password.chars().count() < PASSWORD_CHARACTERS {
        return Some(format!("a password needs at least {PASSWORD_CHARACTERS} characters"));
    }
    (password.len() > PASSWORD_BYTES)
        .then(|| format!("a password has at most {PASSWORD_BYTES} bytes"))
}

fn hash_any(password: &[u8]) -> anyhow::Result<String> {
    let mut salt = [0_u8; 16];
    rand::rng().fill_bytes(&mut salt);
    let salt = SaltString::encode_b64(&salt).map_err(|error| anyhow::anyhow!("a salt: {error}"))?;
    let hash = Argon2::default()
        .hash_password(password, &salt)
        .map_err(|error| anyhow::anyhow!("hashing a password: {error}"))?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::{AccountName, generated_password};

    fn canonical(text: &str) -> Option<String> {
        AccountName::parse(text).map(|name| name.0)
    }

    #[test]
    fn names_that_look_alike_are_one_name() {
        for text in ["Anna", " anna ", "ANNA", "\u{ff21}nna", "a\u{ff2e}NA"] {
            assert_eq!(canonical(text).as_deref(), Some("anna"), "{text:?}");
        }
        assert_eq!(canonical("STRASSE"), canonical("stra\u{df}e"));
        assert_eq!(canonical("\u{3a3}\u{391}\u{3a3}"), canonical("\u{3c3}\u{3b1}\u{3c2}"));
        assert_eq!(canonical("e\u{301}"), canonical("\u{e9}"));
    }

    #[test]
    fn a_canonical_name_is_its_own_canonical_name() {
        for text in ["\u{1e9e}", "\u{fb03}", "\u{130}", "\u{1f88}", "\u{2126}"] {
            let once = canonical(text).unwrap();
            assert_eq!(canonical(&once).as_deref(), Some(once.as_str()), "{text:?}");
        }
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        for text in ["", "   ", "a\u{0}b", "a\nb", &"x".repeat(129), &"\u{fdfa}".repeat(100)] {
            assert_eq!(canonical(text), None, "{text:?}");
        }
        assert!(canonical(&"x".repeat(128)).is_some());
    }

    #[test]
    fn generated_passwords_differ_and_are_long() {
        let password = generated_password();
        assert_eq!(password.len(), 32);
        assert_ne!(password, generated_password());
    }
}
