//! One running (or stopped) server with its folder: what a primary and a standby share.

use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::{Doing, LocalPostgresError};
use crate::folder::{Folder, Sockets, write_closed};
use crate::options::StopMode;
use crate::{orphans, port, settings};

pub(crate) const SUPERUSER: &str = "postgres";

const GUARDED: &str = include_str!("guarded.sh");

/// Recovery after a crash can take a while.
const START_BOUND: Duration = Duration::from_mins(2);
const STOP_BOUND: Duration = Duration::from_mins(1);
/// How long a drop blocks its thread at most, for a clean stop and then for a quick one.
const DROP_BOUNDS: [(StopMode, Duration); 2] =
    [(StopMode::Fast, Duration::from_secs(5)), (StopMode::Immediate, Duration::from_secs(3))];
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a server is started with.
pub(crate) struct Plan {
    pub(crate) folder: Folder,
    pub(crate) binaries: Binaries,
    pub(crate) account: Account,
    pub(crate) password: String,
    pub(crate) port: Option<u16>,
    pub(crate) settings: Vec<(String, String)>,
    /// A standby's way to its primary.
    pub(crate) primary: Option<String>,
}

/// Without the password and the settings, which may hold secrets: this ends up in logs.
impl fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("folder", &self.folder)
            .field("binaries", &self.binaries)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// What a primary and a standby share: how to reach the server, and where it keeps its files.
#[derive(Debug)]
pub struct Server {
    plan: Plan,
    port: u16,
    running: Option<Running>,
    // Last, for it goes after the server in it.
    sockets: Sockets,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Its end tells the guard to stop the server.
    guard: ChildStdin,
}

enum Attempt {
    Ready,
    Ended { log: String },
}

impl Server {
    pub(crate) async fn start(plan: Plan) -> Result<Self, LocalPostgresError> {
        let port = match plan.port {
            Some(port) if !port::is_free(port) => return Err(LocalPostgresError::PortTaken(port)),
            Some(port) => port,
            None => port::free()?,
        };
        let sockets = plan.folder.socket_folder(plan.account)?;
        let mut server = Self { plan, port, running: None, sockets };
        server.start_again().await?;
        Ok(server)
    }

    pub(crate) async fn start_again(&mut self) -> Result<(), LocalPostgresError> {
        if self.running.is_some() && self.answers().await? {
            return Ok(());
        }
        let deadline = Instant::now() + STOP_BOUND;
        loop {
            let log = match self.attempt().await? {
                Attempt::Ready => return Ok(()),
                Attempt::Ended { log } => log,
            };
            // Someone was faster with the port that looked free.
            if log.contains("could not bind") || log.contains("could not create any TCP/IP") {
                match self.plan.port {
                    Some(port) => return Err(LocalPostgresError::PortTaken(port)),
                    None => self.port = port::free()?,
                }
            // Sessions of a server that was killed outlive it: those at work do not notice.
            } else if log.contains("is still in use") {
                orphans::end(&self.plan.folder.data(), deadline).await?;
            } else {
                return Err(LocalPostgresError::DidNotStart {
                    folder: self.plan.folder.path().to_owned(),
                    log,
                });
            }
            if Instant::now() > deadline {
                return Err(LocalPostgresError::DidNotStart {
                    folder: self.plan.folder.path().to_owned(),
                    log,
                });
            }
            tokio::time::sleep(LOOK_AGAIN * 10).await;
        }
    }

    /// Whether the server answers; false once it has ended. A server that was just killed or is
    /// shutting down looks alive for a moment, so its answer counts, not its process.
    async fn answers(&mut self) -> Result<bool, LocalPostgresError> {
        let deadline = Instant::now() + STOP_BOUND;
        let config = self.config("postgres");
        while let Some(running) = &mut self.running {
            if running.child.try_wait().doing("cannot wait for", self.plan.folder.path())?.is_some()
            {
                self.ended();
                return Ok(false);
            }
            match config.connect(NoTls).await {
                Ok(_) => return Ok(true),
                Err(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                    return Ok(true);
                }
                Err(_) => {}
            }
            if Instant::now() > deadline {
                return Err(LocalPostgresError::DidNotStop {
                    folder: self.plan.folder.path().to_owned(),
                    seconds: STOP_BOUND.as_secs(),
                });
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(false)
    }

    async fn attempt(&mut self) -> Result<Attempt, LocalPostgresError> {
        let data = self.plan.folder.data();
        let configuration = settings::configuration(
            self.port,
            self.sockets.path(),
            &self.plan.settings,
            self.plan.primary.as_deref(),
        );
        let account = self.plan.account;
        write_closed(&data.join("postgresql.conf"), &configuration, account)?;
        write_closed(&data.join("pg_hba.conf"), settings::HOST_BASED_ACCESS, account)?;

        let (log, log_from) = self.plan.folder.open_log()?;
        let log_path = self.plan.folder.log();
        let shell = Path::new("/bin/sh");
        let mut child = account
            .command(shell)
            .args(["-c", GUARDED, "local-postgres"])
            .arg(self.plan.binaries.tool("postgres"))
            .arg(&data)
            .arg(self.sockets.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().doing("cannot open", &log_path)?)
            .stderr(log)
            // Away from the terminal's group: ^C is for the caller, who then stops the server.
            .process_group(0)
            .spawn()
            .doing("cannot run", shell)?;
        let guard = child.stdin.take().ok_or_else(|| LocalPostgresError::Tool {
            tool: "sh",
            output: "it has no input".to_owned(),
        })?;
        let pid = child.id();
        // Kept at once: when this future is dropped, the server's drop still stops it.
        let running = self.running.insert(Running { child, guard });

        let deadline = Instant::now() + START_BOUND;
        loop {
            if is_ready(&data, pid) {
                return Ok(Attempt::Ready);
            }
            if running.child.try_wait().doing("cannot wait for", shell)?.is_some() {
                self.ended();
                return Ok(Attempt::Ended { log: self.plan.folder.log_since(log_from) });
            }
            if Instant::now() > deadline {
                return Err(LocalPostgresError::NotReady {
                    folder: self.plan.folder.path().to_owned(),
                    seconds: START_BOUND.as_secs(),
                    log: self.plan.folder.log_since(log_from),
                });
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(crate) async fn stop(&mut self, mode: StopMode) -> Result<(), LocalPostgresError> {
        let Some(running) = &mut self.running else { return Ok(()) };
        running.signal(mode);
        let deadline = Instant::now() + STOP_BOUND;
        while running.child.try_wait().doing("cannot wait for", self.plan.folder.path())?.is_none()
        {
            if Instant::now() > deadline {
                return Err(LocalPostgresError::DidNotStop {
                    folder: self.plan.folder.path().to_owned(),
                    seconds: STOP_BOUND.as_secs(),
                });
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.ended();
        Ok(())
    }

    /// Dismisses the guard of a server that has ended, before its process id can be reused.
    fn ended(&mut self) {
        if let Some(mut running) = self.running.take() {
            // It fails when the guard is gone, and then there is nothing to dismiss.
            drop(std::io::Write::write_all(&mut running.guard, b"done\n"));
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The port, on 127.0.0.1 and in the socket's name. It outlasts a stop and start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the Unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.sockets.path()
    }

    /// The folder that this cluster owns.
    pub fn folder(&self) -> &Path {
        self.plan.folder.path()
    }

    /// The server's log.
    pub fn log_path(&self) -> PathBuf {
        self.plan.folder.log()
    }

    /// The process id of the server; none after a stop.
    pub fn postmaster_pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }
}

impl Running {
    fn signal(&self, mode: StopMode) {
        let signal = match mode {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        };
        // Not yet waited for, so the id is still its own; it may have ended, which is as well.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(running) = &mut self.running else { return };
        for (mode, bound) in DROP_BOUNDS {
            running.signal(mode);
            let deadline = Instant::now() + bound;
            while Instant::now() < deadline {
                if !matches!(running.child.try_wait(), Ok(None)) {
                    self.ended();
                    return;
                }
                #[expect(clippy::disallowed_methods, reason = "a drop cannot await")]
                std::thread::sleep(LOOK_AGAIN);
            }
        }
        tracing::warn!(folder = %self.plan.folder.path().display(), "the server is left to its guard");
    }
}

/// The server writes its state to the eighth line of its lock file.
fn is_ready(data: &Path, pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
    let mut lines = text.lines();
    lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid)
        && lines.nth(6).is_some_and(|line| line.trim() == "ready")
}
