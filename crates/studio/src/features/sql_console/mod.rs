//! The SQL console: one SELECT over read-only views of Studio's own data.

pub mod catalogue;
pub mod check;
pub mod console_roles;
pub mod functions;

use crate::platform::access::Role;
use crate::platform::route::Route;
use crate::settings::Settings;

/// The address under which queries of that role run.
fn address(settings: &Settings, role: Role) -> Option<&str> {
    let console = &settings.console;
    match role {
        Role::Viewer => console.viewer_url.as_deref(),
        Role::Operator => console.operator_url.as_deref(),
        Role::Administrator => console.administrator_url.as_deref(),
    }
}

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    Vec::new()
}
