//! What one claim does, and what it leaves.

use std::time::Duration;

use pg_limits::{Endpoint, HeavyRequests, LimitsError, Scope};
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::fixture::{WORK, config, connect, database, granted, live, refused, wait_for_live};

#[tokio::test]
async fn the_third_claim_of_a_user_is_refused_on_any_replica() {
    let database = database().await;
    let (one, two) = (connect(&database, WORK, 8).await, connect(&database, WORK, 8).await);
    let first = granted(&one, &WORK, "ada").await;
    let _second = granted(&two, &WORK, "ada").await;
    for replica in [&one, &two] {
        let refusal = refused(replica, &WORK, "ada").await;
        assert_eq!((refusal.endpoint, refusal.scope, refusal.limit), ("work", Scope::User, 2));
        assert_eq!(refusal.live, 2);
        assert!(refusal.retry_after.unwrap() >= Duration::from_secs(1));
    }
    let _others = granted(&two, &WORK, "grace").await;
    first.release().await;
    let _third = granted(&two, &WORK, "ada").await;
}

#[tokio::test]
async fn a_user_holds_at_most_half_of_the_installation() {
    let database = database().await;
    let endpoint = Endpoint::new("work", 100, Duration::from_secs(30));
    let heavy = connect(&database, endpoint, 5).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(granted(&heavy, &endpoint, "ada").await);
    }
    let refusal = refused(&heavy, &endpoint, "ada").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.live), (Scope::User, 3, 3));
    held.push(granted(&heavy, &endpoint, "grace").await);
    held.push(granted(&heavy, &endpoint, "grace").await);
    let refusal = refused(&heavy, &endpoint, "alan").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.live), (Scope::Installation, 5, 5));
}

#[tokio::test]
async fn an_installation_of_one_still_serves_one() {
    let database = database().await;
    let heavy = connect(&database, WORK, 1).await;
    let _permit = granted(&heavy, &WORK, "ada").await;
    assert_eq!(refused(&heavy, &WORK, "ada").await.scope, Scope::User);
    assert_eq!(refused(&heavy, &WORK, "grace").await.scope, Scope::Installation);
}

#[tokio::test]
async fn a_repeated_claim_returns_the_same_permit() {
    let database = database().await;
    let _heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let claim =
        "select outcome, slot, ends_at from limits.claim_v1($1, 'work', 'ada', null, 1000, 300)";
    let id = Uuid::now_v7();
    let first = client.query_one(claim, &[&id]).await.unwrap();
    let again = client.query_one(claim, &[&id]).await.unwrap();
    assert_eq!(first.get::<_, &str>(0), "granted");
    assert_eq!(first.get::<_, i32>(1), again.get::<_, i32>(1));
    let same: bool = client
        .query_one("select count(distinct ends_at) = 1 from limits.live_permit", &[])
        .await
        .unwrap()
        .get(0);
    assert!(same && live(&client).await == 1);
}

#[tokio::test]
async fn a_refusal_by_the_users_own_cap_takes_no_transaction_id() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let _held = (granted(&heavy, &WORK, "ada").await, granted(&heavy, &WORK, "ada").await);
    let mut client = database.client().await;
    let transaction = client.transaction().await.unwrap();
    let row = transaction
        .query_one(
            "select outcome, live from limits.claim_v1($1, 'work', 'ada', null, 1, 1)",
            &[&Uuid::now_v7()],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i32>(1)), ("refused", 2));
    let id = transaction
        .query_one("select pg_current_xact_id_if_assigned()::text", &[])
        .await
        .unwrap()
        .get::<_, Option<String>>(0);
    assert_eq!(id, None);
}

#[tokio::test]
async fn a_claim_in_an_old_snapshot_is_an_error_and_not_a_wrong_count() {
    let database = database().await;
    let _heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    client.batch_execute("begin isolation level repeatable read").await.unwrap();
    let error = client
        .query_one("select limits.claim_v1($1, 'work', 'ada', null, 1, 1)", &[&Uuid::now_v7()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_TRANSACTION_STATE));
}

#[tokio::test]
async fn a_permit_ends_at_bound_and_margin_by_the_databases_clock() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let _permit = granted(&heavy, &WORK, "ada").await;
    let row = database
        .client()
        .await
        .query_one(
            "select bound_ends_at - granted_at between interval '30 s' and interval '30.1 s',
                ends_at - bound_ends_at between interval '0.3 s' and interval '0.31 s'
             from limits.live_permit",
            &[],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0) && row.get::<_, bool>(1));
}

#[tokio::test]
async fn the_margin_is_thirty_seconds_unless_set() {
    let database = database().await;
    let config = pg_limits::Config::new(database.config(), 8, &[WORK]);
    let heavy = HeavyRequests::connect(config).await.unwrap();
    let _permit = granted(&heavy, &WORK, "ada").await;
    let row = database
        .client()
        .await
        .query_one(
            "select ends_at - bound_ends_at between interval '30 s' and interval '30.01 s'
             from limits.live_permit",
            &[],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
}

#[tokio::test]
async fn a_caller_that_leaves_during_its_claim_leaves_no_permit() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    // The user's lock is held, so the claim is under way for as long as the test likes.
    client
        .batch_execute(
            "begin; select pg_advisory_xact_lock(hashtextextended('ada', hashtext('limits.user')))",
        )
        .await
        .unwrap();
    let observer = database.client().await;
    let claim = heavy.claim(&WORK, "ada");
    {
        let waits = crate::fixture::wait_for_a_waiting_claim(&observer);
        tokio::select! {
            outcome = claim => panic!("claimed: {outcome:?}"),
            () = waits => {}
        }
    }
    client.batch_execute("commit").await.unwrap();
    testkit::wait_until("the claim was made and given back", crate::fixture::PATIENCE, || async {
        let made: bool = observer
            .query_one("select exists (select from limits.heavy_permit where user_id = 'ada')", &[])
            .await
            .unwrap()
            .get(0);
        made && live(&observer).await == 0
    })
    .await;
}

#[tokio::test]
async fn a_dropped_permit_is_given_back() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let permit = granted(&heavy, &WORK, "ada").await;
    assert_eq!(live(&client).await, 1);
    drop(permit);
    wait_for_live(&client, 0).await;
    assert_eq!(heavy.releases_pending(), 0);
}

#[tokio::test]
async fn shutdown_gives_back_what_the_replica_holds_and_grants_nothing_more() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let permit = granted(&heavy, &WORK, "ada").await;
    heavy.shutdown(Duration::from_secs(10)).await;
    assert_eq!(live(&client).await, 0);
    assert!(matches!(heavy.claim(&WORK, "ada").await, Err(LimitsError::ShuttingDown)));
    drop(permit);
}

#[tokio::test]
async fn an_endpoint_that_was_not_declared_is_named() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let other = Endpoint::new("other", 1, Duration::from_secs(1));
    let error = heavy.claim(&other, "ada").await.unwrap_err();
    assert!(error.to_string().contains("`other` was not declared"), "{error}");
}

#[tokio::test]
async fn a_table_that_only_grows_to_the_installations_cap() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    for user in 0..200 {
        granted(&heavy, &WORK, &format!("user-{user}")).await.release().await;
    }
    let rows: i64 = database
        .client()
        .await
        .query_one("select count(*) from limits.heavy_permit", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(rows, 8);
}
