//! The command line.

use http::StatusCode;
use serde_json::json;

use crate::bed::{Bed, text};

#[tokio::test]
async fn serving_without_a_schema_is_refused_with_what_to_do() {
    let bed = Bed::bare().await;
    // The role that serves exists once anything was migrated in this cluster.
    drop(Bed::new().await);
    let output = bed.run(&["serve"], &[]).await;
    assert!(!output.status.success());
    assert!(text(&output).contains("run `studio migrate` first"), "{}", text(&output));
}

#[tokio::test]
async fn an_older_schema_is_refused_and_a_newer_compatible_one_served() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    client
        .batch_execute(
            "insert into studio.schema_history (version, name, applied_on, checksum) \
             values (900, 'newer', '', '0')",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    assert_eq!(replica.nobody().get("/readyz").await.status, StatusCode::OK);

    client.batch_execute("update studio.schema_floor set oldest_reader = 900").await.unwrap();
    let output = bed.run(&["serve"], &[]).await;
    assert!(text(&output).contains("install a newer one"), "{}", text(&output));

    client.batch_execute("delete from studio.schema_history where version > 1").await.unwrap();
    let output = bed.run(&["serve"], &[]).await;
    assert!(text(&output).contains("run `studio migrate` first"), "{}", text(&output));
}

#[tokio::test]
async fn migrating_again_changes_nothing() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    let history =
        "select string_agg(version || name || applied_on, ',') from studio.schema_history";
    let before: String = client.query_one(history, &[]).await.unwrap().get(0);
    let output = bed.migrate().await;
    assert!(output.status.success(), "{}", text(&output));
    let after: String = client.query_one(history, &[]).await.unwrap().get(0);
    assert_eq!(before, after);
}

#[tokio::test]
async fn the_first_administrator_is_made_at_the_command_line() {
    let bed = Bed::new().await;
    let create = ["account", "create", "--name", "Root", "--role", "administrator"];
    let output = bed.run(&create, &[]).await;
    assert!(output.status.success(), "{}", text(&output));
    let printed = text(&output);
    let password = printed.lines().find_map(|line| line.strip_prefix("Password: ")).unwrap();
    let replica = bed.replica().await;
    let answer = replica
        .nobody()
        .post("/api/v1/session", &json!({ "name": "root", "password": password }))
        .await;
    assert_eq!((answer.status, &answer.json()["role"]), (StatusCode::OK, &"administrator".into()));

    let output = bed.run(&create, &[]).await;
    assert!(!output.status.success());
    assert!(text(&output).contains("there is an account `root` already"), "{}", text(&output));
}

#[tokio::test]
async fn seeding_twice_is_seeding_once() {
    let bed = Bed::new().await;
    for _ in 0..2 {
        let output = bed.run(&["demo", "seed", "--events", "5000"], &[]).await;
        assert!(output.status.success(), "{}", text(&output));
    }
    let row = bed
        .client()
        .await
        .query_one(
            "select count(*), count(*) filter (where actor = 'demo-rare'), \
                    extract(day from max(at) - min(at))::int8 from studio.audit_event",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (5_000, 10));
    assert!((88..=90).contains(&row.get::<_, i64>(2)));
}

#[tokio::test]
async fn checking_the_settings_says_what_is_wrong_and_what_is_risky() {
    let bed = Bed::new().await;
    let output = bed.run(&["config", "check"], &[]).await;
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("The settings can be used."), "{}", text(&output));

    let output = bed.run(&["config", "check", "--replicas", "20"], &[]).await;
    assert!(text(&output).contains("warning: 20 replicas may open"), "{}", text(&output));

    let output = bed.run(&["config", "check"], &[("STUDIO_DATABASE_MAIN_POOL", "8")]).await;
    assert!(text(&output).contains("warning: the installation's cap is 2"), "{}", text(&output));

    let output =
        bed.run(&["config", "check"], &[("STUDIO_DATABASE_URL", "host=127.0.0.1 port=1")]).await;
    assert!(!output.status.success());
    assert!(text(&output).contains("error: "), "{}", text(&output));
}
