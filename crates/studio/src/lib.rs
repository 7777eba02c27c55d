//! Studio: a replicated web console for Apache `ActiveMQ` Artemis clusters that needs only PostgreSQL.
//!
//! Code flows one way: `main -> cli -> app -> features -> platform -> {pg-limits, PostgreSQL}`. A feature
//! never imports another feature; what two of them need lives in [`platform`].

pub mod app;
pub mod cli;
pub mod features;
pub mod platform;
pub mod settings;
