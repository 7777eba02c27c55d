//! In-flight caps, over several connected replicas and processes.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pg_limits::{Admitted, Entry, InFlight, LimitReached, Limits, LimitsError, Window};
use testkit::{CuttingProxy, ReplicaProcess, TestDatabase, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixture::{PATIENCE, database, limits};
use crate::processes::example;

const EIGHT: InFlight = InFlight::new("requests", 8);
const MINUTE: Duration = Duration::from_mins(1);

async fn enter(limits: &Limits, cap: InFlight, key: &str) -> Entry {
    limits.enter(Some((cap, key)), &[], MINUTE).await.unwrap()
}

async fn admitted(limits: &Limits, cap: InFlight, key: &str) -> Admitted {
    match enter(limits, cap, key).await {
        Entry::Admitted(admitted) => admitted,
        Entry::Refused(limit) => panic!("refused: {limit:?}"),
    }
}

async fn refused(limits: &Limits, cap: InFlight, key: &str) -> LimitReached {
    match enter(limits, cap, key).await {
        Entry::Refused(limit) => limit,
        Entry::Admitted(admitted) => panic!("admitted: {admitted:?}"),
    }
}

async fn held(database: &TestDatabase) -> i64 {
    let held =
        "select coalesce(sum(held), 0) from limits.in_flight where lapses_at > clock_timestamp()";
    database.client().await.query_one(held, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn three_replicas_have_one_cap_and_a_place_that_came_free_is_free_on_each() {
    let database = database().await;
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    let mut inside = Vec::new();
    for n in 0..8 {
        inside.push(admitted(&replicas[n % 3], EIGHT, "t1").await);
    }
    for replica in &replicas {
        let refusal = refused(replica, EIGHT, "t1").await;
        assert_eq!((refusal.name, refusal.limit, refusal.window), ("requests", 8, None));
    }
    admitted(&replicas[0], EIGHT, "another").await;
    // Whoever leaves on one replica lets somebody in on another, at once: a second look sees to it.
    for n in 0..30 {
        drop(inside.remove(0));
        inside.push(admitted(&replicas[(n + 1) % 3], EIGHT, "t1").await);
    }
    drop(inside);
    wait_until("nothing is held any more", PATIENCE, || async { held(&database).await == 0 }).await;
}

/// An observer in the database adds up what the replicas say after every change.
#[tokio::test(flavor = "multi_thread")]
async fn racing_requests_of_three_replicas_never_exceed_the_cap() {
    let database = database().await;
    let client = database.client().await;
    client
        .batch_execute(
            "create unlogged table observed (held int8);
             create function observe() returns trigger language plpgsql as $$
             begin
                 insert into observed select sum(f.held) from limits.in_flight f where f.key = new.key;
                 return null;
             end $$;
             create trigger observe after insert or update on limits.in_flight
             for each row execute function observe()",
        )
        .await
        .unwrap();
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    let tasks: Vec<_> = (0..30)
        .map(|n| {
            let limits = replicas[n % 3].clone();
            tokio::spawn(async move {
                let mut entered = 0;
                for _ in 0..40 {
                    match enter(&limits, EIGHT, "t1").await {
                        Entry::Admitted(admitted) => {
                            entered += 1;
                            tokio::task::yield_now().await;
                            drop(admitted);
                        }
                        Entry::Refused(limit) => assert_eq!(limit.limit, 8),
                    }
                }
                entered
            })
        })
        .collect();
    let mut entered = 0;
    for task in tasks {
        entered += task.await.unwrap();
    }
    let most: i64 =
        client.query_one("select max(held)::int8 from observed", &[]).await.unwrap().get(0);
    assert!(most <= 8, "{most} at once");
    assert!(entered >= 8, "{entered}");
    wait_until("nothing is held any more", PATIENCE, || async { held(&database).await == 0 }).await;
}

/// Requests that take departed ones' places are counted where they run: the database is told of few.
#[tokio::test(flavor = "multi_thread")]
async fn racing_requests_that_also_count_in_a_window_never_exceed_the_cap() {
    let database = database().await;
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    let window = Window::new("w", 1_000_000, MINUTE);
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..30)
        .map(|n| {
            let (limits, inside) = (replicas[n % 3].clone(), Arc::clone(&inside));
            tokio::spawn(async move {
                let (mut entered, mut most) = (0, 0);
                for _ in 0..40 {
                    let windows = [(window, "t1")];
                    let entry = limits.enter(Some((EIGHT, "t1")), &windows, MINUTE).await;
                    if let Entry::Admitted(admitted) = entry.unwrap() {
                        entered += 1;
                        most = most.max(inside.fetch_add(1, Ordering::SeqCst) + 1);
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(admitted);
                    }
                }
                (entered, most)
            })
        })
        .collect();
    let (mut entered, mut most) = (0, 0);
    for task in tasks {
        let (of_task, most_of_task) = task.await.unwrap();
        (entered, most) = (entered + of_task, most.max(most_of_task));
    }
    assert!(most <= 8, "{most} at once");
    assert!(entered >= 8, "{entered}");
    wait_until("nothing is held any more", PATIENCE, || async { held(&database).await == 0 }).await;
    let counted = "select count from limits.window_count";
    let counted: i32 = database.client().await.query_one(counted, &[]).await.unwrap().get(0);
    assert_eq!(counted, entered, "refused requests count nowhere, admitted ones once");
}

#[tokio::test]
async fn whoever_comes_soon_after_a_departure_takes_its_place_without_a_word() {
    let database = database().await;
    let limits = limits(&database).await;
    let client = database.client().await;
    let window = Window::new("w", 1_000_000, MINUTE);
    let calls = async || -> i64 {
        let last = "select call from limits.in_flight where key = 't1'";
        client.query_one(last, &[]).await.unwrap().get(0)
    };
    let in_turn = async |count: usize| {
        for _ in 0..count {
            let entry = limits.enter(Some((EIGHT, "t1")), &[(window, "t1")], MINUTE).await.unwrap();
            assert!(matches!(entry, Entry::Admitted(_)));
        }
    };
    in_turn(1).await;
    // A busy machine may keep the next one away until the departure is told.
    wait_until("twenty came and went, and the row stayed as it was", PATIENCE, || async {
        let before = calls().await;
        in_turn(20).await;
        calls().await == before
    })
    .await;
    wait_until("the last departure is told", PATIENCE, || async { held(&database).await == 0 })
        .await;
}

#[tokio::test]
async fn departures_are_told_though_others_keep_coming() {
    let database = database().await;
    let limits = limits(&database).await;
    let window = Window::new("w", 1_000_000, MINUTE);
    let enter =
        async || limits.enter(Some((EIGHT, "t1")), &[(window, "t1")], MINUTE).await.unwrap();
    let mut inside = Vec::new();
    for _ in 0..6 {
        inside.push(enter().await);
    }
    assert_eq!(held(&database).await, 6);
    inside.truncate(1);
    wait_until("no more than two are told to be in", PATIENCE, || async {
        // Each takes the place of one of the departed.
        for _ in 0..5 {
            drop(enter().await);
        }
        held(&database).await <= 2
    })
    .await;
}

#[tokio::test]
async fn a_cap_that_was_lowered_is_held_to_though_places_came_free() {
    let database = database().await;
    let limits = limits(&database).await;
    let window = Window::new("w", 1_000_000, MINUTE);
    let enter =
        async |cap| limits.enter(Some((cap, "t1")), &[(window, "t1")], MINUTE).await.unwrap();
    let mut inside = Vec::new();
    for _ in 0..8 {
        inside.push(enter(EIGHT).await);
    }
    inside.truncate(4);
    let lower = InFlight::new(EIGHT.name(), 4);
    assert!(matches!(enter(lower).await, Entry::Refused(limit) if limit.limit == 4));
    inside.truncate(3);
    assert!(matches!(enter(lower).await, Entry::Admitted(_)));
}

#[tokio::test]
async fn a_caller_that_leaves_while_it_waits_leaves_no_place_behind() {
    let database = database().await;
    let limits = limits(&database).await;
    for _ in 0..50 {
        let mut entering = Box::pin(limits.enter(Some((EIGHT, "t1")), &[], MINUTE));
        // Polled once, so that it stands at the door, and dropped there.
        let polled = futures_util::future::poll_immediate(&mut entering).await;
        assert!(polled.is_none());
        drop(entering);
    }
    wait_until("nothing is held", PATIENCE, || async { held(&database).await == 0 }).await;
    let mut inside = Vec::new();
    for _ in 0..8 {
        inside.push(admitted(&limits, EIGHT, "t1").await);
    }
}

#[tokio::test]
async fn a_lost_table_is_made_good_by_the_next_call() {
    let database = database().await;
    let limits = limits(&database).await;
    let _inside = [
        admitted(&limits, EIGHT, "t1").await,
        admitted(&limits, EIGHT, "t1").await,
        admitted(&limits, EIGHT, "t1").await,
    ];
    database.client().await.batch_execute("drop table limits.in_flight").await.unwrap();
    let _fourth = admitted(&limits, EIGHT, "t1").await;
    assert_eq!(held(&database).await, 4, "the replica says anew what it holds");
}

#[tokio::test]
async fn a_call_that_comes_late_undoes_nothing() {
    let database = database().await;
    let limits = limits(&database).await;
    let _inside = [admitted(&limits, EIGHT, "t1").await, admitted(&limits, EIGHT, "t1").await];
    let stale =
        "select limits.enter_v1($1, 'requests', 't1', 8, 0, 0, 60000, 0, '{}', '{}', '{}', '{}')";
    database.client().await.query_one(stale, &[&limits.replica()]).await.unwrap();
    assert_eq!(held(&database).await, 2);
}

#[tokio::test]
async fn while_the_database_is_away_nobody_gets_in_and_afterwards_all_is_as_it_was() {
    let database = database().await;
    let proxy = CuttingProxy::before(database.tcp_config()).await;
    let limits = Limits::connect(
        pg_limits::Config::new(proxy.url().parse().unwrap(), 1, &[])
            .claim_timeout(Duration::from_secs(1))
            .heartbeat(Duration::from_hours(1)),
    )
    .await
    .unwrap();
    let inside = [admitted(&limits, EIGHT, "t1").await, admitted(&limits, EIGHT, "t1").await];
    proxy.refuse();
    proxy.cut().await;
    let error = limits.enter(Some((EIGHT, "t1")), &[], MINUTE).await.unwrap_err();
    assert!(matches!(error, LimitsError::Unavailable(_)), "{error:?}");
    drop(inside);
    proxy.restore();
    wait_until("the departures are told", PATIENCE, || async { held(&database).await == 0 }).await;
    admitted(&limits, EIGHT, "t1").await;
}

#[tokio::test]
async fn refused_requests_count_in_no_window() {
    let database = database().await;
    let limits = limits(&database).await;
    let (one, window) = (InFlight::new("one", 1), Window::new("w", 100, MINUTE));
    let enter = async || limits.enter(Some((one, "t1")), &[(window, "t1")], MINUTE).await.unwrap();
    let Entry::Admitted(first) = enter().await else { panic!("the first") };
    assert_eq!(first.windows()[0].remaining, 99);
    for _ in 0..5 {
        let Entry::Refused(limit) = enter().await else { panic!("a second") };
        assert_eq!(limit.name, "one");
    }
    drop(first);
    let Entry::Admitted(second) = enter().await else { panic!("after the first") };
    assert_eq!(second.windows()[0].remaining, 98);
}

#[tokio::test]
async fn a_cap_in_shadow_counts_and_tells_and_refuses_nothing() {
    let database = database().await;
    let limits = limits(&database).await;
    let shadow = InFlight::new("shadow", 1).shadow(true);
    let first = admitted(&limits, shadow, "t1").await;
    assert!(first.would_have_been_refused().is_none());
    let second = admitted(&limits, shadow, "t1").await;
    assert_eq!(second.would_have_been_refused().map(|limit| limit.limit), Some(1));
}

async fn service(database: &TestDatabase, seconds: u32) -> (ReplicaProcess, String) {
    let mut command = Command::new(example("limited_api"));
    command.args([&database.url(), "127.0.0.1:0", &seconds.to_string()]);
    let process = ReplicaProcess::start(command);
    let line = process.wait_for_line(|line| line.starts_with("listening on ")).await;
    (process, line.trim_start_matches("listening on ").to_owned())
}

async fn ask(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nx-token: t1\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn status(address: &str, path: &str) -> String {
    let mut text = String::new();
    ask(address, path).await.read_to_string(&mut text).await.unwrap();
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The example as a service of three processes: aborted requests, and one killed.
#[tokio::test]
async fn aborted_requests_leave_at_once_and_those_of_a_killed_process_by_their_end() {
    let database = database().await;
    let (one, two, three) =
        (service(&database, 6).await, service(&database, 6).await, service(&database, 6).await);
    let mut aborted = Vec::new();
    for n in 0..8 {
        aborted.push(ask([&one.1, &two.1, &three.1][n % 3], "/slow").await);
    }
    wait_until("eight in flight", PATIENCE, || async { held(&database).await == 8 }).await;
    assert_eq!(status(&two.1, "/quick").await, "429");
    drop(aborted);
    wait_until("aborted requests are out", PATIENCE, || async { held(&database).await == 0 }).await;
    assert_eq!(status(&two.1, "/quick").await, "200");
    wait_until("that one is told to be out", PATIENCE, || async { held(&database).await == 0 })
        .await;

    let _lost: Vec<_> = futures_util::future::join_all((0..8).map(|_| ask(&one.1, "/slow"))).await;
    wait_until("eight in flight again", PATIENCE, || async { held(&database).await == 8 }).await;
    one.0.kill_9();
    assert_eq!(status(&three.1, "/quick").await, "429", "nobody can know yet that they ended");
    wait_until("their end gives the places back", PATIENCE, || async {
        status(&three.1, "/quick").await == "200"
    })
    .await;
}
