//! Starts, stops and kills.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use local_postgres::{Cluster, ClusterOptions, LocalPostgresError, StopMode};

use crate::scratch;

const MAKE: &str = "create table kept as select generate_series(1, 1000) as number";
const COUNT: &str = "select count(*) from kept";

#[tokio::test]
async fn data_outlasts_a_stop_a_start_and_a_drop() {
    let folder = scratch::folder();
    let mut cluster = scratch::start(&folder).await;
    scratch::run(cluster.config("postgres"), MAKE).await;
    let port = cluster.port();

    cluster.stop(StopMode::Fast).await.unwrap();
    assert_eq!(cluster.postmaster_pid(), None);
    cluster.start_again().await.unwrap();
    assert_eq!(cluster.port(), port);
    assert_eq!(scratch::number(cluster.config("postgres"), COUNT).await, 1000);

    let pid = cluster.postmaster_pid().unwrap();
    drop(cluster);
    assert!(!Path::new("/proc").join(pid.to_string()).exists(), "a drop stops the server");
    let cluster = scratch::start(&folder).await;
    assert_eq!(scratch::number(cluster.config("postgres"), COUNT).await, 1000);
}

#[tokio::test]
async fn a_server_stopped_at_once_recovers_what_was_committed() {
    let folder = scratch::folder();
    let mut cluster = scratch::start(&folder).await;
    scratch::run(cluster.config("postgres"), MAKE).await;
    cluster.stop(StopMode::Immediate).await.unwrap();
    cluster.start_again().await.unwrap();
    assert_eq!(scratch::number(cluster.config("postgres"), COUNT).await, 1000);
}

#[tokio::test]
async fn a_killed_server_starts_again() {
    let folder = scratch::folder();
    let mut cluster = scratch::start(&folder).await;
    scratch::run(cluster.config("postgres"), MAKE).await;
    let session = scratch::connect(cluster.config("postgres")).await;
    kill(cluster.postmaster_pid().unwrap());
    testkit::wait_until("the session to notice", scratch::PATIENCE, || async {
        drop(session.batch_execute("select 1").await);
        session.is_closed()
    })
    .await;
    cluster.start_again().await.unwrap();
    assert_eq!(scratch::number(cluster.config("postgres"), COUNT).await, 1000);
}

/// A session that only computes does not notice the death of its server by itself.
#[tokio::test]
async fn a_killed_server_starts_again_although_a_session_is_busy() {
    let folder = scratch::folder();
    let mut cluster = scratch::start(&folder).await;
    scratch::run(cluster.config("postgres"), MAKE).await;
    let busy = scratch::connect(cluster.config("postgres")).await;
    let pid = busy.query_one("select pg_backend_pid()", &[]).await.unwrap().get::<_, i32>(0);
    let work = tokio::spawn(async move {
        busy.batch_execute("select count(*) from generate_series(1, 100000000000)").await
    });
    let at_work = format!(
        "select exists (select from pg_stat_activity where pid = {pid} and state = 'active')"
    );
    scratch::until(cluster.config("postgres"), &at_work).await;
    kill(cluster.postmaster_pid().unwrap());
    cluster.start_again().await.unwrap();
    assert!(work.await.unwrap().is_err());
    // Whoever adopted it may not have reaped it yet.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "the old session has ended: {state}");
    assert_eq!(scratch::number(cluster.config("postgres"), COUNT).await, 1000);
}

#[tokio::test]
async fn a_setting_that_would_open_the_cluster_is_refused() {
    let folder = scratch::folder();
    for (name, value) in [
        ("Listen_Addresses", "*"),
        ("hba_file", "/dev/null"),
        ("work_mem", "1MB'\nlisten_addresses = '*"),
        ("work_mem = '1MB'\nport", "1"),
    ] {
        let options = ClusterOptions::new(folder.path().join("primary")).setting(name, value);
        let error = Cluster::start(options).await.unwrap_err();
        assert!(matches!(error, LocalPostgresError::ReservedSetting(_)), "{error}");
    }
}

#[tokio::test]
async fn a_setting_reaches_the_server_as_it_was_given() {
    let folder = scratch::folder();
    let given = r"it's C:\new";
    let options = ClusterOptions::new(folder.path().join("primary"))
        .setting("fsync", "off")
        .setting("application_name", given);
    let cluster = Cluster::start(options).await.unwrap();
    let client = scratch::connect(cluster.config("postgres")).await;
    let row = client.query_one("show application_name", &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), given);
}

#[tokio::test]
async fn a_start_right_after_its_parent_was_killed_finds_all_data() {
    let folder = scratch::folder();
    let primary = folder.path().join("primary");
    for round in 1..=3 {
        let (mut parent, url) = parent(&primary);
        let sql = format!(
            "create table if not exists kept (number bigint); insert into kept values ({round})"
        );
        scratch::run(url.parse().unwrap(), &sql).await;
        // A session that stays must not keep the server alive.
        let session = scratch::connect(url.parse().unwrap()).await;
        parent.kill().unwrap();
        parent.wait().unwrap();

        let cluster = scratch::start(&folder).await;
        assert_eq!(scratch::number(cluster.config("postgres"), COUNT).await, round);
        drop(session);
    }
}

#[tokio::test]
async fn a_server_without_its_parent_is_stopped_by_its_guard() {
    let folder = scratch::folder();
    let (mut parent, url) = parent(&folder.path().join("primary"));
    scratch::run(url.parse().unwrap(), MAKE).await;
    parent.kill().unwrap();
    parent.wait().unwrap();
    // A clean shutdown removes the lock file as its last act, the guard then the socket folder.
    let lock_file = folder.path().join("primary/data/postmaster.pid");
    let socket = std::fs::read_to_string(folder.path().join("primary/socket")).unwrap();
    testkit::wait_until("the guard to have stopped the server", scratch::PATIENCE, || async {
        !lock_file.exists() && !Path::new(&socket).exists()
    })
    .await;
}

#[tokio::test]
async fn two_clusters_run_at_once() {
    let (one, two) = (scratch::folder(), scratch::folder());
    let (one, two) = tokio::join!(scratch::start(&one), scratch::start(&two));
    assert_ne!(one.port(), two.port());
    scratch::run(one.config("postgres"), "create table only_here ()").await;
    let sql = "select count(*) from pg_class where relname = 'only_here'";
    assert_eq!(scratch::number(one.config("postgres"), sql).await, 1);
    assert_eq!(scratch::number(two.config("postgres"), sql).await, 0);
}

#[tokio::test]
async fn a_role_needs_its_password_over_tcp_and_none_over_the_socket() {
    let folder = scratch::folder();
    let cluster = scratch::start(&folder).await;
    scratch::run(cluster.tcp_config("postgres"), "create role visitor login password 'right'")
        .await;
    scratch::run(cluster.url("postgres").parse().unwrap(), "select 1").await;
    scratch::run(cluster.config("postgres").user("visitor").clone(), "select 1").await;

    let mut by_tcp = cluster.tcp_config("postgres");
    by_tcp.user("visitor").password("wrong");
    let refused = by_tcp.connect(tokio_postgres::NoTls).await.err().unwrap();
    assert_eq!(refused.code(), Some(&tokio_postgres::error::SqlState::INVALID_PASSWORD));
    scratch::run(by_tcp.password("right").clone(), "select 1").await;
}

#[tokio::test]
async fn a_taken_port_and_a_wrong_setting_are_told_apart() {
    let folder = scratch::folder();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = ClusterOptions::new(folder.path().join("primary")).setting("fsync", "off");

    let taken = Cluster::start(options.clone().port(port)).await.unwrap_err();
    assert!(matches!(taken, LocalPostgresError::PortTaken(taken) if taken == port), "{taken}");

    let wrong = Cluster::start(options.setting("no_such_setting", "1")).await.unwrap_err();
    assert!(wrong.to_string().contains("no_such_setting"), "{wrong}");
}

/// A process of its own that holds a cluster, and the address it printed.
fn parent(folder: &Path) -> (Child, String) {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_local-postgres"))
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    (parent, url.trim().to_owned())
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(status.success());
}
