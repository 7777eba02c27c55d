//! A count in a window beside one trivial upsert: on one key and on 1,000 keys.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bench::{Installation, Verdicts, median};
use futures_util::future::try_join_all;
use pg_limits::{Config, Count, Limits, Window};

use crate::upserts::Upserts;

const CLIENTS: usize = 16;
/// As many connections as the limits keep for themselves.
const PIPELINED: usize = 2;
/// Larger than what any run counts.
const ROOMY: Window = Window::new("bench", 1_000_000_000, Duration::from_hours(1));

pub(crate) async fn measure(
    installation: &Installation,
    run: Duration,
    rounds: usize,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let limits = Limits::connect(Config::new(installation.limits(), 1, &[])).await?;
    let upserts = Upserts::open(installation, CLIENTS).await?;
    for (clients, keys) in [(CLIENTS, 1), (CLIENTS, 1_000), (1, 1_000)] {
        let key = move |turn: u32| format!("key-{}", turn % keys);
        let (mut ratios, mut counts, mut own, mut piped) = (vec![], vec![], vec![], vec![]);
        for _ in 0..rounds {
            let alone = upserts.rate(clients, clients, run, key).await?;
            let counted = rate(&limits, clients, run, key).await?;
            // The better of the two ways to send upserts is what a count is held against; of one client
            // there is one way.
            let pipelined = if clients > PIPELINED {
                upserts.rate(clients, PIPELINED, run, key).await?
            } else {
                alone
            };
            ratios.push(counted / alone.max(pipelined));
            counts.push(counted);
            own.push(alone);
            piped.push(pipelined);
        }
        println!(
            "{clients} clients on {keys} keys: {:.0} counts/s; upserts: {:.0}/s on a connection each, {:.0}/s pipelined on {PIPELINED}",
            median(counts),
            median(own),
            median(piped)
        );
        let what =
            format!("a count, of one trivial upsert's rate, {clients} clients on {keys} keys");
        verdicts.at_least(&what, median(ratios), 0.8);
    }
    limits.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

async fn rate(
    limits: &Limits,
    clients: usize,
    run: Duration,
    key: impl Fn(u32) -> String + Clone + Send + 'static,
) -> Result<f64> {
    let start = Instant::now();
    let tasks = (0..u32::try_from(clients)?).map(|client| {
        let (limits, key) = (limits.clone(), key.clone());
        let task = tokio::spawn(async move {
            let mut done = 0_u32;
            while start.elapsed() < run {
                let key = key(client.wrapping_mul(7919).wrapping_add(done));
                match limits.count(&ROOMY, &key).await? {
                    Count::Counted(_) => done += 1,
                    Count::Full(limit) => bail!("full: {limit:?}"),
                }
            }
            anyhow::Ok(done)
        });
        async move { task.await? }
    });
    let done: u32 = try_join_all(tasks.collect::<Vec<_>>()).await?.into_iter().sum();
    Ok(f64::from(done) / start.elapsed().as_secs_f64())
}
