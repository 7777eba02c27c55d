//! What bounds a query.

use std::time::Duration;

use serde::Serialize;

use super::check::TEXT_MAX_BYTES;
use crate::platform::heavy::Endpoint;

/// The most rows of an answer, also at run time: what its memory was measured with.
const ROWS_MAX: u64 = 10_000;

/// The largest answer, also at run time.
const ANSWER_MAX_BYTES: u64 = 32 << 20;

/// The console's endpoint: two queries a user at one time, 30 s each, until that is changed at run time.
pub static ENDPOINT: Endpoint =
    Endpoint::new("sql_console", 2, Duration::from_secs(30)).rows(ROWS_MAX).bytes(ANSWER_MAX_BYTES);

/// The most rows of an answer under that endpoint.
pub fn rows(endpoint: &Endpoint) -> u64 {
    endpoint.row_cap().unwrap_or(ROWS_MAX)
}

/// The largest answer under that endpoint, in bytes.
pub fn answer_bytes(endpoint: &Endpoint) -> u64 {
    endpoint.byte_cap().unwrap_or(ANSWER_MAX_BYTES)
}

/// The largest value, in bytes of UTF-8; a larger one is cut.
pub const CELL_MAX_BYTES: u32 = 1 << 20;

/// The largest row. The values of a larger one are cut to equal parts of it: the server holds a
/// whole row in memory several times over.
pub const ROW_MAX_BYTES: u32 = 8 << 20;

/// The most columns. PostgreSQL's own limit is 1,664, of which the bounds need some.
pub const COLUMNS_MAX: usize = 1_600;

/// The bounds as the API shows them.
#[derive(Debug, Clone, Copy, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Queries of one user at one time, on all replicas.
    per_user: u32,
    time_bound_seconds: u64,
    rows: u64,
    answer_bytes: u64,
    row_bytes: u32,
    cell_bytes: u32,
    columns: usize,
    text_bytes: usize,
}

/// The bounds of a query under that endpoint.
pub fn limits(endpoint: &Endpoint) -> Limits {
    Limits {
        per_user: endpoint.per_user(),
        time_bound_seconds: endpoint.time_bound().as_secs(),
        rows: rows(endpoint),
        answer_bytes: answer_bytes(endpoint),
        row_bytes: ROW_MAX_BYTES,
        cell_bytes: CELL_MAX_BYTES,
        columns: COLUMNS_MAX,
        text_bytes: TEXT_MAX_BYTES,
    }
}

/// A bound that cut an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Reached {
    /// The most rows.
    Rows,
    /// The most bytes of an answer.
    Bytes,
    /// The time bound.
    Time,
    /// The most bytes of a value or of a row.
    Cell,
}
