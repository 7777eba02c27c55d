//! An installation of Studio for one test: two databases, the roles, accounts, and replicas.

use std::process::Command;
use std::sync::LazyLock;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::{ReplicaProcess, TestDatabase};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, NoTls};

/// Password of every test account.
const PASSWORD: &str = "correct horse battery";

/// Roles belong to the whole cluster, so set-ups take turns.
static MIGRATE: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// Databases that are set up, and nothing running yet.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) studio: TestDatabase,
    pub(crate) limits: TestDatabase,
}

impl Installation {
    /// Both databases migrated, the console's roles set up, and an account for each role, named
    /// after it.
    pub(crate) async fn new() -> Self {
        let installation =
            Self { studio: TestDatabase::empty().await, limits: TestDatabase::empty().await };
        {
            let _turn = MIGRATE.lock().await;
            installation.succeed(&["migrate"]).await;
        }
        for role in ["viewer", "operator", "administrator"] {
            installation.account(role, role).await;
        }
        installation
    }

    /// An account with the password of all test accounts.
    pub(crate) async fn account(&self, name: &str, role: &str) {
        let account = ["account", "create", "--name", name, "--role", role, "--password-stdin"];
        let mut child = tokio::process::Command::from(self.command(&account))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("studio starts");
        let mut input = child.stdin.take().expect("it was piped");
        tokio::io::AsyncWriteExt::write_all(&mut input, PASSWORD.as_bytes())
            .await
            .expect("it reads");
        drop(input);
        assert!(child.wait().await.expect("it ends").success(), "{account:?}");
    }

    /// `studio` with this installation's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_studio"));
        command.args(arguments).env("RUST_LOG", "info");
        for (name, database, user) in [
            ("STUDIO_DATABASE_URL", &self.studio, "studio_app"),
            ("STUDIO_DATABASE_LIMITS_URL", &self.limits, "studio_app"),
            ("STUDIO_CONSOLE_VIEWER_URL", &self.studio, "studio_console_viewer"),
            ("STUDIO_CONSOLE_OPERATOR_URL", &self.studio, "studio_console_operator"),
            ("STUDIO_CONSOLE_ADMINISTRATOR_URL", &self.studio, "studio_console_administrator"),
        ] {
            command.env(name, address(&login(database, user)));
        }
        command
            .env("STUDIO_DATABASE_MIGRATION_URL", self.studio.url())
            .env("STUDIO_HTTP_LISTEN", "127.0.0.1:0")
            .env("STUDIO_LIMITS_MARGIN_MS", "300");
        command
    }

    /// Runs `studio` to its end; gives what it printed.
    pub(crate) async fn succeed(&self, arguments: &[&str]) -> String {
        let output = tokio::process::Command::from(self.command(arguments))
            .output()
            .await
            .expect("studio starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A replica that answers.
    pub(crate) async fn replica(&self) -> Replica {
        self.replica_with(|_| {}).await
    }

    /// A replica with other settings.
    pub(crate) async fn replica_with(&self, set: impl FnOnce(&mut Command)) -> Replica {
        let mut command = self.command(&["serve"]);
        set(&mut command);
        let process = ReplicaProcess::start(command);
        let line = process.wait_for_line(|line| line.starts_with("Listening on ")).await;
        let origin = line.trim_start_matches("Listening on ").to_owned();
        Replica { process, origin }
    }
}

/// A login role of this cluster in one database. Its password is its name.
pub(crate) fn login(database: &TestDatabase, user: &str) -> Config {
    let mut config = database.tcp_config();
    config.user(user).password(user);
    config
}

/// A session of a login role.
pub(crate) async fn session(database: &TestDatabase, user: &str) -> Client {
    let (client, connection) = login(database, user).connect(NoTls).await.expect("it may log in");
    tokio::spawn(connection);
    client
}

fn address(config: &Config) -> String {
    let user = config.get_user().expect("it has a user");
    let database = config.get_dbname().expect("it has a database");
    let port = config.get_ports().first().expect("it has a port");
    format!("host=127.0.0.1 port={port} dbname={database} user={user} password={user}")
}

/// A running replica.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) process: ReplicaProcess,
    pub(crate) origin: String,
}

impl Replica {
    /// Signs the account in.
    pub(crate) async fn sign_in(&self, name: &str) -> Browser<'_> {
        let http = reqwest::Client::new();
        let response = http
            .post(format!("{}/api/v1/session", self.origin))
            .header("origin", &self.origin)
            .json(&json!({ "name": name, "password": PASSWORD }))
            .send()
            .await
            .expect("the replica answers");
        assert_eq!(response.status(), StatusCode::OK, "{name} signs in");
        let cookie =
            response.headers().get("set-cookie").expect("a session").to_str().expect("ASCII");
        let cookie = cookie.split(';').next().expect("a value").to_owned();
        Browser { replica: self, http, cookie }
    }
}

/// An account that is signed in at a replica. The session is good at every replica.
#[derive(Debug, Clone)]
pub(crate) struct Browser<'r> {
    replica: &'r Replica,
    http: reqwest::Client,
    cookie: String,
}

impl Browser<'_> {
    /// The same session at another replica.
    pub(crate) fn at<'other>(&self, replica: &'other Replica) -> Browser<'other> {
        Browser { replica, http: reqwest::Client::new(), cookie: self.cookie.clone() }
    }

    /// A request that carries the session.
    pub(crate) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.replica.origin))
            .header("origin", &self.replica.origin)
            .header("cookie", &self.cookie)
    }

    /// Reads a document.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(reqwest::Method::GET, path)).await
    }

    /// Asks the SQL console.
    pub(crate) async fn sql(&self, sql: &str) -> (StatusCode, Value) {
        answer(self.question(sql)).await
    }

    /// A question for the SQL console, not sent yet.
    pub(crate) fn question(&self, sql: &str) -> reqwest::RequestBuilder {
        self.request(reqwest::Method::POST, "/api/v1/sql/query").json(&json!({ "sql": sql }))
    }
}

async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.expect("the replica answers");
    let status = response.status();
    (status, response.json().await.expect("the answer is JSON"))
}
