//! The limits on a real PostgreSQL, from one process and from many.

mod caps;
mod claims;
mod faults;
mod fixture;
mod layer;
mod pooler;
mod processes;
mod registry;
mod releases;
