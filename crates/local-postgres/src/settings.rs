//! The server's configuration files.

use std::fmt::Write as _;
use std::path::Path;

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

/// `postgresql.conf`: the defaults, the caller's settings, and what this crate decides.
pub(crate) fn configuration(
    port: u16,
    socket_folder: &Path,
    own: &[(String, String)],
    primary: Option<&str>,
) -> String {
    let mut text = String::from("# Written by local-postgres at every start.\n");
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
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
