//! What the tests of this workspace stand on: real PostgreSQL, real processes, a network that can
//! be made to fail, and waiting for a state.
//!
//! Everything here panics rather than answering an error: its only callers are tests.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "only tests call this crate, and a broken test bed must fail the test at once"
)]

mod address;
mod cluster;
mod database;
mod folder;
mod guard;
mod pgbouncer;
mod proxy;
mod replica;
mod statements;
mod wait;

pub use cluster::{OwnCluster, OwnStandby, SharedCluster, cluster, own_cluster};
pub use database::{Built, TestDatabase};
pub use local_postgres::{Cluster, ClusterOptions, Standby, StopMode};
pub use pgbouncer::PgBouncer;
pub use proxy::{CuttingProxy, Upstream};
pub use replica::ReplicaProcess;
pub use statements::NamedStatement;
pub use wait::{Observation, wait_until};
