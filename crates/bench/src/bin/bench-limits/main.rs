//! What the limits on API tokens cost a request, and what a count in a window costs, each beside the same without it.

#![expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]

mod counts;
mod requests;
mod upserts;

use std::time::Duration;

use anyhow::Result;
use bench::{Installation, Verdicts};
use clap::Parser;

/// Measures, prints, and judges by what the project promises.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds of each measured run; each figure is the median of as many ratios as there are rounds. Many short runs
    /// tell more than few long ones: a machine's pace changes from one second to the next.
    #[arg(long, default_value_t = 1)]
    seconds: u64,
    /// Rounds, in each of which every way is run once, one after another.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> Result<std::process::ExitCode> {
    let arguments = Arguments::parse();
    let run = Duration::from_secs(arguments.seconds);
    println!("{}, load {}", bench::describe(), bench::load());
    let installation = Installation::start(0).await?;
    println!("{}\n", installation.describe().await?);
    let mut verdicts = Verdicts::default();
    requests::measure(&installation, run, arguments.rounds, &mut verdicts).await?;
    counts::measure(&installation, run, arguments.rounds, &mut verdicts).await?;
    installation.stop().await?;
    println!("load {}\n{}", bench::load(), verdicts.last_line());
    Ok(u8::from(!verdicts.is_pass()).into())
}
