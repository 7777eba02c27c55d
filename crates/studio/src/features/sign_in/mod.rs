//! Signing in and out, who one is, and one's own password.

mod create;
mod delete;
mod me;
mod password;

use utoipa_axum::routes;

use crate::platform::access::{Permission, Role, SignedIn};
use crate::platform::route::{Access, Cost, Route};
use crate::platform::token::TokenId;

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    let cost = Cost::Cheap { rows: 2, bytes: 2_048 };
    vec![
        Route::new(Access::Public, cost, routes!(create::create)),
        Route::new(Access::Session, cost, routes!(delete::delete)),
        Route::new(Access::SignedIn, cost, routes!(me::me)),
        Route::new(Access::Session, cost, routes!(password::change)),
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
    /// What this request may do: what the role may, and for a token within what it was granted.
    permissions: Vec<&'static str>,
    signed_in_by: By,
    /// The token's id, when that is what one is signed in by.
    token: Option<TokenId>,
}

/// What a request is signed in by.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SignedInBy)]
enum By {
    Session,
    Token,
}

impl From<SignedIn> for Me {
    fn from(who: SignedIn) -> Self {
        let token = who.token();
        Self {
            id: who.account,
            role: who.role,
            permissions: who.permissions().map(Permission::name).collect(),
            signed_in_by: if token.is_some() { By::Token } else { By::Session },
            token,
            name: who.name,
        }
    }
}
