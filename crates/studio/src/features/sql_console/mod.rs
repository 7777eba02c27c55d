//! The SQL console: one SELECT over read-only views of Studio's own data.
//!
//! A query is checked on its syntax tree and written again from it ([`check`]), runs under a login
//! role that can read the console's views and nothing else ([`console_roles`]), and is bounded in
//! time, rows, bytes and number ([`bounds`]).

mod body;
pub mod bounds;
pub mod catalogue;
pub mod check;
pub mod console_roles;
pub mod functions;
mod guard;
mod query;
mod run;
mod show;

use utoipa_axum::routes;

pub use self::guard::SetUpSeen;
use crate::platform::access::{Permission, Role};
use crate::platform::route::{Access, Cost, Route};
use crate::settings::Settings;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let access = Access::Needs(Permission::SqlQuery);
    vec![
        Route::new(access, Cost::Heavy(&bounds::ENDPOINT), routes!(query::query)),
        Route::new(access, Cost::Cheap { rows: 0, bytes: 16 << 10 }, routes!(show::show)),
    ]
}

/// The address under which queries of that role run.
fn address(settings: &Settings, role: Role) -> Option<&str> {
    let console = &settings.console;
    match role {
        Role::Viewer => console.viewer_url.as_deref(),
        Role::Operator => console.operator_url.as_deref(),
        Role::Administrator => console.administrator_url.as_deref(),
    }
}
