//! Studio's schema: bringing it up to date as its owner, and checking it as the role that serves.

use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use super::heavy;
use crate::settings::Settings;

mod embedded {
    refinery::embed_migrations!("migrations");
}

const HISTORY: &str = "studio.schema_history";
const VERSION: &str = include_str!("version.sql");
const GRANTS: &str = include_str!("grants.sql");
const ROLE: &str = include_str!("role.sql");
const DATABASE: &str = include_str!("database.sql");

/// The role that serves, unless its address names another.
pub const APP_ROLE: &str = "studio_app";
/// The limits' database, unless their address names another.
pub const LIMITS_DATABASE: &str = "studio_limits";

/// How often a migration that met somebody else's lock is tried again.
const LOCK_ATTEMPTS: u32 = 15;

/// Connects, and drives the connection until the client is dropped.
///
/// # Errors
/// The database's.
pub async fn connect(config: &Config) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "A connection ended");
        }
    });
    Ok(client)
}

/// The address of the migration role.
///
/// # Errors
/// When it is not set, or not an address.
pub fn owner(settings: &Settings) -> anyhow::Result<Config> {
    let url = settings.database.migration_url.as_deref().context(
        "database.migration_url is not set: the address of Studio's database as the role that owns it",
    )?;
    url.parse().context("database.migration_url is not an address")
}

/// Brings both databases up to date: creates what is missing, runs migrations, grants. Running it again changes
/// nothing; two at a time take turns.
///
/// # Errors
/// A chain of sentences that says at which step it failed.
pub async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    let owner = owner(settings)?;
    let app: Config = settings.database.url.parse().context("database.url is not an address")?;
    let limits: Config =
        settings.database.limits_url.parse().context("database.limits_url is not an address")?;
    let app_role = app.get_user().unwrap_or(APP_ROLE);

    let mut studio = connect_or_create(&owner).await.context("opening Studio's database")?;
    role(&studio, app_role, app.get_password()).await.context("creating the role that serves")?;
    migrate_studio(&mut studio).await.context("migrating Studio's database")?;
    grant(&studio, app_role).await.context("granting to the role that serves")?;

    let mut limits_owner = owner.clone();
    limits_owner.dbname(limits.get_dbname().unwrap_or(LIMITS_DATABASE));
    let mut limits =
        connect_or_create(&limits_owner).await.context("opening the limits' database")?;
    pg_limits::migrate(&mut limits, heavy::SCHEMA)
        .await
        .context("migrating the limits' database")?;
    pg_limits::grant(&limits, heavy::SCHEMA, app_role).await.context("granting the limits")?;
    Ok(())
}

/// Refuses a schema that this program does not fit.
///
/// # Errors
/// A sentence that says what to do.
pub async fn check(client: &Client) -> anyhow::Result<()> {
    let newest = embedded::migrations::runner()
        .get_migrations()
        .iter()
        .map(|migration| i64::from(migration.version()))
        .max()
        .unwrap_or(0);
    let row = match client.query_one(VERSION, &[]).await {
        Ok(row) => row,
        Err(error)
            if [Some(&SqlState::UNDEFINED_TABLE), Some(&SqlState::INVALID_SCHEMA_NAME)]
                .contains(&error.code()) =>
        {
            anyhow::bail!("Studio's database has no schema yet: run `studio migrate` first")
        }
        Err(error) => return Err(error).context("reading the schema's version"),
    };
    let (applied, oldest_reader): (i64, i64) = (row.get(0), row.get(1));
    fits(newest, applied, oldest_reader)
}

fn fits(newest: i64, applied: i64, oldest_reader: i64) -> anyhow::Result<()> {
    anyhow::ensure!(
        applied >= newest,
        "Studio's database has schema version {applied}, and this program needs {newest}: run `studio migrate` first"
    );
    anyhow::ensure!(
        oldest_reader <= newest,
        "Studio's database has schema version {applied}, which programs that know version {oldest_reader} or newer can use; \
         this program knows {newest}: install a newer one"
    );
    Ok(())
}

async fn connect_or_create(config: &Config) -> anyhow::Result<Client> {
    match connect(config).await {
        Err(error) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {}
        other => return Ok(other?),
    }
    let name = config.get_dbname().context("the address names no database")?;
    let mut maintenance = config.clone();
    maintenance.dbname("postgres");
    let client = connect(&maintenance).await?;
    let row = client.query_one(DATABASE, &[&name]).await?;
    match client.batch_execute(row.get(0)).await {
        // Somebody else created it meanwhile.
        Err(error)
            if [Some(&SqlState::DUPLICATE_DATABASE), Some(&SqlState::UNIQUE_VIOLATION)]
                .contains(&error.code()) => {}
        other => other?,
    }
    Ok(connect(config).await?)
}

async fn role(client: &Client, name: &str, password: Option<&[u8]>) -> anyhow::Result<()> {
    let password = password.map(std::str::from_utf8).transpose()?;
    let row = client.query_one(ROLE, &[&name, &password]).await?;
    match client.batch_execute(row.get(0)).await {
        Err(error)
            if [Some(&SqlState::DUPLICATE_OBJECT), Some(&SqlState::UNIQUE_VIOLATION)]
                .contains(&error.code()) =>
        {
            Ok(())
        }
        other => Ok(other?),
    }
}

async fn migrate_studio(client: &mut Client) -> anyhow::Result<()> {
    // One migration run at a time; the lock goes with the connection.
    client
        .batch_execute(
            "select pg_advisory_lock(hashtextextended('studio.migrate', 0)); \
             set lock_timeout = '2s'; create schema if not exists studio",
        )
        .await?;
    for attempt in 1.. {
        let mut runner = embedded::migrations::runner();
        runner.set_migration_table_name(HISTORY);
        let Err(error) = runner.run_async(client).await else { break };
        if attempt >= LOCK_ATTEMPTS || !is_lock_timeout(&error) {
            return Err(error.into());
        }
        tracing::info!(attempt, "A migration met a lock and is tried again");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

fn is_lock_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
            return error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
        }
        cause = error.source();
    }
    false
}

async fn grant(client: &Client, role: &str) -> anyhow::Result<()> {
    let row = client
        .query_one("select quote_ident($1::text), quote_ident(current_database())", &[&role])
        .await?;
    let (role, database): (&str, &str) = (row.get(0), row.get(1));
    let grants = GRANTS.replace("{role}", role).replace("{database}", database);
    client.batch_execute(&grants).await?;
    // Lets the role end backends of the console's roles that do not obey a cancel. Managed servers may refuse it.
    if let Err(error) = client.batch_execute(&format!("grant pg_signal_backend to {role}")).await {
        tracing::warn!(error = %error, "pg_signal_backend could not be granted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn an_older_schema_is_refused_and_a_newer_compatible_one_accepted() {
        assert!(fits(3, 2, 0).unwrap_err().to_string().contains("studio migrate"));
        assert!(fits(3, 3, 0).is_ok());
        assert!(fits(3, 9, 3).is_ok());
        assert!(fits(3, 9, 4).unwrap_err().to_string().contains("newer"));
    }
}
