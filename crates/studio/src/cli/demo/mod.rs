//! `studio demo`: a whole installation on one machine, to look at.

mod replica;
mod run;
mod seed;
mod show;
mod state;

pub(super) use run::Run;
pub(super) use seed::Seed;
pub(super) use show::Show;

/// Where the demonstration keeps what it needs, unless told otherwise.
const FOLDER: &str = ".run";
