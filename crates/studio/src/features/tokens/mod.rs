//! API tokens: making, listing, rotating and revoking them.

mod create;
mod list;
mod revoke;
mod rotate;

use serde::Serialize;
use tokio_postgres::Row;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::platform::paging::Microseconds;
use crate::platform::route::{Access, Cost, Route};
use crate::platform::timestamp;
use crate::platform::token::TokenId;

const IS_THERE: &str = include_str!("queries/is_there.sql");

/// The most live tokens of one account.
const LIVE_TOKENS: u32 = 50;

/// The most tokens that are listed: all live ones, and the ones that ended last.
const LISTED: u32 = 100;

/// The routes of this feature. A token could make itself a successor that outlives its revocation: sessions only.
pub fn routes() -> Vec<Route> {
    let one = Cost::Cheap { rows: 60, bytes: 4 << 10 };
    let list = Cost::Cheap { rows: LISTED, bytes: 256 << 10 };
    vec![
        Route::new(Access::Session, list, routes!(list::list)),
        Route::new(Access::Session, one, routes!(create::create)),
        Route::new(Access::Session, one, routes!(rotate::rotate)),
        Route::new(Access::Session, one, routes!(revoke::revoke)),
    ]
}

/// Whether a token can be used.
#[derive(Debug, Clone, Copy, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum TokenState {
    Live,
    Expired,
    Revoked,
}

/// A token, without its secret, which nobody can read again.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct Token {
    id: TokenId,
    name: String,
    state: TokenState,
    /// Permissions; a request may use those of them that the owner's role has at that moment.
    grants: Vec<String>,
    created_at: String,
    expires_at: String,
    revoked_at: Option<String>,
    /// Up to a minute old.
    last_used_at: Option<String>,
    /// When the secret before the last rotation ends, or ended.
    previous_secret_valid_until: Option<String>,
}

impl Token {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let time = |column| {
            let time: Option<Microseconds> = row.try_get(column)?;
            Ok::<_, tokio_postgres::Error>(time.map(|time| timestamp::text(time.0)))
        };
        let revoked_at = time("revoked_at")?;
        let state = match (row.try_get("is_live")?, &revoked_at) {
            (true, _) => TokenState::Live,
            (false, Some(_)) => TokenState::Revoked,
            (false, None) => TokenState::Expired,
        };
        let id: Uuid = row.try_get("id")?;
        Ok(Self {
            id: TokenId(id),
            name: row.try_get("name")?,
            state,
            grants: row.try_get("grants")?,
            created_at: time("created_at")?.unwrap_or_default(),
            expires_at: time("expires_at")?.unwrap_or_default(),
            revoked_at,
            last_used_at: time("last_used_at")?,
            previous_secret_valid_until: time("previous_valid_until")?,
        })
    }
}

/// A token with the secret that it goes by from now on.
#[derive(Serialize, utoipa::ToSchema)]
struct TokenWithSecret {
    token: Token,
    /// Shown this once: sent as `Authorization: Bearer <secret>`.
    #[schema(example = "studio_0198c0de7f2a7c4e9b8a3f5d6c7e8f90_5f1c…")]
    secret: String,
}

/// How the trail names a token.
fn target(id: TokenId) -> String {
    format!("token {}", id.0)
}
