//! The limits' database goes away and comes back.

use http::StatusCode;
use serde_json::json;
use studio::platform::access::Role;
use testkit::{CuttingProxy, wait_until};

use crate::bed::{Answer, Bed, PATIENCE, Session};

async fn heavy(anna: &Session) -> [Answer; 3] {
    [
        anna.post("/api/v1/sql/query", &json!({ "sql": "select 1" })).await,
        anna.get("/api/v1/audit?size=1").await,
        anna.get("/api/v1/audit/export").await,
    ]
}

#[tokio::test]
async fn without_the_limits_nothing_heavy_runs_and_all_recovers_by_itself() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    let upstream: tokio_postgres::Config = bed.limits_url().parse().unwrap();
    let proxy = CuttingProxy::before(upstream).await;
    let replica = bed.replica_with(&[("STUDIO_DATABASE_LIMITS_URL", &proxy.url())]).await;
    let anna = replica.sign_in("anna").await;
    for answer in heavy(&anna).await {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    let before = acts(&bed).await;

    proxy.refuse();
    proxy.cut().await;
    for answer in heavy(&anna).await {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
        assert_eq!(answer.problem(), "limits-unavailable");
        assert!(answer.headers.contains_key(http::header::RETRY_AFTER), "{:?}", answer.headers);
    }
    assert_eq!(acts(&bed).await, before, "what was not admitted did not begin");
    // What needs no permit goes on, and the replica stays in the balancer's rotation: another would do no better.
    for path in ["/livez", "/readyz", "/metrics", "/api/v1/sql/catalogue"] {
        assert_eq!(anna.get(path).await.status, StatusCode::OK, "{path}");
    }
    let limits = anna.get("/api/v1/limits").await;
    assert_eq!((limits.status.as_u16(), limits.problem().as_str()), (503, "limits-unavailable"));

    proxy.restore();
    wait_until("the console to be admitted again", PATIENCE, || async {
        let query = anna.post("/api/v1/sql/query", &json!({ "sql": "select 1" })).await;
        query.status == StatusCode::OK
    })
    .await;
    for answer in heavy(&anna).await {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    wait_until("every permit to be back", PATIENCE, || async {
        anna.get("/api/v1/limits").await.json()["holders"] == json!([])
    })
    .await;
}

/// The acts that the trail knows.
async fn acts(bed: &Bed) -> i64 {
    let count =
        "select count(*) from studio.audit_event where action in ('sql.query', 'audit.export')";
    bed.client().await.query_one(count, &[]).await.unwrap().get(0)
}
