//! The database restarts, crashes, is cut off; a pooler stands before it.

use std::time::Duration;

use local_postgres::StopMode;
use pg_limits::{Config, Limits, LimitsError, Statements};
use testkit::{CuttingProxy, PgBouncer, wait_until};
use tokio_postgres::NoTls;

use super::{GUESS, NETWORK, Seen, admitted, connect, fail, seen, throttled};
use crate::fixture::{PATIENCE, database};

async fn through(proxy: &CuttingProxy) -> Limits {
    let config = Config::new(proxy.config(), 1, &[]).claim_timeout(Duration::from_millis(500));
    Limits::connect(config).await.unwrap()
}

#[tokio::test]
async fn without_the_database_no_attempt_is_admitted() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let limits = through(&proxy).await;
    proxy.refuse();
    proxy.cut().await;
    let error = limits.attempt(&[(GUESS, "ada")]).await.unwrap_err();
    assert!(matches!(error, LimitsError::Unavailable(_)), "{error:?}");
    proxy.restore();
    admitted(&limits, &[(GUESS, "ada")]).await.succeeded().await.unwrap();
}

#[tokio::test]
async fn an_attempt_whose_answer_was_lost_fails_and_its_reservation_lapses() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let limits = through(&proxy).await;
    let client = database.client().await;
    fail(&limits, &[(GUESS, "ada")], 1).await;
    // The attempt reaches the server and waits there for the row; its answer is cut off.
    client.batch_execute("begin; select from limits.throttle for update").await.unwrap();
    let attempt = tokio::spawn({
        let limits = limits.clone();
        async move { limits.attempt(&[(GUESS, "ada")]).await }
    });
    let observer = database.client().await;
    let waiting = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    wait_until("the attempt waits for the row", PATIENCE, || async {
        observer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    proxy.half_open();
    let error = attempt.await.unwrap().unwrap_err();
    assert!(matches!(error, LimitsError::Unavailable(_)), "{error:?}");
    client.batch_execute("commit").await.unwrap();
    wait_until("nothing waits any more", PATIENCE, || async {
        observer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    proxy.cut().await;
    proxy.restore();
    // Whether it was written or not, it counts for nothing once it has lapsed.
    super::pass(&observer, "15 s").await;
    for _ in 0..4 {
        admitted(&limits, &[(GUESS, "ada")]).await.failed().await.unwrap();
    }
    throttled(&limits, &[(GUESS, "ada")]).await;
}

#[tokio::test]
async fn a_failure_that_the_database_does_not_answer_is_an_error_and_counts_once_all_the_same() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let limits = through(&proxy).await;
    let client = database.client().await;
    let keys = [(GUESS, "ada"), (NETWORK, "home")];
    let (cut, lost) = (admitted(&limits, &keys).await, admitted(&limits, &keys).await);
    // One never arrives, of the other only the answer is lost.
    proxy.half_open();
    assert!(matches!(lost.failed().await, Err(LimitsError::Unavailable(_))));
    proxy.refuse();
    proxy.cut().await;
    assert!(matches!(cut.failed().await, Err(LimitsError::Unavailable(_))));
    proxy.restore();
    wait_until("both are counted, each once", PATIENCE, || async {
        let two = Seen { failures: 2, level: 0, blocked_s: 0, reservations: 0 };
        seen(&client, "guess", "ada").await.unwrap() == two
            && seen(&client, "network", "home").await.unwrap() == two
    })
    .await;
    limits.shutdown(Duration::from_secs(10)).await;
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 2);
}

#[tokio::test]
async fn a_failure_whose_answer_was_lost_counts_once() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let limits = through(&proxy).await;
    let client = database.client().await;
    let attempt = admitted(&limits, &[(GUESS, "ada")]).await;
    // The failure reaches the server and waits there for the row; then nothing comes back.
    client.batch_execute("begin; select from limits.throttle for update").await.unwrap();
    let failing = tokio::spawn(attempt.failed());
    let observer = database.client().await;
    let waiting = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    wait_until("the failure waits for the row", PATIENCE, || async {
        observer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    proxy.half_open();
    client.batch_execute("commit").await.unwrap();
    assert!(failing.await.unwrap().is_err());
    proxy.cut().await;
    proxy.restore();
    limits.shutdown(Duration::from_secs(20)).await;
    let once = Seen { failures: 1, level: 0, blocked_s: 0, reservations: 0 };
    assert_eq!(seen(&observer, "guess", "ada").await.unwrap(), once);
}

#[tokio::test]
async fn a_clean_restart_keeps_the_counts_and_a_crash_empties_them() {
    let mut cluster = testkit::own_cluster(|options| options.setting("fsync", "on")).await;
    let (client, connection) = cluster.config("postgres").connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("create database limits").await.unwrap();
    let (mut limits, connection) = cluster.config("limits").connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    pg_limits::migrate(&mut limits, "limits").await.unwrap();
    drop((client, limits));
    let config = Config::new(cluster.tcp_config("limits"), 1, &[]);
    let limits = Limits::connect(config).await.unwrap();
    fail(&limits, &[(GUESS, "ada")], 5).await;
    for (mode, is_kept) in [(StopMode::Fast, true), (StopMode::Immediate, false)] {
        cluster.stop(mode).await;
        let error = limits.attempt(&[(GUESS, "grace")]).await.unwrap_err();
        assert!(matches!(error, LimitsError::Unavailable(_)), "{error:?}");
        cluster.start_again().await;
        wait_until("the limits answer again", PATIENCE, || async {
            limits.attempt(&[(GUESS, "grace")]).await.is_ok()
        })
        .await;
        if is_kept {
            throttled(&limits, &[(GUESS, "ada")]).await;
        } else {
            fail(&limits, &[(GUESS, "ada")], 5).await;
        }
    }
}

#[tokio::test]
async fn attempts_are_counted_through_a_transaction_pooler_without_a_named_statement() {
    let database = database().await;
    let pooler = PgBouncer::before(&database.tcp_config(), database.name()).await;
    let config = Config::new(pooler.config(), 1, &[]).statements(Statements::Unnamed);
    let limits = Limits::connect(config).await.unwrap();
    let direct = connect(&database).await;
    let keys = [(GUESS, "ada"), (NETWORK, "home")];
    fail(&limits, &keys, 4).await;
    admitted(&limits, &keys).await.succeeded().await.unwrap();
    fail(&direct, &keys, 4).await;
    fail(&limits, &keys, 1).await;
    throttled(&limits, &keys).await;
    throttled(&direct, &keys).await;
    drop(admitted(&limits, &[(GUESS, "grace")]).await);
    limits.shutdown(Duration::from_secs(10)).await;
    assert_eq!(pooler.named_statements().len(), 0, "{:?}", pooler.named_statements());
}
