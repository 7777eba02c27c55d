//! What the console runs, what it refuses, and that neither depends on spelling.

mod allowed;
mod depth;
mod properties;
mod refused;

use super::{Refusal, check};
use crate::features::sql_console::catalogue::Catalogue;

/// The rewritten text of a query that must pass.
#[track_caller]
fn rewritten(sql: &str) -> String {
    match check(sql, &Catalogue::ALL) {
        Ok(checked) => checked.sql().to_owned(),
        Err(refusal) => panic!("{sql}\nwas refused: {refusal}"),
    }
}

/// The refusal of a query that must not pass.
#[track_caller]
fn refusal(sql: &str) -> Refusal {
    match check(sql, &Catalogue::ALL) {
        Err(refusal) => refusal,
        Ok(checked) => panic!("{sql}\npassed as {}", checked.sql()),
    }
}
