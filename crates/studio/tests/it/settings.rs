//! Settings that change at run time: on all replicas, all or nothing, and kept.

mod bounds;
mod bus_away;
mod rules;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use studio::platform::access::Role;

use crate::bed::{Answer, Bed, Session, answer};

const SETTINGS: &str = "/api/v1/settings";

/// A migrated installation with an account for each role, named after it.
async fn bed() -> Bed {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed
}

async fn put(session: &Session, settings: &Value) -> Answer {
    answer(session.request(Method::PUT, SETTINGS).json(&json!({ "settings": settings }))).await
}

/// Changes settings and gives all of them.
async fn set(session: &Session, settings: Value) -> Answer {
    let answer = put(session, &settings).await;
    assert_eq!(answer.status, StatusCode::OK, "{settings}: {}", answer.text());
    answer
}

/// A setting in an answer.
fn setting(answer: &Answer, name: &str) -> Value {
    let all = answer.json();
    let found = all["settings"].as_array().unwrap().iter().find(|own| own["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {all}")).clone()
}

async fn value(session: &Session, name: &str) -> Value {
    let answer = session.get(SETTINGS).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    setting(&answer, name)["value"].clone()
}

async fn administrator(replica: &crate::bed::Replica) -> Session {
    replica.sign_in(Role::Administrator.name()).await
}

/// What the trail says of changed settings, oldest first: outcome, bound and detail.
async fn trail(bed: &Bed) -> Vec<(String, Option<String>, Value)> {
    let rows = bed
        .client()
        .await
        .query(
            "select outcome, bound, detail::text from studio.audit_event \
             where action = 'settings.change' order by id",
            &[],
        )
        .await
        .unwrap();
    let detail = |row: &tokio_postgres::Row| serde_json::from_str(row.get(2)).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), detail(row))).collect()
}
