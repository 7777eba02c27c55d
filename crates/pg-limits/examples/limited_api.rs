//! An axum service whose callers have a window and an in-flight cap. Start it twice: the limits are one.
//!
//! `limited_api DATABASE 127.0.0.1:7001` and `limited_api DATABASE 127.0.0.1:7002`; then, on either,
//! `curl -i -H 'x-token: t1' 127.0.0.1:7001/quick`, or nine times at once `…/slow`. A third argument is
//! the time limit of a request in seconds, 60 unless given.

#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get};
use pg_limits::{Config, Entry, InFlight, LimitReached, Limits, ReplicaState, Window};

/// Eight requests of a token at one time, on all processes together.
const IN_FLIGHT: InFlight = InFlight::new("request_in_flight", 8);
/// A hundred a minute.
const A_MINUTE: Window = Window::new("api_request_window", 100, Duration::from_mins(1));

#[derive(Clone)]
struct App {
    limits: Limits,
    time_limit: Duration,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let database: tokio_postgres::Config = arguments.next().ok_or("which database?")?.parse()?;
    let address = arguments.next().ok_or("which address?")?;
    let seconds = arguments.next().map_or(Ok(60), |text| text.parse())?;

    let (mut client, connection) = database.connect(tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    pg_limits::migrate(&mut client, "limits").await?;

    // A service without heavy endpoints declares none.
    let config = Config::new(database, 1, &[]).replica(address.as_str(), "1.0");
    let limits = Limits::connect(config).await?;
    let app = App { limits: limits.clone(), time_limit: Duration::from_secs(seconds) };
    let router = Router::new()
        .route("/quick", get(async || "quick\n"))
        .route("/slow", get(slow))
        .layer(from_fn_with_state(app, limited));

    limits.set_state(ReplicaState::Ready).await?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, router).with_graceful_shutdown(asked_to_stop()).await?;
    limits.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

/// Lets a request in, or answers 429. A real service knows the token by its hash, and keeps the
/// admission until the last byte of a streamed body.
async fn limited(
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let Some(token) = headers.get("x-token").and_then(|token| token.to_str().ok()) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let (in_flight, windows) = ((IN_FLIGHT, token), [(A_MINUTE, token)]);
    let admitted = match app.limits.enter(Some(in_flight), &windows, app.time_limit).await {
        Ok(Entry::Admitted(admitted)) => admitted,
        Ok(Entry::Refused(limit)) => return too_many(&limit),
        Err(error) => return error.into_response(),
    };
    let answer = tokio::time::timeout(app.time_limit, next.run(request)).await;
    drop(admitted);
    answer.unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

fn too_many(limit: &LimitReached) -> Response {
    let seconds = limit.retry_after.as_secs() + 1;
    let text = format!("{} is reached: {}\n", limit.name, limit.limit);
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())], text)
        .into_response()
}

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(30)).await;
    "slow\n"
}

async fn asked_to_stop() {
    tokio::signal::ctrl_c().await.ok();
}
