use std::{path::Path, process::Command, time::Duration};

use testkit::{ReplicaProcess, StopMode, wait_until};
use tokio_postgres::{Client, NoTls};

const SOON: Duration = Duration::from_mins(1);

async fn connect(config: tokio_postgres::Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

#[test]
fn the_shared_cluster_outlives_the_runtime_of_the_test_that_started_it() {
    let ask = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let cluster = testkit::cluster().await;
            let client = connect(cluster.tcp_config("postgres")).await;
            (cluster.postmaster_pid(), number(&client, "select 1::bigint").await)
        })
    };
    let first = ask();
    assert_eq!(ask(), first);
}

#[tokio::test]
async fn an_own_cluster_keeps_its_data_over_a_crash_and_takes_settings() {
    let mut cluster =
        testkit::own_cluster(|options| options.setting("max_connections", "23")).await;
    let client = connect(cluster.config("postgres")).await;
    client
        .batch_execute("create table kept (id bigint); insert into kept values (7)")
        .await
        .unwrap();
    let port = cluster.port();
    cluster.stop(StopMode::Immediate).await;
    wait_until("the session to notice", SOON, || async { client.is_closed() }).await;
    cluster.start_again().await;
    assert_eq!(cluster.port(), port);
    let client = connect(cluster.config("postgres")).await;
    assert_eq!(number(&client, "select id from kept").await, 7);
    let setting = "select current_setting('max_connections')::bigint";
    assert_eq!(number(&client, setting).await, 23);
}

#[tokio::test]
async fn a_promoted_standby_has_the_data_of_its_lost_primary() {
    let mut cluster = testkit::own_cluster(|options| options).await;
    let client = connect(cluster.config("postgres")).await;
    client.batch_execute("create table kept (id bigint)").await.unwrap();
    let standby = cluster.add_standby().await;
    client.batch_execute("insert into kept values (7)").await.unwrap();
    let reader = connect(standby.tcp_config("postgres")).await;
    wait_until("the row on the standby", SOON, || async {
        number(&reader, "select count(*) from kept").await == 1
    })
    .await;
    reader.batch_execute("insert into kept values (8)").await.unwrap_err();
    cluster.stop(StopMode::Immediate).await;
    standby.promote().await.unwrap();
    let client = connect(standby.config("postgres")).await;
    client.batch_execute("insert into kept values (8)").await.unwrap();
}

#[tokio::test]
async fn a_dropped_cluster_leaves_no_folder() {
    let cluster = testkit::own_cluster(|options| options).await;
    let folder = cluster.temporary_folder();
    assert!(folder.join("cluster").is_dir());
    drop(cluster);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_cluster_does_not_outlive_a_killed_test_process() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_to_be_killed"));
    command.arg("cluster");
    let test_process = ReplicaProcess::start(command);
    let folder = test_process.wait_for_line(|_| true).await;
    let postmaster = Path::new(&folder).join("data/postmaster.pid");
    assert!(postmaster.exists());
    test_process.kill_9();
    wait_until("the server to be gone", SOON, || async { !postmaster.exists() }).await;
}
