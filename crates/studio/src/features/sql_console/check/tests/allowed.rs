//! What passes, and what it becomes.

use super::rewritten;
use crate::features::sql_console::catalogue::Catalogue;
use crate::features::sql_console::check::check;

#[track_caller]
fn becomes(cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        assert_eq!(rewritten(sql), *expected, "{sql}");
        assert_eq!(
            rewritten(expected),
            *expected,
            "the rewritten text is its own rewriting: {sql}"
        );
    }
}

#[test]
fn names_are_folded_quoted_and_qualified() {
    becomes(&[
        (
            "select ID, Actor from Audit_Event",
            r#"SELECT "id", "actor" FROM "console"."audit_event""#,
        ),
        (
            r#"select E."id" from CONSOLE."audit_event" as E where e.action = 'x'"#,
            r#"SELECT "e"."id" FROM "console"."audit_event" AS "e" WHERE ("e"."action" = 'x')"#,
        ),
        (
            "select console.audit_event.id from console.audit_event",
            r#"SELECT "audit_event"."id" FROM "console"."audit_event""#,
        ),
        (
            "select count(*), lower(actor) from audit_event group by lower(actor)",
            r#"SELECT "pg_catalog"."count"(*), "pg_catalog"."lower"("actor") FROM "console"."audit_event" GROUP BY "pg_catalog"."lower"("actor")"#,
        ),
        (r#"select 1 as "a""b", 2 as select_"#, r#"SELECT 1 AS "a""b", 2 AS "select_""#),
    ]);
}

#[test]
fn constants_are_written_by_value() {
    becomes(&[
        ("select 'it''s'", "SELECT 'it''s'"),
        (r"select 'a\b'", r"SELECT E'a\\b'"),
        (r"select 'a\'", r"SELECT E'a\\'"),
        (r"select E'a\\b\'c\n'", "SELECT E'a\\\\b''c\n'"),
        (r"select E'\x41\102\u0043'", "SELECT 'ABC'"),
        ("select $$it's$$, $x$a$$b$x$", "SELECT 'it''s', 'a$$b'"),
        ("select 1, 1.5, .5, 1e10, 2.5E-3", "SELECT 1, 1.5, .5, 1e10, 2.5E-3"),
        ("select null, TRUE, False", "SELECT NULL, TRUE, FALSE"),
        ("select date '2026-01-01'", "SELECT CAST('2026-01-01' AS date)"),
        ("select timestamptz '2026-01-01'", "SELECT CAST('2026-01-01' AS timestamptz)"),
        ("select interval '1 day'", "SELECT CAST('1 day' AS interval)"),
        (
            "select '1'::integer, cast('2' as varchar(10))",
            "SELECT CAST('1' AS int4), CAST('2' AS varchar(10))",
        ),
        ("select '{1,2}'::int[]", "SELECT CAST('{1,2}' AS int4[])"),
        ("select '10.0.0.0/8'::CIDR", "SELECT CAST('10.0.0.0/8' AS cidr)"),
    ]);
}

#[test]
fn operators_are_bracketed() {
    becomes(&[
        ("select 1 + 2 * 3", "SELECT (1 + (2 * 3))"),
        ("select (1 + 2) * 3", "SELECT ((1 + 2) * 3)"),
        ("select - - 1", "SELECT (- (- 1))"),
        ("select not true or false", "SELECT ((NOT TRUE) OR FALSE)"),
        ("select 'a' || 'b' like 'a%'", "SELECT (('a' || 'b') LIKE 'a%')"),
        ("select 1 in (1, 2), 1 not in (select 2)", "SELECT (1 IN (1, 2)), (1 NOT IN (SELECT 2))"),
        ("select 1 = any (array[1, 2])", "SELECT (1 = ANY (ARRAY[1, 2]))"),
        ("select 1 <> all ((select 2))", "SELECT (1 <> ALL (SELECT 2))"),
        ("select 1 between 0 and 2 and true", "SELECT ((1 BETWEEN 0 AND 2) AND TRUE)"),
        ("select null is not distinct from 1", "SELECT (NULL IS NOT DISTINCT FROM 1)"),
        ("select (array[1, 2])[1]", "SELECT (ARRAY[1, 2])[1]"),
        (
            "select detail -> 'a' ->> 'b' from audit_event",
            r#"SELECT (("detail" -> 'a') ->> 'b') FROM "console"."audit_event""#,
        ),
        ("select 'a' collate \"C\" < 'b'", r#"SELECT (('a' COLLATE "pg_catalog"."C") < 'b')"#),
        (
            "select exists (select 1), not exists (select 2)",
            "SELECT EXISTS (SELECT 1), (NOT EXISTS (SELECT 2))",
        ),
        (
            "select case 1 when 1 then 'a' else 'b' end",
            "SELECT CASE 1 WHEN 1 THEN 'a' ELSE 'b' END",
        ),
    ]);
}

#[test]
fn forms_with_a_syntax_of_their_own_become_calls() {
    becomes(&[
        (
            "select extract(year from at) from audit_event",
            r#"SELECT "pg_catalog"."extract"('year', "at") FROM "console"."audit_event""#,
        ),
        ("select substring('abc' from 2 for 1)", r#"SELECT "pg_catalog"."substring"('abc', 2, 1)"#),
        ("select substring('abc', 2)", r#"SELECT "pg_catalog"."substring"('abc', 2)"#),
        ("select trim(both 'x' from 'xax')", r#"SELECT "pg_catalog"."btrim"('xax', 'x')"#),
        ("select trim(leading from ' a')", r#"SELECT "pg_catalog"."ltrim"(' a')"#),
        ("select position('b' in 'abc')", r#"SELECT "pg_catalog"."position"('abc', 'b')"#),
        (
            "select overlay('abc' placing 'x' from 2 for 1)",
            r#"SELECT "pg_catalog"."overlay"('abc', 'x', 2, 1)"#,
        ),
        (
            "select ceil(1.5), floor(1.5)",
            r#"SELECT "pg_catalog"."ceil"(1.5), "pg_catalog"."floor"(1.5)"#,
        ),
        ("select now() at time zone 'utc'", r#"SELECT ("pg_catalog"."now"() AT TIME ZONE 'utc')"#),
        ("select current_date, coalesce(null, 1)", "SELECT CURRENT_DATE, COALESCE(NULL, 1)"),
        ("select array(select 1)", "SELECT ARRAY(SELECT 1)"),
    ]);
}

#[test]
fn the_whole_of_a_select_passes() {
    for sql in [
        "select",
        "select from audit_event",
        "values (1, 'a'), (2, 'b')",
        "select distinct on (actor) actor, at from audit_event order by actor, at desc nulls last",
        "select a.id from audit_event a join account b on a.actor_id = b.id left join account c using (id) natural join account d cross join account e",
        "select * from (audit_event a join account b on a.actor_id = b.id), account c",
        "select s.n from (select count(*) as n from audit_event) as s",
        "select s.count from (select count(*) from audit_event) s",
        "select s.a, s.b from (values (1, 2)) as s (a, b)",
        "with t as (select id from audit_event), u as materialized (select t.id from t) select u.id from u",
        "with recursive t(n) as (select 1 union all select t.n + 1 from t where t.n < 10) select t.n from t",
        "select 1 union all (select 2 order by 1 limit 1) except select 3 intersect select 4",
        "select id from audit_event where id in (select id from audit_event limit 5) offset 3 rows fetch first 2 rows only",
        "select actor, count(*) filter (where outcome = 'failed') from audit_event group by actor having count(*) > 1 order by count(*) desc",
        "select count(*), grouping(actor) from audit_event group by rollup (actor), grouping sets ((action), ()), cube (target)",
        "select row_number() over (partition by actor order by at rows between 1 preceding and current row), sum(row_count) over w from audit_event window w as (order by id)",
        "select percentile_cont(0.5) within group (order by row_count) from audit_event",
        "select string_agg(distinct actor, ',' order by actor) from audit_event",
        "select l.n from account a, lateral (select count(*) as n from audit_event e where e.actor_id = a.id) l",
        "select a.id from account a where exists (select 1 from audit_event e where e.actor_id = a.id)",
        "select count(*) as audit_event from audit_event order by audit_event",
        "select e.* from audit_event e;",
        "/* a comment */ select -- another\n 1 ;;",
        "select at from audit_event order by at, 1",
        "select (1, 2) = (1, 2), (select 1)",
    ] {
        let once = rewritten(sql);
        assert_eq!(rewritten(&once), once, "{sql}");
    }
}

#[test]
fn a_query_names_each_view_that_it_reads_once() {
    let checked = check(
        "with account as (select 1 as id) select account.id from account, audit_event a, \
         audit_event b",
        &Catalogue::ALL,
    )
    .expect("it passes");
    let views: Vec<_> = checked.views().iter().map(|view| view.name).collect();
    assert_eq!(views, ["audit_event"], "the WITH query hides the view of its name");
}

#[test]
fn a_with_query_is_seen_only_where_postgresql_sees_it() {
    // Outside its query, and inside itself without RECURSIVE, the name is the view's.
    for (sql, views) in [
        ("(with account as (select 1) select * from account) union all select 1", 0),
        (
            "(with account as (select 1 as id) select id from account) union all select 1 from account",
            1,
        ),
        ("with account as (select * from account) select * from account", 1),
        (
            "with recursive account as (select 1 union select 2 from account) select * from account",
            0,
        ),
        ("with a as (select 1 from account), account as (select 2) select 1 from account", 1),
    ] {
        let checked = check(sql, &Catalogue::ALL).expect(sql);
        assert_eq!(checked.views().len(), views, "{sql}");
    }
}

#[test]
fn set_operations_keep_their_order() {
    becomes(&[
        (
            "select 1 union select 2 intersect select 3",
            "(SELECT 1) UNION ((SELECT 2) INTERSECT (SELECT 3))",
        ),
        (
            "select 1 except all select 2 union select 3 order by 1 limit 2",
            "((SELECT 1) EXCEPT ALL (SELECT 2)) UNION (SELECT 3) ORDER BY 1 LIMIT 2",
        ),
        ("(select 1 limit 1) union (select 2)", "(SELECT 1 LIMIT 1) UNION (SELECT 2)"),
    ]);
}
