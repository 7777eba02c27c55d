//! The privileged set-up.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{ConsoleRole, DANGEROUS};
use crate::features::sql_console::catalogue::Catalogue;

const ROLE: &str = include_str!("role.sql");
const MEMBERSHIPS: &str = include_str!("memberships.sql");
const ROLE_SETTINGS: &str = include_str!("role_settings.sql");
const RESTRICT: &str = include_str!("restrict.sql");
const GRANTS: &str = include_str!("grants.sql");
const FUNCTIONS: &str = include_str!("functions.sql");

/// Sessions of one login role on the whole server: far above the caps of `pg-limits`, which bound
/// queries, and far below what would starve the rest.
const CONNECTIONS: i32 = 64;

/// How often a catalogue row that another set-up changed at the same moment is tried again.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Makes the console's roles and takes from everybody what they must not have. `client` is the
/// database's owner, best a superuser: what it may not revoke stays, and [`super::verify`] names it.
/// `app` is the role that serves, `private` the other databases that nobody but it may enter.
/// Running it again changes nothing; without roles there is nothing to do.
///
/// # Errors
/// The database's, with the step.
pub async fn set_up(
    client: &Client,
    roles: &[ConsoleRole],
    app: &str,
    private: &[&str],
) -> anyhow::Result<()> {
    if roles.is_empty() {
        return Ok(());
    }
    let database: String = client.query_one("select current_database()::text", &[]).await?.get(0);
    let app = quoted(app);
    let restrict = RESTRICT.replace("{database}", &quoted(&database)).replace("{app}", &app);
    run_as_allowed(client, &restrict)
        .await
        .context("taking from everybody what only Studio needs")?;
    for database in private {
        let database = quoted(database);
        let statements = format!(
            "revoke connect, temporary on database {database} from public;\n\
             grant connect on database {database} to {app};\n"
        );
        run_as_allowed(client, &statements).await.context("closing the other databases")?;
    }
    restrict_functions(client, &app).await.context("taking dangerous functions from everybody")?;
    for role in roles {
        make(client, role, &database)
            .await
            .with_context(|| format!("setting up the role {}", role.login))?;
    }
    Ok(())
}

async fn restrict_functions(client: &Client, app: &str) -> anyhow::Result<()> {
    let mut statements = String::new();
    for row in client.query(FUNCTIONS, &[&DANGEROUS]).await? {
        let signature: &str = row.get(0);
        writeln!(statements, "revoke execute on function {signature} from public;")?;
        if is_left_to_the_app(signature) {
            writeln!(statements, "grant execute on function {signature} to {app};")?;
        }
        if signature.starts_with("pg_stat_get_") {
            writeln!(statements, "grant execute on function {signature} to pg_read_all_stats;")?;
        }
    }
    run_as_allowed(client, &statements).await?;
    Ok(())
}

/// Studio writes no large object, no XML, and runs no SQL from a text.
fn is_left_to_the_app(signature: &str) -> bool {
    !signature.starts_with("lo") && !signature.contains("_to_xml") && !signature.starts_with("ts_")
}

async fn make(client: &Client, role: &ConsoleRole, database: &str) -> anyhow::Result<()> {
    let row = client.query_one(ROLE, &[&role.login, &CONNECTIONS, &role.password]).await?;
    run(client, row.get(0)).await?;
    for row in client.query(MEMBERSHIPS, &[&role.login]).await? {
        run(client, row.get(0)).await?;
    }
    let login = quoted(&role.login);
    run_as_allowed(client, &ROLE_SETTINGS.replace("{role}", &login)).await?;
    let mut grants = GRANTS.replace("{role}", &login).replace("{database}", &quoted(database));
    for view in Catalogue::ALL.readable_by(role.role) {
        writeln!(grants, "grant select on console.{} to {login};", quoted(view.name))?;
    }
    run(client, &grants).await?;
    Ok(())
}

/// Runs statements, one a line. Where the owner is no superuser some are refused: then each that is
/// allowed runs, and [`super::verify`] names what is missing.
async fn run_as_allowed(client: &Client, statements: &str) -> Result<(), tokio_postgres::Error> {
    match run(client, statements).await {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {}
        other => return other,
    }
    for statement in statements.lines() {
        match run(client, statement).await {
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                tracing::warn!(statement, "The owner of the database may not do this");
            }
            other => other?,
        }
    }
    Ok(())
}

/// Runs statements in one transaction. Roles belong to the whole server, so another database's set-up
/// may change the same row at the same moment, which the server answers with an internal error.
async fn run(client: &Client, statements: &str) -> Result<(), tokio_postgres::Error> {
    let retried =
        [SqlState::INTERNAL_ERROR, SqlState::DUPLICATE_OBJECT, SqlState::UNIQUE_VIOLATION];
    for _ in 1..ATTEMPTS {
        match client.batch_execute(statements).await {
            Err(error) if error.code().is_some_and(|code| retried.contains(code)) => {
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
    client.batch_execute(statements).await
}

/// A name in the server's quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
