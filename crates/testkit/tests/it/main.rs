//! The test bed tried on real processes, sockets and PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test's set-up fails the test")]

mod cluster;
mod database;
mod pgbouncer;
mod proxy;
mod replica;
mod wait;
