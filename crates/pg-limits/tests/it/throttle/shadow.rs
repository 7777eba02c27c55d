//! A throttle in shadow says what it would refuse, and refuses nothing.

use std::time::Duration;

use pg_limits::{Config, Limits, LimitsError, Throttle};

use super::{GUESS, NETWORK, admitted, connect, fail, pass, seen, throttled};
use crate::fixture::database;

#[tokio::test]
async fn in_shadow_it_reports_what_it_would_refuse_and_refuses_nothing() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    let shadow = [(GUESS.shadow(true), "ada")];
    fail(&limits, &shadow, 5).await;
    let attempt = admitted(&limits, &shadow).await;
    let told = attempt.would_be_throttled().unwrap();
    assert_eq!(told.name, "guess");
    assert!(told.retry_after > Duration::from_secs(20));
    // Enforced it would not have come about: its failure extends nothing.
    attempt.failed().await.unwrap();
    let row = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((row.failures, row.level, row.reservations), (5, 1, 0));
    // Enforced again, the same counts refuse.
    throttled(&limits, &[(GUESS, "ada")]).await;
    pass(&client, "30 s").await;
    let attempt = admitted(&limits, &shadow).await;
    assert!(attempt.would_be_throttled().is_none());
    attempt.failed().await.unwrap();
    assert_eq!(seen(&client, "guess", "ada").await.unwrap().level, 2);
}

#[tokio::test]
async fn beside_one_in_shadow_the_others_are_enforced_and_counted() {
    let database = database().await;
    let limits = connect(&database).await;
    let client = database.client().await;
    let keys = [(GUESS.shadow(true), "ada"), (NETWORK, "home")];
    fail(&limits, &keys, 29).await;
    let row = seen(&client, "guess", "ada").await.unwrap();
    assert_eq!((row.failures, row.level), (5, 1));
    fail(&limits, &keys, 1).await;
    assert_eq!(throttled(&limits, &keys).await.name, "network");
}

#[tokio::test]
async fn in_shadow_nobody_waits() {
    let database = database().await;
    let config = Config::new(database.config(), 1, &[]).attempt_wait(Duration::from_millis(50));
    let limits = Limits::connect(config).await.unwrap();
    let one = Throttle::new("one", 1, Duration::from_mins(15));
    let _held = admitted(&limits, &[(one, "ada")]).await;
    assert!(matches!(limits.attempt(&[(one, "ada")]).await, Err(LimitsError::Undecided)));
    admitted(&limits, &[(one.shadow(true), "ada")]).await.succeeded().await.unwrap();
}
