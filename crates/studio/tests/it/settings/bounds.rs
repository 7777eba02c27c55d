//! What is changed on one replica bounds the next request on another, and is named there.

use http::StatusCode;
use serde_json::{Value, json};
use testkit::wait_until;

use super::{administrator, bed, set};
use crate::bed::{Answer, Bed, PATIENCE, Replica, Session};

/// Runs for hours and gives one row at its end.
const ENDLESS: &str = "with recursive n(i) as materialized \
     (select 1 union all select n.i + 1 from n where n.i < 3000) \
     select sum((select count(*) from n b, n c where b.i + c.i > a.i)) from n a";

async fn two(bed: &Bed) -> (Replica, Replica, Session, Session) {
    let (one, other) = tokio::join!(bed.replica(), bed.replica());
    let here = administrator(&one).await;
    let there = here.at(&other);
    (one, other, here, there)
}

async fn ask(session: &Session, sql: &str) -> Answer {
    session.post("/api/v1/sql/query", &json!({ "sql": sql })).await
}

/// Asks until an answer is as wanted.
async fn becomes(
    what: &str,
    ask: impl AsyncFn() -> Answer,
    is: impl Fn(&Answer) -> bool,
) -> Answer {
    wait_until(what, PATIENCE, async || {
        let answer = ask().await;
        is(&answer).then_some(answer)
    })
    .await
}

fn end(file: &Answer) -> Value {
    file.text().lines().last().map(|line| serde_json::from_str(line).unwrap()).unwrap()
}

#[tokio::test]
async fn a_console_answer_is_cut_at_the_rows_and_bytes_in_force_and_says_so() {
    let bed = bed().await;
    bed.events(50).await;
    let (_one, _other, here, there) = two(&bed).await;
    let all = "select id from audit_event";
    let whole = ask(&there, all).await.json();
    assert_eq!((&whole["complete"], &whole["limits"]["rows"]), (&json!(true), &json!(10_000)));

    set(&here, json!({ "sql_console.rows": 7 })).await;
    let query = async || ask(&there, all).await;
    let cut = becomes("seven rows", query, |answer| answer.json()["bound"] == "ROWS").await.json();
    assert_eq!(cut["rowCount"], 7);
    assert_eq!(cut["rows"].as_array().unwrap().len(), 7);
    assert_eq!(cut["limits"]["rows"], 7);
    let shown = there.get("/api/v1/sql/catalogue").await.json();
    assert_eq!(shown["limits"]["rows"], 7);

    set(&here, json!({ "sql_console.rows": null, "sql_console.bytes": 65_536 })).await;
    let long = "select a.at, b.at, a.id from audit_event a, audit_event b";
    let query = async || ask(&there, long).await;
    let cut = becomes("64 KiB", query, |answer| answer.json()["bound"] == "BYTES").await;
    assert!(cut.body.len() <= 65_536, "{}", cut.body.len());
    assert_eq!(cut.json()["limits"]["answerBytes"], 65_536);
}

#[tokio::test]
async fn a_query_is_stopped_at_the_time_bound_in_force_and_the_problem_names_it() {
    let bed = bed().await;
    let (_one, _other, here, there) = two(&bed).await;
    set(&here, json!({ "sql_console.time_bound_seconds": 1 })).await;
    let shown = async || there.get("/api/v1/sql/catalogue").await;
    becomes("one second", shown, |shown| shown.json()["limits"]["timeBoundSeconds"] == 1).await;
    let stopped = ask(&there, ENDLESS).await;
    assert_eq!(stopped.problem(), "heavy-request-timed-out", "{}", stopped.text());
    assert_eq!(stopped.json()["timeBoundSeconds"], 1);
}

#[tokio::test]
async fn an_export_ends_at_the_rows_and_bytes_in_force() {
    let bed = bed().await;
    bed.events(50).await;
    let (_one, _other, here, there) = two(&bed).await;
    let export = async || there.get("/api/v1/audit/export").await;
    set(&here, json!({ "audit_export.rows": 11 })).await;
    let cut = becomes("eleven rows", export, |file| end(file)["$end"] == "ROWS").await;
    assert_eq!(end(&cut)["rows"], 11);
    assert_eq!(cut.text().lines().count(), 12);

    bed.events(1_000).await;
    set(&here, json!({ "audit_export.rows": null, "audit_export.bytes": 65_536 })).await;
    let cut = becomes("64 KiB", export, |file| end(file)["$end"] == "BYTES").await;
    assert!(cut.body.len() <= 65_536 + 100, "{}", cut.body.len());
}

#[tokio::test]
async fn a_page_of_the_trail_has_at_most_the_rows_in_force() {
    let bed = bed().await;
    bed.events(50).await;
    let (_one, _other, here, there) = two(&bed).await;
    set(&here, json!({ "audit_history.rows": 20 })).await;
    let page = async || there.get("/api/v1/audit").await;
    let count = |page: &Answer| page.json()["items"].as_array().unwrap().len();
    becomes("twenty rows", page, |page| count(page) == 20).await;
    let refused = there.get("/api/v1/audit?size=21").await;
    assert_eq!(refused.problem(), "bad-request");
    assert!(refused.text().contains("between 1 and 20"), "{}", refused.text());
}

#[tokio::test]
async fn a_cap_its_shadow_a_number_and_a_mode_hold_on_another_replica() {
    let bed = bed().await;
    let secret = bed.token("administrator", &["sql.query"]).await;
    let (_one, other, here, there) = two(&bed).await;

    // Caps and their shadows are read by the claim itself: they hold for the very next one.
    set(&here, json!({ "sql_console.per_user": 0 })).await;
    let refused = ask(&there, "select 1").await;
    assert_eq!(refused.problem(), "too-many-heavy-requests");
    let told = refused.json();
    assert_eq!((&told["limit"], &told["scope"]), (&json!(0), &json!("user")));
    set(&here, json!({ "sql_console.mode": "shadow" })).await;
    assert_eq!(ask(&there, "select 1").await.status, StatusCode::OK);
    set(&here, json!({ "sql_console.mode": null })).await;
    assert_eq!(ask(&there, "select 1").await.status, StatusCode::TOO_MANY_REQUESTS);
    set(&here, json!({ "sql_console.per_user": null })).await;
    assert_eq!(ask(&there, "select 1").await.status, StatusCode::OK);
    set(&here, json!({ "installation.cap": 0 })).await;
    assert_eq!(ask(&there, "select 1").await.json()["scope"], "installation");

    let program = other.with_token(&secret);
    let me = async || program.get("/api/v1/me").await;
    set(&here, json!({ "api_request_window.token": 0 })).await;
    becomes("no requests by token", me, |answer| answer.status.as_u16() == 429).await;
    set(&here, json!({ "api_request_window.mode": "shadow" })).await;
    becomes("the window in shadow", me, |answer| answer.status == StatusCode::OK).await;
}
