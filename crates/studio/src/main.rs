//! The `studio` program: reads the command line and runs one subcommand.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    studio::cli::run(&studio::cli::Arguments::parse())
}
