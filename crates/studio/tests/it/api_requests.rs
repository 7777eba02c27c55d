//! What requests by token are counted by: windows and in-flight caps over three replicas.

use http::{Method, StatusCode, header};
use serde_json::json;
use studio::platform::access::Role;
use testkit::{CuttingProxy, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bed::{Answer, Bed, PATIENCE, Replica, answer};

async fn three(bed: &Bed) -> [Replica; 3] {
    [bed.replica().await, bed.replica().await, bed.replica().await]
}

async fn me(replica: &Replica, secret: &str) -> Answer {
    replica.with_token(secret).get("/api/v1/me").await
}

fn field(answer: &Answer, name: &str) -> String {
    answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

async fn counted(bed: &Bed, limit: &str) -> i32 {
    let count = "select coalesce(sum(count), 0)::int4 from limits.window_count where name = $1";
    bed.limits.client().await.query_one(count, &[&limit]).await.unwrap().get(0)
}

async fn in_flight(bed: &Bed) -> i64 {
    let held =
        "select coalesce(sum(held), 0) from limits.in_flight where lapses_at > clock_timestamp()";
    bed.limits.client().await.query_one(held, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_window_of_a_token_is_one_on_three_replicas_and_refused_requests_are_not_counted() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.setting("api_request_window.token", "10").await;
    let secret = bed.token("anna", &["sql.query"]).await;
    let replicas = three(&bed).await;
    for n in 0..10 {
        let answer = me(&replicas[n % 3], &secret).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let left = format!("\"token\";r={};t=", 9 - n);
        assert!(field(&answer, "ratelimit").starts_with(&left), "{:?}", answer.headers);
        assert_eq!(field(&answer, "ratelimit-policy"), "\"token\";q=10;w=60, \"user\";q=1200;w=60");
    }
    for replica in replicas.iter().chain(&replicas) {
        let refused = me(replica, &secret).await;
        assert_eq!(
            (refused.status, refused.problem().as_str()),
            (StatusCode::TOO_MANY_REQUESTS, "rate-limited")
        );
        let body = refused.json();
        assert_eq!((&body["limit"], &body["windowSeconds"]), (&10.into(), &60.into()));
        let seconds: u64 = field(&refused, "retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert!(
            field(&refused, "ratelimit").starts_with("\"token\";r=0;t="),
            "{:?}",
            refused.headers
        );
    }
    assert_eq!(counted(&bed, "api_request_window.token").await, 10);
    assert_eq!(
        counted(&bed, "api_request_window.user").await,
        10,
        "refused in one, counted in none"
    );

    // The edge: the next window has its whole limit, and no more.
    let client = bed.limits.client().await;
    client
        .batch_execute("update limits.window_count set lapses_at = clock_timestamp()")
        .await
        .unwrap();
    let answers =
        futures_util::future::join_all((0..30).map(|n| me(&replicas[n % 3], &secret))).await;
    let admitted = answers.iter().filter(|answer| answer.status == StatusCode::OK).count();
    // More than eight at one time may be refused for that, and are then not counted either.
    let windowed = answers.iter().filter(|answer| {
        answer.status == StatusCode::TOO_MANY_REQUESTS && answer.problem() == "rate-limited"
    });
    assert!(admitted <= 10, "{admitted}");
    assert_eq!(counted(&bed, "api_request_window.token").await, i32::try_from(admitted).unwrap());
    if admitted < 10 {
        assert_eq!(windowed.count(), 0, "nobody is refused by a window that is not full");
    }
}

#[tokio::test]
async fn the_window_of_a_user_is_one_over_all_of_his_tokens_and_sessions_have_none() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.account("bert", Role::Operator).await;
    bed.setting("api_request_window.user", "4").await;
    let tokens = [bed.token("anna", &[]).await, bed.token("anna", &[]).await];
    let replica = bed.replica().await;
    for n in 0..4 {
        assert_eq!(me(&replica, &tokens[n % 2]).await.status, StatusCode::OK);
    }
    let refused = me(&replica, &tokens[0]).await;
    assert_eq!((refused.problem().as_str(), &refused.json()["limit"]), ("rate-limited", &4.into()));
    assert!(field(&refused, "ratelimit").starts_with("\"user\";r=0;t="), "{:?}", refused.headers);
    assert_eq!(me(&replica, &bed.token("bert", &[]).await).await.status, StatusCode::OK);
    let anna = replica.sign_in("anna").await;
    for _ in 0..6 {
        let answer = anna.get("/api/v1/me").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(!answer.headers.contains_key("ratelimit"));
    }
}

/// Every replica has seen the token, so each asks the limits while it looks it up.
#[tokio::test]
async fn what_a_token_asks_after_its_end_is_counted_nowhere() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.setting("api_request_window.user", "8").await;
    let ending = bed.token("anna", &[]).await;
    let (later, staying) = (bed.token("anna", &[]).await, bed.token("anna", &[]).await);
    let replicas = three(&bed).await;
    for replica in &replicas {
        assert_eq!(me(replica, &ending).await.status, StatusCode::OK);
    }
    end_token(&bed, &ending).await;
    for _ in 0..4 {
        for replica in &replicas {
            assert_eq!(me(replica, &ending).await.problem(), "invalid-token");
        }
    }
    wait_until("three are counted, and nothing is in flight", PATIENCE, || async {
        counted(&bed, "api_request_window.user").await == 3
            && counted(&bed, "api_request_window.token").await == 3
            && in_flight(&bed).await == 0
    })
    .await;
    assert_eq!(me(&replicas[2], &later).await.status, StatusCode::OK);
    for _ in 4..8 {
        assert_eq!(me(&replicas[0], &staying).await.status, StatusCode::OK);
    }
    assert_eq!(me(&replicas[2], &later).await.problem(), "rate-limited");

    // That the window is full is nobody's business whose token has ended.
    end_token(&bed, &later).await;
    assert_eq!(me(&replicas[2], &later).await.problem(), "invalid-token");
}

async fn end_token(bed: &Bed, secret: &str) {
    let end =
        "update studio.api_token set revoked_at = clock_timestamp() where id = $1::text::uuid";
    let id = secret.split('_').nth(1).unwrap();
    assert_eq!(bed.client().await.execute(end, &[&id]).await.unwrap(), 1);
}

/// Sends a request whose body never ends: it is in flight until its client leaves.
async fn unfinished(replica: &Replica, secret: &str) -> TcpStream {
    let host = replica.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "POST /api/v1/sql/query HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn eight_in_flight_over_three_replicas_with_aborts_and_kill_9() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let secret = bed.token("anna", &["sql.query"]).await;
    let replicas = three(&bed).await;
    let mut streams = Vec::new();
    for n in 0..8 {
        streams.push(unfinished(&replicas[n % 3], &secret).await);
    }
    wait_until("eight in flight", PATIENCE, || async { in_flight(&bed).await == 8 }).await;
    let windows = counted(&bed, "api_request_window.token").await;
    for replica in &replicas {
        let refused = me(replica, &secret).await;
        assert_eq!(
            (refused.status, refused.problem().as_str()),
            (StatusCode::TOO_MANY_REQUESTS, "too-many-in-flight")
        );
        assert_eq!(refused.json()["limit"], 8);
        assert!(refused.headers.contains_key(header::RETRY_AFTER));
    }
    assert_eq!(counted(&bed, "api_request_window.token").await, windows, "refused is not counted");
    // Another token of the same account has places of its own.
    let other = bed.token("anna", &[]).await;
    assert_eq!(me(&replicas[0], &other).await.status, StatusCode::OK);

    drop(streams);
    wait_until("aborted requests are out", PATIENCE, || async { in_flight(&bed).await == 0 }).await;
    assert_eq!(me(&replicas[1], &secret).await.status, StatusCode::OK);

    let [killed, two, three] = replicas;
    let mut lost = Vec::new();
    for _ in 0..8 {
        lost.push(unfinished(&killed, &secret).await);
    }
    wait_until("eight in flight again", PATIENCE, || async { in_flight(&bed).await == 8 }).await;
    killed.process.kill_9();
    killed.process.wait().await;
    for replica in [&two, &three] {
        assert_eq!(me(replica, &secret).await.problem(), "too-many-in-flight");
    }
    // Their time limit, a minute, brought forward.
    let client = bed.limits.client().await;
    client
        .batch_execute("update limits.in_flight set lapses_at = clock_timestamp()")
        .await
        .unwrap();
    assert_eq!(me(&two, &secret).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_streamed_answer_is_in_flight_until_its_last_byte() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.large_events().await;
    bed.setting("request_in_flight.token", "1").await;
    let secret = bed.token("anna", &["audit.read"]).await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let export = one.with_token(&secret).request(Method::GET, "/api/v1/audit/export");
    let export = export.send().await.unwrap();
    assert_eq!(export.status(), StatusCode::OK);
    assert!(export.headers().contains_key("ratelimit"), "{:?}", export.headers());
    assert_eq!(me(&other, &secret).await.problem(), "too-many-in-flight");
    let file = export.text().await.unwrap();
    assert!(file.trim_end().ends_with('}') && file.contains("\"$end\":\"COMPLETE\""));
    // The place is free with the last byte: whoever comes next finds it so.
    assert_eq!(me(&other, &secret).await.status, StatusCode::OK);
}

#[tokio::test]
async fn preflights_are_free_and_refusals_carry_cors_headers() {
    const PAGE: &str = "https://ops.example.com";
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.setting("api_request_window.token", "1").await;
    let secret = bed.token("anna", &[]).await;
    let replica = bed.replica_with(&[("STUDIO_HTTP_CORS_ORIGINS", PAGE)]).await;
    let program = replica.with_token(&secret);
    for _ in 0..5 {
        let preflight = program
            .request(Method::OPTIONS, "/api/v1/me")
            .header(header::ORIGIN, PAGE)
            .header(header::ACCESS_CONTROL_REQUEST_METHOD, "GET")
            .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "authorization");
        let preflight = answer(preflight).await;
        assert!(preflight.status.is_success(), "{}", preflight.status);
        assert_eq!(preflight.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], PAGE);
    }
    // Neither is one that no page sends.
    assert_eq!(
        answer(program.request(Method::OPTIONS, "/api/v1/me")).await.status.as_u16() / 100,
        2
    );
    assert_eq!(counted(&bed, "api_request_window.token").await, 0);
    let from_page = |path: &'static str| {
        answer(program.request(Method::GET, path).header(header::ORIGIN, PAGE))
    };
    assert_eq!(from_page("/api/v1/me").await.status, StatusCode::OK);
    let refused = from_page("/api/v1/me").await;
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (StatusCode::TOO_MANY_REQUESTS, "rate-limited")
    );
    assert_eq!(refused.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], PAGE);
    assert!(field(&refused, "access-control-expose-headers").contains("retry-after"));
    let elsewhere =
        program.request(Method::GET, "/api/v1/me").header(header::ORIGIN, "https://evil.example");
    assert!(!answer(elsewhere).await.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    // Without the setting nobody of another origin reads anything.
    let closed = bed.replica().await;
    let plain = closed.with_token(&secret);
    let plain = answer(plain.request(Method::GET, "/api/v1/me").header(header::ORIGIN, PAGE)).await;
    assert!(!plain.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn limits_in_shadow_refuse_nothing_and_those_that_are_off_do_not_count() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    for (name, value) in [
        ("api_request_window.token", "1"),
        ("api_request_window.mode", "shadow"),
        ("request_in_flight.token", "0"),
        ("request_in_flight.mode", "shadow"),
    ] {
        bed.setting(name, value).await;
    }
    let secret = bed.token("anna", &[]).await;
    let replica = bed.replica().await;
    for _ in 0..3 {
        assert_eq!(me(&replica, &secret).await.status, StatusCode::OK);
    }
    assert_eq!(counted(&bed, "api_request_window.token").await, 3);
    let metrics = replica.nobody().get("/metrics").await.text();
    assert!(metrics.contains("outcome=\"shadow_refused\"} 3"), "{metrics}");

    bed.setting("api_request_window.mode", "off").await;
    bed.setting("request_in_flight.mode", "off").await;
    let replica = bed.replica().await;
    let answer = me(&replica, &secret).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(!answer.headers.contains_key("ratelimit"));
    assert_eq!(counted(&bed, "api_request_window.token").await, 3);
}

#[tokio::test]
async fn without_the_limits_no_token_gets_in_and_sessions_go_on() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let secret = bed.token("anna", &[]).await;
    let upstream: tokio_postgres::Config = bed.limits_url().parse().unwrap();
    let proxy = CuttingProxy::before(upstream).await;
    let replica = bed.replica_with(&[("STUDIO_DATABASE_LIMITS_URL", &proxy.url())]).await;
    let anna = replica.sign_in("anna").await;
    assert_eq!(me(&replica, &secret).await.status, StatusCode::OK);
    proxy.refuse();
    proxy.cut().await;
    let refused = me(&replica, &secret).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "limits-unavailable"));
    assert_eq!(anna.get("/api/v1/me").await.status, StatusCode::OK);
    proxy.restore();
    wait_until("the token gets in again", PATIENCE, || async {
        me(&replica, &secret).await.status == StatusCode::OK
    })
    .await;
}

#[tokio::test]
async fn a_request_that_its_role_forbids_is_counted_and_one_without_a_valid_token_is_not() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let secret = bed.token("anna", &[]).await;
    let replica = bed.replica().await;
    let forbidden = replica.with_token(&secret).get("/api/v1/audit").await;
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
    let strangers = secret.replace(|letter: char| letter.is_ascii_digit(), "0");
    assert_eq!(me(&replica, &strangers).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(counted(&bed, "api_request_window.token").await, 1);
    let query = json!({ "sql": "select 1" });
    let refused = replica.with_token(&secret).post("/api/v1/sql/query", &query).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.headers.contains_key("x-request-id"));
    let mut rest = String::new();
    // A request that is no request: answered, not counted, and no worker dies of it.
    let host = replica.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(b"GET / HTTP/9\r\n\r\n").await.unwrap();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.starts_with("HTTP/1.1 400"), "{rest}");
    assert_eq!(counted(&bed, "api_request_window.token").await, 2);
}
