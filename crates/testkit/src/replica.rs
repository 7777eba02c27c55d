//! Processes under test: started, watched, paused and killed.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::{guard::KillGuard, wait::LOOK_EVERY, wait_until};

/// How long [`ReplicaProcess::wait_for_line`] and [`ReplicaProcess::wait`] wait at most.
const PATIENCE: Duration = Duration::from_mins(1);

/// A process of its own, such as one replica of a service, whose output is kept line by line.
///
/// It leads a process group. Dropping it kills the group with SIGKILL, and a guard process does so
/// when the test process itself is gone. Nothing here belongs to a runtime.
pub struct ReplicaProcess {
    name: String,
    pid: Pid,
    /// Reaped at the drop only. Until then the process id is not given to another process, so
    /// that signals, and the guard's too, never reach a stranger.
    child: Child,
    guard: Option<KillGuard>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl ReplicaProcess {
    /// Starts `command` with its standard output and error captured and its input empty.
    ///
    /// # Panics
    /// When the program cannot be started.
    pub fn start(mut command: Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let guard = Some(KillGuard::over(child.id()));
        let lines = Arc::default();
        keep_lines(child.stdout.take(), &lines);
        keep_lines(child.stderr.take(), &lines);
        let pid = Pid::from_child(&child);
        Self { name, pid, child, guard, lines }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Every line written so far to standard output and standard error, without line ends.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines).clone()
    }

    /// Waits for a line that `wanted` accepts, also among those already written, and returns it.
    ///
    /// # Panics
    /// When the process has ended without that line or a minute has passed; the output is shown.
    pub async fn wait_for_line(&self, mut wanted: impl FnMut(&str) -> bool) -> String {
        let mut read = 0;
        let mut ended_before = false;
        let wait = async {
            loop {
                let fresh = lock(&self.lines).get(read..).map(<[String]>::to_vec);
                for line in fresh.unwrap_or_default() {
                    read += 1;
                    if wanted(&line) {
                        return Ok(line);
                    }
                }
                // The threads that read the pipes may be a moment behind the end of the process.
                let pipes_closed = Arc::strong_count(&self.lines) == 1;
                if ended_before && pipes_closed {
                    return Err("ended without the line");
                }
                ended_before = self.ended().is_some() && pipes_closed;
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await.unwrap_or(Err("did not write the line")) {
            Ok(line) => line,
            Err(how) => panic!("{} {how}; its output:\n{}", self.name, self.lines().join("\n")),
        }
    }

    /// The exit status if the process has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(WaitId::Pid(self.pid), look).expect("a child can be waited for")?;
        // As in wait(2): the signal in the low bits, the exit code above.
        let status = ended
            .terminating_signal()
            .or_else(|| ended.exit_status().map(|code| code << 8))
            .expect("it exited or was killed");
        Some(ExitStatus::from_raw(status))
    }

    /// SIGKILL: the process gets no chance to release anything.
    pub fn kill_9(&self) {
        self.signal(Signal::KILL);
    }

    /// SIGSTOP: the process stands still, its sockets stay open. Returns once it stands still.
    ///
    /// # Panics
    /// When the process does not come to a stop within a minute.
    pub async fn pause(&self) {
        self.signal(Signal::STOP);
        wait_until("the process to stand still", PATIENCE, || {
            let seen = self.ended().is_some() || self.is_stopped();
            async move { seen }
        })
        .await;
    }

    /// SIGCONT: a paused process goes on where it stood.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM: the process is asked to shut down in its own way.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for the process to end.
    ///
    /// # Panics
    /// When it has not ended after a minute.
    pub async fn wait(&self) -> ExitStatus {
        wait_until(&format!("{} to end", self.name), PATIENCE, || {
            let ended = self.ended();
            async move { ended }
        })
        .await
    }

    /// Whether every thread has stopped, by the state letter in the process's stat file.
    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()));
        // The program's name is in parentheses and may itself hold spaces and parentheses.
        stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("a child can be signalled");
    }
}

impl Drop for ReplicaProcess {
    fn drop(&mut self) {
        // The whole group, because a wrapper script may have started the program proper.
        kill_process_group(self.pid, Signal::KILL).ok();
        drop(self.guard.take());
        self.child.wait().ok();
    }
}

impl fmt::Debug for ReplicaProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaProcess")
            .field("name", &self.name)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// Reads a pipe to its end on a thread: a full pipe would block the process under test.
fn keep_lines<R: Read + Send + 'static>(pipe: Option<R>, lines: &Arc<Mutex<Vec<String>>>) {
    let pipe = pipe.expect("the pipe was asked for");
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            lock(&lines).push(text);
        }
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
