//! Failed sign-ins, counted over three replicas.

mod away;
mod bounded;
mod networks;
mod parallel;
mod rules;
mod settings;

use std::sync::LazyLock;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::bed::{Answer, Bed, PASSWORD, Replica, answer};

/// Sign-ins wait for each other for ten seconds at most: tests that want the whole machine take turns.
static TURN: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// Signs in with a password, perhaps as a proxy would pass it on.
async fn sign_in(
    replica: &Replica,
    name: &str,
    password: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = replica
        .nobody()
        .request(http::Method::POST, "/api/v1/session")
        .json(&json!({ "name": name, "password": password }));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answer(request).await
}

async fn fail(replica: &Replica, name: &str) {
    let answer = sign_in(replica, name, "wrong", &[]).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text());
}

/// Whether the right password is let in, or the name is throttled.
async fn is_throttled(replica: &Replica, name: &str, headers: &[(&str, &str)]) -> bool {
    let answer = sign_in(replica, name, PASSWORD, headers).await;
    match answer.status {
        StatusCode::TOO_MANY_REQUESTS => {
            assert_eq!(answer.problem(), "login-throttled");
            assert!(retry_after(&answer) >= 1);
            true
        }
        StatusCode::OK | StatusCode::UNAUTHORIZED => false,
        status => panic!("{status}: {}", answer.text()),
    }
}

fn retry_after(answer: &Answer) -> u64 {
    answer.headers[http::header::RETRY_AFTER].to_str().unwrap().parse().unwrap()
}

/// How many passwords the replicas have checked, each with one argon2id.
async fn checks(replicas: &[Replica]) -> u64 {
    let mut sum = 0;
    for replica in replicas {
        let metrics = replica.nobody().get("/metrics").await.text();
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("studio_password_checks_total "));
        sum += line.map_or(0, |count| count.parse::<u64>().unwrap());
    }
    sum
}

async fn three(bed: &Bed) -> [Replica; 3] {
    let (one, two, three) = tokio::join!(bed.replica(), bed.replica(), bed.replica());
    [one, two, three]
}

/// The failures of each row of the throttle, by its name and key.
async fn counted(client: &Client) -> Value {
    let rows = client
        .query("select name, key, failures from limits.throttle where failures > 0", &[])
        .await
        .unwrap();
    let of = |row: &tokio_postgres::Row| {
        (
            format!("{}: {}", row.get::<_, &str>(0), row.get::<_, &str>(1)),
            row.get::<_, i32>(2).into(),
        )
    };
    Value::Object(rows.iter().map(of).collect())
}
