//! The command line: one subcommand for each role of the program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(version, about = "A replicated web console for Apache ActiveMQ Artemis clusters")]
pub struct Arguments {
    /// The settings file (TOML). The environment wins over it.
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answers HTTP requests.
    Serve,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match arguments.command {
        Command::Serve => ExitCode::SUCCESS,
    }
}
