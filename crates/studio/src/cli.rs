//! The command line: one subcommand for each role of the program.

mod account;
mod config;
mod demo;
mod migrate;
mod serve;
mod try_limit;

use std::future::Future;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::platform::telemetry;
use crate::settings::Settings;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(version, about = "A replicated web console for Apache ActiveMQ Artemis clusters")]
pub struct Arguments {
    /// The settings file (TOML). Variables named `STUDIO_..` win over it.
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    /// Write logs as text instead of JSON.
    #[arg(long, global = true)]
    text_logs: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Brings Studio's databases up to date, creating what is missing.
    Migrate,
    /// Answers HTTP requests until it is told to stop.
    Serve(serve::Serve),
    /// Settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Accounts.
    #[command(subcommand)]
    Account(AccountCommand),
    /// A demonstration.
    #[command(subcommand)]
    Demo(DemoCommand),
    /// Sends heavy requests of one user to all replicas at once, and shows which were refused.
    TryLimit(try_limit::TryLimit),
    /// Prints the API's document.
    Openapi,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Says what is wrong with the settings, and what is risky. Fails when something is wrong.
    Check {
        /// How many replicas there will be.
        #[arg(long, default_value_t = 2)]
        replicas: u32,
    },
}

#[derive(Debug, Subcommand)]
enum AccountCommand {
    /// Creates an account; prints its password unless that comes from standard input.
    Create(account::Create),
}

#[derive(Debug, Subcommand)]
enum DemoCommand {
    /// Writes audit events over the last 90 days, and demo accounts whose passwords it prints.
    Seed(demo::Seed),
    /// Runs a private PostgreSQL, demo data and two replicas until Ctrl-C.
    Run(demo::Run),
    /// Sends 20 requests at once to a running demonstration, and shows which were refused.
    Show(demo::Show),
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    telemetry::log(!arguments.text_logs);
    let result = Settings::load(arguments.config.as_deref())
        .and_then(|settings| with_settings(&arguments.command, settings));
    match result {
        Ok(code) => code,
        Err(error) => {
            say(&format!("studio: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn with_settings(command: &Command, settings: Settings) -> anyhow::Result<ExitCode> {
    match command {
        Command::Migrate => block_on(migrate::migrate(&settings)),
        Command::Serve(serve) => block_on(serve.run(settings)),
        Command::Config(ConfigCommand::Check { replicas }) => {
            on_runtime(config::check(&settings, *replicas))
        }
        Command::Account(AccountCommand::Create(create)) => block_on(create.run(&settings)),
        Command::Demo(DemoCommand::Seed(seed)) => block_on(seed.run(&settings)),
        Command::Demo(DemoCommand::Run(run)) => block_on(run.run()),
        Command::Demo(DemoCommand::Show(show)) => on_runtime(show.run()),
        Command::TryLimit(attempt) => on_runtime(attempt.run()),
        Command::Openapi => print_openapi(),
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    on_runtime(async { work.await.map(|()| ExitCode::SUCCESS) })
}

fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A thread that checks a password must not hold up the end of the program.
    runtime.shutdown_background();
    result
}

fn print_openapi() -> anyhow::Result<ExitCode> {
    print(&crate::app::openapi().to_pretty_json()?)?;
    Ok(ExitCode::SUCCESS)
}

/// A line on standard output; a reader that went away is an error, not a panic.
fn print(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

/// A line on standard error, as well as can be.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}
