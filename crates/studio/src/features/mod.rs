//! One folder a feature. Each gives its routes as a table; [`routes`] is the whole of Studio's HTTP face.

pub mod sql_console;

use crate::platform::route::Route;

/// Every route of Studio, in the order of the documentation.
pub fn routes() -> Vec<Route> {
    sql_console::routes()
}
