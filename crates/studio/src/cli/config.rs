//! `studio config check`: what is wrong with the settings, and what is risky.

use std::process::ExitCode;

use tokio_postgres::Config;

use crate::features::sql_console::console_roles;
use crate::platform::schema;
use crate::settings::Settings;

/// Connections that the server keeps for others: superusers, back-ups, people.
const RESERVED: u32 = 10;

/// Below this a few users already refuse one another.
const SMALL_CAP: u32 = 4;

/// What was found, in the order it was looked for.
#[derive(Debug, Default)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// Prints what it finds; fails when something is wrong.
pub(super) async fn check(settings: &Settings, replicas: u32) -> anyhow::Result<ExitCode> {
    let mut findings = Findings::default();
    check_settings(settings, &mut findings);
    if findings.errors.is_empty() {
        check_server(settings, replicas, &mut findings).await;
    }
    for (word, lines) in
        [("error", &findings.errors), ("warning", &findings.warnings), ("note", &findings.notes)]
    {
        for line in lines {
            super::print(&format!("{word}: {line}"))?;
        }
    }
    if findings.errors.is_empty() {
        super::print("The settings can be used.")?;
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

fn check_settings(settings: &Settings, findings: &mut Findings) {
    let database = &settings.database;
    for (name, url) in
        [("database.url", &database.url), ("database.limits_url", &database.limits_url)]
    {
        if url.is_empty() {
            findings.errors.push(format!("{name} is not set"));
        } else if let Err(error) = url.parse::<Config>() {
            findings.errors.push(format!("{name} is not an address: {error}"));
        }
    }
    if let Some(Err(error)) = database.migration_url.as_ref().map(|url| url.parse::<Config>()) {
        findings.errors.push(format!("database.migration_url is not an address: {error}"));
    }
    if database.main_pool == 0 {
        findings.errors.push("database.main_pool must be at least 1".to_owned());
    }
    if let Some(origin) = &settings.http.public_origin
        && !is_origin(origin)
    {
        findings.errors.push(format!(
            "http.public_origin must be like https://studio.example.com, without a path; it is `{origin}`"
        ));
    }
    if settings.http.public_origin.is_none() && !settings.http.listen.ip().is_loopback() {
        findings.warnings.push(
            "http.public_origin is not set: behind a proxy that changes the Host header nobody can sign in"
                .to_owned(),
        );
    }
    if settings.http.trusted_proxies.is_everybody() {
        findings.warnings.push(
            "http.trusted_proxies trusts every address: clients can claim to come from anywhere, and sign-ins are not \
             throttled by network"
                .to_owned(),
        );
    }
    if settings.limits.audit_export_ms > 300_000 {
        findings.errors.push("limits.audit_export_ms is at most 300,000".to_owned());
    }
    check_caps(settings, findings);
}

fn check_caps(settings: &Settings, findings: &mut Findings) {
    let cap = settings.installation_cap();
    if cap < SMALL_CAP {
        findings.warnings.push(format!(
            "the installation's cap is {cap}: below {SMALL_CAP} a few users already refuse one another; \
             raise database.main_pool or limits.installation_cap"
        ));
    }
    if settings.database.main_pool < cap {
        findings.warnings.push(format!(
            "database.main_pool is {}, smaller than the installation's cap of {cap}: heavy requests that were \
             granted would wait for connections",
            settings.database.main_pool
        ));
    }
    let console = &settings.console;
    let urls = [&console.viewer_url, &console.operator_url, &console.administrator_url];
    match urls.iter().filter(|url| url.is_some()).count() {
        0 => findings.notes.push("the SQL console is off: no [console] address is set".to_owned()),
        3 => {}
        _ => findings.errors.push("set all three [console] addresses, or none".to_owned()),
    }
    if console.accept_ast_check_alone {
        findings.warnings.push(
            "console.accept_ast_check_alone: the check of the statement is the only guard of the SQL console".to_owned(),
        );
    }
}

fn is_origin(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some()
            && uri.path() == "/"
            && uri.query().is_none()
    })
}

async fn check_server(settings: &Settings, replicas: u32, findings: &mut Findings) {
    if let Err(error) = ask_server(settings, replicas, findings).await {
        findings.errors.push(format!("{error:#}"));
    }
}

async fn ask_server(
    settings: &Settings,
    replicas: u32,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let client = schema::connect(&settings.database.url.parse()?).await?;
    schema::check(&client).await?;
    let row = client.query_one(include_str!("config/server.sql"), &[]).await?;
    let most: i32 = row.get("max_connections");
    let most = u32::try_from(most).unwrap_or(0).saturating_sub(RESERVED);
    let wanted = replicas.saturating_mul(connections(settings));
    if wanted > most {
        findings.warnings.push(format!(
            "{replicas} replicas may open {wanted} connections, and the server leaves {most} of its max_connections"
        ));
    }
    let roles = console_roles::from_settings(settings)?;
    let found = console_roles::verify(&client, &roles).await?;
    if !roles.is_empty() && found.is_empty() {
        findings.notes.push("the roles of the SQL console are set up".to_owned());
    }
    for finding in found {
        // The console stays off until this is mended, or its settings say that it may go without.
        findings.warnings.push(finding.to_string());
    }
    let limits = schema::connect(&settings.database.limits_url.parse()?).await?;
    limits.execute("select 1", &[]).await?;
    Ok(())
}

/// Connections that one replica may open: its main pool, the console's queries, and a few of the limits' own.
fn connections(settings: &Settings) -> u32 {
    const LIMITS: u32 = 4;
    let console =
        if settings.console.viewer_url.is_some() { settings.installation_cap() } else { 0 };
    settings.database.main_pool.saturating_add(console).saturating_add(LIMITS)
}

#[cfg(test)]
mod tests {
    use super::{Findings, check_settings};
    use crate::settings::Settings;

    fn findings(text: &str) -> Findings {
        let text = format!("{text}\n[http]\nlisten = '127.0.0.1:1'");
        let settings = Settings::from_text(&text, |_| None).unwrap();
        let mut findings = Findings::default();
        check_settings(&settings, &mut findings);
        findings
    }

    const DATABASE: &str = "[database]\nurl = 'dbname=studio'\nlimits_url = 'dbname=studio_limits'";

    #[test]
    fn addresses_must_be_set_and_be_addresses() {
        let errors = findings("[database]\nlimits_url = 'nonsense'").errors.join("\n");
        assert!(errors.contains("database.url is not set"), "{errors}");
        assert!(errors.contains("database.limits_url is not an address"), "{errors}");
        assert_eq!(findings(DATABASE).errors, Vec::<String>::new());
    }

    #[test]
    fn a_small_cap_and_a_pool_smaller_than_it_are_named() {
        let warnings = findings(&format!("{DATABASE}\nmain_pool = 8")).warnings.join("\n");
        assert!(warnings.contains("cap is 2"), "{warnings}");
        let text = format!("{DATABASE}\nmain_pool = 8\n[limits]\ninstallation_cap = 9");
        let warnings = findings(&text).warnings.join("\n");
        assert!(warnings.contains("smaller than the installation's cap of 9"), "{warnings}");
        assert_eq!(findings(DATABASE).warnings, Vec::<String>::new());
    }

    #[test]
    fn console_addresses_come_together() {
        let text = format!("{DATABASE}\n[console]\nviewer_url = 'dbname=studio'");
        assert!(findings(&text).errors.join("\n").contains("all three"));
    }
}
