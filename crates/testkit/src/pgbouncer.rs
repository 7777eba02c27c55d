//! PgBouncer before a server, for what must work through a pooler in transaction mode.

use std::{
    fs::OpenOptions,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::{OpenOptionsExt as _, chown},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::sync::OnceCell;
use tokio_postgres::{Config, config::Host};

use crate::{
    CuttingProxy, NamedStatement, ReplicaProcess, address, folder::MarkedFolder, wait_until,
};

/// Where Debian puts it, which is not on the path of every account.
const PLACES: [&str; 3] = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];

/// Runs PgBouncer when root does, which it refuses to serve as.
const UNPRIVILEGED: &str = "nobody";

/// PgBouncer in transaction mode, on a free loopback port, with its most verbose log.
///
/// Every client is let in, and is on the server the user of the configuration given, whatever it
/// calls itself. Ends with the drop and with the test process.
///
/// Debian 12 ships 1.18, which logs the kind and length of each message (`read pkt='P'`) but not
/// the name in it. A prepared statement with a name is therefore looked for in the messages on
/// their way to PgBouncer: see [`Self::named_statements`].
#[derive(Debug)]
pub struct PgBouncer {
    // The order of the drops: clients first, then the process, then its file.
    front: CuttingProxy,
    process: ReplicaProcess,
    _folder: MarkedFolder,
}

impl PgBouncer {
    /// Starts PgBouncer before the server of `config` (by TCP), for its `database`.
    ///
    /// # Panics
    /// When PgBouncer is not there and cannot be installed (which takes root and `apt-get`), or
    /// does not start.
    pub async fn before(config: &Config, database: &str) -> Self {
        let program = program().await;
        let folder = MarkedFolder::create();
        let mut attempts = 0;
        loop {
            let addr = free_addr();
            let process = start(program, &folder, &configuration(config, database, addr));
            let is_up = wait_until("PgBouncer to be up", Duration::from_mins(1), || async {
                if process.lines().iter().any(|line| line.contains("process up: ")) {
                    return Some(true);
                }
                process.ended().map(|_| false)
            })
            .await;
            attempts += 1;
            if is_up {
                let mut inner = address::readdressed(config, addr);
                inner.dbname(database);
                return Self {
                    front: CuttingProxy::before(&inner).await,
                    process,
                    _folder: folder,
                };
            }
            // Someone may have been faster with the port that was free.
            assert!(attempts < 5, "PgBouncer does not start:\n{}", process.lines().join("\n"));
        }
    }

    /// Connects through PgBouncer.
    pub fn config(&self) -> Config {
        self.front.config()
    }

    /// The same as [`Self::config`], as an address.
    pub fn url(&self) -> String {
        self.front.url()
    }

    /// What PgBouncer has logged so far. It lags behind what clients have seen.
    pub fn log(&self) -> String {
        self.process.lines().join("\n")
    }

    /// Every prepared statement that a client named, in the order of their arrival. PgBouncer
    /// 1.18 forwards them to whichever session is free, so that they break in transaction mode.
    pub fn named_statements(&self) -> Vec<NamedStatement> {
        self.front.named_statements()
    }

    /// The proxy in front of PgBouncer, through which [`Self::config`] goes; it can be cut.
    pub fn front(&self) -> &CuttingProxy {
        &self.front
    }
}

fn free_addr() -> SocketAddr {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
    bound.local_addr().expect("the port just bound")
}

fn configuration(config: &Config, database: &str, addr: SocketAddr) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(_)) | None => panic!("PgBouncer needs the server's TCP address"),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let mut entry = format!("host={host} port={port} dbname={}", quoted(database));
    if let Some(user) = config.get_user() {
        entry = format!("{entry} user={}", quoted(user));
    }
    if let Some(password) = config.get_password() {
        let password = String::from_utf8_lossy(password);
        entry = format!("{entry} password={}", quoted(&password));
    }
    format!(
        "[databases]\n\
         {database} = {entry}\n\
         [pgbouncer]\n\
         listen_addr = {}\n\
         listen_port = {}\n\
         unix_socket_dir =\n\
         pool_mode = transaction\n\
         auth_type = any\n\
         max_client_conn = 500\n",
        addr.ip(),
        addr.port(),
    )
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn start(program: &PathBuf, folder: &MarkedFolder, configuration: &str) -> ReplicaProcess {
    let path = folder.path().join("pgbouncer.ini");
    // It holds a password.
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .expect("a file in an own folder");
    file.write_all(configuration.as_bytes()).expect("the configuration is written");
    let mut command = Command::new(program);
    command.args(["-v", "-v"]);
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (id("-u"), id("-g"));
        chown(&path, Some(uid), Some(gid)).expect("root can give a file away");
        command.args(["-u", UNPRIVILEGED]);
    }
    command.arg(&path).current_dir("/");
    ReplicaProcess::start(command)
}

fn id(flag: &str) -> u32 {
    let output = Command::new("id").args([flag, UNPRIVILEGED]).output().expect("id runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("there is no account {UNPRIVILEGED}"))
}

/// The installed program; installs it the first time when it is missing.
async fn program() -> &'static PathBuf {
    static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();
    PROGRAM
        .get_or_init(|| async {
            if let Some(found) = find() {
                return found;
            }
            tokio::task::spawn_blocking(install).await.expect("PgBouncer is installed");
            find().expect("the package pgbouncer has the program in a usual place")
        })
        .await
}

fn find() -> Option<PathBuf> {
    PLACES.into_iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Installs Debian's package. Two test processes at a time wait for each other at dpkg's lock.
fn install() {
    assert!(
        rustix::process::geteuid().is_root(),
        "PgBouncer is missing ({}): install the package pgbouncer",
        PLACES.join(", ")
    );
    for arguments in [&["update"][..], &["install", "-y", "--no-install-recommends", "pgbouncer"]] {
        let output = Command::new("apt-get")
            .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("PgBouncer is missing, and so is apt-get: {error}"));
        // An update fails for one unreachable source; what counts is whether the package comes.
        assert!(
            output.status.success() || arguments == ["update"],
            "PgBouncer is missing, and `apt-get {}` fails:\n{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
