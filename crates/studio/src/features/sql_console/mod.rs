//! The SQL console: one SELECT over read-only views of Studio's own data.

pub mod catalogue;
pub mod check;
pub mod functions;

use crate::platform::route::Route;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    Vec::new()
}
