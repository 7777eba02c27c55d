//! What counts, for whom, and how it is told.

use std::time::Duration;

use http::{StatusCode, header};
use serde_json::json;
use studio::platform::access::Role;
use testkit::wait_until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{checks, counted, fail, is_throttled, retry_after, sign_in, three};
use crate::bed::{Answer, Bed, PASSWORD, PATIENCE, Replica};

#[tokio::test]
async fn five_failures_spread_over_three_replicas_throttle_the_sixth_on_any() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replicas = three(&bed).await;
    for failure in 0..5 {
        fail(&replicas[failure % 3], "viewer").await;
    }
    for replica in &replicas {
        assert!(is_throttled(replica, "viewer", &[]).await);
        assert!(!is_throttled(replica, "operator", &[]).await);
    }
    let limits = bed.limits.client().await;
    limits
        .batch_execute("update limits.throttle set blocked_until = blocked_until - interval '30 s'")
        .await
        .unwrap();
    // The right password clears the name in its network, not the network.
    assert!(!is_throttled(&replicas[0], "viewer", &[]).await);
    let wanted = json!({ "login_attempt_network: 127.0.0.1": 5, "login_attempt_name: viewer": 5 });
    assert_eq!(counted(&limits).await, wanted);
}

/// What an answer shows of the one who asked: all but its request's id and its time.
fn shown(answer: &Answer) -> (StatusCode, serde_json::Value, Vec<(String, String)>) {
    let mut body = answer.json();
    body["requestId"] = "".into();
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| !["date", "x-request-id", "retry-after"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    (answer.status, body, headers)
}

#[tokio::test]
async fn known_unknown_and_disabled_names_are_alike_in_status_body_headers_and_work() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.client()
        .await
        .batch_execute("update studio.account set is_disabled = true where name = 'operator'")
        .await
        .unwrap();
    let replicas = [bed.replica().await];
    let mut known = Vec::new();
    // `viewer` is known, `operator` is disabled and tries its own password, `nobody` is unknown.
    for (name, password) in [("viewer", "wrong"), ("operator", PASSWORD), ("nobody", "wrong")] {
        let mut answers = Vec::new();
        for attempt in 0..7 {
            let before = checks(&replicas).await;
            let answer = sign_in(&replicas[0], name, password, &[]).await;
            let work = checks(&replicas).await - before;
            // One argon2id while it is checked, and none while it is throttled.
            assert_eq!(work, u64::from(attempt < 5), "{name} {attempt}");
            if attempt >= 5 {
                assert!((1..=30).contains(&retry_after(&answer)));
            } else {
                assert!(!answer.headers.contains_key(header::RETRY_AFTER));
            }
            answers.push(shown(&answer));
        }
        assert_eq!(answers[4].0, StatusCode::UNAUTHORIZED);
        assert_eq!(answers[5].0, StatusCode::TOO_MANY_REQUESTS);
        if known.is_empty() {
            known = answers;
        } else {
            assert_eq!(known, answers, "{name}");
        }
    }
    // Nor is the right password told from a wrong one while the name is throttled.
    assert_eq!(shown(&sign_in(&replicas[0], "viewer", PASSWORD, &[]).await), known[5]);
}

#[tokio::test]
async fn a_name_is_counted_as_one_however_it_is_written() {
    let bed = Bed::new().await;
    bed.account("admin", Role::Administrator).await;
    let replica = bed.replica().await;
    let full_width = "\u{ff41}\u{ff44}\u{ff4d}\u{ff49}\u{ff4e}";
    for name in ["ADMIN", " admin ", full_width, "Admin", "adm\u{ff29}n\u{3000}"] {
        fail(&replica, name).await;
    }
    let wanted = json!({
        "login_attempt: 127.0.0.1 admin": 5,
        "login_attempt_network: 127.0.0.1": 5,
        "login_attempt_name: admin": 5,
    });
    assert_eq!(counted(&bed.limits.client().await).await, wanted);
    for name in ["admin", "ADMIN", full_width] {
        assert!(is_throttled(&replica, name, &[]).await, "{name}");
    }
}

#[tokio::test]
async fn names_that_cannot_be_are_refused_before_they_are_counted() {
    let bed = Bed::new().await;
    let replicas = [bed.replica().await];
    for name in ["", "   ", "\u{3000}", "a\u{0}b", &"x".repeat(129), &"x".repeat(100_000)] {
        let answer = sign_in(&replicas[0], name, "wrong", &[]).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
        assert_eq!(answer.problem(), "bad-request");
    }
    // Of ten megabytes no more than the largest body is read.
    let head = head(&replicas[0], 10 << 20);
    let mut stream = connect(&replicas[0]).await;
    stream
        .write_all(format!("{head}{{\"name\":\"{}", "x".repeat(513 << 10)).as_bytes())
        .await
        .unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let limits = bed.limits.client().await;
    let rows = limits.query_one("select count(*) from limits.throttle", &[]).await.unwrap();
    assert_eq!((rows.get::<_, i64>(0), checks(&replicas).await), (0, 0));
}

async fn connect(replica: &Replica) -> TcpStream {
    TcpStream::connect(replica.base.trim_start_matches("http://")).await.unwrap()
}

fn head(replica: &Replica, length: usize) -> String {
    let host = replica.base.trim_start_matches("http://");
    format!(
        "POST /api/v1/session HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_failure_whose_request_was_aborted_stays_counted() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replicas = [bed.replica().await];
    let limits = bed.limits.client().await;
    // The look-up of the account waits, and with it the request, until its client has left.
    let locker = bed.client().await;
    locker.batch_execute("begin; lock table studio.account").await.unwrap();
    let body = json!({ "name": "anna", "password": "wrong" }).to_string();
    let mut stream = connect(&replicas[0]).await;
    let request = format!("{}{body}", head(&replicas[0], body.len()));
    stream.write_all(request.as_bytes()).await.unwrap();
    // Housekeeping may wait for the table too.
    let looks_up = "select count(*) from pg_stat_activity
        where datname = $1 and wait_event_type = 'Lock' and query like '%password_hash%'";
    wait_until("the look-up to wait", PATIENCE, || async {
        limits.query_one(looks_up, &[&bed.studio.name()]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let reserved = "select count(*) from limits.throttle where cardinality(reservations) = 1";
    assert_eq!(limits.query_one(reserved, &[]).await.unwrap().get::<_, i64>(0), 3);
    drop(stream);
    assert_eq!(checks(&replicas).await, 0);
    locker.batch_execute("rollback").await.unwrap();
    let wanted = json!({
        "login_attempt: 127.0.0.1 anna": 1,
        "login_attempt_network: 127.0.0.1": 1,
        "login_attempt_name: anna": 1,
    });
    wait_until("the failure to be counted", PATIENCE, || async {
        counted(&limits).await == wanted
    })
    .await;
    assert_eq!(checks(&replicas).await, 1);
}

#[tokio::test]
async fn a_sign_in_that_could_not_be_checked_is_not_a_failure() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let small = [("STUDIO_DATABASE_MAIN_POOL", "1")];
    let replica = bed.replica_with(&small).await;
    let session = replica.sign_in("anna").await;
    // The only connection of the pool is taken by a request that waits.
    let locker = bed.client().await;
    locker.batch_execute("begin; lock table studio.session").await.unwrap();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.get("/api/v1/me").await }
    });
    let open =
        "select count(*) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'";
    wait_until("the pool to be taken", PATIENCE, || async {
        locker.query_one(open, &[&bed.studio.name()]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let answer = sign_in(&replica, "anna", "wrong", &[]).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
    assert_eq!(answer.problem(), "database-unavailable");
    locker.batch_execute("rollback").await.unwrap();
    assert_eq!(waiting.await.unwrap().status, StatusCode::OK);
    let limits = bed.limits.client().await;
    wait_until("the attempt to be withdrawn", Duration::from_secs(10), || async {
        let left = "select count(*) from limits.throttle where cardinality(reservations) > 0";
        limits.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    assert_eq!(counted(&limits).await, json!({}));
}

#[tokio::test]
async fn whoever_has_a_session_does_not_find_its_password_by_changing_it() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replicas = [bed.replica().await];
    let session = replicas[0].sign_in("anna").await;
    let before = checks(&replicas).await;
    let change = |old: &str| json!({ "oldPassword": old, "newPassword": "another password" });
    for _ in 0..5 {
        let answer = session.post("/api/v1/me/password", &change("wrong")).await;
        assert_eq!(answer.problem(), "wrong-password");
    }
    let answer = session.post("/api/v1/me/password", &change(PASSWORD)).await;
    assert_eq!(answer.problem(), "login-throttled");
    assert_eq!(checks(&replicas).await - before, 5);
    // They are failures of that name, wherever they are made.
    assert!(is_throttled(&replicas[0], "anna", &[]).await);
    assert_eq!(session.get("/api/v1/me").await.status, StatusCode::OK);
}
