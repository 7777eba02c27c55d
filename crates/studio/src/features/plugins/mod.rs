//! Plugins: uploading, listing and deleting them. What a plugin does comes later.

mod declared;
mod delete;
mod list;
mod pending;
mod receive;
mod upload;
mod window;

use std::time::Duration;

use serde::Serialize;
use utoipa_axum::routes;
use uuid::Uuid;

pub use self::pending::sweep;
use crate::platform::access::Permission;
use crate::platform::route::{Access, Cost, Route};

/// The most bytes of a plugin: 50 MB.
const MOST_BYTES: u64 = 52_428_800;

/// The longest that an upload takes, until it is stopped.
const UPLOAD_TIME: Duration = Duration::from_mins(10);

/// How much later the guard stops a request that did not stop by itself.
const MARGIN: Duration = Duration::from_secs(30);

/// The routes of this feature. What a plugin holds will run in Studio: only a person uploads one.
pub fn routes() -> Vec<Route> {
    let list = Cost::Cheap { rows: list::PAGE_ROWS + 1, bytes: 512 << 10 };
    let one = Cost::Cheap { rows: 64, bytes: 4 << 10 };
    let change = Access::SessionNeeds(Permission::SettingsAdmin);
    vec![
        Route::new(Access::Needs(Permission::SettingsAdmin), list, routes!(list::list)),
        Route::new(change, one, routes!(upload::upload)).within(UPLOAD_TIME + MARGIN),
        Route::new(change, one, routes!(delete::delete)),
    ]
}

/// A plugin.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct Plugin {
    id: Uuid,
    /// As the upload named it; two may be named alike.
    name: String,
    #[schema(maximum = 52_428_800)]
    size_bytes: i32,
    /// In hexadecimal.
    sha256: String,
    /// The account's name.
    uploaded_by: String,
    uploaded_at: String,
}

/// How the trail names a plugin.
fn target(id: Uuid) -> String {
    format!("plugin {id}")
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String does not fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}
