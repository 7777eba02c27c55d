//! The audit trail as a file: how it ends, and what the trail says about it.

use bytes::BytesMut;
use http::StatusCode;
use serde_json::Value;
use studio::platform::access::Role;
use testkit::{CuttingProxy, wait_until};

use crate::bed::{Bed, LARGE, PATIENCE, Session};

const EXPORT: &str = "/api/v1/audit/export";

/// The newest export in the trail, once it has an outcome: outcome, bound, rows.
async fn outcome(bed: &Bed) -> (String, Option<String>, i64) {
    let client = bed.client().await;
    wait_until("the export to have an outcome", PATIENCE, || async {
        let row = client
            .query_one(
                "select outcome, bound, row_count from studio.audit_event \
                 where action = 'audit.export' order by id desc limit 1",
                &[],
            )
            .await
            .unwrap();
        let outcome: String = row.get(0);
        (outcome != "open").then(|| (outcome, row.get(1), row.get(2)))
    })
    .await
}

async fn holds_nothing(session: &Session) {
    wait_until("the permit to be free", PATIENCE, || async {
        session.get("/api/v1/limits").await.json()["holders"] == serde_json::json!([])
    })
    .await;
}

async fn begin(session: &Session, query: &str) -> reqwest::Response {
    let response =
        session.request(http::Method::GET, &format!("{EXPORT}{query}")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response
}

/// The lines of a file that did not break.
async fn lines(mut response: reqwest::Response) -> Vec<Value> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        whole.extend_from_slice(&chunk);
    }
    std::str::from_utf8(&whole)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn end(lines: &[Value]) -> (&str, usize) {
    let last = lines.last().unwrap();
    let rows = usize::try_from(last["rows"].as_u64().unwrap()).unwrap();
    assert_eq!(rows, lines.len() - 1, "the mark counts the events");
    (last["$end"].as_str().unwrap(), rows)
}

#[tokio::test]
async fn a_complete_export_has_every_event_and_says_so() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(40_000).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let lines = lines(begin(&anna, "?action=sql.query").await).await;
    assert_eq!(end(&lines), ("COMPLETE", 40_000));
    let ids: Vec<i64> =
        lines.iter().filter_map(|line| line["id"].as_str()).map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids, (1..=40_000).collect::<Vec<_>>());
    assert_eq!(outcome(&bed).await, ("complete".to_owned(), None, 40_000));
    holds_nothing(&anna).await;
}

#[tokio::test]
async fn an_export_of_nothing_is_complete() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let answer = anna.get(&format!("{EXPORT}?actor=nobody&format=csv")).await;
    let text = answer.text();
    assert!(text.starts_with("id,at,actor_id,"), "{text}");
    assert!(text.ends_with("detail\r\n#END,COMPLETE,0\r\n"), "{text}");
    assert_eq!(outcome(&bed).await, ("complete".to_owned(), None, 0));
}

#[tokio::test]
async fn an_export_of_too_many_rows_ends_with_rows() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(1_000).await;
    let replica = bed.replica_with(&[("STUDIO_LIMITS_AUDIT_EXPORT_ROWS", "1000")]).await;
    let anna = replica.sign_in("anna").await;
    // Exactly as many as may be: nothing is missing.
    let whole = lines(begin(&anna, "?action=sql.query").await).await;
    assert_eq!(end(&whole), ("COMPLETE", 1_000));
    holds_nothing(&anna).await;
    let cut = lines(begin(&anna, "").await).await;
    assert_eq!(end(&cut), ("ROWS", 1_000));
    assert_eq!(outcome(&bed).await, ("partial".to_owned(), Some("ROWS".to_owned()), 1_000));
}

#[tokio::test]
async fn an_export_of_too_many_bytes_ends_with_bytes() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(1_000).await;
    let replica = bed.replica_with(&[("STUDIO_LIMITS_AUDIT_EXPORT_BYTES", "100000")]).await;
    let anna = replica.sign_in("anna").await;
    let answer = anna.get(EXPORT).await;
    let mark = answer.text().lines().last().unwrap().len() + 1;
    assert!((99_000..=100_000).contains(&(answer.body.len() - mark)), "{}", answer.body.len());
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (why, rows) = end(&lines);
    assert_eq!(why, "BYTES");
    let rows = i64::try_from(rows).unwrap();
    assert_eq!(outcome(&bed).await, ("partial".to_owned(), Some("BYTES".to_owned()), rows));
}

#[tokio::test]
async fn an_export_that_takes_too_long_ends_with_time() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.large_events().await;
    let replica = bed.replica_with(&[("STUDIO_LIMITS_AUDIT_EXPORT_MS", "8000")]).await;
    let anna = replica.sign_in("anna").await;
    let response = begin(&anna, "").await;
    // The export waits to hand over what it has read, and holds no connection and no lock meanwhile.
    let blocker = bed.client().await;
    blocker
        .batch_execute("begin; lock table studio.audit_event in access exclusive mode")
        .await
        .unwrap();
    let reading = tokio::spawn(lines(response));
    let file = reading.await.unwrap();
    let (why, rows) = end(&file);
    assert_eq!(why, "TIME");
    assert!(rows > 0 && rows < 60_000, "{rows}");
    blocker.batch_execute("rollback").await.unwrap();
    let rows = i64::try_from(rows).unwrap();
    assert_eq!(outcome(&bed).await, ("partial".to_owned(), Some("TIME".to_owned()), rows));
    holds_nothing(&anna).await;
}

#[tokio::test]
async fn an_export_whose_database_dies_breaks_off() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.large_events().await;
    let proxy = CuttingProxy::before(bed.studio.tcp_config()).await;
    let port = testkit::cluster().await.port();
    let url = bed.app_url().replace(&format!("127.0.0.1:{port}"), &proxy.addr().to_string());
    let replica = bed.replica_with(&[("STUDIO_DATABASE_URL", &url)]).await;
    let anna = replica.sign_in("anna").await;
    let response = begin(&anna, "").await;
    proxy.refuse();
    proxy.cut().await;
    // The connection breaks: no reader can take the file for a whole one.
    assert!(response.bytes().await.is_err());
    proxy.restore();
    let (outcome, bound, rows) = outcome(&bed).await;
    assert_eq!((outcome.as_str(), bound.as_deref()), ("failed", Some("database")));
    assert!(rows < LARGE, "{rows}");
    holds_nothing(&anna).await;
}

#[tokio::test]
async fn an_export_whose_client_leaves_is_stopped() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.large_events().await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let mut response = begin(&anna, "").await;
    response.chunk().await.unwrap().unwrap();
    drop(response);
    let (outcome, bound, rows) = outcome(&bed).await;
    assert_eq!((outcome.as_str(), bound), ("aborted_by_client", None));
    assert!(rows > 0 && rows < LARGE, "{rows}");
    holds_nothing(&anna).await;
}

#[tokio::test]
async fn a_client_that_leaves_while_rows_are_read_ends_the_query() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(10).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let (client, blocker) = (bed.client().await, bed.client().await);
    // Reading rows waits, writing the trail does not.
    blocker.batch_execute("begin; alter table studio.audit_event rename to hidden").await.unwrap();
    let waiting = || async {
        let sql = "select from pg_stat_activity where datname = current_database() \
                   and usename = 'studio_app' and wait_event_type = 'Lock'";
        client.query(sql, &[]).await.unwrap().len()
    };
    let request = tokio::spawn(anna.request(http::Method::GET, EXPORT).send());
    wait_until("a statement to wait", PATIENCE, || async { waiting().await == 1 }).await;
    request.abort();
    blocker.batch_execute("rollback").await.unwrap();
    wait_until("nothing to wait", PATIENCE, || async { waiting().await == 0 }).await;
    let (outcome, ..) = outcome(&bed).await;
    assert_eq!(outcome, "aborted_by_client");
    holds_nothing(&anna).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_bounded_and_holds_no_connection() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.large_events().await;
    let replica = bed.replica_with(&[("STUDIO_LIMITS_AUDIT_EXPORT_MS", "1000")]).await;
    let anna = replica.sign_in("anna").await;
    let response = begin(&anna, "").await;
    let client = bed.client().await;
    wait_until("the replica's connections to be idle", PATIENCE, || async {
        let busy = "select from pg_stat_activity where datname = current_database() \
                    and usename = 'studio_app' and state <> 'idle'";
        client.query(busy, &[]).await.unwrap().is_empty()
    })
    .await;
    // Still under way, and so is its permit: another one is refused.
    let refused = anna.get(EXPORT).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.json()["limit"], 1);
    // Ten seconds after its bound it is over, whether the client reads or not.
    let (outcome, _, rows) = outcome(&bed).await;
    assert_eq!(outcome, "aborted_by_client");
    assert!(rows < LARGE, "{rows}");
    holds_nothing(&anna).await;
    assert!(response.bytes().await.is_err());
}

#[tokio::test]
async fn cells_that_spreadsheets_run_are_disarmed_in_the_file() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let client = bed.client().await;
    for target in ["=1+1", " +1", "-1", "@x", "a,\"b\"\r\nc", "plain"] {
        client
            .execute(
                "insert into studio.audit_event (actor, action, target, outcome, row_count, detail) \
                 values ('mallory', 'sql.query', $1, 'complete', -5, '{}')",
                &[&target],
            )
            .await
            .unwrap();
    }
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let answer = anna.get(&format!("{EXPORT}?actor=mallory&format=csv")).await;
    assert_eq!(
        answer.headers[http::header::CONTENT_DISPOSITION],
        "attachment; filename=\"audit.csv\""
    );
    let text = answer.text();
    for cell in [",'=1+1,", ",' +1,", ",'-1,", ",'@x,", ",\"a,\"\"b\"\"\r\nc\",", ",plain,"] {
        assert!(text.contains(cell), "{cell:?} in {text}");
    }
    // A number stays a number.
    assert!(text.contains(",complete,,-5,,"), "{text}");
    assert!(text.ends_with("#END,COMPLETE,6\r\n"), "{text}");
}

#[tokio::test]
async fn an_export_ends_behind_the_oldest_running_writer() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let (client, mut writer) = (bed.client().await, bed.client().await);
    let insert = "insert into studio.audit_event (actor, action, target, outcome, detail) \
                  values ('writer', 'sql.query', $1, 'complete', '{}')";
    client.execute(insert, &[&"before"]).await.unwrap();
    let open = writer.transaction().await.unwrap();
    open.execute(insert, &[&"slow"]).await.unwrap();
    client.execute(insert, &[&"after"]).await.unwrap();
    let targets = || async {
        let lines = lines(begin(&anna, "?actor=writer").await).await;
        holds_nothing(&anna).await;
        lines
            .iter()
            .filter_map(|line| line["target"].as_str().map(ToOwned::to_owned))
            .collect::<Vec<_>>()
    };
    // `slow` will be older than `after`: a reader that goes on behind this file would miss it.
    assert_eq!(targets().await, ["before"]);
    open.commit().await.unwrap();
    assert_eq!(targets().await, ["before", "slow", "after"]);
}

#[tokio::test]
async fn who_writes_elsewhere_holds_no_export_back() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let mut elsewhere = bed.client().await;
    let open = elsewhere.transaction().await.unwrap();
    open.batch_execute("create table public.elsewhere ()").await.unwrap();
    bed.events(10).await;
    let lines = lines(begin(&anna, "?action=sql.query").await).await;
    assert_eq!(end(&lines), ("COMPLETE", 10));
}

#[tokio::test]
async fn events_from_another_servers_dump_are_exported() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(10).await;
    bed.client()
        .await
        .batch_execute("update studio.audit_event set writer = '900000000000' where id % 2 = 0")
        .await
        .unwrap();
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let lines = lines(begin(&anna, "?action=sql.query").await).await;
    assert_eq!(end(&lines), ("COMPLETE", 10));
}
