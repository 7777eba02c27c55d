//! One folder a feature. Each gives its routes as a table; [`routes`] is the whole of Studio's HTTP face.

pub mod audit;
pub mod health;
pub mod limits;
pub mod plugins;
pub mod problems;
pub mod replicas;
pub mod settings;
pub mod sign_in;
pub mod sql_console;
pub mod tokens;
pub mod users;

use crate::platform::route::Route;

/// Every route of Studio, in the order of the documentation.
pub fn routes() -> Vec<Route> {
    [
        sign_in::routes(),
        tokens::routes(),
        users::routes(),
        audit::routes(),
        sql_console::routes(),
        plugins::routes(),
        settings::routes(),
        limits::routes(),
        replicas::routes(),
        health::routes(),
        problems::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
