//! Real servers, real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod folders;
mod lifetime;
mod scratch;
mod standbys;
