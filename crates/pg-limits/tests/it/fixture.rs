//! A database with the limits installed, and the few calls that most tests make.

use std::time::Duration;

use pg_limits::{Claim, Config, Endpoint, HeavyRequests, Limits, Permit, Refusal};
use testkit::TestDatabase;
use tokio_postgres::{Client, NoTls};

/// An endpoint for tests that never wait for its bound.
pub(crate) const WORK: Endpoint = Endpoint::new("work", 2, Duration::from_secs(30));

/// Long enough for any state that will come at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn database() -> TestDatabase {
    TestDatabase::from_template("pg_limits", |config| async move {
        let (mut client, connection) = config.connect(NoTls).await?;
        let connection = tokio::spawn(connection);
        pg_limits::migrate(&mut client, "limits").await?;
        drop(client);
        connection.await??;
        Ok(())
    })
    .await
}

pub(crate) fn config(database: &TestDatabase, endpoint: Endpoint, installation: u32) -> Config {
    Config::new(database.config(), installation, &[endpoint]).margin(Duration::from_millis(300))
}

pub(crate) async fn connect(
    database: &TestDatabase,
    endpoint: Endpoint,
    installation: u32,
) -> HeavyRequests {
    HeavyRequests::connect(config(database, endpoint, installation)).await.unwrap()
}

/// A replica without heavy endpoints.
pub(crate) async fn limits(database: &TestDatabase) -> Limits {
    Limits::connect(Config::new(database.config(), 1, &[])).await.unwrap()
}

pub(crate) async fn granted(heavy: &HeavyRequests, endpoint: &Endpoint, user: &str) -> Permit {
    match heavy.claim(endpoint, user).await.unwrap() {
        Claim::Granted(permit) => permit,
        Claim::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

pub(crate) async fn refused(heavy: &HeavyRequests, endpoint: &Endpoint, user: &str) -> Refusal {
    match heavy.claim(endpoint, user).await.unwrap() {
        Claim::Refused(refusal) => refusal,
        Claim::Granted(permit) => panic!("granted: {permit:?}"),
    }
}

/// Live permits, counted by a connection of its own.
pub(crate) async fn live(client: &Client) -> i64 {
    client.query_one("select count(*) from limits.live_permit", &[]).await.unwrap().get(0)
}

/// Waits until one claim of this database waits for its user's lock. Other tests' databases are on the
/// same server, and their locks in the same view.
pub(crate) async fn wait_for_a_waiting_claim(observer: &Client) {
    let waiting = "select count(*) from pg_locks
        where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())";
    testkit::wait_until("a claim waits for its user's lock", PATIENCE, || async {
        observer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
}

pub(crate) async fn wait_for_live(client: &Client, wanted: i64) {
    testkit::wait_until(&format!("{wanted} live permits"), PATIENCE, || async move {
        live(client).await == wanted
    })
    .await;
}
