//! Bounded work: how it is stopped, and what it leaves behind.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use studio::app::App;
use studio::platform::database::Pools;
use studio::platform::heavy::{self, Permit};
use studio::platform::work::{Bounds, Ended};
use studio::settings::Settings;
use testkit::wait_until;
use tokio_postgres::error::SqlState;
use tokio_util::sync::CancellationToken;

use crate::bed::{Bed, PATIENCE};

/// An application of this process, with one connection.
async fn app(bed: &Bed) -> App {
    let mut settings = Settings::default();
    // The socket: what is tested opens many connections, and each would cost a password's exchange.
    settings.database.url = bed.app_socket_url().await;
    settings.database.limits_url = bed.limits_url();
    settings.database.main_pool = 1;
    settings.limits.installation_cap = Some(8);
    App::new(settings).await.unwrap()
}

async fn permit(app: &App) -> Permit {
    heavy::claim(app, &studio::features::audit::EXPORT, "tester").await.unwrap()
}

fn bounds<'a>(app: &'a App, permit: &'a Permit, left: &'a CancellationToken) -> Bounds<'a> {
    Bounds { permit, at_most: None, left, terminator: &app.pools.main, set_local: "" }
}

#[tokio::test]
async fn nothing_of_a_transaction_reaches_the_next_borrower() {
    let bed = Bed::new().await;
    let app = app(&bed).await;
    let (permit, left) = (permit(&app).await, CancellationToken::new());
    let bounds =
        Bounds { set_local: "set local work_mem = '1MB';", ..bounds(&app, &permit, &left) };
    let before = shown(&app).await;
    let connection = app.pools.main().await.unwrap();
    let (ended, connection) = bounds
        .run(connection, |connection| {
            async move {
                let sql =
                    "select current_setting('work_mem'), current_setting('statement_timeout')";
                let row = connection.query_one(sql, &[]).await?;
                Ok((row.get::<_, String>(0), row.get::<_, String>(1)))
            }
            .boxed()
        })
        .await;
    let Ended::Done((work_mem, timeout)) = ended else { panic!("{ended:?}") };
    assert_eq!(work_mem, "1MB");
    assert_ne!(timeout, "1min");
    drop(connection.expect("given back"));
    // The same session, as it was.
    assert_eq!(shown(&app).await, before);
}

/// What a borrower of the one connection finds.
async fn shown(app: &App) -> Vec<String> {
    let sql = "select current_setting('statement_timeout'), current_setting('work_mem'), \
               current_setting('transaction_read_only'), pg_backend_pid()::text";
    let row = app.pools.main().await.unwrap().query_one(sql, &[]).await.unwrap();
    (0..4).map(|column| row.get(column)).collect()
}

#[tokio::test]
async fn a_query_is_stopped_at_an_earlier_deadline_and_its_connection_closed() {
    let bed = Bed::new().await;
    let app = app(&bed).await;
    let (permit, left) = (permit(&app).await, CancellationToken::new());
    let bounds =
        Bounds { at_most: Some(Duration::from_millis(200)), ..bounds(&app, &permit, &left) };
    let (ended, connection) = bounds
        .run(app.pools.main().await.unwrap(), |connection| {
            connection.batch_execute("select pg_sleep(60)").boxed()
        })
        .await;
    assert!(matches!(ended, Ended::TimeBound), "{ended:?}");
    assert!(connection.is_none());
    assert_eq!(sleeping(&bed).await, 0);
    app.pools.main().await.unwrap().execute("select 1", &[]).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_begins_after_the_cancel_is_cancelled_too() {
    let bed = Bed::new().await;
    let app = app(&bed).await;
    let (permit, left) = (permit(&app).await, CancellationToken::new());
    let cancelled = Arc::new(AtomicU32::new(0));
    let (leaves, counted) = (left.clone(), Arc::clone(&cancelled));
    let (ended, connection) = bounds(&app, &permit, &left)
        .run(app.pools.main().await.unwrap(), |connection| {
            async move {
                connection.batch_execute("savepoint before").await?;
                leaves.cancel();
                // The first statement takes the first cancel, which so is none for the second.
                let first = connection.batch_execute("select pg_sleep(60)").await;
                let is_cancel =
                    |error: &tokio_postgres::Error| error.code() == Some(&SqlState::QUERY_CANCELED);
                counted.fetch_add(first.is_err_and(|error| is_cancel(&error)).into(), Relaxed);
                connection.batch_execute("rollback to before").await?;
                let second = connection.batch_execute("select pg_sleep(60)").await;
                let is_cancelled = second.as_ref().is_err_and(is_cancel);
                counted.fetch_add(is_cancelled.into(), Relaxed);
                second
            }
            .boxed()
        })
        .await;
    assert!(matches!(ended, Ended::ClientLeft), "{ended:?}");
    assert!(connection.is_none());
    assert_eq!(
        cancelled.load(Relaxed),
        2,
        "the second was not cancelled but ended with its backend"
    );
}

#[tokio::test]
async fn a_query_is_stopped_when_its_permit_is_asked_for() {
    let bed = Bed::new().await;
    let app = app(&bed).await;
    let (permit, left) = (permit(&app).await, CancellationToken::new());
    let (asking, id) = (app.heavy.clone(), permit.id());
    let asked = tokio::spawn(async move { asking.stop(id, PATIENCE).await });
    let (ended, connection) = bounds(&app, &permit, &left)
        .run(app.pools.main().await.unwrap(), |connection| {
            connection.batch_execute("select pg_sleep(60)").boxed()
        })
        .await;
    assert!(matches!(ended, Ended::Administrator), "{ended:?}");
    assert!(connection.is_none());
    assert_eq!(sleeping(&bed).await, 0);
    assert!(!asked.is_finished(), "the permit is free when its holder gives it back");
    permit.release().await;
    assert_eq!(asked.await.unwrap().unwrap(), heavy::Stop::Ended);
}

async fn sleeping(bed: &Bed) -> usize {
    let sql = "select from pg_stat_activity where datname = current_database() \
               and usename = 'studio_app' and state = 'active'";
    bed.client().await.query(sql, &[]).await.unwrap().len()
}

#[tokio::test]
async fn a_backend_that_is_blocked_on_sending_is_ended() {
    let bed = Bed::new().await;
    let app = app(&bed).await;
    let (permit, left) = (permit(&app).await, CancellationToken::new());
    let bounds =
        Bounds { at_most: Some(Duration::from_millis(500)), ..bounds(&app, &permit, &left) };
    let (ended, connection) = bounds
        .run(app.pools.main().await.unwrap(), |connection| {
            async move {
                let endless = "select repeat('x', 8192) from generate_series(1, 100000000)";
                let rows = connection.query_raw(endless, Vec::<i32>::new()).await?;
                let mut rows = std::pin::pin!(rows);
                rows.try_next().await?;
                // Reads no further, as a careless reader would: the server's buffers fill up, and no cancel helps.
                std::future::pending::<()>().await;
                drop(rows.next().await);
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(matches!(ended, Ended::TimeBound), "{ended:?}");
    assert!(connection.is_none());
    wait_until("the backend to end", PATIENCE, || async { sleeping(&bed).await == 0 }).await;
}

/// Cancels that race with the end of their query.
const RACES: u32 = 10_000;
/// How many of them run at a time, each with a pool of one connection.
const LANES: u32 = 4;

/// How the races ended.
#[derive(Debug, Default)]
struct Tally {
    completed: u32,
    cancelled: u32,
    /// The cancel was sent, and the query ended by itself all the same.
    cancelled_too_late: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_borrower_sees_the_cancel_of_another() {
    let bed = Bed::new().await;
    let app = app(&bed).await;
    let database = bed.app_socket_url().await;
    let lanes = futures_util::future::join_all((0..LANES).map(|lane| {
        let (app, database) = (app.clone(), database.clone());
        tokio::spawn(async move { races(&app, &database, lane).await })
    }));
    let mut all = Tally::default();
    for lane in lanes.await {
        let Tally { completed, cancelled, cancelled_too_late } = lane.unwrap();
        all.completed += completed;
        all.cancelled += cancelled;
        all.cancelled_too_late += cancelled_too_late;
    }
    assert_eq!(all.completed + all.cancelled + all.cancelled_too_late, RACES);
    let least = all.cancelled.min(all.cancelled_too_late);
    assert!(all.completed > 0 && least > RACES / 20, "the races are none: {all:?}");
}

/// One lane's share of the races. A cancel needs a connection of its own, so the query becomes longer after each that
/// got away and shorter after each that was stopped: on any machine cancels arrive about when their query ends.
async fn races(app: &App, database: &str, lane: u32) -> Tally {
    let pools = Pools::new(database.parse().unwrap(), 1).unwrap();
    let mut tally = Tally::default();
    let mut length = Duration::from_millis(5);
    // Renewed long before its time bound, which is not what is tested.
    let mut permit = lane_permit(app, lane).await;
    for race in 0..RACES / LANES {
        if permit.remaining() < studio::features::audit::EXPORT.time_bound() / 2 {
            permit.release().await;
            permit = lane_permit(app, lane).await;
        }
        let left = CancellationToken::new();
        let bounds = Bounds {
            permit: &permit,
            at_most: None,
            left: &left,
            terminator: &app.pools.main,
            set_local: "",
        };
        let leave = left.clone();
        // Some leave only after the query has ended. Were it so for half of them, the length would never settle.
        let wait = length.mul_f64(rand::random_range(0.0..1.25));
        let query = format!("select pg_sleep({})", length.as_secs_f64());
        let leaving = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            leave.cancel();
        });
        let (ended, connection) = bounds
            .run(pools.main().await.unwrap(), |connection| {
                async move { connection.batch_execute(&query).await }.boxed()
            })
            .await;
        leaving.await.unwrap();
        let got_away = match ended {
            Ended::Done(()) if connection.is_some() => {
                tally.completed += 1;
                true
            }
            Ended::Done(()) => {
                tally.cancelled_too_late += 1;
                true
            }
            Ended::ClientLeft => {
                tally.cancelled += 1;
                false
            }
            other @ (Ended::TimeBound
            | Ended::Administrator
            | Ended::RecoveryConflict
            | Ended::Failed(_)) => panic!("race {race}: {other:?}"),
        };
        length = length.mul_f64(if got_away { 1.05 } else { 0.95 });
        drop(connection);
        // The pool has one connection: this is the next borrower.
        pools.main().await.unwrap().execute("select 2", &[]).await.unwrap();
    }
    tally
}

async fn lane_permit(app: &App, lane: u32) -> Permit {
    let user = format!("lane {lane}");
    heavy::claim(app, &studio::features::audit::EXPORT, &user).await.unwrap()
}
