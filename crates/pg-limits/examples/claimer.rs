//! Claims and releases from one process, as fast as it may, and says what came of it.
//!
//! `claimer DATABASE --clients 8 --users 1 --cap 8 --installation 64 --claims 10000 --hold-ms 0`
//!
//! Run several at once against one database: together they are the replicas of a service. With
//! `--together 4` each begins when four are ready. Ends with one line of figures.

#![expect(clippy::print_stderr, reason = "whoever runs it wants to know what failed")]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pg_limits::{Claim, Config, Endpoint, HeavyRequests, LimitsError, ReplicaState, Statements};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[expect(clippy::disallowed_methods, reason = "shows a test by how far this clock is off")]
#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let database = arguments.first().ok_or("which database?")?;
    let number = |name: &str, default: u64| -> Result<u64, Failure> {
        match arguments.iter().position(|argument| argument == name) {
            Some(at) => Ok(arguments.get(at + 1).ok_or("a number is missing")?.parse()?),
            None => Ok(default),
        }
    };
    let (clients, users) = (number("--clients", 8)?, number("--users", 1)?);
    let (claims, hold) = (number("--claims", 1000)?, number("--hold-ms", 0)?);
    let hold = Duration::from_millis(hold);
    let bound = Duration::from_millis(number("--bound-ms", 30_000)?);
    let endpoint = Endpoint::new("work", u32::try_from(number("--cap", 8)?)?, bound);
    let installation = u32::try_from(number("--installation", 64)?)?;
    let unnamed = arguments.iter().any(|argument| argument == "--unnamed");
    let config = Config::new(database.parse()?, installation, &[endpoint])
        .statements(if unnamed { Statements::Unnamed } else { Statements::Prepared })
        .margin(Duration::from_millis(number("--margin-ms", 300)?))
        .replica("claimer", env!("CARGO_PKG_VERSION"));
    let heavy = HeavyRequests::connect(config).await?;

    heavy.set_state(ReplicaState::Ready).await?;
    if arguments.iter().any(|argument| argument == "--say-time") {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        say(&format!("unix-time={}", now.as_secs()))?;
    }
    let together = usize::try_from(number("--together", 1)?)?;
    while heavy.replicas().await?.iter().filter(|other| other.state == "ready").count() < together {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let figures = Arc::new(Figures::default());
    let start = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (heavy, figures) = (heavy.clone(), Arc::clone(&figures));
            let user = format!("user-{}", client % users.max(1));
            tokio::spawn(async move {
                while figures.turn.fetch_add(1, Ordering::Relaxed) < claims {
                    let asked = Instant::now();
                    match heavy.claim(&endpoint, &user).await {
                        Ok(Claim::Granted(permit)) => {
                            figures.granted.fetch_add(1, Ordering::Relaxed);
                            figures.took(asked.elapsed());
                            // The work, which a bound may stop: a sleep stands for it.
                            if permit.run(tokio::time::sleep(hold)).await.is_err() {
                                figures.stopped.fetch_add(1, Ordering::Relaxed);
                            }
                            permit.release().await;
                        }
                        Ok(Claim::Refused(refusal)) => {
                            figures.refused.fetch_add(1, Ordering::Relaxed);
                            if refusal.live < refusal.limit {
                                figures.unproved.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        Err(LimitsError::Undecided) => {
                            figures.undecided.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            figures.failed.fetch_add(1, Ordering::Relaxed);
                            eprintln!("{error}: {:?}", std::error::Error::source(&error));
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    say(&figures.line(start.elapsed()))?;
    heavy.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

#[derive(Default)]
struct Figures {
    turn: AtomicU64,
    granted: AtomicU64,
    stopped: AtomicU64,
    refused: AtomicU64,
    unproved: AtomicU64,
    undecided: AtomicU64,
    failed: AtomicU64,
    claim_us: std::sync::Mutex<Vec<u64>>,
}

impl Figures {
    fn took(&self, length: Duration) {
        let us = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        if let Ok(mut all) = self.claim_us.lock() {
            all.push(us);
        }
    }

    fn line(&self, took: Duration) -> String {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let mut all = self.claim_us.lock().map(|all| all.clone()).unwrap_or_default();
        all.sort_unstable();
        let p99 = all.get(all.len() * 99 / 100).copied().unwrap_or(0);
        format!(
            "granted={} stopped={} refused={} unproved={} undecided={} failed={} p99_us={p99} ms={}",
            read(&self.granted),
            read(&self.stopped),
            read(&self.refused),
            read(&self.unproved),
            read(&self.undecided),
            read(&self.failed),
            took.as_millis(),
        )
    }
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
