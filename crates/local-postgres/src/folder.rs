//! The folder that a cluster owns.
//!
//! `local-postgres` marks it (and is locked while in use), `data` is PostgreSQL's own,
//! `password` and `postgres.log` are what they say. The folder can be entered by anyone, for
//! the server's account has to; everything in it is closed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::Rng as _;
use rand::distr::Alphanumeric;

use crate::account::Account;
use crate::error::{Doing, LocalPostgresError};

const MARKER: &str = "local-postgres";
const MARKER_TEXT: &str =
    "This folder holds a private PostgreSQL cluster made by local-postgres.\n";

/// How long a folder in use is asked for.
const LOCK_BOUND: Duration = Duration::from_secs(2);

/// A log larger than this is set aside at the next start, in bytes.
const LOG_KEPT: u64 = 32 << 20;

/// A folder that is ours, locked against other living processes.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held for its lock, which ends with the process however that ends.
    _marker: File,
}

impl Folder {
    /// Takes `path`: creates it, or finds that it is empty or ours. A foreign one is untouched.
    pub(crate) async fn take(path: &Path) -> Result<Self, LocalPostgresError> {
        fs::create_dir_all(path).doing("cannot create", path)?;
        let path = &fs::canonicalize(path).doing("cannot resolve", path)?;
        let marker_path = path.join(MARKER);
        let ours = match fs::read_to_string(&marker_path) {
            // Empty: a first start that was killed after it created the marker.
            Ok(text) => text == MARKER_TEXT || (text.is_empty() && entries(path)? == 1),
            Err(error) => error.kind() == io::ErrorKind::NotFound && entries(path)? == 0,
        };
        if !ours {
            return Err(LocalPostgresError::ForeignFolder(path.clone()));
        }
        let mut marker = OpenOptions::new()
            .append(true)
            .read(true)
            .create(true)
            .mode(0o600)
            .open(&marker_path)
            .doing("cannot open", &marker_path)?;
        // A child that another thread is about to start holds on to a copy of a lock that was
        // given up here, until it becomes its program.
        let deadline = Instant::now() + LOCK_BOUND;
        loop {
            match marker.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LocalPostgresError::InUse(path.clone()));
                }
                Err(TryLockError::Error(source)) => {
                    return Err(source).doing("cannot lock", &marker_path);
                }
            }
        }
        if marker.metadata().doing("cannot read", &marker_path)?.len() == 0 {
            marker.write_all(MARKER_TEXT.as_bytes()).doing("cannot write", &marker_path)?;
        }
        fs::set_permissions(path, Permissions::from_mode(0o711)).doing("cannot open up", path)?;
        let folder = Self { path: path.clone(), _marker: marker };
        folder.remove_unfinished()?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("postgres.log")
    }

    pub(crate) fn password_path(&self) -> PathBuf {
        self.path.join("password")
    }

    fn socket_note(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The major version that wrote the data; none when there is no data yet.
    pub(crate) fn data_version(&self) -> Result<Option<u32>, LocalPostgresError> {
        let path = self.data().join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).doing("cannot read", &path),
        }
    }

    /// An empty folder for data in the making. It becomes `data` when complete, so that a kill
    /// in between leaves no half of a cluster behind.
    pub(crate) fn unfinished_data(&self, account: Account) -> Result<PathBuf, LocalPostgresError> {
        let path = self.path.join(format!("unfinished-{}", random_text(8)));
        DirBuilder::new().mode(0o700).create(&path).doing("cannot create", &path)?;
        account.give(&path)?;
        Ok(path)
    }

    pub(crate) fn finish_data(&self, unfinished: &Path) -> Result<(), LocalPostgresError> {
        fs::rename(unfinished, self.data()).doing("cannot rename", unfinished)
    }

    fn remove_unfinished(&self) -> Result<(), LocalPostgresError> {
        for entry in fs::read_dir(&self.path).doing("cannot list", &self.path)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("unfinished-") {
                // An initdb whose parent was killed may still be writing there: next time then.
                drop(fs::remove_dir_all(entry.path()));
            }
        }
        Ok(())
    }

    /// The superuser's password, generated the first time.
    pub(crate) fn password(&self, account: Account) -> Result<String, LocalPostgresError> {
        let path = self.password_path();
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).doing("cannot read", &path),
        }
        let password = random_text(32);
        self.keep_password(&password, account)?;
        Ok(password)
    }

    pub(crate) fn keep_password(
        &self,
        password: &str,
        account: Account,
    ) -> Result<(), LocalPostgresError> {
        write_closed(&self.password_path(), &format!("{password}\n"), account)
    }

    /// A fresh socket folder outside of this one: a socket's path is limited to 107 bytes.
    pub(crate) fn socket_folder(&self, account: Account) -> Result<Sockets, LocalPostgresError> {
        self.remove_old_sockets();
        let temporary = std::env::temp_dir();
        let short = temporary.as_os_str().len() <= 60;
        let parent = if short { temporary } else { PathBuf::from("/tmp") };
        let folder = tempfile::Builder::new()
            .prefix("local-postgres-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .doing("cannot create a socket folder in", &parent)?;
        account.give(folder.path())?;
        account.check_reach(folder.path())?;
        let note = self.socket_note();
        fs::write(&note, folder.path().to_string_lossy().as_bytes())
            .doing("cannot write", &note)?;
        Ok(Sockets { folder, note })
    }

    /// What a killed process left behind.
    fn remove_old_sockets(&self) {
        let Ok(text) = fs::read_to_string(self.socket_note()) else { return };
        let old = Path::new(text.trim());
        let ours = old
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("local-postgres-"));
        if !ours {
            return;
        }
        for entry in fs::read_dir(old).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(".s.PGSQL.") {
                drop(fs::remove_file(entry.path()));
            }
        }
        // Only when empty: it may hold something that is not ours.
        drop(fs::remove_dir(old));
    }

    /// The log to append to, and how long it is now.
    pub(crate) fn open_log(&self) -> Result<(File, u64), LocalPostgresError> {
        let path = self.log();
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LOG_KEPT) {
            fs::rename(&path, self.path.join("postgres.log.1")).doing("cannot rename", &path)?;
        }
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .doing("cannot open", &path)?;
        let length = log.metadata().doing("cannot read", &path)?.len();
        Ok((log, length))
    }

    /// The last lines of what was logged after `from`, in bytes.
    pub(crate) fn log_since(&self, from: u64) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut log) = File::open(self.log())
            && log.seek(SeekFrom::Start(from)).is_ok()
        {
            drop(log.read_to_end(&mut bytes));
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let kept = lines.len().saturating_sub(20);
        lines.get(kept..).unwrap_or_default().join("\n")
    }
}

/// The folder of a server's Unix socket; removed at the end.
#[derive(Debug)]
pub(crate) struct Sockets {
    folder: tempfile::TempDir,
    note: PathBuf,
}

impl Sockets {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.note));
    }
}

/// Writes a file that only `account` (and root) can read, in one step.
pub(crate) fn write_closed(
    path: &Path,
    text: &str,
    account: Account,
) -> Result<(), LocalPostgresError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", random_text(8)));
    let new = PathBuf::from(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .doing("cannot create", &new)?;
    file.write_all(text.as_bytes()).doing("cannot write", &new)?;
    account.give(&new)?;
    fs::rename(&new, path).doing("cannot rename", &new)
}

fn entries(folder: &Path) -> Result<usize, LocalPostgresError> {
    Ok(fs::read_dir(folder).doing("cannot list", folder)?.count())
}

fn random_text(length: usize) -> String {
    rand::rng().sample_iter(Alphanumeric).take(length).map(char::from).collect()
}
