//! What the demonstration remembers between runs: its passwords, and whether its data has been written.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::platform::access::Role;
use crate::platform::account;

/// The demonstration's accounts.
const ACCOUNTS: [(&str, Role); 3] =
    [("ada", Role::Administrator), ("otto", Role::Operator), ("vera", Role::Viewer)];

const FILE: &str = "demo.json";

/// One of the demonstration's accounts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct Account {
    pub(in crate::cli) name: String,
    pub(in crate::cli) role: Role,
    pub(in crate::cli) password: String,
}

/// The state, in a file that only its owner reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct State {
    pub(in crate::cli) accounts: Vec<Account>,
    /// Passwords of the database's roles: the one that serves, and the console's in the order of the roles.
    pub(in crate::cli) app_password: String,
    pub(in crate::cli) console_passwords: [String; 3],
    pub(in crate::cli) is_seeded: bool,
    /// The superuser's address of the database, as of the last start.
    pub(in crate::cli) database: String,
    /// The replicas' addresses.
    pub(in crate::cli) replicas: Vec<String>,
}

impl State {
    /// The state in the folder, or a new one.
    pub(in crate::cli) fn load_or_new(folder: &Path) -> anyhow::Result<Self> {
        if folder.join(FILE).exists() { Self::load(folder) } else { Ok(Self::new()) }
    }

    /// The state in the folder.
    pub(in crate::cli) fn load(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("reading {}: is `studio demo run` running?", path.display())
        })?;
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// Writes it, whole or not at all.
    pub(in crate::cli) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let (path, new) = (folder.join(FILE), folder.join("demo.json.new"));
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .with_context(|| format!("writing {}", new.display()))?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path).with_context(|| format!("writing {}", path.display()))
    }

    /// New passwords, nothing written yet.
    pub(super) fn new() -> Self {
        let accounts = ACCOUNTS
            .iter()
            .map(|(name, role)| Account {
                name: (*name).to_owned(),
                role: *role,
                password: account::generated_password(),
            })
            .collect();
        Self {
            accounts,
            app_password: account::generated_password(),
            console_passwords: std::array::from_fn(|_| account::generated_password()),
            is_seeded: false,
            database: String::new(),
            replicas: Vec::new(),
        }
    }
}
