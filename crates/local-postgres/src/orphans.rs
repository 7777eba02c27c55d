//! What is left of a server whose first process was killed.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::LocalPostgresError;

const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Idle processes of a server notice its death at once, and end by themselves.
const BY_THEMSELVES: Duration = Duration::from_secs(2);

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
