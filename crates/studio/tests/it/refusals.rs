//! Refusals over time: what replicas have counted adds up, once.

use http::StatusCode;
use serde_json::{Value, json};
use studio::platform::access::Role;
use studio::platform::database::Pools;
use studio::platform::refusals::{self, Refusals};
use testkit::{CuttingProxy, wait_until};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::bed::{Bed, PATIENCE, Session, answer};

const HISTORY: &str = "/api/v1/limits/history";

/// An installation where the console refuses everybody.
async fn refusing() -> Bed {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    cap(&bed, Some(0)).await;
    bed
}

async fn cap(bed: &Bed, cap: Option<i32>) {
    let client = bed.limits.client().await;
    client.execute("select limits.set_cap_v1('sql_console', $1)", &[&cap]).await.unwrap();
}

async fn refused(session: &Session, times: usize) {
    for _ in 0..times {
        let answer = session.post("/api/v1/sql/query", &json!({ "sql": "select 1" })).await;
        assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{}", answer.text());
    }
}

/// What the history of the last hour has of one kind.
fn sum(history: &Value, limit: &str, is_shadow: bool) -> i64 {
    history["counts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|count| count["limit"] == limit && count["isShadow"] == is_shadow)
        .map(|count| count["count"].as_i64().unwrap())
        .sum()
}

async fn shown(session: &Session, limit: &str, is_shadow: bool) -> i64 {
    let answer = session.get(HISTORY).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    sum(&answer.json(), limit, is_shadow)
}

/// What the table has, in rows of each length; all are the same.
async fn kept(client: &Client) -> i64 {
    let sums = client
        .query("select sum(count)::int8 from studio.refusal_count group by minutes", &[])
        .await
        .unwrap();
    let sums: Vec<i64> = sums.iter().map(|row| row.get(0)).collect();
    assert!(sums.is_empty() || sums.len() == refusals::SPANS.len(), "{sums:?}");
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
    sums.first().copied().unwrap_or(0)
}

async fn waiting(client: &Client) -> i64 {
    let count = "select count(*) from pg_stat_activity where datname = current_database() \
                 and wait_event_type = 'Lock' and usename = 'studio_app'";
    client.query_one(count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn refusals_on_three_replicas_add_up_and_those_in_shadow_stand_apart() {
    let bed = refusing().await;
    let (one, two, three) = tokio::join!(bed.replica(), bed.replica(), bed.replica());
    let anna = one.sign_in("anna").await;
    for (replica, times) in [(&one, 2), (&two, 3), (&three, 4)] {
        refused(&anna.at(replica), times).await;
    }
    wait_until("all to be counted", PATIENCE, async || {
        shown(&anna.at(&two), "sql_console", false).await == 9
    })
    .await;
    assert_eq!(shown(&anna, "sql_console", true).await, 0);

    let shadow = "select limits.set_shadow_v1('sql_console', true)";
    bed.limits.client().await.execute(shadow, &[]).await.unwrap();
    let query = anna.post("/api/v1/sql/query", &json!({ "sql": "select 1" })).await;
    assert_eq!(query.status, StatusCode::OK, "{}", query.text());
    wait_until("the one in shadow", PATIENCE, async || {
        shown(&anna, "sql_console", true).await == 1
    })
    .await;
    assert_eq!(shown(&anna, "sql_console", false).await, 9);

    for n in 0..6 {
        let wrong = json!({ "name": "nobody", "password": "wrong" });
        let status = one.nobody().post("/api/v1/session", &wrong).await.status;
        assert_eq!(status == StatusCode::TOO_MANY_REQUESTS, n == 5);
    }
    wait_until("the sign-in", PATIENCE, async || shown(&anna, "login_attempt", false).await == 1)
        .await;
    let of_one = anna.get(&format!("{HISTORY}?limit=login_attempt")).await.json();
    let counts = of_one["counts"].as_array().unwrap();
    assert!(counts.iter().all(|count| count["limit"] == "login_attempt"), "{of_one}");
    assert_eq!(kept(&bed.client().await).await, 11);
}

#[tokio::test]
async fn refusals_wait_for_a_database_that_is_away() {
    let bed = refusing().await;
    let upstream: tokio_postgres::Config = bed.app_url().parse().unwrap();
    let proxy = CuttingProxy::before(upstream).await;
    let replica = bed.replica_with(&[("STUDIO_DATABASE_URL", &proxy.url())]).await;
    let anna = replica.sign_in("anna").await;
    refused(&anna, 3).await;
    proxy.refuse();
    proxy.cut().await;
    // Whoever signs in needs the database, so that nothing more is refused meanwhile.
    let lost = |line: &str| line.contains("The database is unavailable");
    replica.process.wait_for_line(lost).await;
    proxy.restore();
    let client = bed.client().await;
    wait_until("the counts", PATIENCE, async || kept(&client).await == 3).await;
}

#[tokio::test]
async fn a_flush_whose_answer_was_lost_is_added_once() {
    let bed = Bed::new().await;
    let upstream: tokio_postgres::Config = bed.app_url().parse().unwrap();
    let proxy = CuttingProxy::before(upstream).await;
    let pools = Pools::new(proxy.url().parse().unwrap(), 2).unwrap();
    let (counted, replica) = (Refusals::default(), Uuid::now_v7());
    let client = bed.client().await;
    for _ in 0..5 {
        counted.count("sql_console", "user", false);
    }
    // The statement has arrived and waits when its connection is cut: it will be carried out, and nobody told.
    let mut blocker = bed.client().await;
    let block = blocker.transaction().await.unwrap();
    block.batch_execute("lock table studio.refusal_count in share mode").await.unwrap();
    let flush = || {
        let (counted, pools) = (counted.clone(), pools.clone());
        tokio::spawn(async move { counted.flush(&pools, replica).await })
    };
    let lost = flush();
    wait_until("the first to wait", PATIENCE, async || waiting(&client).await == 1).await;
    proxy.cut().await;
    assert!(lost.await.unwrap().is_err());
    counted.count("sql_console", "user", false);
    let again = flush();
    wait_until("the second to wait", PATIENCE, async || waiting(&client).await == 2).await;
    block.commit().await.unwrap();
    again.await.unwrap().unwrap();
    wait_until("nobody to wait", PATIENCE, async || waiting(&client).await == 0).await;
    assert_eq!(kept(&client).await, 6);
    let batch = "select batch from studio.refusal_flush";
    assert_eq!(client.query_one(batch, &[]).await.unwrap().get::<_, i64>(0), 2);
}

#[tokio::test]
async fn a_kill_loses_at_most_what_was_not_flushed_and_a_stop_nothing() {
    let bed = refusing().await;
    let client = bed.client().await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    refused(&anna, 3).await;
    wait_until("the first to be counted", PATIENCE, async || kept(&client).await == 3).await;
    refused(&anna, 2).await;
    replica.process.kill_9();
    replica.process.wait().await;
    let after_kill = kept(&client).await;
    assert!((3..=5).contains(&after_kill), "{after_kill}");

    let replica = bed.replica().await;
    refused(&anna.at(&replica), 4).await;
    replica.process.terminate();
    replica.process.wait().await;
    assert_eq!(kept(&client).await, after_kill + 4);
}

#[tokio::test]
async fn a_long_period_is_answered_in_longer_buckets_and_the_oldest_are_deleted() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let client = bed.client().await;
    client.batch_execute(include_str!("refusals/long.sql")).await.unwrap();
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let now = jiff::Timestamp::now();
    let mut lengths = Vec::new();
    for hours in [0, 1, 6, 24, 7 * 24, 31 * 24] {
        let minutes = if hours == 0 { 30 } else { hours * 60 };
        let from = now.checked_sub(jiff::SignedDuration::from_mins(minutes)).unwrap();
        let answer = anna.get(&format!("{HISTORY}?from={from}&to={now}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert!(answer.body.len() <= 256 << 10, "{}", answer.body.len());
        let history = answer.json();
        let counts = history["counts"].as_array().unwrap();
        assert!(!counts.is_empty() && counts.len() <= 1_500, "{hours} h: {}", counts.len());
        let times: Vec<&str> = counts.iter().map(|count| count["at"].as_str().unwrap()).collect();
        assert!(times.is_sorted());
        lengths.push(history["bucketMinutes"].as_i64().unwrap());
    }
    assert_eq!(lengths, [1, 10, 10, 60, 360, 1_440]);
    for wrong in [
        "from=yesterday",
        "to=2026-13-01",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z",
        "size=1",
    ] {
        let refused = anna.get(&format!("{HISTORY}?{wrong}")).await;
        assert_eq!(refused.problem(), "bad-request", "{wrong}");
    }
    let nobody = answer(replica.nobody().request(http::Method::GET, HISTORY)).await;
    assert_eq!(nobody.problem(), "sign-in-required");

    let old = "select count(*) from studio.refusal_count where begins_at < clock_timestamp() - interval '30 days'";
    wait_until("the oldest to be deleted", PATIENCE, async || {
        client.query_one(old, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    assert!(kept_lengths(&client).await == refusals::SPANS.len(), "what is younger stays");
}

async fn kept_lengths(client: &Client) -> usize {
    let lengths = "select distinct minutes from studio.refusal_count";
    client.query(lengths, &[]).await.unwrap().len()
}
