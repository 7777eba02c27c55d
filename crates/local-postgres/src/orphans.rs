//! What is left of a server whose first process was killed.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::{Doing, LocalPostgresError};
use crate::folder::Folder;

const STOP_BOUND: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Idle processes of a server notice its death at once, and end by themselves.
const BY_THEMSELVES: Duration = Duration::from_secs(2);

/// Stops a server that an ended process left running on this folder's data, and removes its
/// lock file when another process has got its id. The folder's lock says that no living
/// process wants it.
pub(crate) async fn settle(
    folder: &Folder,
    binaries: &Binaries,
    account: Account,
) -> Result<(), LocalPostgresError> {
    let data = folder.data();
    let lock_file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&lock_file) else { return Ok(()) };
    let pid: Option<u32> = text.lines().next().and_then(|line| line.trim().parse().ok());
    let stop = [
        "stop".as_ref(),
        "-D".as_ref(),
        data.as_os_str(),
        "-m".as_ref(),
        "fast".as_ref(),
        "-w".as_ref(),
        "-t".as_ref(),
        "60".as_ref(),
    ];
    let pg_ctl = binaries.tool("pg_ctl");
    let Some(pid) = pid else { return Ok(()) };
    if !Path::new("/proc/self/cwd").exists() {
        // Without /proc the tool decides; it fails when no such server runs.
        drop(account.run("pg_ctl", &pg_ctl, stop).await);
        return Ok(());
    }
    if works_in(pid, &data) {
        match account.run("pg_ctl", &pg_ctl, stop).await {
            Ok(_) => return Ok(()),
            // Its guard may have stopped it: the lock file goes first, the process a moment later.
            Err(error) if lock_file.exists() && works_in(pid, &data) => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    end(&data, Instant::now() + STOP_BOUND).await?;
    // The server takes the lock file for its own matter, except when the id lives on as
    // another process: that would keep it from starting for as long as that one runs.
    if Path::new("/proc").join(pid.to_string()).exists() && lock_file.exists() {
        fs::remove_file(&lock_file).doing("cannot remove", &lock_file)?;
    }
    Ok(())
}

/// Waits until no process of a server works in `data`. Those that are too busy to notice the
/// death of their server are told to quit: they can commit nothing that a client still waits
/// for in vain, for the write-ahead log decides at the next start.
pub(crate) async fn end(data: &Path, deadline: Instant) -> Result<(), LocalPostgresError> {
    let begun = Instant::now();
    let mut told = Vec::new();
    loop {
        let left = servers_in(data);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LocalPostgresError::DidNotStop {
                folder: data.to_owned(),
                seconds: begun.elapsed().as_secs(),
            });
        }
        if begun.elapsed() > BY_THEMSELVES {
            for pid in left {
                if !told.contains(&pid) {
                    tracing::warn!(pid, "ending a session that outlived its server");
                    // It may have ended by now, which is as well.
                    let _ = kill_process(pid_of(pid)?, Signal::QUIT);
                    told.push(pid);
                }
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// All processes of a server work in its data folder.
pub(crate) fn works_in(pid: u32, data: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder == data)
}

/// The servers' processes in `data`; somebody's shell that was opened there is none.
fn servers_in(data: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .filter(|pid| works_in(*pid, data) && is_server(*pid))
        .collect()
}

fn is_server(pid: u32) -> bool {
    // The kernel adds " (deleted)" when the package was upgraded meanwhile.
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        name == "postgres" || name == "postgres (deleted)"
    })
}

fn pid_of(pid: u32) -> Result<Pid, LocalPostgresError> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| LocalPostgresError::Tool {
        tool: "/proc",
        output: format!("{pid} is no process id"),
    })
}
