//! Caps: zero, lowered, raised, and replicas that disagree.

use std::time::Duration;

use futures_util::future::join_all;
use pg_limits::{Claim, Endpoint, Scope};
use uuid::Uuid;

use crate::fixture::{WORK, connect, database, granted, live, refused};

const WIDE: Endpoint = Endpoint::new("work", 100, Duration::from_secs(30));

#[tokio::test]
async fn cap_zero_refuses_everything_and_says_not_to_come_back() {
    let database = database().await;
    let closed = Endpoint::new("work", 0, Duration::from_secs(30));
    let heavy = connect(&database, closed, 8).await;
    let refusal = refused(&heavy, &closed, "ada").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.retry_after), (Scope::User, 0, None));
    heavy.set_cap("work", Some(1)).await.unwrap();
    heavy.set_cap("installation", Some(0)).await.unwrap();
    let refusal = refused(&heavy, &closed, "ada").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.retry_after), (Scope::Installation, 0, None));
}

#[tokio::test]
async fn a_cap_set_at_run_time_holds_on_every_replica_at_once_and_can_be_returned() {
    let database = database().await;
    let (one, two) = (connect(&database, WORK, 8).await, connect(&database, WORK, 8).await);
    one.set_cap("work", Some(1)).await.unwrap();
    let _permit = granted(&one, &WORK, "ada").await;
    assert_eq!(refused(&two, &WORK, "ada").await.limit, 1);
    two.set_cap("work", None).await.unwrap();
    let _second = granted(&one, &WORK, "ada").await;
    assert_eq!(refused(&two, &WORK, "ada").await.limit, 2);
}

#[tokio::test]
async fn replicas_that_disagree_about_a_cap_use_the_smallest_while_it_lives() {
    let database = database().await;
    let three = Endpoint::new("work", 3, Duration::from_secs(30));
    let one = connect(&database, three, 16).await;
    let two = connect(&database, WORK, 8).await;
    let caps = one.caps().await.unwrap();
    let in_force = |name: &str| caps.iter().find(|cap| cap.name == name).unwrap().in_force;
    assert_eq!((in_force("work"), in_force("installation")), (2, 8));
    let _held = (granted(&one, &three, "ada").await, granted(&two, &WORK, "ada").await);
    assert_eq!(refused(&one, &three, "ada").await.limit, 2);
    two.shutdown(Duration::from_secs(10)).await;
    one.set_state(pg_limits::ReplicaState::Ready).await.unwrap();
    let caps = one.caps().await.unwrap();
    assert!(caps.iter().any(|cap| cap.name == "work" && cap.in_force == 3), "{caps:?}");
}

#[tokio::test]
async fn holders_above_a_lowered_cap_count_and_slots_below_it_do_not_admit_more() {
    let database = database().await;
    let heavy = connect(&database, WIDE, 8).await;
    let client = database.client().await;
    let mut held = Vec::new();
    for user in 0..8 {
        held.push(granted(&heavy, &WIDE, &format!("user-{user}")).await);
    }
    heavy.set_cap("installation", Some(4)).await.unwrap();
    // Free the four permits in the lowest slots: four live ones remain, all above the new cap.
    for slot in 0..4_i32 {
        let row = client
            .query_one("select permit from limits.live_permit where slot = $1", &[&slot])
            .await
            .unwrap();
        let id: Uuid = row.get(0);
        let at = held.iter().position(|permit| permit.id() == id).unwrap();
        held.swap_remove(at).release().await;
    }
    assert_eq!(live(&client).await, 4);
    let refusal = refused(&heavy, &WIDE, "late").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.live), (Scope::Installation, 4, 4));
    // One of them goes, and thirty users ask at once: exactly one may have its place.
    held.pop().unwrap().release().await;
    let claims = (0..30).map(|user| {
        let heavy = heavy.clone();
        async move { heavy.claim(&WIDE, &format!("new-{user}")).await.unwrap() }
    });
    let admitted: Vec<_> = join_all(claims)
        .await
        .into_iter()
        .filter_map(|claim| match claim {
            Claim::Granted(permit) => Some(permit),
            Claim::Refused(_) => None,
        })
        .collect();
    assert_eq!((admitted.len(), live(&client).await), (1, 4));
}

#[tokio::test]
async fn a_cap_changed_while_claims_race_is_never_exceeded_by_later_claims() {
    let database = database().await;
    let heavy = connect(&database, WIDE, 12).await;
    let client = database.client().await;
    for round in 0..20 {
        heavy.set_cap("installation", Some(12)).await.unwrap();
        let claims: Vec<_> = (0..12)
            .map(|user| {
                let heavy = heavy.clone();
                tokio::spawn(async move { heavy.claim(&WIDE, &format!("r{round}-{user}")).await })
            })
            .collect();
        heavy.set_cap("installation", Some(3)).await.unwrap();
        let before = live(&client).await;
        let mut held = Vec::new();
        for claim in claims {
            if let Claim::Granted(permit) = claim.await.unwrap().unwrap() {
                held.push(permit);
            }
        }
        // Whoever came after the change found at most three live, whatever came before it.
        assert!(live(&client).await <= before.max(3), "round {round}");
        for permit in held {
            permit.release().await;
        }
    }
}

#[tokio::test]
async fn slots_above_a_lowered_cap_are_swept_and_made_again() {
    let database = database().await;
    let heavy = connect(&database, WIDE, 8).await;
    let client = database.client().await;
    granted(&heavy, &WIDE, "ada").await.release().await;
    heavy.set_cap("installation", Some(2)).await.unwrap();
    assert_eq!(heavy.sweep().await.unwrap(), Some(6));
    let rows: i64 =
        client.query_one("select count(*) from limits.heavy_permit", &[]).await.unwrap().get(0);
    assert_eq!(rows, 2);
    heavy.set_cap("installation", Some(8)).await.unwrap();
    let mut held = Vec::new();
    for user in 0..8 {
        held.push(granted(&heavy, &WIDE, &format!("user-{user}")).await);
    }
    assert_eq!(live(&client).await, 8);
}
