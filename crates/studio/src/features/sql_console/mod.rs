//! The SQL console: one SELECT over read-only views of Studio's own data.

pub mod catalogue;
pub mod check;
pub mod functions;
