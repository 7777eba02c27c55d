//! Throttled attempts, on several replicas at once.

mod faults;
mod housekeeping;
mod parallel;
mod processes;
mod rules;
mod shadow;

use std::time::Duration;

use pg_limits::{Attempt, Attempted, Config, Limits, Throttle, Throttled};
use testkit::TestDatabase;
use tokio_postgres::Client;

/// Five failures in a quarter of an hour, cleared by a success.
const GUESS: Throttle = Throttle::new("guess", 5, Duration::from_mins(15)).clears_on_success();
/// Many share it, and no success clears it.
const NETWORK: Throttle = Throttle::new("network", 30, Duration::from_mins(10));

async fn connect(database: &TestDatabase) -> Limits {
    Limits::connect(Config::new(database.config(), 1, &[])).await.unwrap()
}

async fn replicas(database: &TestDatabase) -> [Limits; 3] {
    [connect(database).await, connect(database).await, connect(database).await]
}

async fn admitted(limits: &Limits, keys: &[(Throttle, &str)]) -> Attempt {
    match limits.attempt(keys).await.unwrap() {
        Attempted::Admitted(attempt) => attempt,
        Attempted::Throttled(throttled) => panic!("{throttled:?}"),
    }
}

async fn throttled(limits: &Limits, keys: &[(Throttle, &str)]) -> Throttled {
    match limits.attempt(keys).await.unwrap() {
        Attempted::Throttled(throttled) => throttled,
        Attempted::Admitted(attempt) => panic!("{attempt:?}"),
    }
}

async fn fail(limits: &Limits, keys: &[(Throttle, &str)], times: usize) {
    for _ in 0..times {
        admitted(limits, keys).await.failed().await.unwrap();
    }
}

/// What a row holds, seen from outside.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    failures: i32,
    level: i32,
    blocked_s: i64,
    reservations: i32,
}

async fn seen(client: &Client, name: &str, key: &str) -> Option<Seen> {
    let row = client
        .query_opt(
            "select failures, level, cardinality(reservations),
                case when blocked_until > clock_timestamp()
                    then ceil(extract(epoch from blocked_until - clock_timestamp()))::int8 else 0 end
             from limits.throttle where name = $1 and key = $2",
            &[&name, &key],
        )
        .await
        .unwrap()?;
    Some(Seen {
        failures: row.get(0),
        level: row.get(1),
        reservations: row.get(2),
        blocked_s: row.get(3),
    })
}

/// Lets so much time pass for every row.
async fn pass(client: &Client, time: &str) {
    client
        .batch_execute(&format!(
            "update limits.throttle
             set window_ends_at = window_ends_at - interval '{time}',
                 blocked_until = blocked_until - interval '{time}',
                 forgotten_at = forgotten_at - interval '{time}',
                 lapses_at = lapses_at - interval '{time}',
                 reservation_ends = coalesce(
                     (select array_agg(e - interval '{time}') from unnest(reservation_ends) e), '{{}}')"
        ))
        .await
        .unwrap();
}

/// An observer that shares no code with the limits: at every change of a row it writes down failures
/// in the window and live reservations together. A row changes under its lock, so nothing is missed.
async fn observe(client: &Client) {
    client
        .batch_execute(
            "create unlogged table observed (key text, taken int8);
             create function observe() returns trigger language plpgsql as $$
             begin
                 insert into observed values (new.key,
                     case when new.window_ends_at > clock_timestamp() then new.failures else 0 end
                     + (select count(*) from unnest(new.reservation_ends) e where e > clock_timestamp()));
                 return null;
             end $$;
             create trigger observe after insert or update on limits.throttle
             for each row execute function observe()",
        )
        .await
        .unwrap();
}

/// The most failures and checks under way that a key ever had together.
async fn most_taken(client: &Client, key: &str) -> i64 {
    client
        .query_one("select coalesce(max(taken), 0) from observed where key = $1", &[&key])
        .await
        .unwrap()
        .get(0)
}
