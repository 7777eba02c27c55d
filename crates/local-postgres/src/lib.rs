#![doc = include_str!("../README.md")]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod account;
mod address;
mod binaries;
mod cluster;
mod download;
mod error;
mod folder;
mod options;
mod orphans;
mod port;
mod reachable;
mod server;
mod settings;
mod standby;

pub use cluster::Cluster;
pub use error::LocalPostgresError;
pub use options::{ClusterOptions, StopMode};
pub use reachable::reachable_folder;
pub use server::Server;
pub use standby::Standby;
