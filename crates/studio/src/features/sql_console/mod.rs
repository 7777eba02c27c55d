//! The SQL console.

use crate::platform::route::Route;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    Vec::new()
}
