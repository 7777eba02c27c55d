//! Counted windows, over several connected replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pg_limits::{Count, Counted, Entry, InFlight, LimitReached, Limits, Window};
use testkit::wait_until;
use tokio_postgres::Client;

use crate::fixture::{PATIENCE, database, limits};

const HOUR: Duration = Duration::from_hours(1);
const UPLOADS: Window = Window::new("uploads", 5, HOUR);

async fn counted(limits: &Limits, window: &Window, key: &str) -> Counted {
    match limits.count(window, key).await.unwrap() {
        Count::Counted(counted) => counted,
        Count::Full(limit) => panic!("full: {limit:?}"),
    }
}

async fn full(limits: &Limits, window: &Window, key: &str) -> LimitReached {
    match limits.count(window, key).await.unwrap() {
        Count::Full(limit) => limit,
        Count::Counted(counted) => panic!("counted: {counted:?}"),
    }
}

async fn count_in_table(client: &Client, key: &str) -> Option<i32> {
    client
        .query_opt("select count from limits.window_count where key = $1", &[&key])
        .await
        .unwrap()
        .map(|row| row.get(0))
}

#[tokio::test]
async fn what_three_replicas_count_is_one_window_and_refusals_write_no_version_of_it() {
    let database = database().await;
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    for n in 0..5_u32 {
        let counted = counted(&replicas[usize::try_from(n).unwrap() % 3], &UPLOADS, "ada").await;
        assert_eq!(counted.window().remaining, 4 - n);
        assert!(counted.window().resets_in <= HOUR);
    }
    let client = database.client().await;
    let version = "select ctid::text, xmin::text, count::text from limits.window_count";
    let before = client.query_one(version, &[]).await.unwrap();
    for replica in replicas.iter().chain(&replicas) {
        let refusal = full(replica, &UPLOADS, "ada").await;
        assert_eq!((refusal.name, refusal.limit, refusal.window), ("uploads", 5, Some(HOUR)));
        assert!(refusal.retry_after <= HOUR && refusal.retry_after > HOUR.saturating_sub(PATIENCE));
    }
    let after = client.query_one(version, &[]).await.unwrap();
    for column in 0..3 {
        assert_eq!(before.get::<_, String>(column), after.get::<_, String>(column));
    }
    assert_eq!(counted(&replicas[0], &UPLOADS, "grace").await.window().remaining, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_counts_of_three_replicas_never_exceed_the_limit_and_use_it_up() {
    let database = database().await;
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    let window = Window::new("races", 50, HOUR);
    for key in ["one", "two", "three"] {
        let tasks: Vec<_> = (0..120)
            .map(|n| {
                let limits = replicas[n % 3].clone();
                tokio::spawn(async move {
                    matches!(limits.count(&window, key).await.unwrap(), Count::Counted(_))
                })
            })
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += u32::from(task.await.unwrap());
        }
        assert_eq!(admitted, 50, "{key}");
    }
}

/// Counts go on over the edge: the old window keeps its limit, and the new one has all of its own.
#[tokio::test(flavor = "multi_thread")]
async fn at_the_edge_of_a_window_the_next_one_begins_with_its_whole_limit() {
    const BEFORE: u32 = 3;
    let database = database().await;
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    let window = Window::new("edge", 10, HOUR);
    let client = database.client().await;
    for _ in 0..BEFORE {
        counted(&replicas[0], &window, "ada").await;
    }
    client
        .batch_execute(
            "update limits.window_count set lapses_at = clock_timestamp() + interval '300 ms'",
        )
        .await
        .unwrap();
    let (old, new) = (Arc::new(AtomicU32::new(BEFORE)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..24)
        .map(|n| {
            let (limits, old, new) = (replicas[n % 3].clone(), Arc::clone(&old), Arc::clone(&new));
            tokio::spawn(async move {
                loop {
                    match limits.count(&window, "ada").await.unwrap() {
                        // What is left of the old window is far less than an hour.
                        Count::Counted(counted) if counted.window().resets_in < HOUR / 2 => {
                            old.fetch_add(1, Ordering::Relaxed);
                        }
                        Count::Counted(_) => {
                            new.fetch_add(1, Ordering::Relaxed);
                        }
                        Count::Full(limit) if limit.retry_after > HOUR / 2 => return,
                        Count::Full(_) => {}
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!((old.load(Ordering::Relaxed), new.load(Ordering::Relaxed)), (10, 10));
}

#[tokio::test]
async fn a_count_is_given_back_to_its_own_window_only() {
    let database = database().await;
    let limits = limits(&database).await;
    let client = database.client().await;
    let first = counted(&limits, &UPLOADS, "ada").await;
    counted(&limits, &UPLOADS, "ada").await;
    first.give_back().await.unwrap();
    assert_eq!(count_in_table(&client, "ada").await, Some(1));

    let of_the_old_window = counted(&limits, &UPLOADS, "ada").await;
    client
        .batch_execute("update limits.window_count set lapses_at = clock_timestamp()")
        .await
        .unwrap();
    counted(&limits, &UPLOADS, "ada").await;
    of_the_old_window.give_back().await.unwrap();
    assert_eq!(count_in_table(&client, "ada").await, Some(1), "the new window keeps its count");
}

#[tokio::test]
async fn a_request_that_is_given_back_leaves_its_windows_and_what_is_in_flight() {
    let database = database().await;
    let limits = limits(&database).await;
    let client = database.client().await;
    let (of_token, of_user) = (Window::new("a.token", 4, HOUR), Window::new("b.user", 6, HOUR));
    let one = InFlight::new("in_flight", 1);
    let windows = [(of_user, "ada"), (of_token, "t1")];
    let enter = async || {
        let entry = limits.enter(Some((one, "t1")), &windows, HOUR).await.unwrap();
        let Entry::Admitted(admitted) = entry else { panic!("{entry:?}") };
        admitted
    };
    drop(enter().await);
    for _ in 0..3 {
        let second = enter().await;
        assert_eq!(count_in_table(&client, "ada").await, Some(2));
        second.give_back().await.unwrap();
        for key in ["ada", "t1"] {
            assert_eq!(count_in_table(&client, key).await, Some(1), "{key}");
        }
    }
}

#[tokio::test]
async fn a_request_that_one_window_refuses_counts_in_none() {
    let database = database().await;
    let limits = limits(&database).await;
    let (of_token, of_user) = (Window::new("a.token", 4, HOUR), Window::new("b.user", 6, HOUR));
    let enter = async |token: &str| {
        limits.enter(None, &[(of_user, "ada"), (of_token, token)], HOUR).await.unwrap()
    };
    for _ in 0..4 {
        assert!(matches!(enter("t1").await, Entry::Admitted(_)));
    }
    let Entry::Refused(by_token) = enter("t1").await else { panic!("a fifth") };
    assert_eq!(by_token.name, "a.token");
    for _ in 0..2 {
        assert!(matches!(enter("t2").await, Entry::Admitted(_)));
    }
    let Entry::Refused(by_user) = enter("t2").await else { panic!("a seventh") };
    assert_eq!((by_user.name, by_user.limit), ("b.user", 6));
    let client = database.client().await;
    assert_eq!(count_in_table(&client, "t1").await, Some(4));
    assert_eq!(
        count_in_table(&client, "t2").await,
        Some(2),
        "what the user's refused is not counted"
    );
    assert_eq!(count_in_table(&client, "ada").await, Some(6));
}

#[tokio::test]
async fn a_window_in_shadow_counts_and_tells_and_refuses_nothing() {
    let database = database().await;
    let limits = limits(&database).await;
    let shadow = Window::new("shadow", 2, HOUR).shadow(true);
    for n in 1..=4 {
        let counted = counted(&limits, &shadow, "ada").await;
        let over = counted.would_have_been_refused().map(|limit| limit.limit);
        assert_eq!(over, (n > 2).then_some(2), "{n}");
    }
    let enforced = Window::new("shadow", 2, HOUR);
    assert_eq!(full(&limits, &enforced, "ada").await.limit, 2);
}

#[tokio::test]
async fn a_limit_that_changes_is_in_force_for_the_next_count() {
    let database = database().await;
    let limits = limits(&database).await;
    for _ in 0..5 {
        counted(&limits, &UPLOADS, "ada").await;
    }
    full(&limits, &UPLOADS, "ada").await;
    counted(&limits, &Window::new("uploads", 6, HOUR), "ada").await;
    full(&limits, &Window::new("uploads", 3, HOUR), "ada").await;
    full(&limits, &Window::new("uploads", 0, HOUR), "ada").await;
    full(&limits, &Window::new("uploads", 0, HOUR), "nobody").await;
    assert_eq!(count_in_table(&database.client().await, "nobody").await, None);
}

#[tokio::test]
async fn housekeeping_removes_windows_that_have_ended_and_no_other() {
    let database = database().await;
    let limits = limits(&database).await;
    let client = database.client().await;
    counted(&limits, &UPLOADS, "ada").await;
    client
        .batch_execute(
            "insert into limits.window_count (name, key, lapses_at, count, added)
             select 'uploads', 'name-' || n, clock_timestamp() - interval '1 s', 1, 1
             from generate_series(1, 1200) n",
        )
        .await
        .unwrap();
    // The replica's own housekeeping may be at it at the same time.
    wait_until("only the live window is left", PATIENCE, || async {
        limits.sweep().await.unwrap();
        let row = client.query_one("select count(*) from limits.window_count", &[]).await.unwrap();
        row.get::<_, i64>(0) == 1
    })
    .await;
    assert_eq!(count_in_table(&client, "ada").await, Some(1));
}

#[tokio::test]
async fn a_lost_table_is_made_anew_by_the_next_count() {
    let database = database().await;
    let limits = limits(&database).await;
    counted(&limits, &UPLOADS, "ada").await;
    database.client().await.batch_execute("drop table limits.window_count").await.unwrap();
    assert_eq!(counted(&limits, &UPLOADS, "ada").await.window().remaining, 4);
}

/// A key of any length and any characters is only ever a value.
#[tokio::test]
async fn hostile_keys_are_counted_apart() {
    let database = database().await;
    let limits = limits(&database).await;
    let keys = ["", "'; drop table limits.window_count; --", "\u{1F980}\u{202E}", "a\nb", "a\tb"];
    for key in keys.map(str::to_owned).into_iter().chain(["x".repeat(2000)]) {
        assert_eq!(counted(&limits, &UPLOADS, &key).await.window().remaining, 4, "{key:?}");
    }
}
