//! Signing in and out, and how sessions end.

use http::{StatusCode, header};
use serde_json::json;
use studio::platform::access::Role;

use crate::bed::{Bed, PASSWORD, answer};

#[tokio::test]
async fn an_unknown_name_and_a_wrong_password_get_the_same_answer() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    let nobody = replica.nobody();
    let mut answers = Vec::new();
    for (name, password) in [("anna", "wrong"), ("nobody", PASSWORD), ("nobody", "wrong")] {
        let answer =
            nobody.post("/api/v1/session", &json!({ "name": name, "password": password })).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(answer.cookie().is_none());
        let mut body = answer.json();
        body["requestId"] = "".into();
        answers.push((body, answer.headers.len()));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
}

#[tokio::test]
async fn a_name_is_the_same_however_it_is_written() {
    let bed = Bed::new().await;
    bed.account("Jos\u{e9}", Role::Viewer).await;
    let replica = bed.replica().await;
    let session = replica.sign_in("  JOSE\u{301} ").await;
    assert_eq!(session.get("/api/v1/me").await.json()["name"], "jos\u{e9}");
}

#[tokio::test]
async fn every_sign_in_gives_a_new_session_and_ends_the_one_before() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    let first = replica.sign_in("anna").await;
    let again =
        first.post("/api/v1/session", &json!({ "name": "anna", "password": PASSWORD })).await;
    assert_ne!(again.cookie().unwrap(), first.cookie);
    assert_eq!(first.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
    // The database has only hashes.
    let client = bed.client().await;
    let id = again.cookie().unwrap().split('=').nth(1).unwrap().to_owned();
    let found = client
        .query_one(
            "select count(*) from studio.session where id_hash = sha256($1::text::bytea)",
            &[&id],
        )
        .await
        .unwrap();
    assert_eq!(found.get::<_, i64>(0), 1);
}

#[tokio::test]
async fn signing_out_ends_the_session_on_every_replica() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let session = one.sign_in("anna").await;
    assert_eq!(session.at(&other).get("/api/v1/me").await.status, StatusCode::OK);
    assert_eq!(session.at(&other).delete("/api/v1/session").await.status, StatusCode::NO_CONTENT);
    assert_eq!(session.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn sessions_end_when_idle_for_eight_hours_or_a_day_old() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    let client = bed.client().await;
    for (column, age, status) in [
        ("last_used_at", "7 hours 59 minutes", StatusCode::OK),
        ("last_used_at", "8 hours", StatusCode::UNAUTHORIZED),
        ("created_at", "23 hours 59 minutes", StatusCode::OK),
        ("created_at", "24 hours", StatusCode::UNAUTHORIZED),
    ] {
        let session = replica.sign_in("anna").await;
        client
            .batch_execute(&format!(
                "update studio.session set {column} = now() - interval '{age}'"
            ))
            .await
            .unwrap();
        assert_eq!(session.get("/api/v1/me").await.status, status, "{column} {age} ago");
        client.batch_execute("delete from studio.session").await.unwrap();
    }
}

#[tokio::test]
async fn using_a_session_keeps_it_from_idling_away() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    let session = replica.sign_in("anna").await;
    let client = bed.client().await;
    client
        .batch_execute("update studio.session set last_used_at = now() - interval '7 hours'")
        .await
        .unwrap();
    session.get("/api/v1/me").await;
    let row = client
        .query_one("select last_used_at > now() - interval '1 hour' from studio.session", &[])
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
}

#[tokio::test]
async fn a_disabled_account_has_no_session() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    let session = replica.sign_in("anna").await;
    bed.client().await.batch_execute("update studio.account set is_disabled = true").await.unwrap();
    assert_eq!(session.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn cookies_are_strict_and_secure_everywhere_but_on_loopback() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let credentials = json!({ "name": "anna", "password": PASSWORD });
    let plain = bed.replica().await.nobody().post("/api/v1/session", &credentials).await;
    let cookie = plain.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("studio_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");

    let public = "https://studio.example.com";
    let replica = bed.replica_with(&[("STUDIO_HTTP_PUBLIC_ORIGIN", public)]).await;
    let request = reqwest::Client::new()
        .post(format!("{}/api/v1/session", replica.base))
        .header(header::ORIGIN, public)
        .json(&credentials);
    let cookie = answer(request).await.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-studio_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
}

#[tokio::test]
async fn what_changes_something_must_come_from_our_own_origin() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    let session = replica.sign_in("anna").await;
    for origin in [Some("http://evil.example"), Some("null"), None] {
        let mut request = reqwest::Client::new()
            .delete(format!("{}/api/v1/session", replica.base))
            .header(header::COOKIE, &session.cookie);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let answer = answer(request).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (StatusCode::FORBIDDEN, "foreign-origin")
        );
    }
    assert_eq!(session.get("/api/v1/me").await.status, StatusCode::OK);
}

#[tokio::test]
async fn names_and_bodies_that_cannot_be_are_refused_with_a_problem() {
    let bed = Bed::new().await;
    let replica = bed.replica().await;
    let nobody = replica.nobody();
    for body in [
        json!({ "name": "", "password": "x" }),
        json!({ "name": "x".repeat(129), "password": "x" }),
        json!({ "name": "anna" }),
        json!([]),
    ] {
        let answer = nobody.post("/api/v1/session", &body).await;
        assert!(answer.status.is_client_error(), "{body}");
        assert_eq!(answer.problem(), "bad-request", "{body}");
        assert!(answer.json()["requestId"].is_string());
    }
}
