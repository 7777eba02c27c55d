//! Studio from outside: real PostgreSQL, real processes, requests over the network.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what tests share fails the test at once"
)]

mod access;
mod api_requests;
mod bed;
mod commands;
mod demo;
mod evict;
mod export;
mod history;
mod limits_away;
mod plans;
mod plugins;
mod refusals;
mod routes;
mod settings;
mod shutdown;
mod sign_in;
mod sql_console;
mod throttle;
mod tokens;
mod users;
mod work;
