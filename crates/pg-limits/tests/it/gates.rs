//! Requests of many keys that go in by one call.

use std::time::Duration;

use futures_util::future::join_all;
use pg_limits::{Count, Entry, InFlight, LimitsError, Window};
use testkit::wait_until;

use crate::fixture::{PATIENCE, database, limits};

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_key_that_is_full_or_broken_spoils_no_other_of_its_call() {
    let database = database().await;
    let limits = limits(&database).await;
    let window = Window::new("w", 2, HOUR);
    let full = "full";
    for _ in 0..2 {
        assert!(matches!(limits.count(&window, full).await.unwrap(), Count::Counted(_)));
    }
    // The database takes no text with a zero in it.
    let keys = [full.to_owned(), "a\0b".to_owned()];
    let keys: Vec<_> = keys.into_iter().chain((0..40).map(|n| format!("key-{n}"))).collect();
    let counts = join_all(keys.iter().map(|key| limits.count(&window, key))).await;
    let cap = InFlight::new("requests", 2);
    let windows: Vec<_> = keys.iter().map(|key| [(window, key.as_str())]).collect();
    let entries = join_all(
        keys.iter()
            .zip(&windows)
            .map(|(key, windows)| limits.enter(Some((cap, key.as_str())), windows, HOUR)),
    )
    .await;
    for ((key, count), entry) in keys.iter().zip(counts).zip(entries) {
        match key.as_str() {
            "full" => {
                assert!(matches!(count.unwrap(), Count::Full(limit) if limit.name == "w"));
                assert!(matches!(entry.unwrap(), Entry::Refused(limit) if limit.name == "w"));
            }
            "a\0b" => {
                assert!(matches!(count.unwrap_err(), LimitsError::Database(_)));
                assert!(matches!(entry.unwrap_err(), LimitsError::Database(_)));
            }
            _ => {
                assert!(matches!(count.unwrap(), Count::Counted(_)), "{key}");
                let Entry::Admitted(admitted) = entry.unwrap() else { panic!("{key}") };
                assert_eq!(admitted.windows()[0].remaining, 0, "{key}");
            }
        }
    }
    let counts = "select min(count), max(count), count(*) from limits.window_count";
    let row = database.client().await.query_one(counts, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (2_i32, 2_i32, 41_i64));
}

#[tokio::test]
async fn one_who_counts_alone_is_served_by_one_connection() {
    let database = database().await;
    let limits = limits(&database).await;
    let window = Window::new("w", 2, HOUR);
    for n in 0..20 {
        let count = limits.count(&window, &format!("key-{n}")).await.unwrap();
        assert!(matches!(count, Count::Counted(_)));
    }
    let who_counted = "select count(*) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
            and query like '%insert into %window_count as w%values%'";
    let row = database.client().await.query_one(who_counted, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[tokio::test]
async fn more_at_once_than_fit_in_a_window_that_has_yet_to_begin_get_what_fits() {
    let database = database().await;
    let limits = limits(&database).await;
    let window = Window::new("w", 2, HOUR);
    // The first keeps the gate busy, so that the others go by one call.
    let keys = ["other", "key", "key", "key", "key", "key"];
    let counts = join_all(keys.map(|key| limits.count(&window, key))).await;
    let counted = counts.iter().filter(|count| matches!(count, Ok(Count::Counted(_)))).count();
    let full = counts.iter().filter(|count| matches!(count, Ok(Count::Full(_)))).count();
    assert_eq!((counted, full), (3, 3));
    let count = "select count from limits.window_count where key = 'key'";
    let row = database.client().await.query_one(count, &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_share_a_window_never_exceed_it_together_and_use_it_up() {
    let database = database().await;
    let replicas = [limits(&database).await, limits(&database).await, limits(&database).await];
    let (cap, own, shared) = (
        InFlight::new("requests", 8),
        Window::new("own", 100, HOUR),
        Window::new("shared", 50, HOUR),
    );
    let tasks = (0..40_usize).flat_map(|token| (0..3_usize).map(move |n| (token, n)));
    let tasks = tasks.map(|(token, n)| {
        let limits = replicas[n].clone();
        tokio::spawn(async move {
            let token = format!("token-{token}");
            let windows = [(own, token.as_str()), (shared, "user")];
            limits.enter(Some((cap, &token)), &windows, HOUR).await.unwrap()
        })
    });
    let mut admitted = Vec::new();
    for entry in join_all(tasks.collect::<Vec<_>>()).await {
        match entry.unwrap() {
            Entry::Admitted(one) => admitted.push(one),
            Entry::Refused(limit) => assert_eq!(limit.name, "shared"),
        }
    }
    assert_eq!(admitted.len(), 50);
    let client = database.client().await;
    let counted = "select coalesce(sum(count) filter (where name = 'shared'), 0),
        coalesce(sum(count) filter (where name = 'own'), 0),
        (select coalesce(sum(held), 0) from limits.in_flight)
        from limits.window_count";
    let row = client.query_one(counted, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (50_i64, 50_i64, 50_i64));
    drop(admitted);
    wait_until("all departures are told", PATIENCE, || async {
        client.query_one(counted, &[]).await.unwrap().get::<_, i64>(2) == 0
    })
    .await;
}
