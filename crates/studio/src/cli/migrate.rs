//! `studio migrate`: schemas, roles and grants, as the role that owns the databases.

use anyhow::Context as _;
use tokio_postgres::Config;

use crate::features::sql_console::console_roles;
use crate::platform::schema;
use crate::settings::Settings;

/// Brings everything up to date. Running it again changes nothing.
pub(super) async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    schema::migrate(settings).await?;
    let owner = schema::owner(settings)?;
    let app: Config = settings.database.url.parse()?;
    let limits: Config = settings.database.limits_url.parse()?;
    let roles = console_roles::from_settings(settings)?;
    let client = schema::connect(&owner).await?;
    console_roles::set_up(
        &client,
        &roles,
        app.get_user().unwrap_or(schema::APP_ROLE),
        &[limits.get_dbname().unwrap_or(schema::LIMITS_DATABASE)],
    )
    .await
    .context("setting up the SQL console's roles")?;
    for finding in console_roles::verify(&client, &roles).await? {
        super::print(&format!("warning: {finding}"))?;
    }
    Ok(())
}
