//! Settings that change at run time, for administrators: what is in force, and changing it on all replicas.

mod change;
mod document;
mod kept;
mod show;
mod wanted;

use utoipa_axum::routes;

use crate::platform::access::Permission;
use crate::platform::route::{Access, Cost, Route};

/// The routes of this feature. A token may look, when it was granted that, and change nothing.
pub fn routes() -> Vec<Route> {
    let cost = Cost::Cheap { rows: 200, bytes: 64 << 10 };
    let needed = Permission::SettingsAdmin;
    vec![
        Route::new(Access::Needs(needed), cost, routes!(show::show)),
        Route::new(Access::SessionNeeds(needed), cost, routes!(change::change)),
    ]
}
