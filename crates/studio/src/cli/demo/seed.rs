//! `studio demo seed`: demo accounts, and audit events over the last 90 days.

use std::fmt::Write as _;

use bytes::BytesMut;
use futures_util::SinkExt as _;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio_postgres::Client;
use uuid::Uuid;

use super::state::{Account, State};
use crate::platform::account::{self, AccountName};
use crate::platform::{schema, timestamp};
use crate::settings::Settings;

const COPY: &str = include_str!("seed/copy_events.sql");
const DELETE: &str = include_str!("seed/delete_events.sql");

/// Text that goes to the server in one piece.
const PIECE: usize = 256 * 1024;

/// An actor with ten events, so that a filter can be shown that finds little among much.
const RARE_ACTOR: &str = "demo-rare";
const RARE_EVENTS: u64 = 10;

/// What to write.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Seed {
    /// How many audit events.
    #[arg(long, default_value_t = 200_000)]
    events: u64,
    /// Write no accounts.
    #[arg(long)]
    no_accounts: bool,
}

impl Seed {
    pub(in crate::cli) async fn run(&self, settings: &Settings) -> anyhow::Result<()> {
        let client = schema::connect(&schema::owner(settings)?).await?;
        schema::check(&client).await?;
        if !self.no_accounts {
            accounts(&client).await?;
        }
        write_events(&client, self.events).await
    }
}

/// Writes so many events over the last 90 days. What an earlier run wrote goes, so that seeding twice is seeding once.
pub(super) async fn write_events(client: &Client, count: u64) -> anyhow::Result<()> {
    client.execute(DELETE, &[]).await?;
    events(client, count).await?;
    client.batch_execute("vacuum analyze studio.audit_event").await?;
    crate::cli::print(&format!("Wrote {count} audit events over 90 days."))?;
    Ok(())
}

async fn accounts(client: &Client) -> anyhow::Result<()> {
    for made in State::new().accounts {
        create(client, &made).await?;
    }
    Ok(())
}

/// Creates a demo account unless it exists, and prints its password.
pub(super) async fn create(client: &Client, made: &Account) -> anyhow::Result<()> {
    let Account { name, role, password } = made;
    let Some(canonical) = AccountName::parse(name) else { return Ok(()) };
    let (role_name, created) =
        (role.name(), account::create(client, &canonical, *role, password).await?);
    match created {
        Some(_) => crate::cli::print(&format!("{role_name:<14} {name:<6} password {password}"))?,
        None => crate::cli::print(&format!("{role_name:<14} {name:<6} exists already"))?,
    }
    Ok(())
}

async fn events(client: &Client, events: u64) -> anyhow::Result<()> {
    let row = client.query_one(include_str!("seed/now.sql"), &[]).await?;
    let now: i64 = row.get(0);
    let sink = client.copy_in(COPY).await?;
    let mut sink = std::pin::pin!(sink);
    let mut writer = EventWriter::new(now, events);
    let mut text = String::with_capacity(PIECE + 1024);
    for index in 0..events {
        writer.write(index, &mut text)?;
        if text.len() >= PIECE {
            sink.send(BytesMut::from(text.as_bytes()).freeze()).await?;
            text.clear();
        }
    }
    sink.send(BytesMut::from(text.as_bytes()).freeze()).await?;
    sink.finish().await?;
    Ok(())
}

/// Writes events in COPY's text format, oldest first; the same number gives the same events.
#[derive(Debug)]
struct EventWriter {
    random: StdRng,
    first: i64,
    step: i64,
    events: u64,
    actors: Vec<(Uuid, String)>,
}

const DAYS_MICROSECONDS: i64 = 90 * 86_400 * 1_000_000;

impl EventWriter {
    fn new(now: i64, events: u64) -> Self {
        let mut random = StdRng::seed_from_u64(7);
        let actors = (0..40)
            .map(|index| {
                let id = uuid::Builder::from_random_bytes(random.random()).into_uuid();
                (id, format!("demo-{index:02}"))
            })
            .collect();
        let step = DAYS_MICROSECONDS / i64::try_from(events.max(1)).unwrap_or(i64::MAX);
        Self { random, first: now - DAYS_MICROSECONDS, step, events, actors }
    }

    fn write(&mut self, index: u64, text: &mut String) -> std::fmt::Result {
        let offset = i64::try_from(index).unwrap_or(i64::MAX).saturating_mul(self.step);
        // Some events share a microsecond, as in life.
        let jitter = if self.random.random_bool(0.01) {
            0
        } else {
            self.random.random_range(0..self.step.max(2) / 2)
        };
        let at = self.first + offset + jitter;
        let is_rare = self.events >= RARE_EVENTS
            && index.is_multiple_of(self.events / RARE_EVENTS)
            && index / (self.events / RARE_EVENTS) < RARE_EVENTS;
        // A few people do most of the work.
        let share: f64 = self.random.random();
        let actor = pick(&self.actors, share * share);
        let (actor_id, actor) = match actor {
            Some((id, name)) if !is_rare => (*id, name.as_str()),
            _ => (Uuid::nil(), RARE_ACTOR),
        };
        let (action, target) = *pick(
            &[
                ("session.create", "session"),
                ("sql.query", "console"),
                ("session.delete", "session"),
                ("audit.export", "audit"),
                ("queue.purge", "queue orders.in"),
                ("message.move", "queue orders.dlq"),
                ("account.create", "account"),
            ],
            share * self.random.random::<f64>(),
        )
        .unwrap_or(&("sql.query", "console"));
        let roll = self.random.random_range(0..1000);
        let (outcome, bound) = match roll {
            0..955 => ("complete", "\\N"),
            955..975 => ("partial", "ROWS"),
            975..985 => ("failed", "database"),
            985..998 => ("aborted_by_client", "\\N"),
            _ => ("interrupted", "\\N"),
        };
        let rows = self.random.random_range(0..10_000);
        let finished_at = timestamp::text(at + self.random.random_range(1_000..2_000_000));
        let at = timestamp::text(at);
        writeln!(
            text,
            "{at}\t{actor_id}\t{actor}\t{action}\t{target}\t{outcome}\t{bound}\t{rows}\t{{\"demo\": true, \"number\": {index}}}\t{finished_at}"
        )
    }
}

fn pick<T>(of: &[T], share: f64) -> Option<&T> {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a short list"
    )]
    let index = (share * of.len() as f64) as usize;
    of.get(index.min(of.len().saturating_sub(1)))
}
