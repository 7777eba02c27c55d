//! The private server of the benchmark: fsync on, the limits in a database of their own.

use anyhow::Result;
use local_postgres::{Cluster, ClusterOptions, StopMode};
use tokio_postgres::{Client, NoTls};

/// The limits' own database, and the one whose long snapshots must not matter.
const LIMITS: &str = "bench_limits";
const SERVICE: &str = "bench_service";

pub(crate) struct Server {
    cluster: Cluster,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start() -> Result<Self> {
        let folder = bench::server_folder()?;
        let options = ClusterOptions::new(folder.path().join("cluster")).setting("fsync", "on");
        let server = Self { cluster: Cluster::start(options).await?, _folder: folder };
        let admin = server.client(&server.cluster.config("postgres")).await?;
        admin.batch_execute(&format!("create database {LIMITS}")).await?;
        admin.batch_execute(&format!("create database {SERVICE}")).await?;
        let mut limits = server.client(&server.limits()).await?;
        pg_limits::migrate(&mut limits, "limits").await?;
        Ok(server)
    }

    pub(crate) fn limits(&self) -> tokio_postgres::Config {
        self.cluster.config(LIMITS)
    }

    pub(crate) async fn client(&self, config: &tokio_postgres::Config) -> Result<Client> {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub(crate) async fn version(&self) -> Result<String> {
        let version = "select 'PostgreSQL ' || current_setting('server_version')
            || ', fsync ' || current_setting('fsync')";
        Ok(self.client(&self.limits()).await?.query_one(version, &[]).await?.try_get(0)?)
    }

    /// Bytes of the permits' table with its index and its maps.
    pub(crate) async fn permits_bytes(&self) -> Result<i64> {
        let size = "select pg_total_relation_size('limits.heavy_permit')";
        Ok(self.client(&self.limits()).await?.query_one(size, &[]).await?.try_get(0)?)
    }

    /// Opens a REPEATABLE READ transaction in the service's database and takes its snapshot.
    pub(crate) async fn hold_snapshot(&self) -> Result<Snapshot> {
        let client = self.client(&self.cluster.config(SERVICE)).await?;
        client
            .batch_execute("begin isolation level repeatable read; select 1 from pg_class limit 1")
            .await?;
        Ok(Snapshot(client))
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        Ok(self.cluster.stop(StopMode::Fast).await?)
    }
}

pub(crate) struct Snapshot(Client);

impl Snapshot {
    pub(crate) async fn end(self) -> Result<()> {
        Ok(self.0.batch_execute("commit").await?)
    }
}
