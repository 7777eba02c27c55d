//! What is refused, by which name, and that spelling changes nothing.

use super::refusal;

#[track_caller]
fn refuses(cases: &[(&str, &str)]) {
    for (sql, construct) in cases {
        let refusal = refusal(sql);
        assert_eq!(refusal.name(), *construct, "{sql}\n{refusal}");
        assert!(refusal.sentence().ends_with('.'), "a sentence: {refusal}");
    }
}

#[test]
fn every_statement_but_select_is_refused_by_its_name() {
    refuses(&[
        ("", "empty text"),
        (" ; ; ", "empty text"),
        ("-- nothing", "empty text"),
        ("insert into audit_event default values", "INSERT"),
        ("update audit_event set actor = 'x'", "UPDATE"),
        ("DeLeTe from audit_event", "DELETE"),
        ("merge into a using b on true when matched then delete", "MERGE"),
        ("truncate audit_event", "TRUNCATE"),
        ("create table t (a int)", "CREATE"),
        ("drop view console.audit_event", "DROP"),
        ("alter role studio_console_viewer superuser", "ALTER"),
        ("grant select on audit_event to public", "GRANT"),
        ("copy audit_event to '/tmp/x'", "COPY"),
        ("copy (select 1) to program 'sh'", "COPY"),
        ("set role studio_app", "SET"),
        ("reset all", "RESET"),
        ("show all", "SHOW"),
        ("explain select 1", "EXPLAIN"),
        ("explain analyze select 1", "EXPLAIN"),
        ("begin", "BEGIN"),
        ("commit", "COMMIT"),
        ("rollback; select 1", "ROLLBACK"),
        ("declare c cursor for select 1", "DECLARE"),
        ("fetch all from c", "FETCH"),
        ("prepare p as select 1", "PREPARE"),
        ("execute p", "EXECUTE"),
        ("do $$begin end$$", "DO"),
        ("call f()", "CALL"),
        ("listen x", "LISTEN"),
        ("notify x", "NOTIFY"),
        ("lock audit_event", "LOCK"),
        ("vacuum", "VACUUM"),
        ("table audit_event", "TABLE"),
        ("/* select */ DROP TABLE x", "DROP"),
        ("(delete from audit_event)", "DELETE"),
    ]);
}

#[test]
fn writes_inside_a_select_are_refused() {
    refuses(&[
        ("with d as (delete from audit_event returning *) select * from d", "DELETE"),
        ("with d as (insert into audit_event default values returning *) select 1", "INSERT"),
        ("with d as (update audit_event set actor = '' returning 1) select 1", "UPDATE"),
        ("with d as (select 1) insert into audit_event select * from d", "INSERT"),
        ("select * into t from audit_event", "SELECT INTO"),
        ("select 1 into temp t", "SELECT INTO"),
        ("select id from audit_event for update", "Row locking (FOR UPDATE or FOR SHARE)"),
        (
            "select id from audit_event FOR/**/SHARE skip locked",
            "Row locking (FOR UPDATE or FOR SHARE)",
        ),
        (
            "select 1 from (select 1 from audit_event for update) x",
            "Row locking (FOR UPDATE or FOR SHARE)",
        ),
    ]);
}

#[test]
fn several_statements_are_refused() {
    for sql in ["select 1; select 2", "select 1; drop table x", "select 1; ; select 2;"] {
        let name = refusal(sql).name().to_owned();
        assert!(name == "More than one statement" || name == "syntax", "{sql}: {name}");
    }
    refuses(&[("select 1; select 2", "More than one statement")]);
}

#[test]
fn functions_outside_the_list_are_refused_however_they_are_spelt() {
    refuses(&[
        ("select pg_sleep(1)", "function pg_sleep"),
        ("select PG_Sleep /**/ (1)", "function pg_sleep"),
        (r#"select "pg_sleep"(1)"#, "function pg_sleep"),
        (r#"select "pg_catalog" . "pg_sleep" (1)"#, "function pg_catalog.pg_sleep"),
        ("select pg_catalog.pg_sleep(1)", "function pg_catalog.pg_sleep"),
        ("select public.count(1)", "function public.count"),
        ("select studio.pg_catalog.count(1)", "function studio.pg_catalog.count"),
        ("select set_config('role', 'studio_app', false)", "function set_config"),
        ("select current_setting('x')", "function current_setting"),
        ("select pg_read_file('/etc/passwd')", "function pg_read_file"),
        ("select lo_import('/etc/passwd')", "function lo_import"),
        ("select lo_from_bytea(0, '\\x00')", "function lo_from_bytea"),
        ("select pg_notify('a', 'b')", "function pg_notify"),
        ("select pg_advisory_lock(1)", "function pg_advisory_lock"),
        ("select pg_terminate_backend(1)", "function pg_terminate_backend"),
        ("select query_to_xml('select 1', true, true, '')", "function query_to_xml"),
        ("select nextval('s')", "function nextval"),
        ("select dblink('x', 'select 1')", "function dblink"),
        ("select repeat('x', 1000000000)", "function repeat"),
        ("select lpad('x', 1000000000)", "function lpad"),
        ("select format('%1000000000s', 'x')", "function format"),
        ("select generate_series(1, 10)", "function generate_series"),
        ("select row_to_json(a) from account a", "function row_to_json"),
        ("select version()", "function version"),
        ("select current_user", "function current_user"),
        ("select session_user", "function session_user"),
        ("select 1 where pg_sleep(1) is null", "function pg_sleep"),
        ("select 1 order by pg_sleep(1)", "function pg_sleep"),
        ("select 1 group by pg_sleep(1)", "function pg_sleep"),
        ("select 1 having pg_sleep(1) is null", "function pg_sleep"),
        ("select 1 limit pg_sleep(1)", "function pg_sleep"),
        ("select 1 offset pg_sleep(1)", "function pg_sleep"),
        ("select count(*) filter (where pg_sleep(1) is null)", "function pg_sleep"),
        ("select sum(1) over (order by pg_sleep(1))", "function pg_sleep"),
        (
            "select sum(1) over w from account window w as (partition by pg_sleep(1))",
            "function pg_sleep",
        ),
        ("select case when true then pg_sleep(1) end", "function pg_sleep"),
        ("select distinct on (pg_sleep(1)) 1", "function pg_sleep"),
        ("select array[pg_sleep(1)]", "function pg_sleep"),
        ("select (array[1])[pg_sleep(1)]", "function pg_sleep"),
        ("select 1 from account a join account b on pg_sleep(1) is null", "function pg_sleep"),
        ("select 1 from (select pg_sleep(1)) s", "function pg_sleep"),
        ("values (pg_sleep(1))", "function pg_sleep"),
        ("with t as (select pg_sleep(1)) select 1", "function pg_sleep"),
        ("select 1 in (select pg_sleep(1))", "function pg_sleep"),
        ("select exists (select pg_sleep(1))", "function pg_sleep"),
        ("select string_agg('x', 'y' order by pg_sleep(1))", "function pg_sleep"),
        ("select percentile_cont(0.5) within group (order by pg_sleep(1))", "function pg_sleep"),
        ("select 1 = any (array[pg_sleep(1)])", "function pg_sleep"),
        ("select 'x' like pg_sleep(1)", "function pg_sleep"),
        ("select extract(year from pg_sleep(1))", "function pg_sleep"),
        ("select substring('x' from pg_sleep(1))", "function pg_sleep"),
        ("select 1 from account group by rollup (pg_sleep(1))", "function pg_sleep"),
    ]);
}

#[test]
fn unicode_escapes_are_refused() {
    refuses(&[
        (r#"select U&"pg\005Fsleep"(1)"#, "A Unicode escape (U&'…' or U&\"…\")"),
        (r#"select * from u&"\0070g_class""#, "A Unicode escape (U&'…' or U&\"…\")"),
        (r"select U&'\0061'", "A Unicode escape (U&'…' or U&\"…\")"),
        (r"select u&'d!0061' uescape '!'", "A Unicode escape (U&'…' or U&\"…\")"),
    ]);
    // Letters that look alike, or fold to ASCII elsewhere, are other names.
    refuses(&[
        ("select ｃount(*)", "function ｃount"),
        ("select \u{212a}_(1)", "function \u{212a}_"),
    ]);
}

#[test]
fn relations_outside_the_views_are_refused() {
    refuses(&[
        ("select * from pg_class", "relation pg_class"),
        ("select * from PG_CATALOG.pg_class", "Catalogue pg_catalog"),
        (r#"select * from "pg_catalog"."pg_authid""#, "Catalogue pg_catalog"),
        ("select * from information_schema.tables", "Catalogue information_schema"),
        ("select * from pg_stat_activity", "relation pg_stat_activity"),
        ("select * from studio.account", "relation studio.account"),
        ("select * from studio.session", "relation studio.session"),
        ("select * from session", "relation session"),
        ("select * from studio.console.account", "relation studio.console.account"),
        (r#"select * from "Account""#, "relation Account"),
        (r#"select * from "console.account""#, "relation console.account"),
        ("select 1 where 1 in (select 1 from pg_class)", "relation pg_class"),
        ("select (select relname from pg_class limit 1)", "relation pg_class"),
        ("select 1 union select 1 from pg_class", "relation pg_class"),
        ("with t as (select 1) select 1 from t, pg_class", "relation pg_class"),
        ("with a as (select 1 from b), b as (select 1) select 1 from a", "relation b"),
        ("select 1 from (with b as (select 1) select 1 from b) x, b", "relation b"),
        (
            "with pg_class as (select 1) select 1 from pg_class",
            "The name pg_class for a WITH query",
        ),
        ("select * from only account", "ONLY or * at a table"),
        ("select * from account tablesample system (1)", "TABLESAMPLE"),
    ]);
}

#[test]
fn functions_in_from_are_refused() {
    refuses(&[
        ("select * from generate_series(1, 10)", "A function in FROM"),
        ("select * from pg_ls_dir('/')", "A function in FROM"),
        ("select * from unnest(array[1])", "A function in FROM"),
        ("select * from account, lateral pg_sleep(1)", "A function in FROM"),
        ("select * from rows from (pg_sleep(1))", "syntax"),
        ("select * from json_table('[1]', '$[*]' columns (a int path '$'))", "A function in FROM"),
        ("select * from xmltable('/a' passing '<a/>' columns b text)", "A function in FROM"),
        ("select * from current_date", "relation current_date"),
    ]);
}

#[test]
fn types_that_read_the_catalogue_are_refused() {
    refuses(&[
        ("select 'account'::regclass", "Type regclass"),
        ("select cast('account' as RegClass)", "Type regclass"),
        (r#"select 'account'::"regclass""#, "Type \"regclass\""),
        ("select 'account'::pg_catalog.regclass", "Type pg_catalog.regclass"),
        ("select 'x'::regprocedure", "Type regprocedure"),
        ("select '<a/>'::xml", "Type xml"),
        ("select 1::oid", "Type oid"),
        ("select 'x'::console.account", "Type console.account"),
        ("select regclass 'account'", "Type regclass"),
        ("select '{account}'::regclass[]", "Type regclass"),
    ]);
}

#[test]
fn system_columns_whole_rows_and_fields_are_refused() {
    refuses(&[
        ("select ctid from account", "System column ctid"),
        ("select a.XMIN from account a", "System column xmin"),
        (r#"select "tableoid" from account"#, "System column tableoid"),
        ("select account from account", "The whole row account as a value"),
        ("select a from account a", "The whole row a as a value"),
        ("select count(a) from account a", "The whole row a as a value"),
        ("select to_jsonb(a) from account a", "The whole row a as a value"),
        ("select (select to_jsonb(a)) from account a", "The whole row a as a value"),
        ("select (a).id from account a", "The whole row a as a value"),
        ("select (array[1, 2])[1:2]", "A field or a slice of a value"),
        ("select (a).* from account a", "syntax"),
        ("select count(a.*) from account a", "* as an argument"),
        // What is no column would be the call row_to_json(a).
        ("select a.row_to_json from account a", "column a.row_to_json"),
        ("select a.password_hash from account a", "column a.password_hash"),
        ("select s.pg_sleep from (select 1) s", "column s.pg_sleep"),
        ("select b.id from account a", "relation b"),
        ("select s.b from (select 1 as b) s (a)", "column s.b"),
    ]);
}

#[test]
fn what_only_other_databases_know_is_refused() {
    for sql in [
        "select top 1 id from account",
        "select * exclude (id) from account",
        "select * except (id) from account",
        "from account select id",
        "select id from account qualify true",
        "select 1 limit 1, 2",
        "select $1",
        "select ?",
        "select x'ff'",
        "select b'01'",
        "select n'x'",
        "select 1 minus select 2",
        "select 1 union by name select 2",
        "select operator(pg_catalog.+) 1",
        "select 1 operator(pg_catalog.+) 2",
        "select try_cast(1 as text)",
        "select count(all := 1)",
        "select concat(variadic array['a'])",
        "select first_value(id) ignore nulls over () from account",
        "select id from account order by id using <",
        "select interval '1' day",
        "select 1_000",
        "select 0x1F",
        "select !1",
        "select 5!",
        "select @ 1",
        "select `id` from account",
        "select [id] from account",
        "select {fn now()}",
        "select 'x' 'y'z",
        "select 'x",
        "select \"x",
        "select $x$ y",
        "select /* x",
        "select 1 from account a, account a where",
        "select id from account for xml auto",
    ] {
        refusal(sql);
    }
}

#[test]
fn a_text_over_64_kib_is_refused() {
    let sql = format!("select '{}'", "x".repeat(65 << 10));
    assert_eq!(refusal(&sql).name(), "query text");
    let most = format!("select '{}'", "x".repeat((64 << 10) - 9));
    assert_eq!(most.len(), 64 << 10);
    super::rewritten(&most);
}

#[test]
fn names_that_postgresql_would_cut_are_refused() {
    let name = "a".repeat(64);
    refuses(&[(&format!("select 1 as {name}"), "name"), (r#"select 1 as """#, "name")]);
}

#[test]
fn subqueries_that_double_at_every_level_are_refused() {
    let mut sql = "select actor as x from audit_event".to_owned();
    for _ in 0..30 {
        sql = format!("select x || x as x from ({sql}) s");
    }
    assert_eq!(refusal(&sql).name(), "nesting");
    let chain: Vec<String> =
        (1..30).map(|n| format!("t{n} as (select x || x as x from t{})", n - 1)).collect();
    let chain = chain.join(", ");
    let sql =
        format!("with t0 as (select actor as x from audit_event), {chain} select t29.x from t29");
    assert_eq!(refusal(&sql).name(), "nesting");
    super::rewritten(&sql.replace(" as (", " as materialized ("));
}

#[test]
fn operators_that_postgresql_would_read_otherwise_need_brackets() {
    let operators = "operators without brackets";
    refuses(&[
        ("select - 1 ^ 2", operators),
        ("select 'a' ~ 'b' || 'c'", operators),
        ("select 'a' like 'b' ~ 'c'", operators),
        ("select 1 = 1 = true", operators),
        ("select null is null is null", operators),
        ("select not exists (select 1) = true", operators),
    ]);
    for sql in [
        "select (- 1) ^ 2",
        "select ('a' ~ 'b') || 'c'",
        "select not 1 = 2 and 2 ^ - 1 < 3 or not not true",
    ] {
        super::rewritten(sql);
    }
}
