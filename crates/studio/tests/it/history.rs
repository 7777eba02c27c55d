//! The audit trail, page by page.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::Value;
use studio::features::audit::{AuditEvent, AuditPage};
use studio::platform::access::Role;
use testkit::wait_until;

use crate::bed::{Bed, PATIENCE, Session};

async fn page(session: &Session, query: &str) -> AuditPage {
    let answer = session.get(&format!("/api/v1/audit?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

async fn problem(session: &Session, query: &str) -> (StatusCode, String) {
    let answer = session.get(&format!("/api/v1/audit?{query}")).await;
    (answer.status, answer.problem())
}

/// Everything that a filter leaves, page by page.
async fn walk(session: &Session, query: &str) -> Vec<AuditEvent> {
    let mut next = Some(String::new());
    let mut events = Vec::new();
    while let Some(after) = next {
        let after = if after.is_empty() { after } else { format!("&after={after}") };
        let page = page(session, &format!("{query}{after}")).await;
        events.extend(page.items);
        next = page.next;
    }
    events
}

fn ids(events: &[AuditEvent]) -> Vec<i64> {
    events.iter().map(|event| event.id.parse().unwrap()).collect()
}

async fn expected(bed: &Bed, filter: &str) -> Vec<i64> {
    let sql = format!("select id from studio.audit_event where {filter} order by at desc, id desc");
    bed.client().await.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn cursors_lose_and_repeat_nothing_among_equal_times() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.client()
        .await
        .batch_execute(
            "insert into studio.audit_event (at, actor, action, target, outcome, detail) \
             select timestamptz '2026-01-01' + number % 7 * interval '1 microsecond', \
                    'even', 'sql.query', 'x', 'complete', '{}' from generate_series(1, 500) as number",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    let session = replica.sign_in("anna").await;
    for size in [1_usize, 37, 500] {
        let events = walk(&session, &format!("actor=even&size={size}")).await;
        assert_eq!(ids(&events), expected(&bed, "actor = 'even'").await, "size {size}");
    }
}

#[tokio::test]
async fn rows_deleted_between_pages_end_nothing() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(300).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let first = page(&anna, "size=100&action=sql.query").await;
    let last = first.items.last().unwrap().id.parse::<i64>().unwrap();
    let client = bed.client().await;
    client
        .execute("delete from studio.audit_event where id in ($1::int8, $1 - 1)", &[&last])
        .await
        .unwrap();
    let rest = walk_from(&anna, "size=100&action=sql.query", first.next).await;
    let expected: Vec<i64> = expected(&bed, "action = 'sql.query'").await;
    assert_eq!(rest, expected.into_iter().filter(|id| *id < last).collect::<Vec<_>>());
}

async fn walk_from(session: &Session, query: &str, mut next: Option<String>) -> Vec<i64> {
    let mut found = Vec::new();
    while let Some(after) = next {
        let page = page(session, &format!("{query}&after={after}")).await;
        found.extend(ids(&page.items));
        next = page.next;
    }
    found
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_filter_only() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(100).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let next = page(&anna, "size=10&actor=even").await.next.unwrap();
    assert_eq!(page(&anna, &format!("size=20&actor=EVEN&after={next}")).await.items.len(), 20);
    let mut changed = next.clone();
    changed.replace_range(9..10, if &next[9..10] == "0" { "1" } else { "0" });
    for query in [
        format!("actor=odd&after={next}"),
        format!("after={next}"),
        format!("actor=even&action=sql.query&after={next}"),
        format!("actor=even&from=2020-01-01T00:00:00Z&after={next}"),
        format!("actor=even&after={changed}"),
        "actor=even&after=".to_owned(),
        "actor=even&after=%27%20or%20true--".to_owned(),
    ] {
        let expected = (StatusCode::BAD_REQUEST, "invalid-cursor".to_owned());
        assert_eq!(problem(&anna, &query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn page_numbers_reach_ten_thousand_rows_and_cursors_all() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(10_000).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let query = "action=sql.query&size=500";
    let last = page(&anna, &format!("{query}&page=20")).await;
    assert_eq!((last.items.len(), last.total, last.total_is_at_least), (500, Some(10_000), None));
    assert_eq!(last.next, None);
    assert_eq!(page(&anna, &format!("{query}&page=3&actor=none")).await.total, Some(0));

    bed.events(1).await;
    let last = page(&anna, &format!("{query}&page=20")).await;
    assert_eq!((last.total, last.total_is_at_least), (None, Some(10_000)));
    // A cursor goes on where page numbers end.
    let behind = page(&anna, &format!("{query}&after={}", last.next.unwrap())).await;
    assert_eq!((behind.items.len(), behind.total, behind.next), (1, None, None));

    let answer = anna.get(&format!("/api/v1/audit?{query}&page=21")).await;
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (StatusCode::BAD_REQUEST, "page-too-deep")
    );
    let problem = answer.json();
    assert_eq!(problem["rowLimit"], 10_000);
    assert!(problem["detail"].as_str().unwrap().contains("`after`"));
}

#[tokio::test]
async fn filters_leave_what_they_name() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.events(200).await;
    let client = bed.client().await;
    client
        .batch_execute(
            "update studio.audit_event set action = 'audit.export' where id % 3 = 0; \
             update studio.audit_event set outcome = 'partial', bound = 'ROWS' where id % 5 = 0; \
             update studio.audit_event set at = timestamptz '2026-01-01' + id * interval '1 second'",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let (from, to) = ("2026-01-01T00:01:00Z", "2026-01-01T04:02:00%2B02:00");
    for (query, filter) in [
        ("actor=even", "actor = 'even'"),
        ("action=audit.export", "action = 'audit.export'"),
        ("outcome=partial", "outcome = 'partial'"),
        ("actor=odd&action=audit.export", "actor = 'odd' and action = 'audit.export'"),
        ("actor=odd&outcome=partial", "actor = 'odd' and outcome = 'partial'"),
        ("action=sql.query&outcome=partial", "action = 'sql.query' and outcome = 'partial'"),
        (
            "actor=odd&action=audit.export&outcome=partial",
            "actor = 'odd' and action = 'audit.export' and outcome = 'partial'",
        ),
        ("actor=nobody", "false"),
    ] {
        let whole = ids(&walk(&anna, &format!("{query}&size=7")).await);
        assert_eq!(whole, expected(&bed, filter).await, "{query}");
        let within = walk(&anna, &format!("{query}&size=7&from={from}&to={to}")).await;
        let filter = format!(
            "{filter} and at >= timestamptz '2026-01-01 00:01:00+00' and at < timestamptz '2026-01-01 02:02:00+00'"
        );
        assert_eq!(ids(&within), expected(&bed, &filter).await, "{query} within");
    }
    for query in [
        "outcome=nonsense",
        "from=yesterday",
        "size=0",
        "size=501",
        "page=0",
        "color=red",
        "actor=",
    ] {
        let refused = problem(&anna, query).await;
        assert_eq!(refused, (StatusCode::BAD_REQUEST, "bad-request".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn a_page_too_large_is_cut_by_cursor_and_refused_by_number() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let client = bed.client().await;
    client
        .batch_execute(
            "insert into studio.audit_event (actor, action, target, outcome, detail) \
             select 'big', 'sql.query', 'x', 'complete', jsonb_build_object('text', repeat('x', 1048576)) \
             from generate_series(1, 40)",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let first = anna.get("/api/v1/audit?actor=big&size=40").await;
    assert!(first.body.len() <= 16 << 20, "{}", first.body.len());
    assert_eq!(first.json()["items"].as_array().unwrap().len(), 15);
    assert_eq!(ids(&walk(&anna, "actor=big&size=40").await), expected(&bed, "actor = 'big'").await);
    let refused = problem(&anna, "actor=big&size=40&page=1").await;
    assert_eq!(refused, (StatusCode::BAD_REQUEST, "answer-too-large".to_owned()));
}

#[tokio::test]
async fn events_are_given_as_documented() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let client = bed.client().await;
    client
        .batch_execute(
            "insert into studio.audit_event \
             (id, at, actor_id, actor, action, target, outcome, bound, row_count, detail, request_id, finished_at) \
             overriding system value values (9007199254740993, '2026-01-31 23:59:59.000001+00', \
             '01a235fb-9c98-74a2-b410-8d24d2cc28e1', 'quote \" and \\ ', 'tab \t', E'line\\nend', \
             'partial', 'ROWS', 9223372036854775807, '{\"a\": [1, null]}', null, null)",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let page = anna.get("/api/v1/audit?outcome=partial").await.json();
    let expected: Value = serde_json::json!([{
        "id": "9007199254740993",
        "at": "2026-01-31T23:59:59.000001Z",
        "actorId": "01a235fb-9c98-74a2-b410-8d24d2cc28e1",
        "actor": "quote \" and \\ ",
        "action": "tab \t",
        "target": "line\nend",
        "outcome": "partial",
        "bound": "ROWS",
        "rows": "9223372036854775807",
        "finishedAt": null,
        "requestId": null,
        "detail": { "a": [1, null] },
    }]);
    assert_eq!(page["items"], expected);
}

const WAITING: &str = "select pid from pg_stat_activity \
     where datname = current_database() and usename = 'studio_app' and wait_event_type = 'Lock' and query like '-- One page%'";

async fn waiting(client: &tokio_postgres::Client) -> BTreeSet<i32> {
    client.query(WAITING, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn the_query_of_a_client_that_left_ends_and_only_then_is_its_permit_free() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let client = bed.client().await;
    let blocker = bed.client().await;
    blocker.batch_execute("begin; lock table studio.audit_event").await.unwrap();
    let request = tokio::spawn(anna.request(http::Method::GET, "/api/v1/audit").send());
    wait_until("the query to wait for the lock", PATIENCE, || async {
        !waiting(&client).await.is_empty()
    })
    .await;
    let pids: Vec<i32> = waiting(&client).await.into_iter().collect();
    request.abort();
    wait_until("the query to end", PATIENCE, || async { waiting(&client).await.is_empty() }).await;
    // Its connection is closed, not lent again: a late cancel would hit the next borrower.
    wait_until("its connection to close", PATIENCE, || async {
        let alive = "select from pg_stat_activity where pid = any($1)";
        client.query(alive, &[&pids]).await.unwrap().is_empty()
    })
    .await;
    wait_until("its permit to be free", PATIENCE, || async {
        anna.get("/api/v1/limits").await.json()["holders"] == serde_json::json!([])
    })
    .await;
    blocker.batch_execute("rollback").await.unwrap();
    assert_eq!(anna.get("/api/v1/audit").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_read_is_stopped_at_its_time_bound() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let (client, blocker) = (bed.client().await, bed.client().await);
    blocker.batch_execute("begin; lock table studio.audit_event").await.unwrap();
    let answer = anna.get("/api/v1/audit").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.problem(), "heavy-request-timed-out");
    let problem = answer.json();
    assert_eq!(
        (&problem["endpoint"], &problem["timeBoundSeconds"]),
        (&"audit_history".into(), &10.into())
    );
    // The answer comes after the end of the query, not before.
    assert!(waiting(&client).await.is_empty());
}

#[tokio::test]
async fn a_query_stopped_by_an_administrator_is_told_as_that() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let replica = bed.replica().await;
    let anna = replica.sign_in("anna").await;
    let (client, blocker) = (bed.client().await, bed.client().await);
    for stop in ["pg_cancel_backend", "pg_terminate_backend"] {
        blocker.batch_execute("begin; lock table studio.audit_event").await.unwrap();
        let asking = anna.clone();
        let request = tokio::spawn(async move { asking.get("/api/v1/audit").await });
        wait_until("the query to wait for the lock", PATIENCE, || async {
            !waiting(&client).await.is_empty()
        })
        .await;
        client
            .query(&format!("select {stop}(pid) from ({WAITING}) as waiting"), &[])
            .await
            .unwrap();
        let answer = request.await.unwrap();
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{stop}");
        assert_eq!(answer.problem(), "query-stopped", "{stop}");
        blocker.batch_execute("rollback").await.unwrap();
    }
}

#[tokio::test]
async fn a_fifth_page_of_one_user_is_refused_on_every_replica() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let anna = one.sign_in("anna").await;
    let (client, blocker) = (bed.client().await, bed.client().await);
    blocker.batch_execute("begin; lock table studio.audit_event").await.unwrap();
    let requests: Vec<_> = (0..4)
        .map(|number| {
            let asking = if number % 2 == 0 { anna.clone() } else { anna.at(&other) };
            tokio::spawn(async move { asking.get("/api/v1/audit").await.status })
        })
        .collect();
    wait_until("four queries to wait", PATIENCE, || async { waiting(&client).await.len() == 4 })
        .await;
    for session in [anna.clone(), anna.at(&other)] {
        let refused = session.get("/api/v1/audit").await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(
            refused.headers[http::header::RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap()
                >= 1
        );
        let problem = refused.json();
        assert_eq!(problem["type"], "/problems/too-many-heavy-requests");
        assert_eq!(
            (&problem["endpoint"], &problem["limit"], &problem["scope"]),
            (&"audit_history".into(), &4.into(), &"user".into())
        );
    }
    blocker.batch_execute("rollback").await.unwrap();
    for request in requests {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
}
