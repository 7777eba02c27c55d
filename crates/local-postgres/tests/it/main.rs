//! Real servers, real processes.

mod folders;
mod lifetime;
mod scratch;
mod standbys;
