//! `studio serve`: answers until it is told to stop, then drains and releases.

use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::features::plugins;
use crate::platform::bus::Channel;
use crate::platform::heavy::{RELEASE_PATIENCE, ReplicaState};
use crate::platform::listener::{Listener, Peer};
use crate::platform::{refusals, schema, session, telemetry, token};
use crate::settings::Settings;

/// How often the housekeeping of sessions and of the audit trail runs.
const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// Connections of the main pool that are opened before the first request.
const WARM: usize = 4;

/// How long stopped work may take to end: cancel, drain, outcome, release.
const STOP_WORK: Duration = Duration::from_secs(12);

/// How long the last counts of refusals may take to be written.
const FLUSH: Duration = Duration::from_secs(3);

/// How to serve.
#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// Also stop when standard input ends, as it does when the process that holds the other end is gone.
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

impl Serve {
    pub(super) async fn run(&self, settings: Settings) -> anyhow::Result<()> {
        serve(settings, self.until_input_ends).await
    }
}

/// Serves until SIGTERM or SIGINT.
async fn serve(settings: Settings, until_input_ends: bool) -> anyhow::Result<()> {
    telemetry::recorder();
    let database = settings.database.url.parse().context("database.url is not an address")?;
    let client = schema::connect(&database).await.context("reaching Studio's database")?;
    schema::check(&client).await?;
    drop(client);

    let drain = Duration::from_secs(settings.http.drain_seconds);
    let listen = settings.http.listen;
    // Before the application begins, so that an early signal is not lost.
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let app = App::new(settings).await?;
    app.pools.warm(WARM.min(app.pools.main.status().max_size)).await;
    app.in_force.read().await.map_err(|_| anyhow::anyhow!("the settings cannot be read"))?;
    app.tasks.spawn(app.bus.clone().keep(database, app.shutdown.clone()));
    let news = app.bus.news(Channel::Setting);
    app.tasks.spawn(app.in_force.clone().keep(news, app.shutdown.clone()));
    let listener = tokio::net::TcpListener::bind(listen)
        .await
        .with_context(|| format!("listening on {listen}"))?;
    let address = listener.local_addr()?;
    let refusals = app.refusals.clone();
    app.tasks.spawn(refusals.keep(app.pools.clone(), app.replica, app.shutdown.clone()));
    app.tasks.spawn(housekeeping(app.clone()));
    let service = app.router().into_make_service_with_connect_info::<Peer>();
    let server = axum::serve(Listener(listener), service)
        .with_graceful_shutdown(app.shutdown.clone().cancelled_owned());
    let server = app.tasks.spawn(async move { server.await });
    tell(&app, ReplicaState::Ready).await;
    tracing::info!(%address, replica = %app.replica, "Serving");
    super::print(&format!("Listening on http://{address}"))?;

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = input_ended(until_input_ends) => {}
    }
    tracing::info!("Draining");
    app.shutdown.cancel();
    tell(&app, ReplicaState::Draining).await;
    app.tasks.close();
    // First requests may end by themselves, then heavy work is stopped, and tells the trail so.
    if tokio::time::timeout(drain, app.tasks.wait()).await.is_err() {
        app.stop_work.cancel();
        if tokio::time::timeout(STOP_WORK, app.tasks.wait()).await.is_err() {
            tracing::warn!("Some work did not end in time");
        }
    }
    server.abort();
    let flushed = app.refusals.flush(&app.pools, app.replica);
    if !matches!(tokio::time::timeout(FLUSH, flushed).await, Ok(Ok(()))) {
        tracing::warn!("The last refusals may not be counted");
    }
    app.heavy.shutdown(RELEASE_PATIENCE).await;
    tracing::info!("Stopped");
    Ok(())
}

/// Resolves when standard input ends; never, unless that is asked for.
async fn input_ended(is_asked_for: bool) {
    if !is_asked_for {
        std::future::pending::<()>().await;
    }
    let read = || std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    // An error is an end too. The thread is left behind when something else stops the program first.
    tokio::task::spawn_blocking(read).await.ok();
}

/// Tells the others what state this replica is in. The next heartbeat repeats it, so a failure only waits.
async fn tell(app: &App, state: ReplicaState) {
    if let Err(error) = app.heavy.set_state(state).await {
        tracing::warn!(error = %error, state = state.as_str(), "The replica's state could not be told");
    }
}

async fn housekeeping(app: App) {
    let mut ticks = tokio::time::interval(HOUSEKEEPING);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Some(recorder) = telemetry::recorder() {
            recorder.run_upkeep();
        }
        // Failures are logged where they become problems, and the next round tries again.
        if let Ok(interrupted @ 1..) = app.audit.interrupt_overdue().await {
            tracing::warn!(interrupted, "Acts without outcome were marked as interrupted");
        }
        session::delete_ended(&app).await.ok();
        token::delete_ended(&app).await.ok();
        plugins::sweep(&app).await.ok();
        refusals::delete_old(&app.pools).await.ok();
    }
}
