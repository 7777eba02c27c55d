//! `GET /api/v1/roles`: what each role may do.

use axum::Json;
use serde::Serialize;

use crate::platform::access::{Permission, Role};

/// The roles.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Roles {
    /// Weakest first; each may do all that the one before it may.
    items: Vec<RolePermissions>,
}

/// One role.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct RolePermissions {
    role: Role,
    permissions: Vec<&'static str>,
}

/// The roles that an account can have. They are fixed.
#[utoipa::path(
    get,
    path = "/api/v1/roles",
    tag = "users",
    responses((status = 200, description = "The roles", body = Roles))
)]
pub(super) async fn roles() -> Json<Roles> {
    let items = Role::ALL
        .into_iter()
        .map(|role| RolePermissions {
            role,
            permissions: role.permissions().iter().copied().map(Permission::name).collect(),
        })
        .collect();
    Json(Roles { items })
}
