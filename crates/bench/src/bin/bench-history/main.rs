//! What a page and an export of the audit trail cost at five million events, through the real Studio.

#![expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]

mod exports;
mod memory;
mod pages;
mod session;

use anyhow::Result;
use bench::{Installation, Verdicts};
use clap::Parser;

use crate::exports::Exports;
use crate::pages::Pages;
use crate::session::Session;

/// Measures history and export over HTTP, and judges them by what the project promises.
#[derive(Debug, Parser)]
struct Arguments {
    /// Audit events to write first. The promises are about five million.
    #[arg(long, default_value_t = 5_000_000)]
    events: u64,
    /// Requests of each kind in one round of pages; three rounds are measured.
    #[arg(long, default_value_t = 200)]
    requests: usize,
}

#[tokio::main]
async fn main() -> Result<std::process::ExitCode> {
    let arguments = Arguments::parse();
    println!("{}", bench::describe());
    let installation = Installation::start(arguments.events).await?;
    println!("{}", installation.describe().await?);
    println!("load average {} before the measurements\n", bench::load());
    let replica = installation.serve().await?;
    let session = Session::sign_in(&replica.address, &installation.account).await?;
    let mut verdicts = Verdicts::default();

    let pages = Pages { installation: &installation, session: &session };
    pages.measure(arguments.requests, &mut verdicts).await?;
    let exports = Exports { installation: &installation, session: &session, replica: &replica };
    exports.measure(&mut verdicts).await?;

    println!("\nload average {} after the measurements", bench::load());

    replica.stop().await?;
    installation.stop().await?;
    println!("{}", verdicts.last_line());
    Ok(u8::from(!verdicts.is_pass()).into())
}
