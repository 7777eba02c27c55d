//! How a token ends, or gets less.

use http::StatusCode;
use serde_json::json;
use testkit::wait_until;

use super::{assert_invalid, make, me};
use crate::bed::{Bed, PATIENCE};

#[tokio::test]
async fn a_lowered_role_narrows_its_tokens_at_once() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let operator = replica.sign_in("operator").await;
    let grants = json!({ "name": "x", "grants": ["audit.read", "sql.query"] });
    let (_, secret) = make(&operator, &grants).await;
    let client = bed.client().await;
    for (role, permissions, status) in [
        ("viewer", json!(["sql.query"]), StatusCode::FORBIDDEN),
        // A role that was raised again gives back what the token was granted, never more.
        ("administrator", json!(["audit.read", "sql.query"]), StatusCode::OK),
    ] {
        client
            .execute("update studio.account set role = $1 where name = 'operator'", &[&role])
            .await
            .unwrap();
        assert_eq!(me(&replica, &secret).await.json()["permissions"], permissions);
        let program = replica.with_token(&secret);
        assert_eq!(program.get("/api/v1/audit?size=1").await.status, status, "{role}");
    }
}

#[tokio::test]
async fn a_token_ends_when_it_expires_is_revoked_or_its_owner_is_disabled() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (replica, other) = (bed.replica().await, bed.replica().await);
    let viewer = replica.sign_in("viewer").await;
    let client = bed.client().await;
    let wish = json!({ "name": "x", "grants": [], "expiresInDays": 90 });

    let (_, expiring) = make(&viewer, &wish).await;
    let age = "update studio.api_token set created_at = created_at - interval '90 days' + interval '5 minutes', \
               expires_at = expires_at - interval '90 days' + interval '5 minutes'";
    client.batch_execute(age).await.unwrap();
    assert_eq!(me(&replica, &expiring).await.status, StatusCode::OK);
    let age = "update studio.api_token set created_at = created_at - interval '5 minutes', \
               expires_at = expires_at - interval '5 minutes'";
    client.batch_execute(age).await.unwrap();
    assert_invalid(&me(&replica, &expiring).await);

    let (id, revoked) = make(&viewer, &wish).await;
    let gone = viewer.delete(&format!("/api/v1/tokens/{id}")).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_invalid(&me(&other, &revoked).await);
    let again = viewer.delete(&format!("/api/v1/tokens/{id}")).await;
    assert_eq!(again.status, StatusCode::NO_CONTENT);
    let rotated = viewer.post(&format!("/api/v1/tokens/{id}/rotate"), &json!({})).await;
    assert_eq!(rotated.problem(), "token-ended");

    let (_, disabled) = make(&viewer, &wish).await;
    client
        .batch_execute("update studio.account set is_disabled = true where name = 'viewer'")
        .await
        .unwrap();
    assert_invalid(&me(&replica, &disabled).await);
}

#[tokio::test]
async fn after_a_rotation_the_old_secret_goes_on_for_a_day() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let viewer = replica.sign_in("viewer").await;
    let (id, first) = make(&viewer, &json!({ "name": "x", "grants": [] })).await;
    let rotate = async || {
        let rotated = viewer.post(&format!("/api/v1/tokens/{id}/rotate"), &json!({})).await;
        assert_eq!(rotated.status, StatusCode::OK, "{}", rotated.text());
        let rotated = rotated.json();
        assert_eq!(rotated["token"]["id"], id.as_str());
        rotated["secret"].as_str().unwrap().to_owned()
    };
    let second = rotate().await;
    assert_ne!(first, second);
    for secret in [&first, &second] {
        assert_eq!(me(&replica, secret).await.status, StatusCode::OK);
    }
    // A second rotation leaves one old secret, not two.
    let third = rotate().await;
    assert_invalid(&me(&replica, &first).await);
    for secret in [&second, &third] {
        assert_eq!(me(&replica, secret).await.status, StatusCode::OK);
    }
    let client = bed.client().await;
    for (passed, status) in
        [("23 hours 59 minutes", StatusCode::OK), ("1 minute", StatusCode::UNAUTHORIZED)]
    {
        client
            .batch_execute(&format!(
                "update studio.api_token set previous_valid_until = previous_valid_until - interval '{passed}'"
            ))
            .await
            .unwrap();
        assert_eq!(me(&replica, &second).await.status, status, "{passed} later");
    }
    assert_eq!(me(&replica, &third).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_account_that_is_being_disabled_gets_no_token_more() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let viewer = replica.sign_in("viewer").await;
    let mut holder = bed.client().await;
    let disabling = holder.transaction().await.unwrap();
    disabling
        .batch_execute("update studio.account set is_disabled = true where name = 'viewer'")
        .await
        .unwrap();
    let making = tokio::spawn(async move {
        viewer.post("/api/v1/tokens", &json!({ "name": "x", "grants": [] })).await
    });
    bed.waiting(1).await;
    disabling.commit().await.unwrap();
    let refused = making.await.unwrap();
    assert_eq!(refused.problem(), "sign-in-required");
    let client = bed.client().await;
    let made = client.query_one("select count(*) from studio.api_token", &[]).await.unwrap();
    assert_eq!(made.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn tokens_are_forgotten_a_month_after_their_end() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.token("viewer", &[]).await;
    let client = bed.client().await;
    let age = async |age: &str| {
        let sql = format!(
            "update studio.api_token set created_at = now() - interval '70 days', \
             expires_at = now() + interval '1 day', revoked_at = now() - interval '{age}'"
        );
        client.batch_execute(&sql).await.unwrap();
    };
    age("29 days 23 hours").await;
    bed.token("viewer", &[]).await;
    client
        .batch_execute(
            "update studio.api_token set created_at = now() - interval '70 days', \
             expires_at = now() - interval '30 days' where revoked_at is null",
        )
        .await
        .unwrap();
    let _replica = bed.replica().await;
    let count = async || -> i64 {
        client.query_one("select count(*) from studio.api_token", &[]).await.unwrap().get(0)
    };
    wait_until("the expired token is forgotten", PATIENCE, async || count().await == 1).await;
    age("30 days").await;
    wait_until("the revoked one too", PATIENCE, async || count().await == 0).await;
}
