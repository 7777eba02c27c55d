//! `studio demo show`: tries the limit against a running demonstration.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use super::FOLDER;
use super::state::State;
use crate::cli::try_limit::{Attempt, try_limit};
use crate::platform::access::Role;

/// Which demonstration.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// Where `studio demo run` keeps its state.
    #[arg(long, default_value = FOLDER)]
    folder: PathBuf,
}

impl Show {
    pub(in crate::cli) async fn run(&self) -> anyhow::Result<ExitCode> {
        let state = State::load(&self.folder)?;
        let account = state
            .accounts
            .iter()
            .find(|account| account.role == Role::Operator)
            .context("the demonstration has no operator")?;
        let attempt = Attempt {
            replicas: state.replicas.clone(),
            name: account.name.clone(),
            password: account.password.clone(),
            database: Some(state.database.clone()),
            ..Attempt::default()
        };
        try_limit(&attempt).await
    }
}
