//! What comes in the header of a request, and what is noted of it.

use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use testkit::wait_until;

use super::{assert_invalid, make, me};
use crate::bed::{Bed, PATIENCE, answer};

#[tokio::test]
async fn headers_that_are_no_token_are_refused_and_never_break_anything() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let viewer = replica.sign_in("viewer").await;
    let (_, secret) = make(&viewer, &json!({ "name": "x", "grants": [] })).await;
    let stranger = secret.replace("studio_", "").chars().rev().collect::<String>();
    let forged = format!("{}{}", &secret[..41], "0".repeat(63));
    let oversized = format!("Bearer {}", "x".repeat(16 << 10));
    let wrong = [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "bearer x".to_owned(),
        format!("Bearer {secret}x"),
        format!("Bearer {} ", &secret[..secret.len() - 1]),
        format!("Bearer {stranger}"),
        format!("Bearer {forged}"),
        format!("Bearer {}", secret.to_uppercase()),
        format!("Bearer {secret} {secret}"),
        oversized,
    ];
    for value in wrong {
        // Also with a session: whoever sends a token means it.
        let request = viewer
            .request(http::Method::GET, "/api/v1/me")
            .header(header::AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
        assert_invalid(&answer(request).await);
    }
    let bytes = HeaderValue::from_bytes(b"Bearer \xff\xfe").unwrap();
    let request =
        viewer.request(http::Method::GET, "/api/v1/me").header(header::AUTHORIZATION, bytes);
    assert_invalid(&answer(request).await);
    let bearer = format!("Bearer {secret}");
    let request = viewer
        .request(http::Method::GET, "/api/v1/me")
        .header(header::AUTHORIZATION, &bearer)
        .header(header::AUTHORIZATION, &bearer);
    assert_invalid(&answer(request).await);
    // Another scheme is a proxy's business: the session counts, and without one nobody is signed in.
    let request = viewer
        .request(http::Method::GET, "/api/v1/me")
        .header(header::AUTHORIZATION, "Basic YW5uYTpzZWNyZXQ=");
    assert_eq!(answer(request).await.json()["signedInBy"], "session");
    let request = replica
        .nobody()
        .request(http::Method::GET, "/api/v1/me")
        .header(header::AUTHORIZATION, "Basic YW5uYTpzZWNyZXQ=");
    assert_eq!(answer(request).await.problem(), "sign-in-required");
}

#[tokio::test]
async fn a_token_counts_before_a_session_and_cannot_borrow_it() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let secret = bed.token("viewer", &["audit.read", "users.admin"]).await;
    let mut both = administrator.clone();
    both.token = Some(secret);
    assert_eq!(both.get("/api/v1/me").await.json()["name"], "viewer");
    assert_eq!(both.get("/api/v1/audit").await.status, StatusCode::FORBIDDEN);
    for refused in [
        both.get("/api/v1/tokens").await,
        both.post("/api/v1/tokens", &json!({ "name": "x", "grants": [] })).await,
        both.delete("/api/v1/session").await,
    ] {
        assert_eq!(
            (refused.status, refused.problem().as_str()),
            (StatusCode::FORBIDDEN, "session-required")
        );
    }
    assert_eq!(administrator.get("/api/v1/me").await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_last_use_is_noted_once_a_minute() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let secret = bed.token("viewer", &[]).await;
    let client = bed.client().await;
    let last_used = async || -> Option<String> {
        let row = client.query_one("select last_used_at::text from studio.api_token", &[]).await;
        row.unwrap().get(0)
    };
    assert_eq!(last_used().await, None);
    let program = replica.with_token(&secret);
    let requests = (0..20).map(|_| program.get("/api/v1/me"));
    futures_util::future::join_all(requests).await;
    wait_until("the use is noted", PATIENCE, async || last_used().await.is_some()).await;
    let noted = last_used().await;
    // Another replica reads that it was noted within the minute, and leaves it alone.
    let other = bed.replica().await;
    me(&other, &secret).await;
    me(&replica, &secret).await;
    // A replica that stops has done all it had to note.
    for replica in [&replica, &other] {
        replica.process.terminate();
        replica.process.wait().await;
    }
    assert_eq!(last_used().await, noted);
}
