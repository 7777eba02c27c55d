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
mod guard;
mod proxy;
mod replica;
mod wait;

pub use proxy::{CuttingProxy, Upstream};
pub use replica::ReplicaProcess;
pub use wait::{Observation, wait_until};
