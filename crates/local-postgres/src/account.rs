//! The account that the server runs under: PostgreSQL refuses to run as root.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::error::{Doing, LocalPostgresError};

/// Who runs the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    /// The caller's own account.
    Own,
    /// Another account, which root hands the server to.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// The account for the data in `data`: its owner when it exists, else `postgres` or `nobody`.
    pub(crate) fn for_data(data: &Path) -> Result<Self, LocalPostgresError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        // Data made under one account stays with it, whichever accounts were added since.
        if let Ok(metadata) = fs::metadata(data)
            && metadata.uid() != 0
        {
            return Ok(Self::Other { uid: metadata.uid(), gid: metadata.gid() });
        }
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| Some(Self::Other { uid: id("-u", name)?, gid: id("-g", name)? }))
            .ok_or(LocalPostgresError::NoAccount)
    }

    /// A command of this account, in a neutral environment and working folder.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("PG")
                || name_text.starts_with("LC_")
                || name_text == "LANGUAGE"
            {
                command.env_remove(&name);
            }
        }
        // English messages, which this crate reads in one place, and no surprise in sorting.
        command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
        if let Self::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Runs a PostgreSQL tool to its end; it is ended when the future is dropped.
    pub(crate) async fn run<I, S>(
        self,
        tool: &'static str,
        program: &Path,
        arguments: I,
    ) -> Result<Output, LocalPostgresError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command(program);
        command.args(arguments);
        let output = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .output()
            .await
            .doing("cannot run", program)?;
        if output.status.success() {
            return Ok(output);
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Err(LocalPostgresError::Tool { tool, output: text.trim().to_owned() })
    }

    /// Gives a file or folder to this account.
    pub(crate) fn give(self, path: &Path) -> Result<(), LocalPostgresError> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid } => {
                chown(path, Some(uid), Some(gid)).doing("cannot give away", path)
            }
        }
    }

    /// Checks that this account can enter `folder`, and names the outermost closed one if not.
    pub(crate) fn check_reach(self, folder: &Path) -> Result<(), LocalPostgresError> {
        let Self::Other { uid, gid } = self else { return Ok(()) };
        if self.can_enter(folder)? {
            return Ok(());
        }
        let mut closed = folder;
        for ancestor in folder.ancestors().skip(1) {
            if self.can_enter(ancestor)? {
                break;
            }
            closed = ancestor;
        }
        Err(LocalPostgresError::NotTraversable {
            folder: closed.to_owned(),
            account: format!("{uid}:{gid}"),
        })
    }

    fn can_enter(self, folder: &Path) -> Result<bool, LocalPostgresError> {
        let shell = Path::new("/bin/sh");
        let status = self
            .command(shell)
            .args(["-c", "cd -- \"$1\"", "sh"])
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .doing("cannot run", shell)?;
        Ok(status.success())
    }
}

/// Asks the system, not `/etc/passwd`: accounts may come from a directory service.
fn id(flag: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, name]).stderr(Stdio::null()).output().ok()?;
    let number = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    (output.status.success() && number != 0).then_some(number)
}
