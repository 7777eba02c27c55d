//! What the tests stand on: databases of their own, replicas as processes, people who are signed in.

use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use studio::platform::access::Role;
use studio::platform::account::{self, AccountName};
use studio::platform::token::{TokenId, TokenSecret};
use testkit::{ReplicaProcess, TestDatabase, wait_until};
use tokio_postgres::Client;
use uuid::Uuid;

pub(crate) const PASSWORD: &str = "a password for tests";
pub(crate) const ROLE_PASSWORD: &str = "only-for-tests";
/// How many events [`Bed::large_events`] writes.
pub(crate) const LARGE: i64 = 60_000;
/// How long a test waits for a state.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An installation: migrated databases, and as many replicas as a test starts.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) studio: TestDatabase,
    pub(crate) limits: TestDatabase,
    port: u16,
}

/// Roles belong to the cluster that all tests share, so migrations take turns.
static MIGRATIONS: LazyLock<tokio::sync::Mutex<()>> = LazyLock::new(tokio::sync::Mutex::default);

impl Bed {
    /// Databases with Studio's schema.
    pub(crate) async fn new() -> Self {
        let bed = Self::bare().await;
        let output = bed.migrate().await;
        assert!(output.status.success(), "migrating: {}", text(&output));
        bed
    }

    /// Databases with nothing in them.
    pub(crate) async fn bare() -> Self {
        let port = testkit::cluster().await.port();
        Self { studio: TestDatabase::empty().await, limits: TestDatabase::empty().await, port }
    }

    pub(crate) async fn migrate(&self) -> Output {
        let _turn = MIGRATIONS.lock().await;
        self.run(&["migrate"], &[]).await
    }

    fn address(&self, role: &str, database: &TestDatabase) -> String {
        format!("postgresql://{role}:{ROLE_PASSWORD}@127.0.0.1:{}/{}", self.port, database.name())
    }

    /// The address of Studio's database as the role that serves.
    pub(crate) fn app_url(&self) -> String {
        self.address("studio_app", &self.studio)
    }

    /// The same over the Unix socket, which asks for no password.
    pub(crate) async fn app_socket_url(&self) -> String {
        let folder = testkit::cluster().await.socket_folder().display().to_string();
        let (port, database) = (self.port, self.studio.name());
        format!("host='{folder}' port={port} user=studio_app dbname={database}")
    }

    /// The address of the limits' database as the role that serves.
    pub(crate) fn limits_url(&self) -> String {
        self.address("studio_app", &self.limits)
    }

    fn command(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_studio"));
        command.args(arguments).env_clear();
        for (name, value) in [
            ("STUDIO_DATABASE_URL", self.app_url()),
            ("STUDIO_DATABASE_LIMITS_URL", self.limits_url()),
            ("STUDIO_DATABASE_MIGRATION_URL", self.studio.url()),
            ("STUDIO_CONSOLE_VIEWER_URL", self.address("studio_console_viewer", &self.studio)),
            ("STUDIO_CONSOLE_OPERATOR_URL", self.address("studio_console_operator", &self.studio)),
            (
                "STUDIO_CONSOLE_ADMINISTRATOR_URL",
                self.address("studio_console_administrator", &self.studio),
            ),
            ("STUDIO_HTTP_LISTEN", "127.0.0.1:0".to_owned()),
            ("STUDIO_LIMITS_MARGIN_MS", "300".to_owned()),
            ("RUST_LOG", "studio=debug,pg_limits=info".to_owned()),
        ] {
            command.env(name, value);
        }
        command.envs(environment.iter().copied());
        command
    }

    /// Runs a subcommand to its end.
    pub(crate) async fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = self.command(arguments, environment);
        tokio::task::spawn_blocking(move || command.output().expect("studio runs")).await.unwrap()
    }

    /// A replica that is ready.
    pub(crate) async fn replica(&self) -> Replica {
        self.replica_with(&[]).await
    }

    /// A replica with settings of its own.
    pub(crate) async fn replica_with(&self, environment: &[(&str, &str)]) -> Replica {
        const READY: &str = "Listening on ";
        let process = ReplicaProcess::start(self.command(&["serve"], environment));
        let line = process.wait_for_line(|line| line.starts_with(READY)).await;
        Replica { process, base: line.trim_start_matches(READY).to_owned() }
    }

    /// The superuser in Studio's database.
    pub(crate) async fn client(&self) -> Client {
        self.studio.client().await
    }

    /// Creates an account with the password of tests.
    pub(crate) async fn account(&self, name: &str, role: Role) {
        let name = AccountName::parse(name).unwrap();
        account::create(&self.client().await, &name, role, PASSWORD).await.unwrap().unwrap();
    }

    /// Gives an account a token with these grants; the answer is its secret.
    pub(crate) async fn token(&self, account: &str, grants: &[&str]) -> String {
        let secret = TokenSecret::random(TokenId(Uuid::now_v7()));
        let inserted = self
            .client()
            .await
            .execute(
                include_str!("bed/token.sql"),
                &[&secret.id().0, &account, &secret.hash(), &grants],
            )
            .await
            .unwrap();
        assert_eq!(inserted, 1, "there is no account {account}");
        secret.expose().to_owned()
    }

    /// Changes a setting behind the API's back. A replica that starts afterwards has it from its first request.
    pub(crate) async fn setting(&self, name: &str, value: &str) {
        self.client()
            .await
            .execute(include_str!("bed/setting.sql"), &[&name, &value])
            .await
            .unwrap();
    }

    /// Waits until so many connections of replicas wait for a lock in this installation's database.
    pub(crate) async fn waiting(&self, count: i64) {
        const WAITING: &str = "select count(*) from pg_stat_activity \
            where datname = current_database() and wait_event_type = 'Lock' and usename = 'studio_app'";
        let client = self.client().await;
        wait_until("requests wait for the lock", PATIENCE, async || {
            client.query_one(WAITING, &[]).await.unwrap().get::<_, i64>(0) == count
        })
        .await;
    }

    /// Creates one account of each role, named like it.
    pub(crate) async fn accounts(&self) {
        for role in Role::ALL {
            self.account(role.name(), role).await;
        }
    }

    /// Writes finished events, one a second, the newest an hour ago; `actor` is `even` or `odd`.
    pub(crate) async fn events(&self, count: i64) {
        self.padded_events(count, 0).await;
    }

    /// Writes events whose export is far larger than what the sockets between client and server hold: one that is not
    /// read stays under way.
    pub(crate) async fn large_events(&self) {
        self.padded_events(LARGE, 1_000).await;
    }

    async fn padded_events(&self, count: i64, padding: i32) {
        let client = self.client().await;
        client.execute(include_str!("bed/events.sql"), &[&count, &padding]).await.unwrap();
        client.batch_execute("analyze studio.audit_event").await.unwrap();
    }
}

/// The address of a documented path whose parameters name nothing, or a page that there is.
pub(crate) fn address_of(path: &str) -> String {
    path.replace("{suffix}", "internal").replace("{id}", &Uuid::nil().to_string())
}

pub(crate) fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// A replica, a process of its own.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) process: ReplicaProcess,
    pub(crate) base: String,
}

impl Replica {
    /// Nobody.
    pub(crate) fn nobody(&self) -> Session {
        Session {
            client: reqwest::Client::new(),
            base: self.base.clone(),
            cookie: String::new(),
            token: None,
        }
    }

    /// A program with a token.
    pub(crate) fn with_token(&self, secret: &str) -> Session {
        Session { token: Some(secret.to_owned()), ..self.nobody() }
    }

    /// Somebody who signs in here.
    pub(crate) async fn sign_in(&self, name: &str) -> Session {
        let mut session = self.nobody();
        let answer =
            session.post("/api/v1/session", &json!({ "name": name, "password": PASSWORD })).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        session.cookie = answer.cookie().unwrap();
        session
    }
}

/// Somebody's requests to one replica.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    client: reqwest::Client,
    pub(crate) base: String,
    pub(crate) cookie: String,
    pub(crate) token: Option<String>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// `name=value` of the cookie that was set.
    pub(crate) fn cookie(&self) -> Option<String> {
        let cookie = self.headers.get(header::SET_COOKIE)?.to_str().ok()?;
        cookie.split(';').next().map(ToOwned::to_owned)
    }

    /// The suffix of a problem's type.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        let kind = self.json()["type"].as_str().unwrap().to_owned();
        kind.strip_prefix("/problems/").unwrap().to_owned()
    }
}

impl Session {
    /// The same person at another replica.
    pub(crate) fn at(&self, replica: &Replica) -> Self {
        Self { base: replica.base.clone(), ..self.clone() }
    }

    pub(crate) fn request(&self, method: http::Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if !self.cookie.is_empty() {
            request = request.header(header::COOKIE, &self.cookie);
        }
        match &self.token {
            // No page sends a token: such a request has no origin.
            Some(token) => request.bearer_auth(token),
            None => request.header(header::ORIGIN, &self.base),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(http::Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        answer(self.request(http::Method::POST, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        answer(self.request(http::Method::DELETE, path)).await
    }
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status, headers, body: response.bytes().await.expect("a whole body") }
}
