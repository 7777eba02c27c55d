//! Calls an HTTP server as often as this process's share of a rate allows.
//!
//! `shared_rate DATABASE 127.0.0.1:8161 20 [NAME] [TOGETHER]`: twenty calls a second of that server, by all
//! processes together. Each call's path is the process's name. With TOGETHER it begins when so many are ready.

#![expect(clippy::print_stdout, reason = "an example says that it begins")]

use std::time::Duration;

use pg_limits::{Config, Limits, RateShare, ReplicaState};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More calls at one time than any share, so that the share is what holds them back.
const CALLERS: usize = 30;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let database: tokio_postgres::Config = arguments.next().ok_or("which database?")?.parse()?;
    let server = arguments.next().ok_or("which server?")?;
    let rate: u32 = arguments.next().ok_or("which rate?")?.parse()?;
    let name = arguments.next().unwrap_or_else(|| "caller".to_owned());
    let together: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;

    let limits =
        Limits::connect(Config::new(database, 1, &[]).replica(name.as_str(), "1.0")).await?;
    limits.set_state(ReplicaState::Ready).await?;
    while limits.replicas().await?.iter().filter(|other| other.state == "ready").count() < together
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("calling {server}");
    let share = limits.rate_share("server", rate);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(keep_calling(share.clone(), server.clone(), name.clone())))
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(())
}

async fn keep_calling(share: RateShare, server: String, name: String) -> Result<(), Failure> {
    loop {
        let pass = share.take(1).await?;
        call(&server, &name).await?;
        // Answered: the turn comes back a second from now.
        drop(pass);
    }
}

async fn call(server: &str, name: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    let request = format!("GET /{name} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}
