//! The private server of the benchmark: fsync on, the limits in a database of their own.

use anyhow::Result;
use tokio_postgres::{Client, NoTls};

pub(crate) struct Server {
    url: String,
}

impl Server {
    pub(crate) async fn start() -> Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "scratch")]
        let url = std::env::var("BENCH_URL")?;
        let server = Self { url };
        let admin = server.client(&server.database("postgres")?).await?;
        admin.batch_execute("drop database if exists bench_limits with (force)").await?;
        admin.batch_execute("drop database if exists bench_service with (force)").await?;
        admin.batch_execute("create database bench_limits").await?;
        admin.batch_execute("create database bench_service").await?;
        let mut limits = server.client(&server.limits()).await?;
        pg_limits::migrate(&mut limits, "limits").await?;
        Ok(server)
    }

    fn database(&self, name: &str) -> Result<tokio_postgres::Config> {
        let mut config: tokio_postgres::Config = self.url.parse()?;
        config.dbname(name);
        Ok(config)
    }

    pub(crate) fn limits(&self) -> tokio_postgres::Config {
        self.database("bench_limits").unwrap_or_default()
    }

    pub(crate) async fn client(&self, config: &tokio_postgres::Config) -> Result<Client> {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub(crate) async fn version(&self) -> Result<String> {
        let client = self.client(&self.limits()).await?;
        Ok(client
            .query_one("select version() || ', fsync ' || current_setting('fsync')", &[])
            .await?
            .get(0))
    }

    pub(crate) async fn permits_bytes(&self) -> Result<i64> {
        let client = self.client(&self.limits()).await?;
        Ok(client
            .query_one("select pg_total_relation_size('limits.heavy_permit')", &[])
            .await?
            .get(0))
    }

    /// Opens a REPEATABLE READ transaction in the service's database and takes its snapshot.
    pub(crate) async fn hold_snapshot(&self) -> Result<Snapshot> {
        let client = self.client(&self.database("bench_service")?).await?;
        client
            .batch_execute("begin isolation level repeatable read; select 1 from pg_class limit 1")
            .await?;
        Ok(Snapshot(client))
    }

    pub(crate) async fn stop(self) -> Result<()> {
        Ok(())
    }
}

pub(crate) struct Snapshot(Client);

impl Snapshot {
    pub(crate) async fn end(self) -> Result<()> {
        Ok(self.0.batch_execute("commit").await?)
    }
}
