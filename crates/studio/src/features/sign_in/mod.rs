//! Signing in and out, and who one is.

mod create;
mod delete;
mod me;
mod throttle;

use utoipa_axum::routes;

use crate::platform::access::{Role, SignedIn};
use crate::platform::route::{Access, Cost, Route};

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let cost = Cost::Cheap { rows: 2, bytes: 2_048 };
    vec![
        Route::new(Access::Public, cost, routes!(create::create)),
        Route::new(Access::SignedIn, cost, routes!(delete::delete)),
        Route::new(Access::SignedIn, cost, routes!(me::me)),
    ]
}

/// An account as its owner sees it.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct Me {
    /// The immutable id.
    id: uuid::Uuid,
    /// The canonical name.
    name: String,
    role: Role,
    /// What the role may do.
    permissions: Vec<&'static str>,
}

impl Me {
    fn new(id: uuid::Uuid, name: String, role: Role) -> Self {
        let permissions = role.permissions().iter().map(|permission| permission.name()).collect();
        Self { id, name, role, permissions }
    }
}

impl From<SignedIn> for Me {
    fn from(signed_in: SignedIn) -> Self {
        Self::new(signed_in.account, signed_in.name, signed_in.role)
    }
}
