//! Many attempts at once on several replicas: never more checks than the limit, and nobody refused
//! because of others who succeed.

use std::sync::Arc;
use std::time::Duration;

use pg_limits::{Attempted, Config, Limits, LimitsError, Throttle};
use testkit::wait_until;
use tokio::sync::Barrier;

use super::{GUESS, NETWORK, admitted, connect, fail, most_taken, observe, replicas, seen};
use crate::fixture::{PATIENCE, database};

/// Lets so many attempts go at once, spread over the replicas; how many were admitted.
async fn at_once(
    replicas: &[Limits; 3],
    count: usize,
    keys: fn(usize) -> Vec<(Throttle, &'static str)>,
    succeeds: bool,
) -> usize {
    let together = Arc::new(Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let (limits, together) = (replicas[number % 3].clone(), Arc::clone(&together));
            tokio::spawn(async move {
                together.wait().await;
                match limits.attempt(&keys(number)).await.unwrap() {
                    Attempted::Admitted(attempt) => {
                        tokio::task::yield_now().await;
                        let told = if succeeds {
                            attempt.succeeded().await
                        } else {
                            attempt.failed().await
                        };
                        told.unwrap();
                        1
                    }
                    Attempted::Throttled(_) => 0,
                }
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

fn ada(_number: usize) -> Vec<(Throttle, &'static str)> {
    vec![(GUESS, "ada"), (NETWORK, "home")]
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_guesses_get_no_more_checks_than_the_limit() {
    for earlier in [0, 4] {
        let database = database().await;
        let replicas = replicas(&database).await;
        let client = database.client().await;
        observe(&client).await;
        fail(&replicas[0], &ada(0), earlier).await;
        assert_eq!(at_once(&replicas, 50, ada, false).await, 5 - earlier);
        assert_eq!(most_taken(&client, "ada").await, 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_successes_all_pass() {
    for earlier in [0, 4] {
        let database = database().await;
        let replicas = replicas(&database).await;
        let client = database.client().await;
        observe(&client).await;
        fail(&replicas[0], &ada(0), earlier).await;
        assert_eq!(at_once(&replicas, 50, ada, true).await, 50);
        assert!(most_taken(&client, "ada").await <= 5);
        assert_eq!(seen(&client, "guess", "ada").await.unwrap().failures, 0);
        let network = seen(&client, "network", "home").await.unwrap();
        assert_eq!(network.failures, i32::try_from(earlier).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_given_in_any_order_never_lock_each_other_out() {
    fn crossed(number: usize) -> Vec<(Throttle, &'static str)> {
        let mut keys = vec![(GUESS, "ada"), (GUESS, "grace"), (NETWORK, "home"), (NETWORK, "away")];
        keys.rotate_left(number % 4);
        if number.is_multiple_of(2) {
            keys.reverse();
        }
        keys
    }
    let database = database().await;
    let replicas = replicas(&database).await;
    let client = database.client().await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    for _ in 0..4 {
        assert_eq!(at_once(&replicas, 60, crossed, true).await, 60);
    }
    assert_eq!(client.query_one(deadlocks, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn who_waits_for_others_is_admitted_when_one_of_them_ends_on_any_replica() {
    let database = database().await;
    let [here, there, _] = replicas(&database).await;
    for settled_on in [&here, &there] {
        fail(&here, &[(GUESS, "ada")], 4).await;
        let held = admitted(settled_on, &[(GUESS, "ada")]).await;
        let waiting = tokio::spawn({
            let here = here.clone();
            async move { admitted(&here, &[(GUESS, "ada")]).await.succeeded().await }
        });
        // Give it the time to find the key full; admitted early it would end before the settlement.
        admitted(&there, &[(GUESS, "grace")]).await.succeeded().await.unwrap();
        assert!(!waiting.is_finished());
        held.succeeded().await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_waits_too_long_or_behind_too_many_is_undecided_and_nobody_holds_a_connection() {
    let database = database().await;
    let config = Config::new(database.config(), 1, &[]).connections(1);
    let limits = Limits::connect(config.attempt_wait(Duration::from_secs(2))).await.unwrap();
    let one = Throttle::new("one", 1, Duration::from_mins(15));
    let held = admitted(&limits, &[(one, "ada")]).await;
    let waiting: Vec<_> = (0..200)
        .map(|_| {
            let limits = limits.clone();
            tokio::spawn(async move { limits.attempt(&[(one, "ada")]).await })
        })
        .collect();
    wait_until("those for whom there is no room to be told so", PATIENCE, || async {
        waiting.iter().filter(|task| task.is_finished()).count() >= 72
    })
    .await;
    // The only connection serves others meanwhile.
    admitted(&limits, &[(one, "grace")]).await.succeeded().await.unwrap();
    for task in waiting {
        assert!(matches!(task.await.unwrap(), Err(LimitsError::Undecided)));
    }
    held.succeeded().await.unwrap();
    admitted(&limits, &[(one, "ada")]).await.succeeded().await.unwrap();
}

#[tokio::test]
async fn a_caller_who_leaves_while_it_waits_takes_no_place() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    fail(&limits, &[(GUESS, "ada")], 4).await;
    let held = admitted(&limits, &[(GUESS, "ada")]).await;
    let waiting = tokio::spawn({
        let limits = limits.clone();
        async move { limits.attempt(&[(GUESS, "ada")]).await }
    });
    admitted(&limits, &[(GUESS, "grace")]).await.succeeded().await.unwrap();
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    held.succeeded().await.unwrap();
    wait_until("no reservation", PATIENCE, || async {
        seen(&client, "guess", "ada").await.unwrap().reservations == 0
    })
    .await;
}
