//! One replica of the demonstration: a child process that ends when this process does, however it ends.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, ChildStdin, Command};

use crate::settings::Settings;

/// How long a replica may take until it is ready, and until it has stopped.
const READY: Duration = Duration::from_secs(30);
const STOPPED: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(50);

/// A running replica.
#[derive(Debug)]
pub(super) struct Replica {
    child: Child,
    /// Closed by the end of this process, which the replica takes as the word to stop.
    alive: Option<ChildStdin>,
    address: String,
    log: std::path::PathBuf,
}

impl Replica {
    /// Starts a replica on a port of 127.0.0.1 and waits until it is ready. Its log goes to the folder.
    pub(super) async fn start(
        settings: &Settings,
        folder: &Path,
        port: u16,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("replica-{port}.log"));
        let file =
            std::fs::File::create(&log).with_context(|| format!("writing {}", log.display()))?;
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--until-input-ends"])
            .env("STUDIO_HTTP_LISTEN", format!("127.0.0.1:{port}"))
            .env("STUDIO_REPLICA_NAME", format!("127.0.0.1:{port}"))
            .env("STUDIO_DATABASE_URL", &settings.database.url)
            .env("STUDIO_DATABASE_LIMITS_URL", &settings.database.limits_url)
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C in the terminal is for this process, which then stops its replicas in order.
            .process_group(0)
            .kill_on_drop(true);
        let console = &settings.console;
        for (name, url) in [
            ("STUDIO_CONSOLE_VIEWER_URL", &console.viewer_url),
            ("STUDIO_CONSOLE_OPERATOR_URL", &console.operator_url),
            ("STUDIO_CONSOLE_ADMINISTRATOR_URL", &console.administrator_url),
        ] {
            if let Some(url) = url {
                command.env(name, url);
            }
        }
        let mut child = command.spawn().context("starting a replica")?;
        let alive = child.stdin.take();
        let mut replica = Self { child, alive, address: format!("http://127.0.0.1:{port}"), log };
        replica.ready().await?;
        Ok(replica)
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let client = reqwest::Client::new();
        let url = format!("{}/readyz", self.address);
        let deadline = tokio::time::Instant::now() + READY;
        while tokio::time::Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default();
                anyhow::bail!("the replica on {} ended ({status}): {last}", self.address);
            }
            if let Ok(answer) = client.get(&url).send().await
                && answer.status().is_success()
            {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        anyhow::bail!("the replica on {} is not ready; see {}", self.address, self.log.display())
    }

    /// Waits until the replica has ended by itself.
    pub(super) async fn ended(&mut self) -> std::io::Result<std::process::ExitStatus> {
        self.child.wait().await
    }

    /// Asks the replica to drain and stop, and waits for it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.alive.take();
        match tokio::time::timeout(STOPPED, self.child.wait()).await {
            Ok(status) => {
                let status = status?;
                anyhow::ensure!(
                    status.success(),
                    "the replica on {} ended with {status}",
                    self.address
                );
                Ok(())
            }
            Err(_) => Ok(self.child.kill().await?),
        }
    }
}
