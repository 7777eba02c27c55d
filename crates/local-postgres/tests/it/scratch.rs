//! A scratch folder that the server's account can enter, and the way to a server's answers.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use local_postgres::{Cluster, ClusterOptions};
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

/// How long a test waits for a state.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("local-postgres-test-")
        .permissions(Permissions::from_mode(0o711))
        .tempdir()
        .unwrap()
}

pub(crate) async fn start(folder: &TempDir) -> Cluster {
    let options = ClusterOptions::new(folder.path().join("primary")).setting("fsync", "off");
    Cluster::start(options).await.unwrap()
}

pub(crate) async fn connect(config: Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn number(config: Config, sql: &str) -> i64 {
    connect(config).await.query_one(sql, &[]).await.unwrap().get(0)
}

pub(crate) async fn run(config: Config, sql: &str) {
    connect(config).await.batch_execute(sql).await.unwrap();
}

/// Waits until `sql` answers `true`.
pub(crate) async fn until(config: Config, sql: &str) {
    let client = connect(config).await;
    testkit::wait_until(sql, PATIENCE, || async {
        client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0)
    })
    .await;
}
