//! A database per test, copied from a template.

use std::{
    collections::HashMap,
    error::Error,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config, NoTls, types::Type};

use crate::{SharedCluster, cluster, wait_until};

/// What the closure that builds a template answers; `?` takes any error, `anyhow`'s too.
pub type Built = Result<(), Box<dyn Error + Send + Sync>>;

/// A database of one test, in the [shared cluster](cluster).
///
/// It is not dropped at the test's end: that would take longer than the copy, and the cluster goes
/// with the process.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    cluster: &'static SharedCluster,
}

impl TestDatabase {
    /// A copy of the template `name`. The first call in a process builds the template: it makes an
    /// empty database and hands its configuration (a superuser's) to `build`. Every later call
    /// with this name must mean the same content, its closure is not called.
    ///
    /// A template holds a database only. Roles belong to the cluster, so `build` must create them
    /// in a way that other templates of the process can repeat.
    ///
    /// ```no_run
    /// # async fn example() {
    /// use testkit::TestDatabase;
    /// let database = TestDatabase::from_template("orders", |config| async move {
    ///     let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
    ///     tokio::spawn(connection);
    ///     client.batch_execute("create table orders (id bigint primary key)").await?;
    ///     Ok(())
    /// })
    /// .await;
    /// database.client().await.batch_execute("insert into orders values (1)").await.unwrap();
    /// # }
    /// ```
    ///
    /// # Panics
    /// When `build` fails, a session of it stays open for a minute, or PostgreSQL is not there.
    pub async fn from_template<B, F>(name: &str, build: B) -> Self
    where
        B: FnOnce(Config) -> F,
        F: Future<Output = Built>,
    {
        static TEMPLATES: LazyLock<Mutex<HashMap<String, Arc<OnceCell<()>>>>> =
            LazyLock::new(Mutex::default);
        let cluster = cluster().await;
        let template = format!("template_{name}");
        let template_is_built = {
            let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(templates.entry(name.to_owned()).or_default())
        };
        template_is_built.get_or_init(|| build_template(cluster, &template, build)).await;
        Self::create(cluster, name, &template).await
    }

    /// An empty database.
    ///
    /// # Panics
    /// When PostgreSQL is not there.
    pub async fn empty() -> Self {
        Self::create(cluster().await, "empty", "template0").await
    }

    async fn create(cluster: &'static SharedCluster, name: &str, template: &str) -> Self {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let name = format!("{name}_{}", CREATED.fetch_add(1, Ordering::Relaxed));
        // A copy of files: the other strategy logs every page and cannot copy a template twice
        // at a time, for it opens a session in it.
        let create = format!(
            "create database {} template {} strategy file_copy",
            quoted(&name),
            quoted(template)
        );
        execute(&cluster.config("postgres"), &create).await;
        Self { name, cluster }
    }

    /// The database's name in the shared cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connects as the superuser over the Unix socket; set `user` for another role.
    pub fn config(&self) -> Config {
        self.cluster.config(&self.name)
    }

    /// Connects as the superuser to 127.0.0.1 with its password.
    pub fn tcp_config(&self) -> Config {
        self.cluster.tcp_config(&self.name)
    }

    /// The same as [`Self::tcp_config`], as an address.
    pub fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// A new session of the superuser.
    ///
    /// # Panics
    /// When the connection fails.
    pub async fn client(&self) -> Client {
        connected(&self.config()).await
    }
}

async fn build_template<B, F>(cluster: &SharedCluster, template: &str, build: B)
where
    B: FnOnce(Config) -> F,
    F: Future<Output = Built>,
{
    let server = cluster.config("postgres");
    // A test that failed while it built the template leaves a half of it behind.
    let name = quoted(template);
    execute(&server, &format!("drop database if exists {name} with (force)")).await;
    execute(&server, &format!("create database {name} template template0 strategy file_copy"))
        .await;
    if let Err(error) = build(cluster.config(template)).await {
        panic!("{template} cannot be built: {}", with_sources(&*error));
    }
    // PostgreSQL copies no database that someone is connected to.
    let watch = connected(&server).await;
    execute(&server, &format!("alter database {name} allow_connections false")).await;
    wait_until("the sessions that built the template to end", Duration::from_mins(1), || async {
        let sessions = "select 1 from pg_stat_activity where datname = $1";
        let left = watch.query_typed(sessions, &[(&template, Type::TEXT)]).await;
        left.expect("the sessions can be read").is_empty()
    })
    .await;
}

/// An open session whose connection is driven by a task of the caller's runtime.
pub(crate) async fn connected(config: &Config) -> Client {
    let (client, connection) = config
        .connect(NoTls)
        .await
        .unwrap_or_else(|error| panic!("no connection: {}", with_sources(&error)));
    // It ends with the client; its error is the error of the client's next statement.
    tokio::spawn(connection);
    client
}

async fn execute(config: &Config, statement: &str) {
    let client = connected(config).await;
    if let Err(error) = client.batch_execute(statement).await {
        panic!("`{statement}`: {}", with_sources(&error));
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
