//! The console's login roles: what the privileged set-up makes of them, and whether it holds.
//!
//! A read-only transaction still allows much: large objects, notifications, advisory locks, other
//! settings, SQL inside a text (`query_to_xml`). The set-up takes these from everybody (they are
//! granted to PUBLIC, and a single role cannot be denied them) and gives the role that serves back
//! what it may need. Where the owner of the database may not do that, [`verify`] says so and the
//! console stays off.

mod set_up;
mod verify;

pub use set_up::set_up;
pub use verify::{Finding, verify};

use crate::platform::access::Role;
use crate::settings::Settings;

/// Functions of `pg_catalog` that write, wait, signal, lock, read other sessions, or run SQL that
/// no check has seen. A regular expression of PostgreSQL over the names.
const DANGEROUS: &str = "^(lo_.*|loread|lowrite|pg_notify|pg_(try_)?advisory_.*|pg_sleep.*|\
     pg_(terminate|cancel)_backend|pg_log_backend_memory_contexts|set_config|nextval|setval|\
     (query|table|cursor|schema|database)_to_xml.*|ts_stat|ts_rewrite|pg_export_snapshot|\
     pg_(current_xact_id|logical_emit_message|logical_slot_.*|switch_wal|create_restore_point)|\
     txid_current|pg_(create|copy|drop)_.*slot|pg_replication_.*|pg_stat_(reset.*|clear_snapshot|force_next_flush)|\
     pg_stat_get_(activity|backend_activity)|pg_(read|ls|stat)_(binary_)?(file|dir|.*dir).*|pg_stat_file|\
     pg_(reload_conf|rotate_logfile.*|promote|wal_replay_.*|backup_.*|start_backup|stop_backup)|\
     brin_(de)?summarize.*|gin_clean_pending_list|pg_import_system_collations|binary_upgrade_.*|\
     pg_extension_config_dump|pg_nextoid|currtid2)$";

/// The login role of one of Studio's roles.
#[derive(Debug, Clone)]
pub struct ConsoleRole {
    pub role: Role,
    /// The login role's name on the server.
    pub login: String,
    pub password: Option<String>,
}

/// The three login roles that the settings name, or none when the console has no addresses.
///
/// # Errors
/// When an address is not one, or names no role.
pub fn from_settings(settings: &Settings) -> anyhow::Result<Vec<ConsoleRole>> {
    Role::ALL
        .into_iter()
        .filter_map(|role| super::address(settings, role).map(|url| (role, url)))
        .map(|(role, url)| {
            let config: tokio_postgres::Config = url.parse()?;
            let login = config
                .get_user()
                .map_or_else(|| format!("studio_console_{}", role.name()), ToOwned::to_owned);
            let password =
                config.get_password().map(|bytes| String::from_utf8(bytes.to_vec())).transpose()?;
            Ok(ConsoleRole { role, login, password })
        })
        .collect()
}
