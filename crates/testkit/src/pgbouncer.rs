//! PgBouncer before a server, for what must work through a pooler in transaction mode.

use std::{
    fs::OpenOptions,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::{OpenOptionsExt as _, chown},
    path::{Path, PathBuf},
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

/// The user comes from the entry of the database, whatever a client calls itself.
const AS_ONE_USER: &str = "auth_type = any";

/// PgBouncer in transaction mode, on a free loopback port, with its most verbose log.
///
/// It lets every client in, to any database of the server. Ends with the drop and with the test
/// process.
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
    /// Starts PgBouncer before the server of `config` (by TCP). Every client is on the server the
    /// user of `config`, whatever it calls itself. `database` is what [`Self::config`] names.
    ///
    /// # Panics
    /// When PgBouncer is not there and cannot be installed (which takes root and `apt-get`), or
    /// does not start.
    pub async fn before(config: &Config, database: &str) -> Self {
        Self::start(config, database, &[]).await
    }

    /// As [`Self::before`], and a client is on the server who it says it is: the user of `config`
    /// or one of `roles`, each with the password that it has on the server. PgBouncer itself asks
    /// for none.
    ///
    /// # Panics
    /// As there.
    pub async fn before_with_roles(
        config: &Config,
        database: &str,
        roles: &[(&str, &str)],
    ) -> Self {
        let password = String::from_utf8_lossy(config.get_password().unwrap_or_default());
        let mut all = vec![(config.get_user().unwrap_or("postgres"), password.as_ref())];
        all.extend(roles);
        Self::start(config, database, &all).await
    }

    async fn start(config: &Config, database: &str, roles: &[(&str, &str)]) -> Self {
        let program = program().await;
        let folder = MarkedFolder::create();
        let mut attempts = 0;
        loop {
            let addr = free_addr();
            let process = run(program, &folder, config, addr, roles);
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

fn configuration(config: &Config, addr: SocketAddr, access: &str) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(_)) | None => panic!("PgBouncer needs the server's TCP address"),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let mut entry = format!("host={host} port={port}");
    if access == AS_ONE_USER {
        let password = String::from_utf8_lossy(config.get_password().unwrap_or_default());
        let user = quoted(config.get_user().unwrap_or("postgres"));
        entry = format!("{entry} user={user} password={}", quoted(&password));
    }
    format!(
        "[databases]\n\
         * = {entry}\n\
         [pgbouncer]\n\
         listen_addr = {}\n\
         listen_port = {}\n\
         unix_socket_dir =\n\
         pool_mode = transaction\n\
         {access}\n\
         max_client_conn = 500\n",
        addr.ip(),
        addr.port(),
    )
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn run(
    program: &PathBuf,
    folder: &MarkedFolder,
    config: &Config,
    addr: SocketAddr,
    roles: &[(&str, &str)],
) -> ReplicaProcess {
    let mut access = AS_ONE_USER.to_owned();
    if !roles.is_empty() {
        let escape = |text: &str| text.replace('"', "\"\"");
        let line = |(role, password): &(&str, &str)| {
            format!("\"{}\" \"{}\"\n", escape(role), escape(password))
        };
        let users = folder.path().join("users.txt");
        write_closed(&users, &roles.iter().map(line).collect::<String>());
        access = format!("auth_type = trust\nauth_file = {}", users.display());
    }
    let path = folder.path().join("pgbouncer.ini");
    write_closed(&path, &configuration(config, addr, &access));
    let mut command = Command::new(program);
    command.args(["-v", "-v"]);
    if rustix::process::geteuid().is_root() {
        command.args(["-u", UNPRIVILEGED]);
    }
    command.arg(&path).current_dir("/");
    ReplicaProcess::start(command)
}

/// Writes a file that holds passwords: only PgBouncer's account can read it.
fn write_closed(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .expect("a file in an own folder");
    file.write_all(text.as_bytes()).expect("the file is written");
    if rustix::process::geteuid().is_root() {
        chown(path, Some(id("-u")), Some(id("-g"))).expect("root can give a file away");
    }
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
