//! How a replica ends.

use studio::platform::access::Role;
use testkit::wait_until;

use crate::bed::{Bed, PATIENCE};

#[tokio::test]
async fn a_replica_told_to_stop_ends_well_and_gives_its_permits_back() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Operator).await;
    bed.large_events().await;
    let (one, other) =
        (bed.replica_with(&[("STUDIO_HTTP_DRAIN_SECONDS", "0")]).await, bed.replica().await);
    let anna = one.sign_in("anna").await;
    // Held by a client that does not read on.
    let export = anna.request(http::Method::GET, "/api/v1/audit/export").send().await.unwrap();
    assert!(export.status().is_success());
    one.process.terminate();
    let status = one.process.wait().await;
    assert!(status.success(), "{status}: {:#?}", one.process.lines());
    // A broken file, not a short one.
    assert!(export.bytes().await.is_err());

    let limits = anna.at(&other).get("/api/v1/limits").await.json();
    assert_eq!(limits["holders"], serde_json::json!([]), "{limits}");
    let client = bed.client().await;
    let row = client
        .query_one(
            "select outcome, bound from studio.audit_event where action = 'audit.export'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get("outcome"), row.get("bound")), ("failed", "replica shut down"));
    let registry = anna.at(&other).get("/api/v1/replicas").await.json();
    let mut seen: Vec<&str> = registry["replicas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|replica| replica["state"].as_str().unwrap())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, ["ready", "stopped"]);
}

#[tokio::test]
async fn an_act_whose_replica_died_becomes_interrupted() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    client
        .batch_execute(
            "insert into studio.audit_event (actor, action, target, detail, overdue_at) values \
             ('a', 'sql.query', 'overdue', '{}', now() - interval '1 second'), \
             ('a', 'sql.query', 'under way', '{}', now() + interval '1 hour')",
        )
        .await
        .unwrap();
    let _replica = bed.replica().await;
    wait_until("the overdue act to be marked", PATIENCE, || async {
        let outcomes =
            client.query("select outcome from studio.audit_event order by id", &[]).await.unwrap();
        let outcomes: Vec<&str> = outcomes.iter().map(|row| row.get(0)).collect();
        outcomes == ["interrupted", "open"]
    })
    .await;
}

#[tokio::test]
async fn readiness_follows_the_database() {
    let bed = Bed::new().await;
    let proxy = testkit::CuttingProxy::before(bed.studio.tcp_config()).await;
    let url = bed.app_url().replace(
        &format!("127.0.0.1:{}", testkit::cluster().await.port()),
        &proxy.addr().to_string(),
    );
    let replica = bed.replica_with(&[("STUDIO_DATABASE_URL", &url)]).await;
    let nobody = replica.nobody();
    assert!(nobody.get("/readyz").await.status.is_success());
    proxy.refuse();
    proxy.cut().await;
    wait_until("the replica to be unready", PATIENCE, || async {
        nobody.get("/readyz").await.status == http::StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert!(nobody.get("/livez").await.status.is_success());
    proxy.restore();
    wait_until("the replica to be ready again", PATIENCE, || async {
        nobody.get("/readyz").await.status.is_success()
    })
    .await;
}
