//! Temporary folders that are swept by a later test process when their owner was killed.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::Write as _,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Once,
};

use tempfile::TempDir;

const PREFIX: &str = "testkit-";
const MARKER: &str = "testkit";
const MARKER_TEXT: &str = "A folder of a test process; locked as long as that process lives.\n";

/// A folder that every account can enter: the server does not run as root. Removed at the drop.
#[derive(Debug)]
pub(crate) struct MarkedFolder {
    folder: TempDir,
    /// Held for its lock, which ends with the process however that ends.
    _marker: File,
}

impl MarkedFolder {
    /// A new folder. The first call of a process removes what ended processes left behind.
    pub(crate) fn create() -> Self {
        static SWEEP: Once = Once::new();
        let parent = parent();
        SWEEP.call_once(|| sweep(&parent));
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(&parent)
            .unwrap_or_else(|error| panic!("no folder in {}: {error}", parent.display()));
        let mut marker = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.path().join(MARKER))
            .expect("a marker in a new folder");
        marker.try_lock().expect("the lock of a new file");
        // Written once it is locked: a sweep takes a folder only when its marker is complete.
        marker.write_all(MARKER_TEXT.as_bytes()).expect("the marker is written");
        Self { folder, _marker: marker }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The first of the usual temporary folders that every account can reach.
fn parent() -> PathBuf {
    let is_reachable = |folder: &PathBuf| {
        folder.ancestors().all(|ancestor| {
            fs::metadata(ancestor).is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
        })
    };
    [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")]
        .into_iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .find(is_reachable)
        .expect("a temporary folder that every account can reach")
}

/// Removes the folders of test processes that are gone, and nothing else.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            sweep_one(&entry.path());
        }
    }
}

/// Leaves the folder alone unless it is provably an abandoned one. What cannot be removed now is
/// left for the next sweep.
fn sweep_one(folder: &Path) -> Option<()> {
    let metadata = fs::symlink_metadata(folder).ok()?;
    let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    let marker_path = folder.join(MARKER);
    if !is_own || fs::read_to_string(&marker_path).ok()? != MARKER_TEXT {
        return None;
    }
    // Held until the folder is gone: two sweeps at a time must not meet in it.
    let marker = File::open(&marker_path).ok()?;
    marker.try_lock().ok()?;
    let clusters = || fs::read_dir(folder).into_iter().flatten().flatten();
    // The guard of a killed process needs a moment to stop its server.
    if clusters().any(|cluster| server_lives(&cluster.path())) {
        return None;
    }
    for cluster in clusters().filter(|entry| entry.file_name() != MARKER) {
        remove_sockets(&cluster.path());
        if cluster.file_type().ok()?.is_dir() {
            fs::remove_dir_all(cluster.path()).ok()?;
        } else {
            fs::remove_file(cluster.path()).ok()?;
        }
    }
    // The marker goes last: a sweep that was killed half-way is finished by the next one.
    fs::remove_dir_all(folder).ok()
}

fn server_lives(cluster: &Path) -> bool {
    let noted = fs::read_to_string(cluster.join("data/postmaster.pid")).unwrap_or_default();
    let pid = noted.lines().next().and_then(|line| line.trim().parse().ok());
    pid.and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// `local-postgres` keeps a server's socket outside of its folder and notes where.
fn remove_sockets(cluster: &Path) -> Option<()> {
    let note = fs::read_to_string(cluster.join("socket")).ok()?;
    let sockets = Path::new(note.trim());
    if sockets.file_name()?.to_str()?.starts_with("local-postgres-") {
        for entry in fs::read_dir(sockets).ok()?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(".s.PGSQL.") {
                fs::remove_file(entry.path()).ok();
            }
        }
        // Only when empty: it may hold something that is not ours.
        fs::remove_dir(sockets).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_takes_abandoned_folders_and_leaves_all_others() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, marker: Option<&str>| {
            let folder = parent.path().join(name);
            fs::create_dir_all(folder.join("cluster/data")).unwrap();
            if let Some(text) = marker {
                fs::write(folder.join(MARKER), text).unwrap();
            }
            folder
        };
        let abandoned = make("testkit-a", Some(MARKER_TEXT));
        let in_use = make("testkit-b", Some(MARKER_TEXT));
        let lock = File::open(in_use.join(MARKER)).unwrap();
        lock.try_lock().unwrap();
        let unmarked = make("testkit-c", None);
        let foreign = make("testkit-d", Some("something else\n"));
        let other_name = make("other", Some(MARKER_TEXT));
        let still_stopping = make("testkit-e", Some(MARKER_TEXT));
        let pid = format!("{}\n", std::process::id());
        fs::write(still_stopping.join("cluster/data/postmaster.pid"), pid).unwrap();

        sweep(parent.path());

        assert!(!abandoned.exists());
        for kept in [in_use, unmarked, foreign, other_name, still_stopping] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }
}
