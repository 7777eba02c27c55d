//! A rate that processes share, counted by the server that they call.

use std::collections::HashMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pg_limits::{Limits, ReplicaState};
use testkit::{CuttingProxy, ReplicaProcess, TestDatabase, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::fixture::{PATIENCE, database, limits};
use crate::processes::example;

/// When calls of each caller arrived.
type Arrivals = Arc<Mutex<HashMap<String, Vec<Instant>>>>;

/// A real HTTP server that notes who called when.
async fn server() -> (String, Arrivals) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let arrivals = Arrivals::default();
    let noted = Arc::clone(&arrivals);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let noted = Arc::clone(&noted);
            tokio::spawn(async move {
                let mut request = [0; 1024];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let arrived = Instant::now();
                let text = String::from_utf8_lossy(&request[..read]);
                let caller = text.split(['/', ' ']).nth(2).unwrap_or_default().to_owned();
                noted.lock().unwrap().entry(caller).or_default().push(arrived);
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.ok();
            });
        }
    });
    (address, arrivals)
}

fn caller(database: &TestDatabase, server: &str, rate: u32, name: &str) -> ReplicaProcess {
    let mut command = Command::new(example("shared_rate"));
    command.args([&database.url(), server, &rate.to_string(), name, "3"]);
    ReplicaProcess::start(command)
}

/// The most calls of one caller that arrived within any second, of those since `from`.
fn most_in_a_second(arrivals: &Arrivals, name: &str, from: Option<Instant>) -> usize {
    let arrivals = arrivals.lock().unwrap();
    let mut times = arrivals.get(name).cloned().unwrap_or_default();
    times.retain(|time| from.is_none_or(|from| *time >= from));
    times.sort_unstable();
    let within = |start: &Instant| {
        times
            .iter()
            .filter(|time| *time >= start && **time < *start + Duration::from_secs(1))
            .count()
    };
    times.iter().map(within).max().unwrap_or(0)
}

fn calls(arrivals: &Arrivals, name: &str) -> usize {
    arrivals.lock().unwrap().get(name).map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_share_a_rate_of_twenty_and_those_left_take_over_what_one_that_died_had() {
    let database = database().await;
    let (server, arrivals) = server().await;
    let names = ["a", "b", "c"];
    let callers = names.map(|name| caller(&database, &server, 20, name));
    wait_until("each has called for three seconds' worth", PATIENCE, || async {
        names.iter().all(|name| calls(&arrivals, name) >= 21)
    })
    .await;
    for name in names {
        assert_eq!(most_in_a_second(&arrivals, name, None), 7, "{name}");
    }
    let [a, b, c] = callers;
    c.kill_9();
    let died_at = Instant::now();
    wait_until("the others call ten times a second", PATIENCE, || async {
        ["a", "b"].iter().all(|name| most_in_a_second(&arrivals, name, Some(died_at)) >= 10)
    })
    .await;
    for name in ["a", "b"] {
        assert_eq!(most_in_a_second(&arrivals, name, None), 10, "{name}");
    }
    drop((a, b));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_below_the_number_of_replicas_gives_each_one_call_a_second() {
    let database = database().await;
    let (server, arrivals) = server().await;
    let names = ["a", "b", "c"];
    let _callers = names.map(|name| caller(&database, &server, 2, name));
    wait_until("each has called a few times", PATIENCE, || async {
        names.iter().all(|name| calls(&arrivals, name) >= 4)
    })
    .await;
    for name in names {
        assert_eq!(most_in_a_second(&arrivals, name, None), 1, "{name}");
    }
}

#[tokio::test]
async fn a_share_counts_ready_replicas_rounds_up_and_is_at_least_one() {
    let database = database().await;
    let one = limits(&database).await;
    // One that is not ready counts itself.
    assert_eq!(one.rate_share("node", 20).share().await.unwrap(), 20);
    let mut others = Vec::new();
    for _ in 0..3 {
        let other = limits(&database).await;
        other.set_state(ReplicaState::Ready).await.unwrap();
        others.push(other);
    }
    let share = others[2].rate_share("node", 20);
    assert_eq!(share.share().await.unwrap(), 7);
    share.set_rate(2);
    assert_eq!(share.share().await.unwrap(), 1);
    share.set_rate(0);
    assert_eq!(share.share().await.unwrap(), 1);
    let pass = share.take(1).await.unwrap();
    drop(pass);
}

#[tokio::test]
async fn a_wait_that_is_given_up_takes_no_turn_for_good() {
    let database = database().await;
    let limits = limits(&database).await;
    let share = limits.rate_share("node", 1);
    let first = share.take(1).await.unwrap();
    for _ in 0..5 {
        let mut waiting = Box::pin(share.take(1));
        assert!(futures_util::future::poll_immediate(&mut waiting).await.is_none());
    }
    drop(first);
    drop(share.take(1).await.unwrap());
}

#[tokio::test]
async fn while_the_registry_is_away_the_last_count_holds() {
    let database = database().await;
    let proxy = CuttingProxy::before(database.tcp_config()).await;
    let config = pg_limits::Config::new(proxy.url().parse().unwrap(), 1, &[])
        .claim_timeout(Duration::from_secs(1))
        .heartbeat(Duration::from_hours(1));
    let limits = Limits::connect(config).await.unwrap();
    let node = limits.rate_share("node", 3);
    assert_eq!(node.share().await.unwrap(), 3);
    proxy.refuse();
    proxy.cut().await;
    // Seven seconds' worth of turns: the registry would have been read again, and could not be.
    for _ in 0..21 {
        drop(node.take(1).await.unwrap());
    }
    assert_eq!(node.share().await.unwrap(), 3);
    // What has never been read is an error, not a guess.
    let stranger = Limits::connect(pg_limits::Config::new(proxy.url().parse().unwrap(), 1, &[]));
    assert!(stranger.await.is_err());
}
