//! A replica whose bus is away reads by its own clock.

use serde_json::json;
use testkit::wait_until;
use tokio_postgres::Client;

use super::{administrator, bed, set};
use crate::bed::PATIENCE;

/// Connections of the bus that a role has.
async fn buses(client: &Client, role: &str) -> i64 {
    let count = "select count(*) from pg_stat_activity \
                 where application_name = 'studio bus' and datname = current_database() and usename = $1";
    client.query_one(count, &[&role]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_setting_reaches_a_replica_whose_bus_connection_is_away() {
    let bed = bed().await;
    let client = bed.client().await;
    // A role of its own for the second replica, so that its new connections alone can be refused.
    let role = format!("second_{}", bed.studio.name());
    let password = crate::bed::ROLE_PASSWORD;
    client
        .batch_execute(&format!(
            "create role {role} login password '{password}' in role studio_app"
        ))
        .await
        .unwrap();
    let address = bed.app_url().replace("studio_app", &role);
    let one = bed.replica().await;
    let other = bed.replica_with(&[("STUDIO_DATABASE_URL", &address)]).await;
    let here = administrator(&one).await;
    let there = here.at(&other);
    let rows = async || there.get("/api/v1/sql/catalogue").await.json()["limits"]["rows"].clone();
    assert_eq!(rows().await, 10_000);
    wait_until("both buses", PATIENCE, async || {
        buses(&client, &role).await == 1 && buses(&client, "studio_app").await == 1
    })
    .await;

    client.batch_execute(&format!("alter role {role} connection limit 0")).await.unwrap();
    client
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where application_name = 'studio bus' and usename = $1",
            &[&role],
        )
        .await
        .unwrap();
    // It tries, and may not: what it reads from now on it reads by its own clock.
    other.process.wait_for_line(|line| line.contains("The bus cannot listen")).await;
    assert_eq!(buses(&client, &role).await, 0);
    assert_eq!(buses(&client, "studio_app").await, 1);

    set(&here, json!({ "sql_console.rows": 77 })).await;
    wait_until("the setting to arrive", PATIENCE, async || rows().await == 77).await;
    assert_eq!(buses(&client, &role).await, 0);

    client.batch_execute(&format!("alter role {role} connection limit -1")).await.unwrap();
    wait_until("the bus to be back", PATIENCE, async || buses(&client, &role).await == 1).await;
    set(&here, json!({ "sql_console.rows": 78 })).await;
    wait_until("the next setting to arrive", PATIENCE, async || rows().await == 78).await;
    drop(other);
    wait_until("the role to be unused", PATIENCE, async || {
        client.batch_execute(&format!("drop role {role}")).await.is_ok()
    })
    .await;
}
