//! The server's configuration files.

use std::fmt::Write as _;
use std::path::Path;

use crate::error::LocalPostgresError;

/// Trust inside the socket's folder, which only the server's account and root can enter;
/// passwords wherever any local account could connect.
pub(crate) const HOST_BASED_ACCESS: &str = "\
local all         all              trust
local replication all              trust
host  all         all 127.0.0.1/32 scram-sha-256
host  replication all 127.0.0.1/32 scram-sha-256
";

const DEFAULTS: [(&str, &str); 14] = [
    ("listen_addresses", "127.0.0.1"),
    ("password_encryption", "scram-sha-256"),
    ("max_connections", "200"),
    ("shared_buffers", "128MB"),
    ("wal_level", "replica"),
    ("max_wal_senders", "10"),
    ("wal_keep_size", "256MB"),
    ("hot_standby", "on"),
    ("hot_standby_feedback", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("log_destination", "stderr"),
    ("log_line_prefix", "%m [%p] %q%u@%d "),
    ("logging_collector", "off"),
];

/// Settings on which it rests that nobody else gets in, and that this crate finds its server.
const RESERVED: [&str; 14] = [
    "port",
    "listen_addresses",
    "unix_socket_directories",
    "unix_socket_permissions",
    "unix_socket_group",
    "data_directory",
    "hba_file",
    "ident_file",
    "external_pid_file",
    "logging_collector",
    "primary_conninfo",
    "include",
    "include_dir",
    "include_if_exists",
];

/// Refuses the settings that this crate decides, and what would end up as another setting.
pub(crate) fn check(own: &[(String, String)]) -> Result<(), LocalPostgresError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let refused = own.iter().find(|(name, value)| {
        RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
            || !name.chars().all(plain)
            || value.contains(['\n', '\r', '\0'])
    });
    match refused {
        Some((name, _)) => Err(LocalPostgresError::ReservedSetting(name.clone())),
        None => Ok(()),
    }
}

/// `postgresql.conf`: the defaults, the caller's settings, and what this crate decides.
pub(crate) fn configuration(
    port: u16,
    socket_folder: &Path,
    own: &[(String, String)],
    primary: Option<&str>,
) -> String {
    let mut text = String::from("# Written by local-postgres at every start.\n");
    let mut line = |name: &str, value: &str| {
        // A backslash begins an escape in this file. Writing to a String cannot fail.
        let quoted = value.replace('\\', r"\\").replace('\'', "''");
        let _ = writeln!(text, "{name} = '{quoted}'");
    };
    for (name, value) in DEFAULTS {
        line(name, value);
    }
    for (name, value) in own {
        line(name, value);
    }
    line("port", &port.to_string());
    line("unix_socket_directories", &socket_folder.to_string_lossy());
    if let Some(primary) = primary {
        line("primary_conninfo", primary);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::configuration;

    #[test]
    fn a_caller_s_setting_comes_after_the_default_and_is_quoted() {
        let own = [("max_connections".to_owned(), "it's".to_owned())];
        let text = configuration(1, Path::new("/s"), &own, None);
        let default = text.find("max_connections = '200'").unwrap();
        let set = text.find("max_connections = 'it''s'").unwrap();
        assert!(default < set, "PostgreSQL takes the last of two lines");
    }
}
