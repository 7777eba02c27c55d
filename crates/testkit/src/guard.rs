//! A guard that ends a child process when the test process is gone.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

/// A shell that blocks on a pipe held by this process. The pipe closes however this process ends
/// (`kill -9` included), and the shell then kills the child's process group.
#[derive(Debug)]
pub(crate) struct KillGuard {
    shell: Child,
}

impl KillGuard {
    /// Guards the process group led by `leader`.
    pub(crate) fn over(leader: u32) -> Self {
        let shell = Command::new("/bin/sh")
            .args([
                "-c",
                "read -r never; kill -s KILL -- \"-$1\"",
                "kill-guard",
                &leader.to_string(),
            ])
            .stdin(Stdio::piped())
            // An inherited stdout would keep a pipe such as `cargo test | tee` open.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C goes to the terminal's foreground group and must not end the guard first.
            .process_group(0)
            .spawn()
            .expect("/bin/sh starts as the kill guard");
        Self { shell }
    }
}

impl Drop for KillGuard {
    /// Ends the shell while the pipe is still open, so that it never fires.
    fn drop(&mut self) {
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}
