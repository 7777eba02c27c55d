//! A client that leaves.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime};

use testkit::{TestDatabase, wait_until};
use tokio_postgres::Client;

use super::{ENDLESS, bed, question};
use crate::bed::PATIENCE;

/// Queries of the console that the server runs, and permits that the limits hold, at one moment. The
/// permits are of the statement's beginning, the queries are looked at later.
async fn look(limits: &Client, studio: &TestDatabase) -> (i64, i64) {
    let row = limits
        .query_one(
            "select (select count(distinct permit) from limits.live_permit), count(*)
             from pg_stat_activity
             where datname = $1 and usename like 'studio\\_console\\_%' and state = 'active'",
            &[&studio.name()],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_query_whose_client_left_ends_within_a_second_and_only_then_is_its_permit_free() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("operator").await;
    let limits = bed.limits.client().await;
    for _ in 0..3 {
        let request = tokio::spawn(question(&browser, ENDLESS).send());
        wait_until("the query to run under its permit", PATIENCE, || async {
            look(&limits, &bed.studio).await == (1, 1)
        })
        .await;
        request.abort();
        let left = Instant::now();
        let ended = wait_until("the query to end", PATIENCE, || async {
            let (permits, active) = look(&limits, &bed.studio).await;
            assert!(permits >= active, "a permit was free while its query ran");
            (active == 0).then(|| left.elapsed())
        })
        .await;
        assert!(ended < Duration::from_secs(1), "the query ran on for {ended:?}");
        wait_until("the permit to be free", PATIENCE, || async {
            look(&limits, &bed.studio).await == (0, 0)
        })
        .await;
    }
    let client = bed.client().await;
    wait_until("the trail to say how they ended", PATIENCE, || async {
        let rows = client
            .query("select outcome from studio.audit_event where action = 'sql.query'", &[])
            .await
            .unwrap();
        rows.iter().all(|row| row.get::<_, &str>(0) == "aborted_by_client") && rows.len() == 3
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_shuts_down_stops_its_queries_and_releases_their_permits() {
    let bed = bed().await;
    let replica = bed.replica_with(&[("STUDIO_HTTP_DRAIN_SECONDS", "0")]).await;
    let browser = replica.sign_in("operator").await;
    let limits = bed.limits.client().await;
    let request = tokio::spawn(question(&browser, ENDLESS).send());
    wait_until("the query to run under its permit", PATIENCE, || async {
        look(&limits, &bed.studio).await == (1, 1)
    })
    .await;
    replica.process.terminate();
    assert!(replica.process.wait().await.success());
    assert_eq!(look(&limits, &bed.studio).await, (0, 0));
    drop(request);
}

#[tokio::test]
async fn a_query_that_an_administrator_of_the_database_stops_says_so() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("operator").await;
    let client = bed.client().await;
    for (stop, function) in [("cancelled", "pg_cancel_backend"), ("ended", "pg_terminate_backend")]
    {
        let other = question(&browser, ENDLESS);
        let request = tokio::spawn(async move {
            let response = other.send().await.unwrap();
            (response.status(), response.json::<serde_json::Value>().await.unwrap())
        });
        // At the statement itself, and not on its way there: active at two looks, since the same moment.
        let seen = Cell::new(None);
        wait_until("the query runs", PATIENCE, || async {
            let running = "select query_start from pg_stat_activity
                 where datname = $1 and usename like 'studio\\_console\\_%' and state = 'active'
                     and query like 'select substr(octets%'";
            let row = client.query_opt(running, &[&bed.studio.name()]).await.unwrap();
            let since = row.map(|row| row.get::<_, SystemTime>(0));
            since.is_some() && seen.replace(since) == since
        })
        .await;
        // PostgreSQL drops a cancellation that arrives between two messages of one statement, so the
        // administrator repeats it, as a person would who sees the query run on.
        wait_until(&format!("the query to be {stop}"), PATIENCE, || async {
            let stopped = format!(
                "select {function}(pid) from pg_stat_activity
                 where datname = $1 and usename like 'studio\\_console\\_%' and state = 'active'"
            );
            client.query(&stopped, &[&bed.studio.name()]).await.unwrap();
            request.is_finished()
        })
        .await;
        let (status, answer) = request.await.unwrap();
        assert_eq!(status, 503, "{stop}: {answer}");
        assert_eq!(answer["type"], "/problems/query-stopped", "{stop}: {answer}");
    }
}
