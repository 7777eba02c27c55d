//! PostgreSQL restarts, crashes, loses the table, goes away, turns out to be a standby.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use local_postgres::StopMode;
use pg_limits::{Config, HeavyRequests, LimitsError};
use testkit::{OwnCluster, wait_until};
use tokio_postgres::NoTls;

use crate::fixture::{PATIENCE, WORK, connect, database, granted, live};

async fn own_cluster() -> (OwnCluster, HeavyRequests) {
    let cluster = testkit::own_cluster(|options| options.setting("fsync", "on")).await;
    let (client, connection) = cluster.config("postgres").connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("create database limits").await.unwrap();
    let (mut limits, connection) = cluster.config("limits").connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    pg_limits::migrate(&mut limits, "limits").await.unwrap();
    let heavy = HeavyRequests::connect(
        Config::new(cluster.tcp_config("limits"), 8, &[WORK])
            .claim_timeout(Duration::from_secs(1))
            .margin(Duration::from_secs(30)),
    )
    .await
    .unwrap();
    drop((client, limits));
    (cluster, heavy)
}

async fn claims_again(heavy: &HeavyRequests, user: &str) {
    wait_until("the limits answer again", PATIENCE, || async {
        heavy.claim(&WORK, user).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_clean_restart_keeps_permits() {
    let (mut cluster, heavy) = own_cluster().await;
    let _held = (granted(&heavy, &WORK, "ada").await, granted(&heavy, &WORK, "ada").await);
    cluster.stop(StopMode::Fast).await;
    let down = heavy.claim(&WORK, "ada").await.unwrap_err();
    assert!(matches!(down, LimitsError::Unavailable(_)), "{down:?}");
    cluster.start_again().await;
    claims_again(&heavy, "grace").await;
    let refusal = crate::fixture::refused(&heavy, &WORK, "ada").await;
    assert_eq!(refusal.live, 2);
}

#[tokio::test]
async fn a_crash_under_load_empties_the_table_and_the_limits_start_again() {
    let (mut cluster, heavy) = own_cluster().await;
    // Six clients and two held permits: all of the installation's cap, and never beyond it.
    let is_over = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..6)
        .map(|client| {
            let (heavy, is_over) = (heavy.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                let user = format!("user-{client}");
                while !is_over.load(Ordering::Relaxed) {
                    match heavy.claim(&WORK, &user).await {
                        Ok(pg_limits::Claim::Granted(permit)) => permit.release().await,
                        Ok(pg_limits::Claim::Refused(refusal)) => panic!("{refusal:?}"),
                        Err(error) => assert!(error.is_transient(), "{error:?}"),
                    }
                }
            })
        })
        .collect();
    let _held = (granted(&heavy, &WORK, "ada").await, granted(&heavy, &WORK, "ada").await);
    cluster.stop(StopMode::Immediate).await;
    cluster.start_again().await;
    claims_again(&heavy, "user-0").await;
    is_over.store(true, Ordering::Relaxed);
    for client in load {
        client.await.unwrap();
    }
    let (_one, _two) = (granted(&heavy, &WORK, "ada").await, granted(&heavy, &WORK, "ada").await);
    assert_eq!(crate::fixture::refused(&heavy, &WORK, "ada").await.live, 2);
}

#[tokio::test]
async fn an_emptied_table_means_that_all_is_free() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let before = (granted(&heavy, &WORK, "ada").await, granted(&heavy, &WORK, "ada").await);
    client.batch_execute("truncate limits.heavy_permit").await.unwrap();
    let _after = (granted(&heavy, &WORK, "ada").await, granted(&heavy, &WORK, "ada").await);
    drop(before);
    assert_eq!(crate::fixture::refused(&heavy, &WORK, "ada").await.live, 2);
}

#[tokio::test]
async fn a_dropped_table_is_made_anew_by_the_claim_that_misses_it() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let before = granted(&heavy, &WORK, "ada").await;
    client.batch_execute("drop table limits.heavy_permit cascade").await.unwrap();
    let claims: Vec<_> = (0..16)
        .map(|client| {
            let heavy = heavy.clone();
            tokio::spawn(async move { heavy.claim(&WORK, &format!("user-{client}")).await })
        })
        .collect();
    let mut held = Vec::new();
    for claim in claims {
        if let pg_limits::Claim::Granted(permit) = claim.await.unwrap().unwrap() {
            held.push(permit);
        }
    }
    assert_eq!((held.len(), live(&client).await), (8, 8));
    before.release().await;
    assert_eq!(live(&client).await, 8, "a release of a permit that was lost frees nobody's");
}

#[tokio::test]
async fn a_standby_is_recognised_and_never_admits() {
    let (cluster, heavy) = own_cluster().await;
    let standby = cluster.add_standby().await;
    granted(&heavy, &WORK, "ada").await.release().await;
    let config = Config::new(standby.tcp_config("limits"), 8, &[WORK]);
    let error = HeavyRequests::connect(config).await.unwrap_err();
    assert!(matches!(error, LimitsError::Unavailable(_)), "{error:?}");
    // With both hosts named, the one that accepts writes is found, whichever comes first.
    let mut both = standby.tcp_config("limits");
    both.host("127.0.0.1").port(cluster.port());
    let heavy = HeavyRequests::connect(Config::new(both, 8, &[WORK])).await.unwrap();
    granted(&heavy, &WORK, "ada").await.release().await;
}
