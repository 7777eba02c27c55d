//! A user's cap in shadow mode: it refuses nothing, and tells what it would.

use pg_limits::{Endpoint, LimitsError, Scope};
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::fixture::{WORK, connect, database, granted, live, refused};

#[tokio::test]
async fn in_shadow_mode_a_claim_beyond_the_users_cap_is_granted_and_says_so_on_any_replica() {
    let database = database().await;
    let (one, two) = (connect(&database, WORK, 8).await, connect(&database, WORK, 8).await);
    one.set_shadow("work", true).await.unwrap();
    let within = (granted(&one, &WORK, "ada").await, granted(&two, &WORK, "ada").await);
    assert!(within.0.would_have_been_refused().is_none());
    assert!(within.1.would_have_been_refused().is_none());
    let beyond = granted(&two, &WORK, "ada").await;
    let refusal = beyond.would_have_been_refused().unwrap();
    assert_eq!((refusal.endpoint, refusal.scope), ("work", Scope::User));
    assert_eq!((refusal.limit, refusal.live, refusal.retry_after), (2, 2, None));
    let others = granted(&two, &WORK, "grace").await;
    assert!(others.would_have_been_refused().is_none());
    beyond.release().await;
    // Back in force at once, on the other replica too.
    two.set_shadow("work", false).await.unwrap();
    assert_eq!(refused(&one, &WORK, "ada").await.limit, 2);
}

#[tokio::test]
async fn half_of_the_installation_and_its_cap_refuse_in_shadow_mode_too() {
    let database = database().await;
    let heavy = connect(&database, WORK, 5).await;
    heavy.set_shadow("work", true).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(granted(&heavy, &WORK, "ada").await);
    }
    let refusal = refused(&heavy, &WORK, "ada").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.live), (Scope::User, 3, 3));
    assert!(refusal.retry_after.is_some());
    held.push(granted(&heavy, &WORK, "grace").await);
    held.push(granted(&heavy, &WORK, "grace").await);
    let refusal = refused(&heavy, &WORK, "alan").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.live), (Scope::Installation, 5, 5));
}

#[tokio::test]
async fn the_installations_cap_has_no_shadow_mode() {
    let database = database().await;
    let heavy = connect(&database, WORK, 1).await;
    let error = heavy.set_shadow("installation", true).await.unwrap_err();
    assert!(matches!(error, LimitsError::Config(_)), "{error:?}");
    heavy.set_shadow("installation", false).await.unwrap();
    let client = database.client().await;
    let error = client
        .batch_execute("select limits.set_shadow_v1('installation', true)")
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE));
    let error =
        client.batch_execute("update limits.limit_setting set is_shadow = true").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION));
}

#[tokio::test]
async fn a_cap_of_zero_in_shadow_mode_refuses_nothing() {
    let database = database().await;
    let closed = Endpoint::new("work", 0, WORK.time_bound());
    let heavy = connect(&database, closed, 8).await;
    heavy.set_shadow("work", true).await.unwrap();
    let permit = granted(&heavy, &closed, "ada").await;
    let refusal = permit.would_have_been_refused().unwrap();
    assert_eq!((refusal.limit, refusal.live), (0, 0));
}

#[tokio::test]
async fn shadow_mode_is_kept_while_caps_change_and_replicas_register() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let mode = async || {
        let caps = heavy.caps().await.unwrap();
        let of = |name: &str| caps.iter().find(|cap| cap.name == name).unwrap().clone();
        (of("work").is_shadow, of("work").in_force, of("installation").is_shadow)
    };
    assert_eq!(mode().await, (false, 2, false));
    heavy.set_shadow("work", true).await.unwrap();
    heavy.set_cap("work", Some(1)).await.unwrap();
    assert_eq!(mode().await, (true, 1, false));
    heavy.set_cap("work", None).await.unwrap();
    let other = connect(&database, Endpoint::new("work", 1, WORK.time_bound()), 8).await;
    assert_eq!(mode().await, (true, 1, false));
    // An endpoint that nobody declares yet may be in shadow mode before its first replica comes.
    heavy.set_shadow("later", true).await.unwrap();
    let later = Endpoint::new("later", 1, WORK.time_bound());
    let newer = connect(&database, later, 8).await;
    let _one = granted(&newer, &later, "ada").await;
    let permit = granted(&newer, &later, "ada").await;
    assert_eq!(permit.would_have_been_refused().unwrap().limit, 1);
    drop(other);
}

#[tokio::test]
async fn parallel_claims_in_shadow_mode_tell_exactly_those_beyond_the_cap() {
    let database = database().await;
    let (one, two) = (connect(&database, WORK, 40).await, connect(&database, WORK, 40).await);
    one.set_shadow("work", true).await.unwrap();
    let claims = (0..12).map(|index| {
        let heavy = if index % 2 == 0 { one.clone() } else { two.clone() };
        async move { granted(&heavy, &WORK, "ada").await }
    });
    let held = futures_util::future::join_all(claims).await;
    let mut told: Vec<_> = held
        .iter()
        .filter_map(|permit| permit.would_have_been_refused().map(|refusal| refusal.live))
        .collect();
    told.sort_unstable();
    assert_eq!(told, (2..12).collect::<Vec<u32>>());
}

#[tokio::test]
async fn a_claim_by_hand_sees_the_cap_and_the_count_only_beyond_it() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let claim =
        "select outcome, cap, live from limits.claim_v1($1, 'work', 'ada', null, 1000, 300)";
    heavy.set_shadow("work", true).await.unwrap();
    for (cap, live) in [(None, None), (None, None), (Some(2), Some(2)), (Some(2), Some(3))] {
        let row = client.query_one(claim, &[&Uuid::now_v7()]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "granted");
        assert_eq!((row.get::<_, Option<i32>>(1), row.get::<_, Option<i32>>(2)), (cap, live));
    }
    assert_eq!(live(&client).await, 4);
}
