//! What a permit costs, beside two trivial upserts through the same driver in the same run.

#![expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]

mod pairs;
mod server;
mod upserts;

use std::time::Duration;

use anyhow::Result;
use bench::{Verdicts, median};
use clap::Parser;
use pg_limits::Endpoint;

use crate::pairs::Limits;
use crate::server::Server;
use crate::upserts::Upserts;

/// Measures what claims and releases cost, and judges it by what the project promises.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of each measured run; each figure is the median of three.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Cycles of the endurance run, after which the table's size is read.
    #[arg(long, default_value_t = 1_000_000)]
    cycles: u64,
    /// Users that claim once each before the rate is measured again.
    #[arg(long, default_value_t = 100_000)]
    users: u32,
    /// Seconds for which another transaction of the server keeps its snapshot.
    #[arg(long, default_value_t = 60)]
    snapshot_seconds: u64,
}

const BOUND: Duration = Duration::from_secs(30);
const CAP_16: Endpoint = Endpoint::new("cap_16", 16, BOUND);
const CAP_2: Endpoint = Endpoint::new("cap_2", 2, BOUND);
const CAP_256: Endpoint = Endpoint::new("cap_256", 256, Duration::from_hours(1));
const ENDPOINTS: [Endpoint; 3] = [CAP_16, CAP_2, CAP_256];
/// One user may hold half of it: 16 clients of one user need 32.
const INSTALLATION: u32 = 32;

#[tokio::main]
async fn main() -> Result<std::process::ExitCode> {
    let arguments = Arguments::parse();
    let run = Duration::from_secs(arguments.seconds);
    println!("{}", bench::describe());
    let server = Server::start().await?;
    println!("{}\n", server.version().await?);
    let mut verdicts = Verdicts::default();
    let limits = Limits::connect(&server, &ENDPOINTS, INSTALLATION).await?;
    let upserts = Upserts::open(&server, 16).await?;

    one_client(&limits, &upserts, run, &mut verdicts).await?;
    let hot = sixteen_clients(&limits, &upserts, run, &mut verdicts).await?;
    neighbours(&limits, run, &mut verdicts).await?;
    beside_a_snapshot(&server, &limits, hot, &arguments, &mut verdicts).await?;
    many_users(&limits, run, arguments.users, &mut verdicts).await?;
    endurance(&server, &limits, arguments.cycles, &mut verdicts).await?;
    limits.close().await;
    nearly_full(&server, run, &mut verdicts).await?;

    server.stop().await?;
    println!("\n{}", verdicts.last_line());
    Ok(u8::from(!verdicts.is_pass()).into())
}

/// One client: a pair beside two upserts, and a refusal beside a claim.
async fn one_client(
    limits: &Limits,
    upserts: &Upserts,
    run: Duration,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let (mut pairs, mut claims, mut twice, mut refusals) = (vec![], vec![], vec![], vec![]);
    for _ in 0..3 {
        let of_run = limits.pairs(CAP_16, 1, run, |_| "u".to_owned()).await?;
        pairs.push(of_run.rate);
        claims.push(of_run.claim);
        twice.push(upserts.pairs_on_connections(1, run).await?);
        refusals.push(limits.refusal(CAP_2, run).await?);
    }
    let (pairs, twice) = (median(pairs), median(twice));
    let (claim, refusal) = (median(claims), median(refusals));
    println!(
        "one client: {pairs:.0} pairs/s, {twice:.0} two upserts/s; a claim takes {:.0} us, a refusal {:.0} us",
        claim * 1e6,
        refusal * 1e6
    );
    verdicts.at_most("claim + release, times two upserts, 1 client", twice / pairs, 1.5);
    verdicts.at_most("a refusal, times a claim", refusal / claim, 1.0);
    Ok(())
}

/// Sixteen clients of one user at cap 16, beside sixteen that upsert each its own key.
async fn sixteen_clients(
    limits: &Limits,
    upserts: &Upserts,
    run: Duration,
    verdicts: &mut Verdicts,
) -> Result<f64> {
    let (mut pairs, mut own, mut piped, mut wrong) = (vec![], vec![], vec![], 0);
    for _ in 0..3 {
        let hot = limits.pairs(CAP_16, 16, run, |_| "hot".to_owned()).await?;
        pairs.push(hot.rate);
        wrong += hot.refused;
        own.push(upserts.pairs_on_connections(16, run).await?);
        piped.push(upserts.pairs_pipelined(16, run).await?);
    }
    let (pairs, own, piped) = (median(pairs), median(own), median(piped));
    println!(
        "sixteen clients: {pairs:.0} pairs/s of one user; two upserts, each client on its own key: \
         {own:.0}/s on 16 connections, {piped:.0}/s pipelined on 2"
    );
    verdicts.at_least("16 clients of one user, of the upserts' rate", pairs / own, 0.4);
    verdicts.at_most("wrong refusals", f64::from(wrong), 0.0);
    Ok(pairs)
}

/// Users who never wait for themselves, beside 64 clients that hammer for one user at cap 2, and
/// beside the same 64 clients when each has a user of its own: the same load, without contention.
async fn neighbours(limits: &Limits, run: Duration, verdicts: &mut Verdicts) -> Result<()> {
    let (mut hammered, mut spread) = (vec![], vec![]);
    for _ in 0..3 {
        for (p99s, users) in [(&mut hammered, 1), (&mut spread, 64)] {
            let load = limits.pairs(CAP_2, 64, run, move |turn| format!("load-{}", turn % users));
            let quiet = limits.p99_of_claims(CAP_2, 4, run);
            p99s.push(tokio::try_join!(load, quiet)?.1);
        }
    }
    let (hammered, spread) = (median(hammered), median(spread));
    println!(
        "claims of four quiet users, p99: {hammered:.2} ms beside 64 clients of one user, \
         {spread:.2} ms beside 64 clients of 64 users"
    );
    verdicts.at_most("p99 beside a hammered user, times beside 64 users", hammered / spread, 3.0);
    Ok(())
}

/// The same while a REPEATABLE READ transaction is open in another database of the server.
async fn beside_a_snapshot(
    server: &Server,
    limits: &Limits,
    alone: f64,
    arguments: &Arguments,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let snapshot = server.hold_snapshot().await?;
    let rounds = (arguments.snapshot_seconds / 10).max(1);
    let each = Duration::from_secs_f64(
        f64::from(u32::try_from(arguments.snapshot_seconds)?) / f64::from(u32::try_from(rounds)?),
    );
    let mut rates = vec![];
    for _ in 0..rounds {
        rates.push(limits.pairs(CAP_16, 16, each, |_| "hot".to_owned()).await?.rate);
    }
    let size = server.permits_bytes().await?;
    snapshot.end().await?;
    let beside = median(rates);
    // The machine's speed drifts over a minute: the run alone is measured again, right after.
    let again = limits.pairs(CAP_16, 16, each, |_| "hot".to_owned()).await?.rate;
    println!(
        "beside a snapshot of {} s: {beside:.0} pairs/s; alone: {alone:.0} before, {again:.0} after",
        arguments.snapshot_seconds
    );
    verdicts.at_least("beside a long snapshot, of the rate alone", beside / alone, 0.8);
    verdicts.at_most("permits' table beside it, MB", megabytes(size), 2.0);
    Ok(())
}

/// A hundred thousand users after each has claimed once, beside a hundred.
async fn many_users(
    limits: &Limits,
    run: Duration,
    users: u32,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let first = limits.each_user_once(CAP_2, users).await?;
    let (mut many, mut few) = (vec![], vec![]);
    for _ in 0..3 {
        many.push(
            limits.pairs(CAP_2, 1, run, move |turn| format!("u{}", turn % users)).await?.rate,
        );
        few.push(limits.pairs(CAP_2, 1, run, |turn| format!("u{}", turn % 100)).await?.rate);
    }
    let (many, few) = (median(many), median(few));
    println!("first claims of {users} users: {first:.0} pairs/s");
    println!("then, one client: {many:.0} pairs/s of {users} users, {few:.0} of 100");
    verdicts.at_most("cost of many users, times that of 100", few / many, 1.3);
    Ok(())
}

/// A million cycles of a hundred users, and what they leave on disk.
async fn endurance(
    server: &Server,
    limits: &Limits,
    cycles: u64,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let rate = limits.cycles(CAP_2, 16, cycles, |turn| format!("u{}", turn % 100)).await?;
    let size = server.permits_bytes().await?;
    println!("{cycles} cycles of 100 users: {rate:.0} pairs/s, {size} bytes with indexes");
    verdicts.at_most("permits' table after them, MB", megabytes(size), 2.0);
    Ok(())
}

/// Cap 256 with 255 held, beside cap 2, in an installation that allows both.
async fn nearly_full(server: &Server, run: Duration, verdicts: &mut Verdicts) -> Result<()> {
    let limits = Limits::connect(server, &ENDPOINTS, 512).await?;
    let mut held = vec![];
    for _ in 0..255 {
        held.push(limits.hold(CAP_256, "big").await?);
    }
    let (mut large, mut small) = (vec![], vec![]);
    for _ in 0..3 {
        large.push(limits.pairs(CAP_256, 1, run, |_| "big".to_owned()).await?.rate);
    }
    drop(held);
    limits.close().await;
    let limits = Limits::connect(server, &ENDPOINTS, 512).await?;
    for _ in 0..3 {
        small.push(limits.pairs(CAP_2, 1, run, |_| "small".to_owned()).await?.rate);
    }
    limits.close().await;
    let (large, small) = (median(large), median(small));
    println!("cap 256 with 255 held: {large:.0} pairs/s; cap 2: {small:.0} pairs/s");
    verdicts.at_most("cap 256 with 255 held, times cap 2", small / large, 4.0);
    Ok(())
}

fn megabytes(bytes: i64) -> f64 {
    f64::from(i32::try_from(bytes).unwrap_or(i32::MAX)) / 1e6
}
