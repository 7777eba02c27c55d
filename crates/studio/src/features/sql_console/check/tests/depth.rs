//! Deep and long texts: no stack overflows, and nothing takes long.

use std::time::{Duration, Instant};

use crate::features::sql_console::catalogue::Catalogue;
use crate::features::sql_console::check::check;

/// Checks `sql` on a thread with the stack of a worker of the runtime.
fn check_on_a_small_stack(name: &str, sql: String) {
    let started = Instant::now();
    let outcome = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || check(&sql, &Catalogue::ALL).map(|checked| checked.sql().len()))
        .expect("a thread starts")
        .join();
    assert!(outcome.is_ok(), "{name} must not end the thread");
    // Generous for a debug build on a busy machine; exponential work would take years.
    assert!(started.elapsed() < Duration::from_secs(20), "{name}: {:?}", started.elapsed());
}

#[test]
fn ten_thousand_levels_neither_overflow_the_stack_nor_take_long() {
    let deep = |before: &str, middle: &str, after: &str| {
        format!("select {}{middle}{}", before.repeat(10_000), after.repeat(10_000))
    };
    for (name, sql) in [
        ("brackets", deep("(", "1", ")")),
        ("open brackets", deep("(", "", "")),
        ("not", deep("not ", "true", "")),
        ("minus", deep("- ", "1", "")),
        ("case", deep("case when ", "1", "")),
        ("array", deep("array[", "1", "]")),
        ("calls", deep("abs(", "1", ")")),
        ("casts", deep("", "1", "::int")),
        ("dimensions", deep("", "'{}'::int", "[]")),
        ("subscripts", deep("", "a", "[1]")),
        ("subqueries", deep("(select ", "1", ")")),
        ("plus", deep("", "1", "+1")),
        ("concatenation", deep("", "'a'", "||'a'")),
        ("or", deep("", "a", " or a")),
        ("is null", deep("", "a", " is null")),
        ("union", deep("", "1", " union select 1")),
        ("union after commas", deep("", "1", " union select 1,1")),
        ("from brackets", format!("select 1 from {}", "(".repeat(10_000))),
        ("joins", deep("", "1 from account a", " join a")),
        ("collate", deep("", "'a'", " collate \"C\"")),
        ("dots", deep("", "a", ".a")),
        ("intervals", deep("interval ", "'1'", "")),
        ("exists", deep("exists (", "", "")),
        ("in", deep("1 in (", "1", ")")),
        ("between", deep("1 between ", "1", "")),
    ] {
        check_on_a_small_stack(name, sql);
    }
}

#[test]
fn the_deepest_text_that_passes_the_bounds_fits_the_stack() {
    for nested in [5, 10, 20, 30, 38, 39] {
        for (name, before, middle, after) in [
            ("brackets", "(", "1", ")"),
            ("subqueries", "(select ", "1", ")"),
            ("calls", "abs(", "1", ")"),
            ("in", "1 in (", "1", ")"),
            ("in queries", "1 in (select ", "1", ")"),
            ("arrays", "array[", "1", "]"),
            ("case", "(case when true then ", "1", " end)"),
            ("exists", "exists (select ", "1", ")"),
            ("any", "1 = any (select ", "1", ")"),
            ("casts", "cast(", "1", " as int)"),
            ("minus", "-(", "1", ")"),
            ("tuples", "(1, ", "1", ")"),
        ] {
            let sql = format!("select {}{middle}{}", before.repeat(nested), after.repeat(nested));
            check_on_a_small_stack(&format!("{nested} {name}"), sql);
        }
        for (name, before, middle, after) in [
            ("derived", "(select * from ", "account", ") a"),
            ("joins in brackets", "(", "account", ")"),
            ("joins", "(account a join ", "account b", " on true)"),
            ("queries in brackets", "((select * from ", "account", ") union select 1) a"),
            ("open", "(", "", ""),
            ("lateral", "lateral (select * from ", "account", ") a"),
        ] {
            let sql =
                format!("select * from {}{middle}{}", before.repeat(nested), after.repeat(nested));
            check_on_a_small_stack(&format!("{nested} from {name}"), sql);
        }
        let with = format!(
            "{}select 1{}",
            "with recursive a as (".repeat(nested),
            ") select * from a".repeat(nested)
        );
        check_on_a_small_stack(&format!("{nested} with"), with);
    }
    for (name, before, middle, after) in [
        ("not", "not ", "true", ""),
        ("minus", "- ", "1", ""),
        ("plus", "", "1", "+1"),
        ("case", "case when true then ", "1", " end"),
        ("union", "", "1", " union select 1"),
        ("casts", "", "1", "::int"),
    ] {
        for times in [50, 100, 130, 190, 380] {
            let sql = format!("select {}{middle}{}", before.repeat(times), after.repeat(times));
            check_on_a_small_stack(&format!("{times} {name}"), sql);
        }
    }
}

#[test]
fn wide_texts_take_little_time() {
    let most = (64 << 10) - 100;
    let fill = |piece: &str| piece.repeat(most / piece.len());
    for (name, sql) in [
        ("list", format!("select {}1", fill("1,"))),
        ("in", format!("select 1 in ({}1)", fill("1,"))),
        ("negative numbers", format!("select 1 in ({}1)", fill("-1,"))),
        ("relations", format!("select 1 from {}account", fill("account a,"))),
        ("with", format!("with {}b as (select 1) select 1", fill("a as (select 1),"))),
        ("text", format!("select '{}'", fill("\\"))),
        ("comment", format!("select 1 /* {} */", fill("x"))),
        ("semicolons", format!("select 1 {}", fill(";"))),
        ("values", format!("values {}(1)", fill("(1),"))),
        ("names", format!("select {}a", fill("a."))),
        ("stars", format!("select {}* from account", fill("*,"))),
        ("statements", fill("select 1;")),
    ] {
        check_on_a_small_stack(name, sql);
    }
}
