//! A whole Studio: a private server with fsync on, the real migrations, the demo's events, and a replica.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use local_postgres::{Cluster, ClusterOptions, StopMode};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio_postgres::{Client, NoTls};

const DATABASE: &str = "studio";
const LIMITS_DATABASE: &str = "studio_limits";
/// The role that serves, and that psql measures as.
const ROLE: &str = "studio_app";

/// Who signs in: an administrator.
#[derive(Debug)]
pub struct Account {
    /// The account's name.
    pub name: &'static str,
    /// Its password.
    pub password: &'static str,
}

/// A Studio with a server of its own.
#[derive(Debug)]
pub struct Installation {
    cluster: Cluster,
    folder: tempfile::TempDir,
    program: PathBuf,
    /// How many audit events it began with.
    pub events: u64,
    /// Who signs in.
    pub account: Account,
}

impl Installation {
    /// Starts a server and lets Studio itself fill it with so many audit events.
    ///
    /// # Errors
    ///
    /// When a program that it needs cannot be run.
    pub async fn start(events: u64) -> Result<Self> {
        let program = program().await?;
        let folder = crate::server_folder()?;
        // Fewer checkpoints while the events are written; durable all the same.
        let options = ClusterOptions::new(folder.path().join("cluster"))
            .setting("fsync", "on")
            .setting("max_wal_size", "2GB");
        let cluster = Cluster::start(options).await?;
        let account = Account { name: "bench", password: "a password for the benchmark" };
        let installation = Self { cluster, folder, program, events, account };
        std::fs::write(installation.settings_path(), installation.settings())?;
        installation.run(&["migrate"], "").await?;
        let create = ["account", "create", "--role", "administrator", "--password-stdin"];
        let name = ["--name", installation.account.name];
        installation.run(&[&create[..], &name].concat(), installation.account.password).await?;
        if events > 0 {
            let events = events.to_string();
            installation.run(&["demo", "seed", "--no-accounts", "--events", &events], "").await?;
        }
        let admin = installation.client().await?;
        admin.batch_execute("analyze studio.audit_event; checkpoint").await?;
        Ok(installation)
    }

    /// Everybody comes through the same Unix socket. The caps of an export are above what there is.
    fn settings(&self) -> String {
        let address = |role: &str, database: &str| {
            let folder = self.cluster.socket_folder().display();
            let port = self.cluster.port();
            format!("host='{folder}' port={port} user={role} dbname={database}")
        };
        let (most_rows, most_bytes) = (self.events + 1_000_000, 64_u64 << 30);
        format!(
            "[http]\nlisten = \"127.0.0.1:0\"\n\
             [database]\nurl = \"{}\"\nlimits_url = \"{}\"\nmigration_url = \"{}\"\n\
             [limits]\naudit_export_rows = {most_rows}\naudit_export_bytes = {most_bytes}\n",
            address(ROLE, DATABASE),
            address(ROLE, LIMITS_DATABASE),
            address("postgres", DATABASE),
        )
    }

    fn settings_path(&self) -> PathBuf {
        self.folder.path().join("settings.toml")
    }

    fn studio(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(self.settings_path()).kill_on_drop(true);
        command
    }

    /// Runs a subcommand of Studio to its end.
    async fn run(&self, arguments: &[&str], input: &str) -> Result<()> {
        let mut command = self.studio();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().context("starting studio")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        let status = child.wait().await?;
        ensure!(status.success(), "studio {} ended with {status}", arguments.join(" "));
        Ok(())
    }

    /// Starts a replica and waits until it listens.
    ///
    /// # Errors
    ///
    /// When it ends before.
    pub async fn serve(&self) -> Result<Replica> {
        let mut command = self.studio();
        let log = std::fs::File::create(self.folder.path().join("replica.log"))?;
        command
            .args(["serve", "--until-input-ends"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().context("starting a replica")?;
        let alive = child.stdin.take();
        let output = child.stdout.take().context("a replica's output")?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.strip_prefix("Listening on ") {
                let address = address.to_owned();
                return Ok(Replica { child, alive, address });
            }
        }
        let log = std::fs::read_to_string(self.folder.path().join("replica.log"))?;
        bail!("the replica ended before it listened: {log}")
    }

    /// The limits' database, for the superuser.
    pub fn limits(&self) -> tokio_postgres::Config {
        self.cluster.config(LIMITS_DATABASE)
    }

    /// The superuser in Studio's database.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn client(&self) -> Result<Client> {
        let (client, connection) = self.cluster.config(DATABASE).connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// psql as the role that serves, over the socket that the replica uses too.
    pub fn psql(&self) -> Command {
        let mut command = Command::new("psql");
        command
            .args(["--no-psqlrc", "--quiet", "--dbname", DATABASE, "--username", ROLE])
            .arg("--host")
            .arg(self.cluster.socket_folder())
            .args(["--port", &self.cluster.port().to_string()])
            .kill_on_drop(true);
        command
    }

    /// One line: the server, and how much it holds.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn describe(&self) -> Result<String> {
        Ok(self.client().await?.query_one(include_str!("describe.sql"), &[]).await?.try_get(0)?)
    }

    /// Stops the server.
    ///
    /// # Errors
    ///
    /// When it does not stop.
    pub async fn stop(mut self) -> Result<()> {
        Ok(self.cluster.stop(StopMode::Fast).await?)
    }
}

/// A running replica. It ends when this process does: its input ends then.
#[derive(Debug)]
pub struct Replica {
    child: Child,
    alive: Option<ChildStdin>,
    /// Where it answers: `http://..`.
    pub address: String,
}

impl Replica {
    /// Its process.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn process(&self) -> Result<u32> {
        self.child.id().context("the replica has ended")
    }

    /// Stops it in good order.
    ///
    /// # Errors
    ///
    /// When it fails at that.
    pub async fn stop(mut self) -> Result<()> {
        self.alive.take();
        let status = self.child.wait().await?;
        ensure!(status.success(), "the replica ended with {status}");
        Ok(())
    }
}

/// Studio's program beside this one, built as this one was: never one of yesterday.
async fn program() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().context("the folder of this program")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--package", "studio", "--bin", "studio"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let status = cargo.status().await.context("running cargo")?;
    ensure!(status.success(), "building studio ended with {status}");
    let program = folder.join("studio");
    ensure!(program.exists(), "cargo built studio elsewhere than {}", folder.display());
    Ok(program)
}
