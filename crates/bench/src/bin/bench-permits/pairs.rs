//! Pairs of claim and release through the library, as a service would run them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures_util::future::try_join_all;
use pg_limits::{Claim, Config, Endpoint, HeavyRequests, Permit};

use crate::server::Server;

/// What a run of pairs came to.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// Pairs a second whose release was answered.
    pub(crate) rate: f64,
    /// Seconds that a granted claim took, on average.
    pub(crate) claim: f64,
    pub(crate) refused: u32,
}

pub(crate) struct Limits {
    heavy: HeavyRequests,
}

impl Limits {
    pub(crate) async fn connect(
        server: &Server,
        endpoints: &[Endpoint],
        installation: u32,
    ) -> Result<Self> {
        let config = Config::new(server.limits(), installation, endpoints);
        Ok(Self { heavy: HeavyRequests::connect(config).await? })
    }

    pub(crate) async fn close(&self) {
        self.heavy.shutdown(Duration::from_secs(10)).await;
    }

    pub(crate) async fn hold(&self, endpoint: Endpoint, user: &str) -> Result<Permit> {
        match self.heavy.claim(&endpoint, user).await? {
            Claim::Granted(permit) => Ok(permit),
            Claim::Refused(refusal) => bail!("refused: {refusal:?}"),
        }
    }

    /// Clients that claim, release and wait for the release, over and over, for `run`.
    pub(crate) async fn pairs(
        &self,
        endpoint: Endpoint,
        clients: u32,
        run: Duration,
        user: impl Fn(u32) -> String + Send + Sync + 'static,
    ) -> Result<Pairs> {
        let stop = Arc::new(AtomicBool::new(false));
        let (turn, refused) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let user = Arc::new(user);
        let start = Instant::now();
        let tasks = (0..clients).map(|_| {
            let heavy = self.heavy.clone();
            let (stop, turn, refused) =
                (Arc::clone(&stop), Arc::clone(&turn), Arc::clone(&refused));
            let user = Arc::clone(&user);
            tokio::spawn(async move {
                let (mut pairs, mut claiming) = (0_u32, Duration::ZERO);
                while !stop.load(Ordering::Relaxed) {
                    let user = user(turn.fetch_add(1, Ordering::Relaxed));
                    let asked = Instant::now();
                    match heavy.claim(&endpoint, &user).await? {
                        Claim::Granted(permit) => {
                            claiming += asked.elapsed();
                            permit.release().await;
                            pairs += 1;
                        }
                        Claim::Refused(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
                anyhow::Ok((pairs, claiming))
            })
        });
        let tasks: Vec<_> = tasks.collect();
        tokio::time::sleep(run).await;
        stop.store(true, Ordering::Relaxed);
        let (mut pairs, mut claiming) = (0_u32, Duration::ZERO);
        for task in tasks {
            let of_task = task.await??;
            pairs += of_task.0;
            claiming += of_task.1;
        }
        Ok(Pairs {
            rate: f64::from(pairs) / start.elapsed().as_secs_f64(),
            claim: claiming.as_secs_f64() / f64::from(pairs),
            refused: refused.load(Ordering::Relaxed),
        })
    }

    /// A number of cycles, spread over clients; pairs a second.
    pub(crate) async fn cycles(
        &self,
        endpoint: Endpoint,
        clients: u32,
        cycles: u64,
        user: impl Fn(u32) -> String + Send + Sync + 'static,
    ) -> Result<f64> {
        let turn = Arc::new(AtomicU64::new(0));
        let user = Arc::new(user);
        let start = Instant::now();
        let tasks: Vec<_> = (0..clients)
            .map(|_| {
                let (heavy, turn, user) =
                    (self.heavy.clone(), Arc::clone(&turn), Arc::clone(&user));
                tokio::spawn(async move {
                    loop {
                        let number = turn.fetch_add(1, Ordering::Relaxed);
                        if number >= cycles {
                            return anyhow::Ok(());
                        }
                        let user = user(u32::try_from(number % 1_000_000)?);
                        if let Claim::Granted(permit) = heavy.claim(&endpoint, &user).await? {
                            permit.release().await;
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(f64::from(u32::try_from(cycles)?) / start.elapsed().as_secs_f64())
    }

    /// Clients that each claim for a user of their own; the 99th percentile of a claim, in
    /// milliseconds.
    pub(crate) async fn p99_of_claims(
        &self,
        endpoint: Endpoint,
        clients: u32,
        run: Duration,
    ) -> Result<f64> {
        let start = Instant::now();
        let tasks = (0..clients).map(|client| {
            let heavy = self.heavy.clone();
            let task = tokio::spawn(async move {
                let user = format!("quiet-{client}");
                let mut took = vec![];
                while start.elapsed() < run {
                    let asked = Instant::now();
                    if let Claim::Granted(permit) = heavy.claim(&endpoint, &user).await? {
                        took.push(asked.elapsed().as_secs_f64() * 1e3);
                        permit.release().await;
                    }
                }
                anyhow::Ok(took)
            });
            async move { task.await? }
        });
        let mut took: Vec<f64> =
            all(tasks.collect::<Vec<_>>()).await?.into_iter().flatten().collect();
        took.sort_by(f64::total_cmp);
        took.get(took.len() * 99 / 100).copied().ok_or_else(|| anyhow::anyhow!("no claim ended"))
    }

    /// Each of many users claims once; pairs a second.
    pub(crate) async fn each_user_once(&self, endpoint: Endpoint, users: u32) -> Result<f64> {
        self.cycles(endpoint, 16, u64::from(users), |turn| format!("u{turn}")).await
    }

    /// One client of a user who holds all that his cap allows, so that every claim is refused; seconds
    /// that a refusal took, on average.
    pub(crate) async fn refusal(&self, endpoint: Endpoint, run: Duration) -> Result<f64> {
        let mut held = vec![];
        for _ in 0..endpoint.per_user() {
            held.push(self.hold(endpoint, "full").await?);
        }
        let start = Instant::now();
        let mut refusals = 0_u32;
        while start.elapsed() < run {
            match self.heavy.claim(&endpoint, "full").await? {
                Claim::Refused(_) => refusals += 1,
                Claim::Granted(_) => bail!("a full cap granted a permit"),
            }
        }
        let took = start.elapsed().as_secs_f64() / f64::from(refusals);
        for permit in held {
            permit.release().await;
        }
        Ok(took)
    }
}

/// Waits for all, and fails with the first that failed.
pub(crate) async fn all<T>(
    futures: impl IntoIterator<Item = impl Future<Output = Result<T>>>,
) -> Result<Vec<T>> {
    try_join_all(futures).await
}
