//! The statement that is executed: the checked one, its values cut on the server.
//!
//! The driver reads a whole row before anybody sees it, so a row must be small when it leaves the
//! server. Values become text there, which also gives 64-bit numbers and times their exact digits.

use std::fmt::Write as _;

use crate::features::sql_console::bounds::{CELL_MAX_BYTES, ROW_MAX_BYTES, ROWS_MAX};

/// Wraps a checked statement of that many columns. The result has one text a column and, last, the
/// numbers of the columns (from 1) whose value was cut, or null. It gives one row more than the
/// row bound, which tells that there are more.
pub(super) fn statement(checked: &str, columns: usize) -> String {
    let rows = ROWS_MAX + 1;
    if columns == 0 {
        return format!(
            "select null::int4[] from (select from ({checked}) as checked) as bounded limit {rows}"
        );
    }
    let names = list(columns, ", ", |out, column| write!(out, "c{column}"));
    let longest = list(columns, ", ", octets);
    let sum = list(columns, " + ", |out, column| {
        write!(out, "least(coalesce(octet_length(c{column}::text), 0), {CELL_MAX_BYTES})::int8")
    });
    let values = list(columns, ", ", value);
    let cut = list(columns, ", ", |out, column| {
        write!(out, "case when octet_length(c{column}::text) > most then {column} end")
    });
    let part = ROW_MAX_BYTES / u32::try_from(columns).unwrap_or(u32::MAX);
    let part = part.min(CELL_MAX_BYTES);
    // `offset 0` keeps the planner from merging the levels, which would compute each value many times.
    format!(
        "select {values}, case when longest > most then array_remove(array[{cut}], null) end \
         from (\
         select measured.*, case when octets > {ROW_MAX_BYTES} then {part} else {CELL_MAX_BYTES} end as most \
         from (\
         select named.*, coalesce(greatest({longest}), 0) as longest, {sum} as octets \
         from (select * from ({checked}) as checked ({names}) offset 0) as named offset 0\
         ) as measured offset 0\
         ) as bounded limit {rows}"
    )
}

fn octets(out: &mut String, column: usize) -> std::fmt::Result {
    write!(out, "octet_length(c{column}::text)")
}

/// A value as text of at most `most` bytes. Cutting counts characters, of up to four bytes each.
fn value(out: &mut String, column: usize) -> std::fmt::Result {
    write!(
        out,
        "case when longest <= most or octet_length(c{column}::text) <= most then c{column}::text \
         when octet_length(left(c{column}::text, most)) = most then left(c{column}::text, most) \
         else left(c{column}::text, most / 4) end"
    )
}

fn list(
    columns: usize,
    between: &str,
    write: impl Fn(&mut String, usize) -> std::fmt::Result,
) -> String {
    let mut out = String::new();
    for column in 1..=columns {
        if column > 1 {
            out.push_str(between);
        }
        // Writing into a String cannot fail.
        write(&mut out, column).ok();
    }
    out
}
