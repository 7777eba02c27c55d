//! A name that nobody has, a new one for each request, a hundred thousand times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{TURN, checks};
use crate::bed::Bed;

const REQUESTS: usize = 100_000;
const CONNECTIONS: usize = 24;

/// Sends requests over one connection, one after the other; how many were answered with which status.
async fn requests(base: String, turn: Arc<AtomicUsize>) -> [usize; 2] {
    let host = base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut wrong, mut throttled) = (0, 0);
    let mut answer = Vec::new();
    loop {
        let number = turn.fetch_add(1, Ordering::Relaxed);
        if number >= REQUESTS {
            return [wrong, throttled];
        }
        let body = format!(r#"{{"name":"random-{number}","password":"wrong"}}"#);
        let request = format!(
            "POST /api/v1/session HTTP/1.1\r\nhost: {host}\r\norigin: {base}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        answer.clear();
        // Both problems are flat objects: the only brace that closes is the last byte.
        while !answer.ends_with(b"}") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "the connection ended");
        }
        match answer.get(9..12) {
            Some(b"401") => wrong += 1,
            Some(b"429") => throttled += 1,
            _ => panic!("{}", String::from_utf8_lossy(&answer)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_name_a_request_leaves_a_bounded_table() {
    let _turn = TURN.lock().await;
    let bed = Bed::new().await;
    let quiet = [("RUST_LOG", "warn")];
    let replicas = [
        bed.replica_with(&quiet).await,
        bed.replica_with(&quiet).await,
        bed.replica_with(&quiet).await,
    ];
    let turn = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|number| tokio::spawn(requests(replicas[number % 3].base.clone(), Arc::clone(&turn))))
        .collect();
    let mut answers = [0, 0];
    for task in tasks {
        let [wrong, throttled] = task.await.unwrap();
        answers = [answers[0] + wrong, answers[1] + throttled];
    }
    assert_eq!(answers[0] + answers[1], REQUESTS);
    // The network has 30 failures; then, a block over, one more each time, however long this takes.
    assert!((30..40).contains(&answers[0]), "{answers:?}");
    assert_eq!(checks(&replicas).await, u64::try_from(answers[0]).unwrap());
    let limits = bed.limits.client().await;
    let row = limits
        .query_one(
            "select count(*), pg_total_relation_size('limits.throttle') from limits.throttle",
            &[],
        )
        .await
        .unwrap();
    // Two rows a name that was checked, one for the network; and, for a minute, those of attempts that
    // came as a block ended and found another before them.
    let checked = i64::try_from(answers[0] * 2 + 1).unwrap();
    let rows: i64 = row.get(0);
    assert!((checked..checked + 500).contains(&rows), "{rows} rows, {answers:?}");
    assert!(row.get::<_, i64>(1) < 1 << 20, "{}", row.get::<_, i64>(1));
    // What is left goes with its window.
    limits.batch_execute("update limits.throttle set lapses_at = clock_timestamp()").await.unwrap();
    limits.execute("select limits.sweep_v1(1000)", &[]).await.unwrap();
    let left = limits.query_one("select count(*) from limits.throttle", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
}
