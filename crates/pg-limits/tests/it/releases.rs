//! Releases that are late, doubled, or of a claim whose answer was lost.

use std::time::Duration;

use pg_limits::{Claim, Endpoint, HeavyRequests, Stopped};
use testkit::{CuttingProxy, wait_until};
use uuid::Uuid;

use crate::fixture::{PATIENCE, WORK, config, connect, database, granted, live, wait_for_live};

#[tokio::test]
async fn a_late_release_never_frees_the_successor() {
    let database = database().await;
    let brief = Endpoint::new("work", 1, Duration::from_millis(50));
    let heavy = connect(&database, brief, 1).await;
    let client = database.client().await;
    let late = granted(&heavy, &brief, "ada").await;
    wait_for_live(&client, 0).await;
    let successor = granted(&heavy, &brief, "grace").await;
    let slot: i32 =
        client.query_one("select slot from limits.live_permit", &[]).await.unwrap().get(0);
    assert_eq!(slot, 0);
    late.release().await;
    let holder: Uuid =
        client.query_one("select permit from limits.heavy_permit", &[]).await.unwrap().get(0);
    assert_eq!(holder, successor.id());
}

#[tokio::test]
async fn a_second_release_changes_nothing() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let permit = granted(&heavy, &WORK, "ada").await;
    let (id, row) = (
        permit.id(),
        client.query_one("select scope, slot from limits.live_permit", &[]).await.unwrap(),
    );
    let (scope, slot): (String, i32) = (row.get(0), row.get(1));
    permit.release().await;
    let _next = granted(&heavy, &WORK, "grace").await;
    let again: bool = client
        .query_one("select limits.release_v1($1, $2, $3)", &[&scope, &slot, &id])
        .await
        .unwrap()
        .get(0);
    assert!(!again);
    assert_eq!(live(&client).await, 1);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_given_back_long_before_its_lease() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let slow = pg_limits::Config::new(proxy.config(), 8, &[WORK])
        .margin(Duration::from_secs(30))
        .claim_timeout(Duration::from_millis(500));
    let heavy = HeavyRequests::connect(slow).await.unwrap();
    let client = database.client().await;
    // The claim reaches the server and waits there; its answer is cut off.
    client
        .batch_execute(
            "begin; select pg_advisory_xact_lock(hashtextextended('ada', hashtext('limits.user')))",
        )
        .await
        .unwrap();
    let claim = tokio::spawn({
        let heavy = heavy.clone();
        async move { heavy.claim(&WORK, "ada").await }
    });
    let observer = database.client().await;
    crate::fixture::wait_for_a_waiting_claim(&observer).await;
    proxy.half_open();
    assert!(claim.await.unwrap().is_err());
    assert_eq!(heavy.permits_unknown(), 1);
    client.batch_execute("commit").await.unwrap();
    proxy.cut().await;
    proxy.restore();
    wait_until("the outcome is settled", PATIENCE, || async { heavy.permits_unknown() == 0 }).await;
    assert_eq!(live(&observer).await, 0);
}

#[tokio::test]
async fn a_release_outlives_a_cut_connection() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let heavy = HeavyRequests::connect(
        pg_limits::Config::new(proxy.config(), 8, &[WORK])
            .claim_timeout(Duration::from_millis(500)),
    )
    .await
    .unwrap();
    let client = database.client().await;
    let permit = granted(&heavy, &WORK, "ada").await;
    proxy.refuse();
    proxy.cut().await;
    drop(permit);
    assert_eq!(heavy.releases_pending(), 1);
    assert!(heavy.claim(&WORK, "ada").await.is_err());
    proxy.restore();
    wait_for_live(&client, 0).await;
    wait_until("the release is answered", PATIENCE, || async { heavy.releases_pending() == 0 })
        .await;
    let _again = granted(&heavy, &WORK, "ada").await;
}

#[tokio::test]
async fn work_is_stopped_at_its_bound_before_the_lease_lapses() {
    let database = database().await;
    let brief = Endpoint::new("work", 1, Duration::from_millis(100));
    let heavy = HeavyRequests::connect(config(&database, brief, 1)).await.unwrap();
    let client = database.client().await;
    let permit = granted(&heavy, &brief, "ada").await;
    let outcome = permit.run(std::future::pending::<()>()).await;
    let stopped = outcome.unwrap_err();
    assert!(matches!(stopped, Stopped::BoundReached(at) if at.endpoint == "work"), "{stopped}");
    assert_eq!(live(&client).await, 1, "the lease outlives the work by its margin");
    permit.release().await;
    assert!(matches!(heavy.claim(&brief, "ada").await.unwrap(), Claim::Granted(_)));
}
