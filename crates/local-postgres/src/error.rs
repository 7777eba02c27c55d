//! What can go wrong with a private cluster, in words that say what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Why a private cluster could not be set up, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalPostgresError {
    /// No usable PostgreSQL is installed.
    #[error(
        "no PostgreSQL server {wanted} was found; looked at: {looked_at}. Install one, \
         e.g. `apt-get install postgresql` (Debian, Ubuntu), `dnf install postgresql-server` \
         (Fedora), `brew install postgresql@17` (macOS), or put its bin folder on PATH. {download}"
    )]
    NoBinaries {
        /// The version asked for, such as `15 or later`.
        wanted: String,
        /// The places looked at and what was found there.
        looked_at: String,
        /// Whether this build can download one, or why the download failed.
        download: String,
    },
    /// A setting that this crate decides, a name that is none, or a value of several lines.
    #[error("the setting `{0}` is decided by local-postgres, or is no setting of one line")]
    ReservedSetting(String),
    /// The folder holds something that this crate did not put there. Nothing was changed.
    #[error("{} is not empty and is not a local-postgres folder; nothing was changed", .0.display())]
    ForeignFolder(PathBuf),
    /// A living process is using the cluster of this folder.
    #[error("the cluster in {} is in use by another running process", .0.display())]
    InUse(PathBuf),
    /// The account that the server runs under cannot reach the folder.
    #[error(
        "the account {account} (the server refuses to run as root) cannot enter {}; make it \
         traversable (`chmod o+x`) or use another folder, such as `reachable_folder` names", .folder.display()
    )]
    NotTraversable {
        /// The outermost folder that is closed to the account.
        folder: PathBuf,
        /// User id and group id, as `uid:gid`.
        account: String,
    },
    /// Running as root, and there is no unprivileged account to hand the server to.
    #[error(
        "running as root, and neither an account `postgres` nor `nobody` exists for the server"
    )]
    NoAccount,
    /// Another process listens on the port that was asked for.
    #[error("port {0} of 127.0.0.1 is taken")]
    PortTaken(u16),
    /// No free port was found.
    #[error("no free port was found on 127.0.0.1")]
    NoPort,
    /// A PostgreSQL tool failed.
    #[error("{tool} failed: {output}")]
    Tool {
        /// Name of the tool, such as `initdb`.
        tool: &'static str,
        /// What it printed.
        output: String,
    },
    /// The server ended before it accepted connections.
    #[error("the server in {} did not start; the end of its log:\n{log}", .folder.display())]
    DidNotStart {
        /// The cluster's folder.
        folder: PathBuf,
        /// The last lines of the server's log.
        log: String,
    },
    /// The server neither accepted connections nor ended in time.
    #[error("the server in {} was not ready after {seconds} s; the end of its log:\n{log}", .folder.display())]
    NotReady {
        /// The cluster's folder.
        folder: PathBuf,
        /// How long it was waited for, in seconds.
        seconds: u64,
        /// The last lines of the server's log.
        log: String,
    },
    /// The server did not end in time after a stop was asked for; it is still shutting down.
    #[error("the server in {} did not stop within {seconds} s", .folder.display())]
    DidNotStop {
        /// The cluster's folder.
        folder: PathBuf,
        /// How long it was waited for, in seconds.
        seconds: u64,
    },
    /// The standby of this folder was promoted earlier, so it no longer follows anyone.
    #[error("{} holds a promoted standby, which cannot follow again; use a new folder", .0.display())]
    Promoted(PathBuf),
    /// A file or process operation failed.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// What was being done, such as `cannot create`.
        what: &'static str,
        /// The file or program it was done to.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// Puts the path and the deed to an I/O error.
pub(crate) trait Doing<T> {
    fn doing(self, what: &'static str, path: &Path) -> Result<T, LocalPostgresError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &'static str, path: &Path) -> Result<T, LocalPostgresError> {
        self.map_err(|source| LocalPostgresError::Io { what, path: path.to_owned(), source })
    }
}
