//! The SQL console, from the outside and from under its login roles.

mod answers;
mod bounds;
mod departures;
mod meaning;
mod memory;
mod roles;
mod views;

/// Runs for ever: a thousand rows joined with themselves four times.
const ENDLESS: &str = "with recursive n(i) as (select 1 union all select n.i + 1 from n where n.i < 1000) \
     select count(*) from n a, n b, n c, n d";

/// `with … d as …`: a text of 900,000 characters named `x`.
fn long_text() -> String {
    let ten = vec!["x"; 10].join("||");
    format!(
        "with a as materialized (select '{}' as x), b as materialized (select {ten} as x from a), \
         c as materialized (select {ten} as x from b), d as materialized (select {ten} as x from c), \
         n as materialized (with recursive n(i) as (select 1 union all select n.i + 1 from n where n.i < 10000) select n.i from n) ",
        "x".repeat(900)
    )
}
