//! Rows go when they mean nothing any more, and a lost table comes back.

use testkit::wait_until;
use tokio_postgres::Client;

use super::{GUESS, NETWORK, admitted, connect, fail, pass, seen, throttled};
use crate::fixture::{PATIENCE, database};

async fn rows(client: &Client) -> i64 {
    client.query_one("select count(*) from limits.throttle", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_row_lapses_with_its_window_and_one_that_was_blocked_when_it_is_forgotten() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    for number in 0..600 {
        fail(&limits, &[(GUESS, &format!("random-{number}"))], 1).await;
    }
    fail(&limits, &[(GUESS, "ada")], 5).await;
    assert_eq!(limits.sweep().await.unwrap(), Some(0));
    pass(&client, "14 minutes").await;
    assert_eq!(limits.sweep().await.unwrap(), Some(0));
    pass(&client, "1 minute").await;
    // In batches, so that nobody waits for long.
    assert_eq!(limits.sweep().await.unwrap(), Some(500));
    assert_eq!(limits.sweep().await.unwrap(), Some(100));
    assert_eq!(rows(&client).await, 1);
    pass(&client, "23 hours 44 minutes").await;
    assert_eq!(limits.sweep().await.unwrap(), Some(0));
    pass(&client, "1 minute").await;
    assert_eq!(limits.sweep().await.unwrap(), Some(1));
}

#[tokio::test]
async fn a_row_with_an_attempt_under_way_stays_and_a_cleared_one_goes() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    fail(&limits, &[(GUESS, "ada")], 3).await;
    let held = admitted(&limits, &[(GUESS, "ada")]).await;
    admitted(&limits, &[(GUESS, "ada")]).await.succeeded().await.unwrap();
    assert_eq!(limits.sweep().await.unwrap(), Some(0));
    held.succeeded().await.unwrap();
    wait_until("the cleared row to lapse", PATIENCE, || async {
        limits.sweep().await.unwrap() == Some(1)
    })
    .await;
    assert_eq!(rows(&client).await, 0);
}

#[tokio::test]
async fn a_dropped_table_is_made_anew_by_whoever_misses_it_first() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    let keys = [(GUESS, "ada"), (NETWORK, "home")];
    fail(&limits, &keys, 5).await;
    let lose = "drop table limits.throttle cascade";
    client.batch_execute(lose).await.unwrap();
    // Nobody knows of the failures any more: that is what unlogged means.
    let (one, other) = (admitted(&limits, &keys).await, admitted(&limits, &keys).await);
    client.batch_execute(lose).await.unwrap();
    one.failed().await.unwrap();
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 1);
    client.batch_execute(lose).await.unwrap();
    other.succeeded().await.unwrap();
    fail(&limits, &keys, 5).await;
    throttled(&limits, &keys).await;
    let blocked = "select count(*) from limits.blocked_key";
    assert_eq!(client.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test]
async fn a_changing_row_leaves_its_index_alone() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    for _ in 0..50 {
        fail(&limits, &[(GUESS, "ada")], 1).await;
        admitted(&limits, &[(GUESS, "ada")]).await.succeeded().await.unwrap();
    }
    client.batch_execute("select pg_stat_force_next_flush()").await.unwrap();
    let updates =
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'throttle'";
    let row = wait_until("the statistics to arrive", PATIENCE, || async {
        let row = client.query_one(updates, &[]).await.unwrap();
        // An attempt writes its reservation, and its end takes it away.
        (row.get::<_, i64>(0) >= 200).then_some(row)
    })
    .await;
    // A page that is full while somebody's snapshot keeps it from being pruned costs one now and then.
    let (updates, hot): (i64, i64) = (row.get(0), row.get(1));
    assert!(hot * 10 >= updates * 9, "{hot} of {updates}");
}
