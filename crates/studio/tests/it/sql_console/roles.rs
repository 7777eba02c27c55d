//! What the login roles can do when nothing checks their SQL.

use studio::features::sql_console::catalogue::VIEWS;
use studio::features::sql_console::console_roles::{ConsoleRole, set_up, verify};
use studio::platform::access::Role;

use super::{ask, bed, login, login_role, session};

fn roles() -> Vec<ConsoleRole> {
    Role::ALL
        .into_iter()
        .map(|role| ConsoleRole { role, login: login_role(role), password: None })
        .collect()
}

/// Calls that a read-only transaction still allows to anybody, and more.
const DANGEROUS: &[&str] = &[
    "select lo_creat(-1)",
    "select lo_create(0)",
    "select lo_from_bytea(0, 'x')",
    "select lo_put(1, 0, 'x')",
    "select lo_open(1, 393216)",
    "select lowrite(0, 'x')",
    "select lo_truncate(0, 0)",
    "select lo_unlink(1)",
    "select lo_import('/etc/passwd')",
    "select lo_export(1, '/tmp/x')",
    "select lo_get(1)",
    "select pg_notify('studio', 'forged')",
    "select pg_advisory_lock(1)",
    "select pg_advisory_xact_lock(1)",
    "select pg_try_advisory_lock(1, 2)",
    "select pg_try_advisory_xact_lock_shared(1)",
    "select pg_advisory_unlock_all()",
    "select pg_sleep(100)",
    "select pg_sleep_for('1 hour')",
    "select pg_sleep_until('infinity')",
    "select pg_terminate_backend(1)",
    "select pg_cancel_backend(1)",
    "select pg_log_backend_memory_contexts(1)",
    "select set_config('role', 'studio_app', false)",
    "select query_to_xml('select 1', true, true, '')",
    "select query_to_xml_and_xmlschema('select 1', true, true, '')",
    "select table_to_xml('pg_class', true, true, '')",
    "select schema_to_xml('studio', true, true, '')",
    "select database_to_xml(true, true, '')",
    "select cursor_to_xml('c', 1, true, true, '')",
    "select ts_stat('select 1')",
    "select ts_rewrite('a'::tsquery, 'select 1')",
    "select nextval('studio.audit_event_id_seq')",
    "select setval('studio.audit_event_id_seq', 1)",
    "select pg_export_snapshot()",
    "select pg_current_xact_id()",
    "select txid_current()",
    "select pg_logical_emit_message(false, 'a', 'b')",
    "select pg_switch_wal()",
    "select pg_create_restore_point('a')",
    "select pg_create_physical_replication_slot('a')",
    "select pg_stat_reset()",
    "select pg_stat_clear_snapshot()",
    "select * from pg_stat_activity",
    "select pg_stat_get_backend_activity(1)",
    "select pg_read_file('/etc/passwd')",
    "select pg_read_binary_file('/etc/passwd')",
    "select pg_ls_dir('.')",
    "select pg_stat_file('/etc/passwd')",
    "select pg_reload_conf()",
    "select pg_rotate_logfile()",
    "select pg_promote()",
    "set role studio_app",
    "set session authorization postgres",
    "create temporary table t (a int)",
    "create table t (a int)",
    "create table console.t (a int)",
    "create table public.t (a int)",
    "create schema s",
    "create function f() returns int language sql as 'select 1'",
    "do $$ begin perform 1; end $$",
    "copy (select 1) to '/tmp/x'",
    "copy (select 1) to program 'true'",
    "select * from studio.session",
    "select * from studio.account",
    "select password_hash from studio.account",
    "select * from studio.audit_event",
    "insert into studio.audit_event (actor, action, target, detail) values ('', '', '', '{}')",
    "delete from console.account",
    "update console.account set role = 'administrator'",
    "truncate studio.audit_event",
    "begin; lock table console.audit_event in access exclusive mode",
    "select * from pg_authid",
    "select * from pg_largeobject",
    "alter role current_user superuser",
    "alter role studio_console_viewer set temp_file_limit = -1",
    "set temp_file_limit = -1",
    "grant studio_app to studio_console_viewer",
    "checkpoint",
];

#[tokio::test]
async fn each_dangerous_call_under_each_role_is_refused() {
    let bed = bed().await;
    for role in Role::ALL {
        let user = login_role(role);
        let client = session(&bed.studio, &user).await;
        // As an attacker would who has got around the check: a transaction that may write.
        client.batch_execute("set default_transaction_read_only = off").await.unwrap();
        for sql in DANGEROUS {
            let error = client.batch_execute(sql).await.expect_err(sql);
            client.batch_execute("rollback").await.unwrap();
            let refused = error.code().map(|code| code.code().to_owned());
            // Insufficient privilege; a setting, a role or a rule that says the same; no such relation or
            // schema, where one may not even be looked up.
            let codes = ["42501", "42809", "55000", "42704", "0LP01"];
            assert!(
                refused.as_deref().is_some_and(|code| codes.contains(&code)),
                "{user}: {sql}: {error:?}"
            );
        }
        let (user_now, locks): (String, i64) = {
            let row = client
                .query_one(
                    "select current_user::text, (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())",
                    &[],
                )
                .await
                .unwrap();
            (row.get(0), row.get(1))
        };
        assert_eq!((user_now.as_str(), locks), (user.as_str(), 0));
    }
    let client = bed.client().await;
    let objects: i64 =
        client.query_one("select count(*) from pg_largeobject_metadata", &[]).await.unwrap().get(0);
    assert_eq!(objects, 0);
}

#[tokio::test]
async fn a_session_begins_read_only_and_bounded() {
    let bed = bed().await;
    for role in Role::ALL {
        let client = session(&bed.studio, &login_role(role)).await;
        for (setting, value) in [
            ("default_transaction_read_only", "on"),
            ("search_path", "console"),
            ("temp_file_limit", "256MB"),
            ("work_mem", "8MB"),
            ("jit", "off"),
            ("max_parallel_workers_per_gather", "0"),
            ("statement_timeout", "31s"),
            ("lock_timeout", "1s"),
            ("idle_in_transaction_session_timeout", "10s"),
        ] {
            let row = client.query_one(&format!("show {setting}"), &[]).await.unwrap();
            assert_eq!(row.get::<_, String>(0), value, "{setting}");
        }
    }
}

#[tokio::test]
async fn each_role_reads_its_own_views_and_no_other_relation() {
    let bed = bed().await;
    for role in Role::ALL {
        let client = session(&bed.studio, &login_role(role)).await;
        for view in VIEWS {
            let read = client.query(&format!("select * from console.{}", view.name), &[]).await;
            assert_eq!(read.is_ok(), view.is_readable_by(role), "{role:?} and {}", view.name);
        }
        let others: i64 = client
            .query_one(
                "select count(*) from pg_class join pg_namespace on pg_namespace.oid = relnamespace
                 where nspname not in ('pg_catalog', 'information_schema', 'console', 'pg_toast')
                   and relkind in ('r', 'p', 'v', 'm', 'f') and has_table_privilege(pg_class.oid, 'select')",
                &[],
            )
            .await
            .unwrap()
            .get(0);
        assert_eq!(others, 0, "{role:?}");
    }
}

#[tokio::test]
async fn no_console_role_enters_the_database_of_the_limits() {
    let bed = bed().await;
    for role in Role::ALL {
        let user = login_role(role);
        let refused = login(&bed.limits, &user).connect(tokio_postgres::NoTls).await;
        let error = refused.err().expect("it may not connect");
        assert_eq!(
            error.code().map(tokio_postgres::error::SqlState::code),
            Some("42501"),
            "{user}: {error:?}"
        );
    }
}

#[tokio::test]
async fn verify_finds_nothing_after_the_set_up_and_each_thing_that_is_undone() {
    let bed = bed().await;
    let owner = bed.client().await;
    // As the role that serves, which asks before it opens the console.
    let app = session(&bed.studio, "studio_app").await;
    let blocking = || async {
        let findings = verify(&app, &roles()).await.unwrap();
        findings
            .into_iter()
            .filter(|finding| finding.is_blocking)
            .map(|finding| finding.sentence)
            .collect::<Vec<_>>()
    };
    assert_eq!(blocking().await, Vec::<String>::new());
    for (undo, mend, sentence) in [
        (
            "grant execute on function pg_sleep(float8) to public",
            "revoke execute on function pg_sleep(float8) from public",
            "The role studio_console_viewer may call pg_sleep(double precision).",
        ),
        (
            "grant usage on schema studio to studio_console_viewer",
            "revoke usage on schema studio from studio_console_viewer",
            "The role studio_console_viewer may use the schema studio.",
        ),
        (
            "grant select on studio.account to studio_console_viewer",
            "revoke select on studio.account from studio_console_viewer",
            "The role studio_console_viewer has a privilege on studio.account.",
        ),
        (
            "grant update (role) on console.account to studio_console_viewer",
            "revoke update (role) on console.account from studio_console_viewer",
            "The role studio_console_viewer has a privilege on console.account.",
        ),
        (
            "revoke select on console.audit_event from studio_console_operator",
            "grant select on console.audit_event to studio_console_operator",
            "The role studio_console_operator may not read the view audit_event: run `studio migrate`.",
        ),
    ] {
        owner.batch_execute(undo).await.unwrap();
        let found = blocking().await;
        owner.batch_execute(mend).await.unwrap();
        assert!(found.iter().any(|found| found.contains(sentence)), "{undo}: {found:?}");
    }
    assert_eq!(blocking().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_owner_that_is_no_superuser_gets_a_set_up_that_verify_does_not_pass() {
    let bed = bed().await;
    // A database of its own, because what was revoked in this one stays revoked.
    let other = testkit::TestDatabase::empty().await;
    let superuser = other.client().await;
    superuser
        .batch_execute(&format!(
            "create role modest login createrole; alter database \"{}\" owner to modest",
            other.name()
        ))
        .await
        .unwrap();
    let mut owner = other.config();
    owner.user("modest");
    let (owner, connection) = owner.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    // The views alone, over nothing: this test is about what surrounds them.
    for view in VIEWS {
        let columns: Vec<String> = view
            .columns
            .iter()
            .map(|column| format!("null::{} as {}", column.data_type, column.name))
            .collect();
        let view = format!("create view console.{} as select {}", view.name, columns.join(", "));
        owner.batch_execute(&format!("create schema if not exists console; {view}")).await.unwrap();
    }
    let modest: Vec<ConsoleRole> = roles()
        .into_iter()
        .map(|role| ConsoleRole { login: format!("modest_{}", role.role.name()), ..role })
        .collect();
    set_up(&owner, &modest, "studio_app", &[]).await.unwrap();
    let findings = verify(&owner, &modest).await.unwrap();
    let blocking: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.is_blocking)
        .map(|finding| finding.sentence.as_str())
        .collect();
    for expected in [
        "The role modest_viewer may call pg_notify(text,text).",
        "The role modest_viewer lacks the setting temp_file_limit=256MB.",
    ] {
        assert!(blocking.contains(&expected), "{expected}: {blocking:?}");
    }
    assert!(!blocking.iter().any(|sentence| sentence.contains("does not exist")), "{blocking:?}");
    drop(bed);
}

#[tokio::test]
async fn the_console_stays_off_while_the_set_up_does_not_hold_unless_that_is_accepted() {
    let bed = bed().await;
    let owner = bed.client().await;
    owner.batch_execute("grant execute on function pg_sleep(float8) to public").await.unwrap();
    let careful = bed.replica().await;
    let browser = careful.sign_in("viewer").await;
    let (status, answer) = ask(&browser, "select 1").await;
    assert_eq!((status.as_u16(), &answer["type"]), (503, &"/problems/console-off".into()));

    let bold = bed.replica_with(&[("STUDIO_CONSOLE_ACCEPT_AST_CHECK_ALONE", "true")]).await;
    let (status, answer) = ask(&browser.at(&bold), "select 1").await;
    assert_eq!(status, 200, "{answer}");

    owner.batch_execute("revoke execute on function pg_sleep(float8) from public").await.unwrap();
    let (status, answer) = ask(&browser, "select 1").await;
    assert_eq!(status, 200, "mended at once: {answer}");
}
