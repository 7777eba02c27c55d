//! The audit trail, page by page and as a file.

mod event;
mod export;
mod filter;
mod history;
#[cfg(test)]
mod tests;

pub use event::AuditEvent;
pub use history::{AuditPage, cursor_behind};

use std::time::Duration;

use utoipa_axum::routes;

use crate::platform::access::Permission;
use crate::platform::heavy::Endpoint;
use crate::platform::route::{Access, Cost, Route};

/// One page of the trail, until that is changed at run time.
pub const HISTORY: Endpoint =
    Endpoint::new("audit_history", 4, Duration::from_secs(10)).rows(500).bytes(16 << 20);

/// The trail as a file, until that is changed by the file or at run time.
pub const EXPORT: Endpoint =
    Endpoint::new("audit_export", 1, Duration::from_mins(5)).rows(1_000_000).bytes(1 << 30);

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let access = Access::Needs(Permission::AuditRead);
    vec![
        Route::new(access, Cost::Heavy(&HISTORY), routes!(history::history)),
        Route::new(access, Cost::Heavy(&EXPORT), routes!(export::export)),
    ]
}
