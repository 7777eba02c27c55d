//! Makes attempts under one throttle as fast as it may, and says what came of them.
//!
//! `attempter DATABASE --clients 8 --attempts 50 --failures 5 --hold-ms 10 [--succeed]`
//!
//! Run several at once against one database: together they are the replicas of a service. With
//! `--together 4` each begins when four are ready. Ends with one line of figures.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pg_limits::{Attempted, Config, Limits, LimitsError, ReplicaState, Throttle};

type Failure = Box<dyn std::error::Error + Send + Sync>;

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
    let (clients, attempts) = (number("--clients", 8)?, number("--attempts", 50)?);
    let hold = Duration::from_millis(number("--hold-ms", 10)?);
    let succeeds = arguments.iter().any(|argument| argument == "--succeed");
    let failures = u32::try_from(number("--failures", 5)?)?;
    let guess = Throttle::new("guess", failures, Duration::from_mins(15)).clears_on_success();
    let config = Config::new(database.parse()?, 1, &[])
        .reservation(Duration::from_millis(number("--reservation-ms", 15_000)?))
        .replica("attempter", env!("CARGO_PKG_VERSION"));
    let limits = Limits::connect(config).await?;

    limits.set_state(ReplicaState::Ready).await?;
    let together = usize::try_from(number("--together", 1)?)?;
    while limits.replicas().await?.iter().filter(|other| other.state == "ready").count() < together
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let figures = Arc::new(Figures::default());
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (limits, figures) = (limits.clone(), Arc::clone(&figures));
            tokio::spawn(async move {
                while figures.turn.fetch_add(1, Ordering::Relaxed) < attempts {
                    match limits.attempt(&[(guess, "ada")]).await {
                        Ok(Attempted::Admitted(attempt)) => {
                            // The check: a sleep stands for it.
                            tokio::time::sleep(hold).await;
                            count(&figures.admitted);
                            if attempt.remaining().is_zero() {
                                count(&figures.late);
                            }
                            let told = if succeeds {
                                attempt.succeeded().await
                            } else {
                                attempt.failed().await
                            };
                            if told.is_err() {
                                count(&figures.untold);
                            }
                        }
                        Ok(Attempted::Throttled(_)) => count(&figures.throttled),
                        Err(LimitsError::Undecided) => count(&figures.undecided),
                        Err(_) => count(&figures.unavailable),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    limits.shutdown(Duration::from_secs(10)).await;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", figures.line())?;
    Ok(out.flush()?)
}

#[derive(Default)]
struct Figures {
    turn: AtomicU64,
    admitted: AtomicU64,
    late: AtomicU64,
    throttled: AtomicU64,
    undecided: AtomicU64,
    unavailable: AtomicU64,
    untold: AtomicU64,
}

fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Ordering::Relaxed);
}

impl Figures {
    fn line(&self) -> String {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        format!(
            "admitted={} late={} throttled={} undecided={} unavailable={} untold={}",
            read(&self.admitted),
            read(&self.late),
            read(&self.throttled),
            read(&self.undecided),
            read(&self.unavailable),
            read(&self.untold),
        )
    }
}
