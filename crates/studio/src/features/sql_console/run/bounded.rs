//! The statement that is executed: the checked one, its values cut on the server and its rows sent in
//! small pieces.
//!
//! The driver reads a whole row before anybody sees it, and holds more than one. So a row of the
//! checked statement becomes text on the server, as it will stand in the answer, and arrives as many
//! small rows. As text, 64-bit numbers and times also keep their exact digits.

use std::fmt::Write as _;

use crate::features::sql_console::bounds::{CELL_MAX_BYTES, ROW_MAX_BYTES};

/// A piece of a row, in bytes.
const PIECE_BYTES: u32 = 64 << 10;

/// Wraps a checked statement of that many columns, of whose rows so many are answered at most.
///
/// The result has three columns: a piece of a row, a JSON array of texts and nulls in UTF-8; whether
/// the row ends with it; and then the numbers of its columns (from 1) whose values were cut, or null.
/// There is one row more than the row bound, which tells that there are more.
pub(super) fn statement(checked: &str, columns: usize, most: u64) -> String {
    let rows = rows(checked, columns, most);
    // `offset 0` keeps the planner from merging the levels, which would compute each value many times.
    format!(
        "select substr(octets, 1 + number * {PIECE_BYTES}, {PIECE_BYTES}), number = last, \
         case when number = last then cut end \
         from (\
         select octets, cut, last, generate_series(0, last) as number \
         from (\
         select octets, cut, (octet_length(octets) - 1) / {PIECE_BYTES} as last \
         from (select convert_to(document, 'UTF8') as octets, cut from ({rows}) as written offset 0) as rows \
         offset 0\
         ) as counted offset 0\
         ) as pieces"
    )
}

/// The rows as JSON, with what was cut.
fn rows(checked: &str, columns: usize, most: u64) -> String {
    let rows = most + 1;
    if columns == 0 {
        return format!(
            "select '[]' as document, null::int4[] as cut \
             from (select from ({checked}) as checked offset 0) as named limit {rows}"
        );
    }
    let names = list(columns, ", ", |out, column| write!(out, "c{column}"));
    let longest = list(columns, ", ", |out, column| write!(out, "octet_length(c{column}::text)"));
    let sum = list(columns, " + ", |out, column| {
        write!(out, "least(coalesce(octet_length(c{column}::text), 0), {CELL_MAX_BYTES})::int8")
    });
    let values = list(columns, ", ", value);
    let cut = list(columns, ", ", |out, column| {
        write!(out, "case when octet_length(c{column}::text) > most then {column} end")
    });
    let part = ROW_MAX_BYTES / u32::try_from(columns).unwrap_or(u32::MAX);
    let part = part.min(CELL_MAX_BYTES);
    format!(
        "select to_json(array[{values}])::text as document, \
         case when longest > most then array_remove(array[{cut}], null) end as cut \
         from (\
         select measured.*, case when total > {ROW_MAX_BYTES} then {part} else {CELL_MAX_BYTES} end as most \
         from (\
         select named.*, coalesce(greatest({longest}), 0) as longest, {sum} as total \
         from (select * from ({checked}) as checked ({names}) offset 0) as named offset 0\
         ) as measured offset 0\
         ) as bounded limit {rows}"
    )
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
