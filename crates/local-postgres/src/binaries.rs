//! Finds an installed PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LocalPostgresError;

/// The oldest major version that is used.
const OLDEST: u32 = 15;

/// Folders with one sub-folder a version, and what lies below it.
const DISTRIBUTIONS: [(&str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr/lib", "postgresql", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// A folder with `postgres`, `initdb` and the other tools of one version.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    folder: PathBuf,
    major: u32,
}

impl Binaries {
    /// The first that suits, of `PATH`, `pg_config --bindir` and the distributions' folders
    /// (newest first). Existing data only suits the major version that wrote it.
    pub(crate) fn find(major: Option<u32>) -> Result<Self, LocalPostgresError> {
        let mut looked_at = Vec::new();
        for folder in candidates() {
            let found = Self::at(&folder);
            match &found {
                Some(found) if found.suit(major) => return Ok(found.clone()),
                Some(other) => {
                    looked_at.push(format!("{} (version {})", folder.display(), other.major));
                }
                None => looked_at.push(folder.display().to_string()),
            }
        }
        for (parent, prefix, below) in DISTRIBUTIONS {
            looked_at.push(format!("{parent}/{prefix}*/{below}"));
        }
        Err(LocalPostgresError::NoBinaries {
            wanted: major.map_or_else(
                || format!("{OLDEST} or later"),
                |major| format!("of version {major}, which wrote the existing data,"),
            ),
            looked_at: looked_at.join(", "),
            download: String::new(),
        })
    }

    /// Whether they suit data of `major`, or new data.
    pub(crate) fn suit(&self, major: Option<u32>) -> bool {
        major.map_or(self.major >= OLDEST, |major| self.major == major)
    }

    /// The folder that holds them.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The binaries in `folder`, if the needed ones are all there.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        let all = ["postgres", "initdb", "pg_ctl", "pg_basebackup"]
            .iter()
            .all(|name| folder.join(name).is_file());
        if !all {
            return None;
        }
        let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let major = major_of(&String::from_utf8_lossy(&output.stdout))?;
        // Some distributions link the tools into a common folder; the server looks for its
        // own files next to the real one.
        let folder = fs::canonicalize(folder).ok()?;
        Some(Self { folder, major })
    }

    pub(crate) fn tool(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// `postgres (PostgreSQL) 15.14 (Debian ...)` and `postgres (PostgreSQL) 18beta1` alike.
fn major_of(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL) ")?.1;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn candidates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    folders.retain(|folder| folder.join("postgres").is_file());
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output()
        && output.status.success()
    {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let mut distributed: Vec<(u32, PathBuf)> = Vec::new();
    for (parent, prefix, below) in DISTRIBUTIONS {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_string_lossy();
            let version = version.strip_prefix(prefix).unwrap_or_default();
            let digits = version.split('.').next().unwrap_or_default();
            if let Ok(version) = digits.parse() {
                distributed.push((version, entry.path().join(below)));
            }
        }
    }
    distributed.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    folders.extend(distributed.into_iter().map(|(_, folder)| folder));
    folders.extend(["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    folders
}

#[cfg(test)]
mod tests {
    use super::major_of;

    #[test]
    fn the_major_version_is_read_from_what_the_server_prints() {
        assert_eq!(major_of("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some(15));
        assert_eq!(major_of("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major_of("something else 15"), None);
    }
}
