use refinery::{Migration, Runner};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::schema;

macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../migrations/", $name, ".sql")))),*]
    };
}

/// Only added to. A function whose contract changes gets a new number, and the old one stays for two
/// releases; a better body to the same contract replaces the old one.
const MIGRATIONS: [(&str, &str); 18] = migrations![
    "V1__tables",
    "V2__repair_v1",
    "V3__claim_v1",
    "V4__release_v1",
    "V5__caps_v1",
    "V6__replicas_v1",
    "V7__sweep_v1",
    "V8__grant_v1",
    "V9__claim_v1_in_one_scan",
    "V10__unlogged_tables",
    "V11__count_v1",
    "V12__enter_v1",
    "V14__throttle",
    "V15__attempt_v1",
    "V16__settle_attempt_v1",
    "V17__shadow_mode",
    "V18__stop_requests",
    "V19__enter_v2",
];

/// Why the limits' schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The schema's name would need quotes.
    #[error("{0}")]
    Schema(String),
    /// The database refused a statement.
    #[error("the limits' schema could not be migrated")]
    Database(#[from] tokio_postgres::Error),
    /// A migration failed, or the history differs from ours.
    #[error("a migration of the limits failed")]
    Migration(#[from] refinery::Error),
}

/// Installs the tables and functions of the limits in `schema`, or brings them up to date.
///
/// Use a database of the limits' own (a long snapshot elsewhere in the same database stops the
/// pruning of its rows), the role that shall own them, and a direct connection. Two at once are
/// safe: the second waits, and finds the work done. Running services go on meanwhile.
///
/// # Errors
///
/// When the name needs quotes, when the role may not create a schema, or when a lock was not to be
/// had within two seconds, five times over.
///
/// # Cancel safety
///
/// Every step is a transaction: what was interrupted is done by the next call.
pub async fn migrate(client: &mut Client, schema: &str) -> Result<(), MigrateError> {
    schema::check(schema).map_err(MigrateError::Schema)?;
    client
        .batch_execute(&format!(
            "select pg_advisory_lock(hashtextextended('pg_limits.migrate.{schema}', 0));
             set lock_timeout = '2s';
             create schema if not exists {schema};"
        ))
        .await?;
    let migrations: Vec<_> = MIGRATIONS
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, &schema::place(sql, schema)))
        .collect::<Result<_, _>>()?;
    let mut runner = Runner::new(&migrations);
    runner.set_migration_table_name(format!("{schema}.migration"));
    let mut tries = 0;
    let outcome = loop {
        tries += 1;
        match runner.run_async(client).await {
            Ok(_) => break Ok(()),
            Err(error) if tries < 5 && lock_was_busy(&error) => {}
            Err(error) => break Err(MigrateError::Migration(error)),
        }
    };
    client
        .batch_execute(&format!(
            "select pg_advisory_unlock(hashtextextended('pg_limits.migrate.{schema}', 0));
             reset lock_timeout;"
        ))
        .await?;
    outcome
}

fn lock_was_busy(error: &refinery::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<tokio_postgres::Error>() {
            return cause.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
        }
        source = cause.source();
    }
    false
}

/// Lets `role` claim, release and register, and nothing else.
///
/// # Errors
///
/// When `role` does not exist, or `client`'s role does not own the limits.
///
/// # Cancel safety
///
/// One statement: done, or not done.
pub async fn grant(client: &Client, schema: &str, role: &str) -> Result<(), MigrateError> {
    schema::check(schema).map_err(MigrateError::Schema)?;
    client.query_one(&format!("select {schema}.grant_v1($1)"), &[&role]).await?;
    Ok(())
}
