//! A plain axum service with one heavy endpoint. Start it twice: the limit is one.
//!
//! `heavy_endpoint DATABASE 127.0.0.1:7001` and `heavy_endpoint DATABASE 127.0.0.1:7002`; then
//! `curl -H 'x-user: ada' 127.0.0.1:7001/report` three times at once, on either.

#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use std::time::Duration;

use axum::{Router, http::Request, routing::get};
use pg_limits::{Config, Endpoint, HeavyRequestLayer, HeavyRequests, ReplicaState};

/// Two reports a user at a time, on all processes together; each at most 30 s.
const REPORT: Endpoint = Endpoint::new("report", 2, Duration::from_secs(30));

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let database: tokio_postgres::Config = arguments.next().ok_or("which database?")?.parse()?;
    let address = arguments.next().ok_or("which address?")?;

    let (mut client, connection) = database.connect(tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    pg_limits::migrate(&mut client, "limits").await?;

    let config = Config::new(database, 8, &[REPORT]).replica(address.as_str(), "1.0");
    let heavy = HeavyRequests::connect(config).await?;
    // A real service reads the user from its session; it must be an id that never changes.
    let user = |request: &Request<_>| {
        request.headers().get("x-user").and_then(|name| name.to_str().ok()).map(str::to_owned)
    };
    let app = Router::new().route("/report", get(report)).layer(HeavyRequestLayer::new(
        heavy.clone(),
        REPORT,
        user,
    ));

    heavy.set_state(ReplicaState::Ready).await?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app).with_graceful_shutdown(asked_to_stop()).await?;
    heavy.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

async fn report() -> &'static str {
    tokio::time::sleep(Duration::from_secs(2)).await;
    "the report\n"
}

async fn asked_to_stop() {
    tokio::signal::ctrl_c().await.ok();
}
