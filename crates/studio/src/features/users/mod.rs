//! Accounts and roles, for administrators.

mod change;
mod create;
mod list;
mod password;
mod roles;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::platform::access::{Permission, Role};
use crate::platform::account;
use crate::platform::paging::Microseconds;
use crate::platform::problem::Problem;
use crate::platform::route::{Access, Cost, Route};
use crate::platform::timestamp;

/// The routes of this feature. A token may look, when it was granted that; what changes who may sign in needs a session.
pub fn routes() -> Vec<Route> {
    let list = Cost::Cheap { rows: list::PAGE_ROWS + 1, bytes: 512 << 10 };
    let one = Cost::Cheap { rows: 4, bytes: 4 << 10 };
    let look = Access::Needs(Permission::UsersAdmin);
    let change = Access::SessionNeeds(Permission::UsersAdmin);
    vec![
        Route::new(look, list, routes!(list::list)),
        Route::new(change, one, routes!(create::create)),
        Route::new(change, one, routes!(change::change)),
        Route::new(change, one, routes!(password::set)),
        Route::new(look, one, routes!(roles::roles)),
    ]
}

/// An account, without anything secret.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct User {
    /// The immutable id.
    id: Uuid,
    /// The canonical name.
    name: String,
    role: Role,
    /// A disabled account cannot sign in, and has neither sessions nor tokens.
    is_disabled: bool,
    created_at: String,
}

impl User {
    fn read(row: &Row) -> Result<Self, Problem> {
        let role: &str = row.try_get("role")?;
        let role = Role::parse(role).ok_or_else(|| Problem::internal(&"an unknown role"))?;
        let created_at: Microseconds = row.try_get("created_at")?;
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            role,
            is_disabled: row.try_get("is_disabled")?,
            created_at: timestamp::text(created_at.0),
        })
    }
}

/// A password, given or to be made up.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
struct NewPassword {
    /// 12 characters to 1,024 bytes. One is made up when this is left out.
    password: Option<String>,
}

impl NewPassword {
    /// The password, and the same again to be shown when nobody knows it yet.
    fn or_generated(self) -> (String, Option<String>) {
        self.password.map_or_else(
            || {
                let made = account::generated_password();
                (made.clone(), Some(made))
            },
            |given| (given, None),
        )
    }
}
