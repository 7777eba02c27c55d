//! The replica registry: states, silence, and housekeeping.

use std::time::Duration;

use pg_limits::{HeavyRequests, ReplicaState};
use testkit::TestDatabase;

use crate::fixture::{WORK, config, connect, database};

/// A replica that says that it lives only when the test says so.
async fn quiet(database: &TestDatabase, installation: u32) -> HeavyRequests {
    let config = config(database, WORK, installation).heartbeat(Duration::from_hours(1));
    HeavyRequests::connect(config).await.unwrap()
}

#[tokio::test]
async fn a_replica_says_its_state_and_is_gone_after_fifteen_silent_seconds() {
    let database = database().await;
    let (one, two) = (quiet(&database, 8).await, quiet(&database, 4).await);
    one.set_state(ReplicaState::Ready).await.unwrap();
    let state = |replicas: &[pg_limits::Replica], id| {
        replicas.iter().find(|replica| replica.id == id).unwrap().state.clone()
    };
    let replicas = one.replicas().await.unwrap();
    assert_eq!(state(&replicas, one.replica()), "ready");
    assert_eq!(state(&replicas, two.replica()), "starting");
    // Time moves by moving the heartbeat: the other replica fell silent sixteen seconds ago.
    let client = database.client().await;
    client
        .execute(
            "update limits.replica set heartbeat_at = heartbeat_at - interval '16 s' where id = $1",
            &[&two.replica()],
        )
        .await
        .unwrap();
    assert_eq!(state(&one.replicas().await.unwrap(), two.replica()), "gone");
    // The caps that it alone was built with stop counting at the next heartbeat of another.
    one.set_state(ReplicaState::Ready).await.unwrap();
    let caps = one.caps().await.unwrap();
    assert!(caps.iter().any(|cap| cap.name == "installation" && cap.in_force == 8), "{caps:?}");
    two.set_state(ReplicaState::Ready).await.unwrap();
    assert_eq!(state(&one.replicas().await.unwrap(), two.replica()), "ready");
    let caps = one.caps().await.unwrap();
    assert!(caps.iter().any(|cap| cap.name == "installation" && cap.in_force == 4), "{caps:?}");
}

#[tokio::test]
async fn a_replica_that_was_swept_registers_again_by_itself() {
    let database = database().await;
    let heavy = quiet(&database, 8).await;
    let client = database.client().await;
    client
        .execute("update limits.replica set heartbeat_at = heartbeat_at - interval '2 days'", &[])
        .await
        .unwrap();
    assert_eq!(heavy.sweep().await.unwrap(), Some(1));
    heavy.set_state(ReplicaState::Ready).await.unwrap();
    assert_eq!(heavy.replicas().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_replica_sweeps_at_a_time() {
    let database = database().await;
    let heavy = connect(&database, WORK, 8).await;
    let client = database.client().await;
    client
        .batch_execute("begin; select pg_advisory_xact_lock(hashtextextended('limits.sweep', 0))")
        .await
        .unwrap();
    assert_eq!(heavy.sweep().await.unwrap(), None);
    client.batch_execute("commit").await.unwrap();
    assert_eq!(heavy.sweep().await.unwrap(), Some(0));
}

#[tokio::test]
async fn a_schema_of_another_name_is_another_set_of_limits() {
    let database = database().await;
    let mut client = database.client().await;
    pg_limits::migrate(&mut client, "other").await.unwrap();
    pg_limits::migrate(&mut client, "other").await.unwrap();
    let here = connect(&database, WORK, 1).await;
    let there = HeavyRequests::connect(
        pg_limits::Config::new(database.config(), 1, &[WORK]).schema("other"),
    )
    .await
    .unwrap();
    let _one = crate::fixture::granted(&here, &WORK, "ada").await;
    let _two = crate::fixture::granted(&there, &WORK, "ada").await;
    let left: i64 = client
        .query_one(
            "select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
             where n.nspname = 'other' and p.prosrc like '%limits.%'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(left, 0, "a function of the other schema still names `limits`");
    there.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn an_ordinary_role_may_claim_and_no_more() {
    let database = database().await;
    let client = database.client().await;
    let role = format!("service_{}", uuid::Uuid::now_v7().simple());
    client.batch_execute(&format!("create role {role} login")).await.unwrap();
    pg_limits::grant(&client, "limits", &role).await.unwrap();
    let mut config = database.config();
    config.user(&role);
    let heavy =
        HeavyRequests::connect(pg_limits::Config::new(config.clone(), 8, &[WORK])).await.unwrap();
    let permit = crate::fixture::granted(&heavy, &WORK, "ada").await;
    heavy.set_cap("work", Some(1)).await.unwrap();
    permit.release().await;
    // The table is lost: the role repairs it through the function that may, and claims again.
    client.batch_execute("drop table limits.heavy_permit cascade").await.unwrap();
    let _again = crate::fixture::granted(&heavy, &WORK, "ada").await;
    let (ordinary, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    for forbidden in [
        "drop table limits.heavy_permit",
        "create table limits.mine (id int)",
        "select limits.grant_v1('postgres')",
        "update limits.grantee set role = 'postgres'",
    ] {
        assert!(ordinary.batch_execute(forbidden).await.is_err(), "{forbidden}");
    }
    connection.abort();
}
