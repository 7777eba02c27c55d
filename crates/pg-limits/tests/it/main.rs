//! The limits on a real PostgreSQL, from one process and from many.

#![cfg(test)] // What clippy allows in tests it then allows in their fixtures too.

mod caps;
mod claims;
mod faults;
mod fixture;
mod gates;
mod in_flight;
mod layer;
mod pooler;
mod processes;
mod rate_shares;
mod registry;
mod releases;
mod shadow;
mod stops;
mod throttle;
mod windows;
