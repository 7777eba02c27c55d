//! The audit trail, page by page and as a file.

use crate::platform::route::Route;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    Vec::new()
}
