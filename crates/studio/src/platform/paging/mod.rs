//! Paging by values: page numbers for the first rows, cursors for all.

mod cursor;

use std::error::Error;

use bytes::BytesMut;
use http::StatusCode;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

pub use cursor::Scope;

use super::problem::Problem;

/// How many rows page numbers reach.
pub const NUMBERED_ROWS: u32 = 10_000;

/// A point in time as PostgreSQL counts it, exactly: microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microseconds(pub i64);

/// From 1970 to 2000, where PostgreSQL begins to count.
const EPOCH: i64 = 946_684_800_000_000;

impl Microseconds {
    /// Before every time (PostgreSQL's `-infinity`).
    pub const FIRST: Self = Self(i64::MIN);
    /// After every time (PostgreSQL's `infinity`).
    pub const LAST: Self = Self(i64::MAX);
}

impl<'a> FromSql<'a> for Microseconds {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let since_2000 = i64::from_be_bytes(raw.try_into()?);
        Ok(match since_2000 {
            i64::MIN | i64::MAX => Self(since_2000),
            finite => Self(finite.saturating_add(EPOCH)),
        })
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

impl ToSql for Microseconds {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let since_2000 = match self.0 {
            i64::MIN | i64::MAX => self.0,
            finite => finite.saturating_sub(EPOCH),
        };
        out.extend_from_slice(&since_2000.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

/// Where a row stands in an order by time and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its time.
    pub at: Microseconds,
    /// Its id, which tells rows of one microsecond apart.
    pub id: i64,
}

/// Which page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The page of that number, from 1, with a total.
    Number(u32),
    /// The page behind that key.
    After(Key),
    /// The first page, without a total.
    First,
}

/// A page: where, and how many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Where it begins.
    pub position: Position,
    /// The most rows it has.
    pub size: u32,
}

impl Page {
    /// How many rows stand before this page within its position.
    pub fn offset(&self) -> i64 {
        match self.position {
            Position::Number(page) => i64::from(page.saturating_sub(1)) * i64::from(self.size),
            Position::After(_) | Position::First => 0,
        }
    }

    /// Reads the parameters `page`, `size` and `after`.
    ///
    /// # Errors
    /// A 400 problem: `bad-request`, `page-too-deep` or `invalid-cursor`.
    pub fn parse(
        page: Option<u32>,
        size: Option<u32>,
        after: Option<&str>,
        scope: &Scope,
        most: u32,
    ) -> Result<Self, Problem> {
        let size = size.unwrap_or(most.min(50));
        if !(1..=most).contains(&size) {
            return Err(Problem::bad_parameter(&format!("`size` is between 1 and {most}.")));
        }
        let position = match (page, after) {
            (Some(_), Some(_)) => {
                return Err(Problem::bad_parameter("Pass `page` or `after`, not both."));
            }
            (Some(0), None) => return Err(Problem::bad_parameter("`page` begins at 1.")),
            (Some(page), None) if u64::from(page) * u64::from(size) > u64::from(NUMBERED_ROWS) => {
                return Err(too_deep());
            }
            (Some(page), None) => Position::Number(page),
            (None, Some(cursor)) => {
                Position::After(scope.decode(cursor).ok_or_else(invalid_cursor)?)
            }
            (None, None) => Position::First,
        };
        Ok(Self { position, size })
    }
}

fn too_deep() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "page-too-deep", "The page lies too deep")
        .detail(format!(
            "Page numbers reach the first {NUMBERED_ROWS} rows. Pass the `next` of an answer as `after` instead."
        ))
        .member("rowLimit", NUMBERED_ROWS)
}

/// 400: the cursor was not given out for this list and filter.
pub fn invalid_cursor() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid-cursor", "The cursor does not fit")
        .detail("Pass `after` unchanged, with the filter that it was given out for.")
}

#[cfg(test)]
mod tests {
    use super::{Page, Position, Scope};

    fn parse(
        page: Option<u32>,
        size: Option<u32>,
        after: Option<&str>,
    ) -> Result<Page, &'static str> {
        Page::parse(page, size, after, &Scope::new("test", b""), 500)
            .map_err(|problem| problem.suffix())
    }

    #[test]
    fn page_numbers_reach_the_first_ten_thousand_rows_and_no_further() {
        assert_eq!(parse(Some(20), Some(500), None).unwrap().position, Position::Number(20));
        assert_eq!(parse(Some(10_000), Some(1), None).unwrap().offset(), 9_999);
        assert_eq!(parse(Some(21), Some(500), None), Err("page-too-deep"));
        assert_eq!(parse(Some(10_001), Some(1), None), Err("page-too-deep"));
        assert_eq!(parse(Some(u32::MAX), Some(500), None), Err("page-too-deep"));
    }

    #[test]
    fn sizes_and_numbers_out_of_range_are_refused() {
        for (page, size) in [(None, Some(0)), (None, Some(501)), (Some(0), None)] {
            assert_eq!(parse(page, size, None), Err("bad-request"));
        }
        assert_eq!(parse(Some(1), None, Some("00")), Err("bad-request"));
        assert_eq!(parse(None, None, Some("00")), Err("invalid-cursor"));
    }
}
