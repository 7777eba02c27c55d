//! Stopping work under a permit from another replica: it ends first, and only then is its permit free.

use std::time::Duration;

use pg_limits::{BootInstant, Endpoint, HeavyRequests, LimitsError, Stop, Stopped};
use testkit::{CuttingProxy, TestDatabase, wait_until};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::fixture::{PATIENCE, WORK, config, connect, database, granted, live, wait_for_live};

/// Long enough for a replica to look, and short enough to wait for in vain.
const BRIEFLY: Duration = Duration::from_secs(2);

/// Two replicas: where work runs, and where it is asked to stop.
async fn replicas(database: &TestDatabase) -> (HeavyRequests, HeavyRequests) {
    (connect(database, WORK, 8).await, connect(database, WORK, 8).await)
}

fn stopping(heavy: &HeavyRequests, permit: Uuid, patience: Duration) -> JoinHandle<Stop> {
    let heavy = heavy.clone();
    tokio::spawn(async move { heavy.stop(permit, patience).await.unwrap() })
}

async fn wait_until_asked(client: &Client, permit: Uuid) {
    wait_until("the stop is asked for", PATIENCE, || async {
        let asked = "select from limits.stop_request where permit = $1";
        client.query_opt(asked, &[&permit]).await.unwrap().is_some()
    })
    .await;
}

#[tokio::test]
async fn work_stops_on_its_replica_when_another_asks() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let permit = granted(&one, &WORK, "ada").await;
    let id = permit.id();
    let work = tokio::spawn(async move {
        let stopped = permit.run(std::future::pending::<()>()).await.unwrap_err();
        assert!(permit.is_stop_asked());
        permit.release().await;
        stopped
    });
    assert_eq!(two.stop(id, PATIENCE).await.unwrap(), Stop::Ended);
    let stopped = work.await.unwrap();
    assert!(matches!(stopped, Stopped::StopAsked(asked) if asked.endpoint == "work"), "{stopped}");
    assert_eq!(live(&database.client().await).await, 0);
}

#[tokio::test]
async fn a_permit_is_not_free_before_its_work_has_ended() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let client = database.client().await;
    let permit = granted(&one, &WORK, "ada").await;
    let id = permit.id();
    let (end, ended) = oneshot::channel::<()>();
    let work = tokio::spawn(async move {
        permit.stop_asked().await;
        // What runs on a server, and takes its time to end.
        ended.await.unwrap();
        permit.release().await;
    });
    let stop = stopping(&two, id, PATIENCE);
    wait_until_asked(&client, id).await;
    assert_eq!(two.stop(id, BRIEFLY).await.unwrap(), Stop::StillHeld);
    assert_eq!(live(&client).await, 1);
    assert!(!stop.is_finished());
    end.send(()).unwrap();
    assert_eq!(stop.await.unwrap(), Stop::Ended);
    work.await.unwrap();
}

#[tokio::test]
async fn the_permit_of_a_replica_that_is_gone_stays_until_its_lease_ends() {
    let database = database().await;
    let two = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let id = Uuid::now_v7();
    let claim = "select limits.claim_v1($1, 'work', 'ada', $2, 3500, 300)";
    client.execute(claim, &[&id, &Uuid::now_v7()]).await.unwrap();
    let row = "select ends_at::text from limits.heavy_permit where permit = $1";
    let before: String = client.query_one(row, &[&id]).await.unwrap().get(0);
    assert_eq!(two.stop(id, Duration::from_millis(500)).await.unwrap(), Stop::StillHeld);
    let after: String = client.query_one(row, &[&id]).await.unwrap().get(0);
    assert_eq!(before, after);
    assert_eq!(two.stop(id, PATIENCE).await.unwrap(), Stop::Ended, "at the end of its lease");
}

#[tokio::test]
async fn what_is_not_held_is_told_so_and_leaves_nothing() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let permit = granted(&one, &WORK, "ada").await;
    let id = permit.id();
    permit.release().await;
    for id in [id, Uuid::now_v7(), Uuid::nil()] {
        assert_eq!(two.stop(id, PATIENCE).await.unwrap(), Stop::NotHeld);
    }
    let asked = "select count(*) from limits.stop_request";
    let client = database.client().await;
    assert_eq!(client.query_one(asked, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_permit_that_is_given_back_meanwhile_has_ended_and_its_successor_goes_on() {
    let database = database().await;
    let one = connect(&database, WORK, 1).await;
    let two = connect(&database, WORK, 1).await;
    let client = database.client().await;
    let permit = granted(&one, &WORK, "ada").await;
    let id = permit.id();
    let stop = stopping(&two, id, PATIENCE);
    wait_until_asked(&client, id).await;
    permit.release().await;
    let successor = granted(&one, &WORK, "grace").await;
    assert_eq!(stop.await.unwrap(), Stop::Ended);
    // A look at what the successor was asked: nothing.
    assert!(!successor.is_stop_asked());
    assert_eq!(two.stop(successor.id(), BRIEFLY).await.unwrap(), Stop::StillHeld);
    assert!(successor.is_stop_asked());
}

#[tokio::test]
async fn asking_twice_at_once_from_two_replicas_is_asking_once() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let permit = granted(&one, &WORK, "ada").await;
    let other = granted(&one, &WORK, "ada").await;
    let id = permit.id();
    let stops = [stopping(&one, id, PATIENCE), stopping(&two, id, PATIENCE)];
    // Asked after those two over the same connections, and waited for in vain: both of them have asked.
    let (first, second) = tokio::join!(one.stop(id, BRIEFLY), two.stop(id, BRIEFLY));
    assert_eq!((first.unwrap(), second.unwrap()), (Stop::StillHeld, Stop::StillHeld));
    permit.stop_asked().await;
    // Asked once is asked for good: whoever waits later hears of it too.
    permit.stop_asked().await;
    permit.release().await;
    for stop in stops {
        assert_eq!(stop.await.unwrap(), Stop::Ended);
    }
    assert!(!other.is_stop_asked());
}

#[tokio::test]
async fn a_lost_table_of_requests_is_made_anew_by_who_looks_and_by_who_asks() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let client = database.client().await;
    client.batch_execute("drop table limits.stop_request").await.unwrap();
    let first = granted(&one, &WORK, "ada").await;
    wait_until("the replica that looks makes it anew", PATIENCE, || async {
        let there = "select to_regclass('limits.stop_request') is not null";
        client.query_one(there, &[]).await.unwrap().get::<_, bool>(0)
    })
    .await;
    // Nobody looks for a permit that was asked: only who asks can find the table missing.
    assert_eq!(two.stop(first.id(), BRIEFLY).await.unwrap(), Stop::StillHeld);
    client.batch_execute("drop table limits.stop_request").await.unwrap();
    let stop = stopping(&two, first.id(), PATIENCE);
    wait_until_asked_anew(&client, first.id()).await;
    first.release().await;
    assert_eq!(stop.await.unwrap(), Stop::Ended);
}

/// As [`wait_until_asked`], while the table may be missing.
async fn wait_until_asked_anew(client: &Client, permit: Uuid) {
    wait_until("the stop is asked for", PATIENCE, || async {
        let asked = "select from limits.stop_request where permit = $1";
        client.query_opt(asked, &[&permit]).await.is_ok_and(|row| row.is_some())
    })
    .await;
}

#[tokio::test]
async fn where_the_permits_were_lost_nobody_is_told_that_work_has_ended() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let client = database.client().await;
    let permit = granted(&one, &WORK, "ada").await;
    let id = permit.id();
    let stop = tokio::spawn({
        let two = two.clone();
        async move { two.stop(id, BRIEFLY).await }
    });
    wait_until_asked(&client, id).await;
    client.batch_execute("truncate limits.heavy_permit").await.unwrap();
    let error = stop.await.unwrap().unwrap_err();
    assert!(matches!(error, LimitsError::Unavailable(_)), "{error:?}");
    // The work hears of it all the same.
    permit.stop_asked().await;
}

#[tokio::test]
async fn a_replica_whose_database_was_away_hears_of_it_afterwards() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let settings = pg_limits::Config::new(proxy.config(), 8, &[WORK])
        .claim_timeout(Duration::from_millis(500));
    let one = HeavyRequests::connect(settings).await.unwrap();
    let two = connect(&database, WORK, 8).await;
    let permit = granted(&one, &WORK, "ada").await;
    proxy.refuse();
    proxy.cut().await;
    assert_eq!(two.stop(permit.id(), BRIEFLY).await.unwrap(), Stop::StillHeld);
    assert!(!permit.is_stop_asked());
    proxy.restore();
    permit.stop_asked().await;
    let stop = stopping(&two, permit.id(), PATIENCE);
    permit.release().await;
    // Released before it was asked again, or after: either way the work has ended.
    assert!(matches!(stop.await.unwrap(), Stop::Ended | Stop::NotHeld));
}

#[tokio::test]
async fn who_asks_waits_through_an_absence_of_the_database() {
    let database = database().await;
    let proxy = CuttingProxy::before(&database.tcp_config()).await;
    let settings = pg_limits::Config::new(proxy.config(), 8, &[WORK])
        .claim_timeout(Duration::from_millis(500));
    let two = HeavyRequests::connect(settings).await.unwrap();
    let one = connect(&database, WORK, 8).await;
    let client = database.client().await;
    let permit = granted(&one, &WORK, "ada").await;
    let stop = stopping(&two, permit.id(), PATIENCE);
    wait_until_asked(&client, permit.id()).await;
    proxy.refuse();
    proxy.cut().await;
    permit.stop_asked().await;
    permit.release().await;
    proxy.restore();
    assert_eq!(stop.await.unwrap(), Stop::Ended);
    proxy.refuse();
    proxy.cut().await;
    let error = two.stop(Uuid::now_v7(), PATIENCE).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn the_time_bound_stops_work_that_nobody_asked_to_stop() {
    let database = database().await;
    let brief = Endpoint::new("work", 1, Duration::from_millis(200));
    let heavy = HeavyRequests::connect(config(&database, brief, 8)).await.unwrap();
    let permit = granted(&heavy, &brief, "ada").await;
    let stopped = permit.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(stopped, Stopped::BoundReached(_)), "{stopped}");
    assert!(permit.bound() <= BootInstant::now() && !permit.is_stop_asked());
    assert!(matches!(permit.stopped().await, Stopped::BoundReached(_)));
}

#[tokio::test]
async fn requests_are_swept_when_the_lease_they_were_for_has_ended() {
    let database = database().await;
    let (one, two) = replicas(&database).await;
    let client = database.client().await;
    let permit = granted(&one, &WORK, "ada").await;
    assert_eq!(two.stop(permit.id(), BRIEFLY).await.unwrap(), Stop::StillHeld);
    let ends: bool = client
        .query_one(
            "select s.lapses_at = p.ends_at from limits.stop_request s join limits.live_permit p
             on p.permit = s.permit",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(ends, "a request lasts as long as its permit's lease");
    assert_eq!(two.sweep().await.unwrap(), Some(0));
    client
        .batch_execute("update limits.stop_request set lapses_at = clock_timestamp()")
        .await
        .unwrap();
    assert_eq!(two.sweep().await.unwrap(), Some(1));
    permit.release().await;
    wait_for_live(&client, 0).await;
}
