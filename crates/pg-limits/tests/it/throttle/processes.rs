//! Several processes, of which some stand still or die.

use std::process::Command;
use std::time::Duration;

use testkit::{ReplicaProcess, TestDatabase, wait_until};
use tokio_postgres::Client;

use super::{GUESS, admitted, connect, most_taken, observe, seen};
use crate::fixture::{PATIENCE, database};
use crate::processes::example;

fn attempter(database: &TestDatabase, arguments: &str) -> ReplicaProcess {
    let mut command = Command::new(example("attempter"));
    command.arg(database.url()).args(arguments.split_whitespace());
    ReplicaProcess::start(command)
}

/// One of the figures of a line like `admitted=5 late=0`.
fn figure(line: &str, name: &str) -> u64 {
    let value = line.split(' ').find_map(|figure| figure.strip_prefix(name)?.strip_prefix('='));
    value.unwrap().parse().unwrap()
}

async fn wait_for_reservations(client: &Client, wanted: i32) {
    wait_until("the reservations", PATIENCE, || async {
        seen(client, "guess", "ada").await.is_some_and(|row| row.reservations == wanted)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_from_three_processes_get_no_more_checks_than_the_limit() {
    let database = database().await;
    let client = database.client().await;
    observe(&client).await;
    let arguments = "--clients 16 --attempts 40 --together 3";
    let replicas: Vec<_> = (0..3).map(|_| attempter(&database, arguments)).collect();
    let mut admitted = 0;
    for replica in replicas {
        let line = replica.wait_for_line(|line| line.starts_with("admitted=")).await;
        assert_eq!(figure(&line, "undecided") + figure(&line, "unavailable"), 0, "{line}");
        admitted += figure(&line, "admitted");
    }
    assert_eq!((admitted, most_taken(&client, "ada").await), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn valid_attempts_from_three_processes_all_pass() {
    let database = database().await;
    let client = database.client().await;
    observe(&client).await;
    super::fail(&connect(&database).await, &[(GUESS, "ada")], 4).await;
    let arguments = "--clients 16 --attempts 40 --together 3 --succeed";
    let replicas: Vec<_> = (0..3).map(|_| attempter(&database, arguments)).collect();
    for replica in replicas {
        let line = replica.wait_for_line(|line| line.starts_with("admitted=")).await;
        assert_eq!(figure(&line, "admitted"), 40, "{line}");
    }
    assert!(most_taken(&client, "ada").await <= 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replicas_places_are_free_when_its_reservations_lapse() {
    let database = database().await;
    let client = database.client().await;
    let replica =
        attempter(&database, "--clients 5 --attempts 5 --hold-ms 600000 --reservation-ms 2000");
    wait_for_reservations(&client, 5).await;
    replica.kill_9();
    replica.wait().await;
    // Nothing counted, and the next attempt waits until one of the five has lapsed by the database's clock.
    let limits = connect(&database).await;
    let attempt = admitted(&limits, &[(GUESS, "ada")]).await;
    let lapsed = "select count(*) filter (where e > clock_timestamp()) from limits.throttle, unnest(reservation_ends) e";
    let live: i64 = client.query_one(lapsed, &[]).await.unwrap().get(0);
    assert!((1..=5).contains(&live), "{live}");
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 0);
    attempt.succeeded().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_paused_past_its_reservation_notices_and_its_failures_count() {
    let database = database().await;
    let client = database.client().await;
    let replica =
        attempter(&database, "--clients 2 --attempts 2 --hold-ms 1000 --reservation-ms 1500");
    wait_for_reservations(&client, 2).await;
    replica.pause().await;
    wait_until("the reservations to lapse", PATIENCE, || async {
        let lapsed = "select bool_and(e < clock_timestamp()) from limits.throttle, unnest(reservation_ends) e";
        client.query_one(lapsed, &[]).await.unwrap().get::<_, bool>(0)
    })
    .await;
    // Their places are free meanwhile.
    let limits = connect(&database).await;
    let mut five = Vec::new();
    for _ in 0..5 {
        five.push(admitted(&limits, &[(GUESS, "ada")]).await);
    }
    replica.resume();
    let line = replica.wait_for_line(|line| line.starts_with("admitted=")).await;
    assert_eq!((figure(&line, "late"), figure(&line, "untold")), (2, 0), "{line}");
    let row = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((row.failures, row.reservations), (2, 5));
    for attempt in five {
        attempt.failed().await.unwrap();
    }
    let row = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((row.failures, row.reservations), (7, 0));
    assert!(row.blocked_s > 30, "failures beyond the limit block for longer: {row:?}");
    assert!(Duration::from_secs(row.blocked_s.unsigned_abs()) <= Duration::from_mins(15));
}
