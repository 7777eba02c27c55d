//! Runs a private cluster in a folder until it is told to end: `local-postgres FOLDER [PORT]`.

use std::io::Write as _;

use local_postgres::{Cluster, ClusterOptions, StopMode};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: local-postgres FOLDER [PORT]")?;
    let mut options = ClusterOptions::new(folder);
    if let Some(port) = arguments.next() {
        options = options.port(port.parse()?);
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut cluster = Cluster::start(options).await?;
    writeln!(std::io::stdout(), "{}", cluster.url("postgres"))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    cluster.stop(StopMode::Fast).await?;
    Ok(())
}
