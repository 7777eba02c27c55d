//! Settings: from a TOML file, then from the environment, which wins. The only place that reads environment variables.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;

use crate::platform::client_address::TrustedProxies;

/// Everything that can be set. Each field names its environment variable.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The HTTP face.
    pub http: HttpSettings,
    /// Studio's databases.
    pub database: DatabaseSettings,
    /// Limits on heavy requests.
    pub limits: LimitSettings,
    /// The SQL console.
    pub console: ConsoleSettings,
    /// This replica.
    pub replica: ReplicaSettings,
}

/// `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// The address to listen on. `STUDIO_HTTP_LISTEN`, default `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// The origin that browsers use, such as `https://studio.example.com`. Requests that change something must come
    /// from it. Without it the `Origin` must name the host that the request was sent to. `STUDIO_HTTP_PUBLIC_ORIGIN`.
    pub public_origin: Option<String>,
    /// The proxies whose `Forwarded` or `X-Forwarded-For` tells the client's address: addresses and networks, separated
    /// by commas. `STUDIO_HTTP_TRUSTED_PROXIES`, default none.
    pub trusted_proxies: TrustedProxies,
    /// Origins whose pages may call the API by token, separated by commas, such as `https://ops.example.com`. Their
    /// browsers send no session along. `STUDIO_HTTP_CORS_ORIGINS`, none unless set.
    pub cors_origins: String,
    /// How long a replica that stops lets its requests finish, in seconds. `STUDIO_HTTP_DRAIN_SECONDS`, default 20.
    pub drain_seconds: u64,
    /// How long an upload may stand still, in seconds. `STUDIO_HTTP_UPLOAD_STALL_SECONDS`, default 30.
    pub upload_stall_seconds: u64,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_origin: None,
            trusted_proxies: TrustedProxies::default(),
            cors_origins: String::new(),
            drain_seconds: 20,
            upload_stall_seconds: 30,
        }
    }
}

/// `[database]`. Addresses are PostgreSQL connection strings (`postgresql://..` or `host=.. user=..`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseSettings {
    /// Studio's own database, as the role that serves. `STUDIO_DATABASE_URL`.
    pub url: String,
    /// The limits' database on the same server, as the role that serves. `STUDIO_DATABASE_LIMITS_URL`.
    pub limits_url: String,
    /// Studio's own database, as the role that owns it. Only `studio migrate`, `studio account` and
    /// `studio demo seed` use it. `STUDIO_DATABASE_MIGRATION_URL`.
    pub migration_url: Option<String>,
    /// Connections of the main pool. `STUDIO_DATABASE_MAIN_POOL`, default 32.
    pub main_pool: u32,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        Self { url: String::new(), limits_url: String::new(), migration_url: None, main_pool: 32 }
    }
}

/// `[limits]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Heavy requests at one time, of all users on all replicas. Without it a quarter of the main pool, at least one.
    /// `STUDIO_LIMITS_INSTALLATION_CAP`.
    pub installation_cap: Option<u32>,
    /// How long after its time bound a permit that nobody released is free again, in milliseconds.
    /// `STUDIO_LIMITS_MARGIN_MS`, default 30,000.
    pub margin_ms: u64,
    /// The most rows of one audit export. `STUDIO_LIMITS_AUDIT_EXPORT_ROWS`, default 1,000,000.
    pub audit_export_rows: u64,
    /// The most bytes of one audit export. `STUDIO_LIMITS_AUDIT_EXPORT_BYTES`, default 1 GiB.
    pub audit_export_bytes: u64,
    /// The longest audit export, in milliseconds, at most the endpoint's bound of 300,000.
    /// `STUDIO_LIMITS_AUDIT_EXPORT_MS`, default 300,000.
    pub audit_export_ms: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            installation_cap: None,
            margin_ms: 30_000,
            audit_export_rows: 1_000_000,
            audit_export_bytes: 1 << 30,
            audit_export_ms: 300_000,
        }
    }
}

/// `[console]`: the SQL console signs in to Studio's database by a login role of its own for each of Studio's roles.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsoleSettings {
    /// As `studio_console_viewer`. `STUDIO_CONSOLE_VIEWER_URL`.
    pub viewer_url: Option<String>,
    /// As `studio_console_operator`. `STUDIO_CONSOLE_OPERATOR_URL`.
    pub operator_url: Option<String>,
    /// As `studio_console_administrator`. `STUDIO_CONSOLE_ADMINISTRATOR_URL`.
    pub administrator_url: Option<String>,
    /// Opens the console although its roles could not be stripped of what a read-only transaction still allows
    /// (writing large objects, notifications, advisory locks, changing settings). The check of the statement is then the only guard.
    /// `STUDIO_CONSOLE_ACCEPT_AST_CHECK_ALONE`, default false.
    pub accept_ast_check_alone: bool,
}

/// `[replica]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplicaSettings {
    /// The name shown for this replica. Without it the address it listens on. `STUDIO_REPLICA_NAME`.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Switch,
}

/// Every environment variable, with the table and the field that it sets.
const VARIABLES: &[(&str, &str, &str, Kind)] = &[
    ("STUDIO_HTTP_LISTEN", "http", "listen", Kind::Text),
    ("STUDIO_HTTP_PUBLIC_ORIGIN", "http", "public_origin", Kind::Text),
    ("STUDIO_HTTP_TRUSTED_PROXIES", "http", "trusted_proxies", Kind::Text),
    ("STUDIO_HTTP_CORS_ORIGINS", "http", "cors_origins", Kind::Text),
    ("STUDIO_HTTP_DRAIN_SECONDS", "http", "drain_seconds", Kind::Number),
    ("STUDIO_HTTP_UPLOAD_STALL_SECONDS", "http", "upload_stall_seconds", Kind::Number),
    ("STUDIO_DATABASE_URL", "database", "url", Kind::Text),
    ("STUDIO_DATABASE_LIMITS_URL", "database", "limits_url", Kind::Text),
    ("STUDIO_DATABASE_MIGRATION_URL", "database", "migration_url", Kind::Text),
    ("STUDIO_DATABASE_MAIN_POOL", "database", "main_pool", Kind::Number),
    ("STUDIO_LIMITS_INSTALLATION_CAP", "limits", "installation_cap", Kind::Number),
    ("STUDIO_LIMITS_MARGIN_MS", "limits", "margin_ms", Kind::Number),
    ("STUDIO_LIMITS_AUDIT_EXPORT_ROWS", "limits", "audit_export_rows", Kind::Number),
    ("STUDIO_LIMITS_AUDIT_EXPORT_BYTES", "limits", "audit_export_bytes", Kind::Number),
    ("STUDIO_LIMITS_AUDIT_EXPORT_MS", "limits", "audit_export_ms", Kind::Number),
    ("STUDIO_CONSOLE_VIEWER_URL", "console", "viewer_url", Kind::Text),
    ("STUDIO_CONSOLE_OPERATOR_URL", "console", "operator_url", Kind::Text),
    ("STUDIO_CONSOLE_ADMINISTRATOR_URL", "console", "administrator_url", Kind::Text),
    ("STUDIO_CONSOLE_ACCEPT_AST_CHECK_ALONE", "console", "accept_ast_check_alone", Kind::Switch),
    ("STUDIO_REPLICA_NAME", "replica", "name", Kind::Text),
];

impl Settings {
    /// Reads the file, if one is given, and the environment.
    ///
    /// # Errors
    /// A sentence that names the file or the variable.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let text = match file {
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("reading the settings in {}", path.display()))?,
            None => String::new(),
        };
        Self::from_text(&text, environment_variable)
    }

    /// Settings from the text of a file and a source of environment variables.
    ///
    /// # Errors
    /// A sentence that names the line or the variable.
    pub fn from_text(
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut settings: toml::Table = text.parse().context("the settings are not TOML")?;
        for (name, table, field, kind) in VARIABLES {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { continue };
            let value = match kind {
                Kind::Text => toml::Value::String(text),
                Kind::Number => toml::Value::Integer(
                    text.parse().with_context(|| format!("{name} must be a whole number"))?,
                ),
                Kind::Switch => toml::Value::Boolean(
                    text.parse().with_context(|| format!("{name} must be true or false"))?,
                ),
            };
            let entry = settings
                .entry((*table).to_owned())
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let toml::Value::Table(entry) = entry else {
                anyhow::bail!("`{table}` must be a table in the settings");
            };
            entry.insert((*field).to_owned(), value);
        }
        Ok(settings.try_into()?)
    }

    /// Heavy requests at one time for the whole installation.
    pub fn installation_cap(&self) -> u32 {
        self.limits.installation_cap.unwrap_or_else(|| (self.database.main_pool / 4).max(1))
    }

    /// How long after its time bound a permit that nobody released is free again.
    pub fn margin(&self) -> Duration {
        Duration::from_millis(self.limits.margin_ms)
    }

    /// The name shown for this replica.
    pub fn replica_name(&self) -> String {
        self.replica.name.clone().unwrap_or_else(|| self.http.listen.to_string())
    }
}

#[expect(clippy::disallowed_methods, reason = "settings are read here and nowhere else")]
fn environment_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The password that `studio try-limit` signs in with, from `STUDIO_TRY_PASSWORD`.
pub fn try_password() -> Option<String> {
    environment_variable("STUDIO_TRY_PASSWORD")
}

#[cfg(test)]
mod tests {
    use super::{Settings, VARIABLES};

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn without_anything_the_defaults_hold() {
        let settings = Settings::from_text("", nothing).unwrap();
        assert_eq!(settings.database.main_pool, 32);
        assert_eq!(settings.installation_cap(), 8);
        assert_eq!(settings.margin().as_secs(), 30);
        assert_eq!(settings.limits.audit_export_rows, 1_000_000);
    }

    #[test]
    fn the_installation_cap_is_a_quarter_of_the_pool_and_at_least_one() {
        for (pool, cap) in [(1, 1), (3, 1), (4, 1), (8, 2), (33, 8)] {
            let text = format!("[database]\nmain_pool = {pool}");
            assert_eq!(Settings::from_text(&text, nothing).unwrap().installation_cap(), cap);
        }
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let text = "[database]\nurl = 'file'\nmain_pool = 5\n[replica]\nname = 'file'";
        let settings = Settings::from_text(text, |name| match name {
            "STUDIO_DATABASE_URL" => Some("environment".to_owned()),
            "STUDIO_DATABASE_MAIN_POOL" => Some("7".to_owned()),
            // Empty is as good as not set.
            "STUDIO_REPLICA_NAME" => Some(String::new()),
            _ => None,
        })
        .unwrap();
        assert_eq!(settings.database.url, "environment");
        assert_eq!(settings.database.main_pool, 7);
        assert_eq!(settings.replica.name.as_deref(), Some("file"));
    }

    #[test]
    fn every_variable_sets_a_field_that_exists() {
        for (wanted, ..) in VARIABLES {
            let value = match *wanted {
                "STUDIO_HTTP_LISTEN" => "127.0.0.1:1",
                "STUDIO_HTTP_TRUSTED_PROXIES" => "127.0.0.1",
                "STUDIO_CONSOLE_ACCEPT_AST_CHECK_ALONE" => "true",
                _ => "1",
            };
            let set = |name: &str| (name == *wanted).then(|| value.to_owned());
            Settings::from_text("", set).unwrap_or_else(|error| panic!("{wanted}: {error:#}"));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| format!("{:#}", Settings::from_text(text, nothing).unwrap_err());
        assert!(wrong("[database]\npool = 3").contains("unknown field `pool`"));
        assert!(wrong("[http").contains("not TOML"));
        let set = |name: &str| (name == "STUDIO_DATABASE_MAIN_POOL").then(|| "many".to_owned());
        let error = format!("{:#}", Settings::from_text("", set).unwrap_err());
        assert!(error.contains("STUDIO_DATABASE_MAIN_POOL must be a whole number"), "{error}");
    }
}
