//! The tower layer and the body guard, over real connections; and the example of two processes.

use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use bytes::Bytes;
use pg_limits::{Endpoint, HeavyRequestLayer, HeavyRequests, Stop};
use testkit::{ReplicaProcess, wait_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::fixture::{PATIENCE, WORK, config, database, live, wait_for_live};

type Chunks = mpsc::Sender<Result<Bytes, std::io::Error>>;

/// A service whose body is what the test sends it; its address, and the bodies as they begin.
async fn serve(heavy: &HeavyRequests, endpoint: Endpoint) -> (String, mpsc::Receiver<Chunks>) {
    let (begin, bodies) = mpsc::channel(8);
    let user = |request: &Request<Body>| {
        request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned)
    };
    let handler = move || {
        let begin = begin.clone();
        async move {
            let (chunks, body) = mpsc::channel(1);
            begin.send(chunks).await.unwrap();
            Body::from_stream(futures_util::stream::unfold(body, |mut body| async move {
                body.recv().await.map(|chunk| (chunk, body))
            }))
        }
    };
    let app = Router::new().route("/", get(handler)).layer(HeavyRequestLayer::new(
        heavy.clone(),
        endpoint,
        user,
    ));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, bodies)
}

async fn ask(address: &str, user: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-user: {user}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that the server aborts is an answer too: what came before it.
    drop(stream.read_to_end(&mut text).await);
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_permit_lives_until_the_last_byte_of_the_body_and_a_refusal_names_the_limit() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let (address, mut bodies) = serve(&heavy, WORK).await;
    let client = database.client().await;
    let mut first = ask(&address, "ada").await;
    let body = bodies.recv().await.unwrap();
    let _second = ask(&address, "ada").await;
    let _other = bodies.recv().await.unwrap();
    assert_eq!(live(&client).await, 2);
    let refusal = answer(&mut ask(&address, "ada").await).await;
    assert!(refusal.starts_with("HTTP/1.1 429"), "{refusal}");
    assert!(refusal.contains("retry-after: "), "{refusal}");
    assert!(refusal.contains("application/problem+json"), "{refusal}");
    for member in [
        r#""type":"/problems/too-many-heavy-requests""#,
        r#""endpoint":"work""#,
        r#""limit":2"#,
        r#""scope":"user""#,
    ] {
        assert!(refusal.contains(member), "{member} in {refusal}");
    }
    body.send(Ok(Bytes::from_static(b"half"))).await.unwrap();
    assert_eq!(live(&client).await, 2);
    drop(body);
    assert!(answer(&mut first).await.contains("half"));
    wait_for_live(&client, 1).await;
}

#[tokio::test]
async fn a_body_that_fails_frees_its_permit_and_never_ends_cleanly() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let (address, mut bodies) = serve(&heavy, WORK).await;
    let client = database.client().await;
    let mut stream = ask(&address, "ada").await;
    let body = bodies.recv().await.unwrap();
    body.send(Ok(Bytes::from_static(b"half"))).await.unwrap();
    body.send(Err(std::io::Error::other("the database went"))).await.unwrap();
    let text = answer(&mut stream).await;
    assert!(!text.ends_with("0\r\n\r\n"), "{text}");
    wait_for_live(&client, 0).await;
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_permit() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let (address, mut bodies) = serve(&heavy, WORK).await;
    let client = database.client().await;
    let stream = ask(&address, "ada").await;
    let body = bodies.recv().await.unwrap();
    assert_eq!(live(&client).await, 1);
    drop(stream);
    wait_for_live(&client, 0).await;
    wait_until("the body is dropped", PATIENCE, || async { body.is_closed() }).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_is_bounded() {
    let database = database().await;
    let brief = Endpoint::new("work", 2, Duration::from_millis(500));
    let heavy = HeavyRequests::connect(config(&database, brief, 8)).await.unwrap();
    let (address, mut bodies) = serve(&heavy, brief).await;
    let client = database.client().await;
    let mut stream = ask(&address, "ada").await;
    let body = bodies.recv().await.unwrap();
    // The client reads nothing, so the socket fills and nobody polls the body any more.
    let filling = tokio::spawn(async move {
        let chunk = Bytes::from(vec![b'x'; 1 << 20]);
        while body.send(Ok(chunk.clone())).await.is_ok() {}
    });
    wait_for_live(&client, 0).await;
    filling.await.unwrap();
    let text = answer(&mut stream).await;
    assert!(!text.ends_with("0\r\n\r\n"), "a body that was stopped must not end cleanly");
}

#[tokio::test]
async fn a_handler_that_does_not_answer_is_stopped_at_the_bound() {
    let database = database().await;
    let brief = Endpoint::new("work", 2, Duration::from_millis(200));
    let heavy = HeavyRequests::connect(config(&database, brief, 8)).await.unwrap();
    let layer = HeavyRequestLayer::new(heavy, brief, |_: &Request<Body>| Some("ada".to_owned()));
    let app = Router::new().route("/", get(std::future::pending::<()>)).layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let text = answer(&mut ask(&address, "ada").await).await;
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    assert!(text.contains("/problems/heavy-request-timed-out"), "{text}");
    wait_for_live(&database.client().await, 0).await;
}

#[tokio::test]
async fn a_body_that_is_asked_to_stop_ends_in_an_error_though_its_client_does_not_read() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let (address, mut bodies) = serve(&heavy, WORK).await;
    let mut stream = ask(&address, "ada").await;
    let body = bodies.recv().await.unwrap();
    let filling = tokio::spawn(async move {
        let chunk = Bytes::from(vec![b'x'; 1 << 20]);
        while body.send(Ok(chunk.clone())).await.is_ok() {}
    });
    let held = heavy.holders().await.unwrap();
    assert_eq!(heavy.stop(held[0].permit, PATIENCE).await.unwrap(), Stop::Ended);
    filling.await.unwrap();
    let text = answer(&mut stream).await;
    assert!(!text.ends_with("0\r\n\r\n"), "a body that was stopped must not end cleanly");
}

#[tokio::test]
async fn a_handler_that_is_asked_to_stop_is_dropped_and_its_client_told() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let user = |_: &Request<Body>| Some("ada".to_owned());
    let layer = HeavyRequestLayer::new(heavy.clone(), WORK, user);
    let app = Router::new().route("/", get(std::future::pending::<()>)).layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let mut stream = ask(&address, "ada").await;
    let client = database.client().await;
    wait_for_live(&client, 1).await;
    let held = heavy.holders().await.unwrap();
    assert_eq!(heavy.stop(held[0].permit, PATIENCE).await.unwrap(), Stop::Ended);
    let text = answer(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    assert!(text.contains("/problems/heavy-request-stopped"), "{text}");
}

#[tokio::test]
async fn nobody_is_anonymous() {
    let database = database().await;
    let heavy = HeavyRequests::connect(config(&database, WORK, 8)).await.unwrap();
    let (address, _began) = serve(&heavy, WORK).await;
    let text = answer(&mut ask(&address, "").await).await;
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
}

#[tokio::test]
async fn the_example_keeps_one_limit_in_two_processes() {
    let database = database().await;
    let mut processes = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let mut command = Command::new(crate::processes::example("heavy_endpoint"));
        command.args([&database.url(), "127.0.0.1:0"]);
        let process = ReplicaProcess::start(command);
        let line = process.wait_for_line(|line| line.starts_with("listening on ")).await;
        addresses.push(line.trim_start_matches("listening on ").to_owned());
        processes.push(process);
    }
    let client = database.client().await;
    let mut streams = Vec::new();
    for address in &addresses {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(
                b"GET /report HTTP/1.1\r\nhost: x\r\nx-user: ada\r\nconnection: close\r\n\r\n",
            )
            .await
            .unwrap();
        streams.push(stream);
    }
    wait_for_live(&client, 2).await;
    let mut third = TcpStream::connect(&addresses[0]).await.unwrap();
    third
        .write_all(b"GET /report HTTP/1.1\r\nhost: x\r\nx-user: ada\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(answer(&mut third).await.starts_with("HTTP/1.1 429"));
    for mut stream in streams {
        let text = answer(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("the report"), "{text}");
    }
    wait_for_live(&client, 0).await;
}
