//! What the settings say at run time is what counts.

use http::StatusCode;
use studio::platform::access::Role;

use super::{fail, is_throttled, sign_in};
use crate::bed::{Bed, PASSWORD, Replica};

/// Changes a setting, and waits until the replica has read it.
async fn set(bed: &Bed, replica: &Replica, name: &str, value: &str) {
    let known = changes(replica);
    bed.client()
        .await
        .execute(
            "insert into studio.setting (name, value, changed_by, revision)
             select $1, $2, 'a test', count(*) + 1 from studio.setting",
            &[&name, &value],
        )
        .await
        .unwrap();
    testkit::wait_until("the setting to be in force", crate::bed::PATIENCE, || async {
        changes(replica) > known
    })
    .await;
}

fn changes(replica: &Replica) -> usize {
    replica.process.lines().iter().filter(|line| line.contains("Settings changed")).count()
}

#[tokio::test]
async fn fewer_failures_and_longer_waits_are_in_force_without_a_restart() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    fail(&replica, "anna").await;
    set(&bed, &replica, "login_attempt.failures", "2").await;
    set(&bed, &replica, "login_attempt.first_wait_seconds", "600").await;
    fail(&replica, "anna").await;
    let answer = sign_in(&replica, "anna", PASSWORD, &[]).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(super::retry_after(&answer) > 500);
}

#[tokio::test]
async fn in_shadow_nobody_is_refused_and_it_is_told_who_would_have_been() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    set(&bed, &replica, "login_attempt.mode", "shadow").await;
    for _ in 0..7 {
        fail(&replica, "anna").await;
    }
    let metrics = replica.nobody().get("/metrics").await.text();
    let would =
        r#"pg_limits_attempts_total{throttle="login_attempt",outcome="would_be_throttled"} 2"#;
    assert!(metrics.lines().any(|line| line == would), "{metrics}");
    let counted =
        r#"studio_refusals_total{limit="login_attempt",scope="name_in_network",shadow="true"} 2"#;
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");
    replica
        .process
        .wait_for_line(|line| line.contains("A sign-in would have been throttled"))
        .await;
    let answer = sign_in(&replica, "anna", PASSWORD, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    // Enforced, the same counts refuse again.
    bed.client()
        .await
        .batch_execute("update studio.setting set value = null, revision = revision + 1")
        .await
        .unwrap();
    testkit::wait_until("the mode to be in force", crate::bed::PATIENCE, || async {
        is_throttled(&replica, "anna", &[]).await
    })
    .await;
}
