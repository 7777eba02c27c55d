//! What is counted, what blocks, for how long, and what is forgotten.

use std::time::Duration;

use pg_limits::{Config, Limits, LimitsError, Throttle};
use testkit::wait_until;
use uuid::Uuid;

use super::{GUESS, NETWORK, Seen, admitted, connect, fail, pass, replicas, seen, throttled};
use crate::fixture::{PATIENCE, database};

const ADA: [(Throttle, &str); 1] = [(GUESS, "ada")];

#[tokio::test]
async fn five_failures_spread_over_three_replicas_throttle_the_sixth_on_any() {
    let database = database().await;
    let replicas = replicas(&database).await;
    for failure in 0..5 {
        fail(&replicas[failure % 3], &ADA, 1).await;
    }
    for replica in &replicas {
        let refusal = throttled(replica, &ADA).await;
        assert_eq!(refusal.name, "guess");
        let wait = refusal.retry_after;
        assert!(wait > Duration::from_secs(20) && wait <= Duration::from_secs(30), "{wait:?}");
    }
    admitted(&replicas[0], &[(GUESS, "grace")]).await.succeeded().await.unwrap();
}

#[tokio::test]
async fn an_attempt_while_throttled_writes_nothing_and_takes_no_transaction_id() {
    let database = database().await;
    let limits = connect(&database).await;
    let mut client = database.client().await;
    fail(&limits, &ADA, 5).await;
    let version = "select xmin::text, ctid::text, blocked_until::text from limits.throttle";
    let before = client.query_one(version, &[]).await.unwrap();
    throttled(&limits, &[(GUESS, "ada"), (NETWORK, "home")]).await;
    let rows = client.query(version, &[]).await.unwrap();
    assert_eq!(rows.len(), 1, "the other key got no row");
    for column in 0..3 {
        assert_eq!(before.get::<_, &str>(column), rows[0].get::<_, &str>(column));
    }
    let transaction = client.transaction().await.unwrap();
    let row = transaction
        .query_one(
            "select outcome from limits.attempt_v1($1, '{guess}', '{ada}', '{5}', '{f}', 15000)",
            &[&Uuid::now_v7()],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, &str>(0), "throttled");
    let row = transaction
        .query_one("select pg_current_xact_id_if_assigned() is null", &[])
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
}

#[tokio::test]
async fn blocks_double_up_to_the_longest_and_are_forgotten_a_day_after_the_last_failure() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    fail(&limits, &ADA, 4).await;
    let four = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!(four, Seen { failures: 4, level: 0, blocked_s: 0, reservations: 0 });
    fail(&limits, &ADA, 1).await;
    // Each failure after a block, in the same window or not, blocks for twice as long.
    for wanted in [30, 60, 120, 240, 480, 900, 900] {
        let blocked = throttled(&limits, &ADA).await.retry_after.as_secs_f64();
        assert!(blocked > f64::from(wanted) - 10.0 && blocked <= f64::from(wanted), "{blocked}");
        pass(&client, &format!("{wanted} s")).await;
        // The window of a quarter of an hour may have ended: then it takes five again.
        let open = "select window_ends_at > clock_timestamp() from limits.throttle";
        let is_open: bool = client.query_one(open, &[]).await.unwrap().get(0);
        fail(&limits, &ADA, if is_open { 1 } else { 5 }).await;
    }
    pass(&client, "23 hours 59 minutes").await;
    fail(&limits, &ADA, 5).await;
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().blocked_s, 900);
    pass(&client, "24 hours").await;
    fail(&limits, &ADA, 5).await;
    let first_again = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((first_again.level, first_again.blocked_s), (1, 30));
}

#[tokio::test]
async fn the_window_begins_at_the_first_failure() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    fail(&limits, &ADA, 1).await;
    pass(&client, "14 minutes").await;
    fail(&limits, &ADA, 3).await;
    pass(&client, "1 minute").await;
    // The four are over, though three of them are a minute old.
    fail(&limits, &ADA, 4).await;
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 4);
    fail(&limits, &ADA, 1).await;
    throttled(&limits, &ADA).await;
}

#[tokio::test]
async fn after_a_block_within_the_window_attempts_go_one_by_one() {
    let database = database().await;
    let brief = Config::new(database.config(), 1, &[]).attempt_wait(Duration::from_millis(50));
    let limits = Limits::connect(brief).await.unwrap();
    let client = database.client().await;
    fail(&limits, &ADA, 5).await;
    pass(&client, "30 s").await;
    let one = admitted(&limits, &ADA).await;
    assert!(matches!(limits.attempt(&ADA).await, Err(LimitsError::Undecided)));
    one.succeeded().await.unwrap();
    // The success cleared the key: all five places are there again.
    let mut five = Vec::new();
    for _ in 0..5 {
        five.push(admitted(&limits, &ADA).await);
    }
    assert!(matches!(limits.attempt(&ADA).await, Err(LimitsError::Undecided)));
}

#[tokio::test]
async fn a_success_clears_its_key_but_neither_the_network_nor_others_reservations() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    let keys = [(GUESS, "ada"), (NETWORK, "home")];
    fail(&limits, &keys, 3).await;
    let other = admitted(&limits, &keys).await;
    admitted(&limits, &keys).await.succeeded().await.unwrap();
    let key = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!(key, Seen { failures: 0, level: 0, blocked_s: 0, reservations: 1 });
    let network = seen(&client, "network", "home").await.unwrap();
    assert_eq!(network, Seen { failures: 3, level: 0, blocked_s: 0, reservations: 1 });
    other.failed().await.unwrap();
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 1);
    assert_eq!(seen(&client, "network", "home").await.unwrap().failures, 4);
}

#[tokio::test]
async fn a_dropped_attempt_is_withdrawn_and_counts_neither_way() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    fail(&limits, &ADA, 3).await;
    drop(admitted(&limits, &ADA).await);
    wait_until("the reservation is withdrawn", PATIENCE, || async {
        let row = seen(&client, "guess", "ada").await.unwrap();
        row == Seen { failures: 3, level: 0, blocked_s: 0, reservations: 0 }
    })
    .await;
}

#[tokio::test]
async fn keys_are_taken_all_or_none() {
    let database = database().await;
    let brief = Config::new(database.config(), 1, &[]).attempt_wait(Duration::from_millis(50));
    let limits = Limits::connect(brief).await.unwrap();
    let client = database.client().await;
    let narrow = Throttle::new("narrow", 1, Duration::from_mins(10));
    let held = admitted(&limits, &[(narrow, "home")]).await;
    let both = [(GUESS, "ada"), (narrow, "home")];
    assert!(matches!(limits.attempt(&both).await, Err(LimitsError::Undecided)));
    assert_eq!(seen(&client, "guess", "ada").await, None);
    held.failed().await.unwrap();
    assert_eq!(throttled(&limits, &both).await.name, "narrow");
    assert_eq!(seen(&client, "guess", "ada").await, None);
}

#[tokio::test]
async fn of_several_blocked_keys_the_longest_block_is_told() {
    let database = database().await;
    let limits = connect(&database).await;
    let long = Throttle::new("long", 5, Duration::from_mins(10))
        .waits(Duration::from_mins(2), Duration::from_mins(2));
    let both = [(GUESS, "ada"), (long, "home")];
    fail(&limits, &both, 5).await;
    let refusal = throttled(&limits, &both).await;
    assert_eq!(refusal.name, "long");
    assert!(refusal.retry_after > Duration::from_mins(1));
}

#[tokio::test]
async fn a_failure_whose_reservation_has_lapsed_still_counts_and_frees_nobody_elses_place() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    fail(&limits, &ADA, 4).await;
    let late = admitted(&limits, &ADA).await;
    pass(&client, "15 s").await;
    let successor = admitted(&limits, &ADA).await;
    late.failed().await.unwrap();
    let row = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((row.failures, row.level, row.reservations), (5, 1, 1));
    throttled(&limits, &ADA).await;
    // Its own failure comes on top.
    successor.failed().await.unwrap();
    let row = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((row.failures, row.level, row.blocked_s, row.reservations), (6, 2, 60, 0));
}

#[tokio::test]
async fn a_failure_later_than_any_reservation_is_kept_counts_too() {
    let database = database().await;
    let brief = Config::new(database.config(), 1, &[]).reservation(Duration::from_millis(50));
    let limits = Limits::connect(brief).await.unwrap();
    let client = database.client().await;
    let late = admitted(&limits, &ADA).await;
    wait_until("the attempt to be forgotten", PATIENCE, || async {
        // The next attempt removes what is four times as old as a reservation.
        admitted(&limits, &ADA).await.succeeded().await.unwrap();
        seen(&client, "guess", "ada").await.unwrap().reservations == 0
    })
    .await;
    late.failed().await.unwrap();
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 1);
}

#[tokio::test]
async fn settling_twice_counts_once() {
    let database = database().await;
    let client = database.client().await;
    let limits = connect(&database).await;
    let id = Uuid::now_v7();
    let ask = "select outcome from limits.attempt_v1($1, '{guess}', '{ada}', '{5}', '{f}', 15000)";
    let fail = "select limits.fail_attempt_v1(
        $1, '{guess}', '{ada}', '{5}', '{900000}', '{30000}', '{900000}', '{86400000}', false)";
    let end = "select limits.end_attempt_v1($1, '{guess}', '{ada}', '{t}')";
    assert_eq!(client.query_one(ask, &[&id]).await.unwrap().get::<_, &str>(0), "admitted");
    for counted in [1, 0] {
        assert_eq!(client.query_one(fail, &[&id]).await.unwrap().get::<_, i32>(0), counted);
    }
    // Neither does a success that comes after it clear what was counted.
    assert_eq!(client.query_one(end, &[&id]).await.unwrap().get::<_, i32>(0), 0);
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 1);
    drop(limits);
}

#[tokio::test]
async fn a_snapshot_that_is_not_fresh_is_refused() {
    let database = database().await;
    let client = database.client().await;
    client.batch_execute("begin isolation level repeatable read").await.unwrap();
    let ask = "select limits.attempt_v1($1, '{guess}', '{ada}', '{5}', '{f}', 15000)";
    let error = client.query_one(ask, &[&Uuid::now_v7()]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "25000");
}
