//! The views show the columns of their list, and nothing that is secret.

use serde_json::{Value, json};
use studio::features::sql_console::catalogue::VIEWS;
use studio::platform::access::{Permission, Role};
use testkit::wait_until;

use super::{ENDLESS, ask, bed, question};
use crate::bed::PATIENCE;

#[tokio::test]
async fn every_view_has_the_columns_of_the_list_and_the_schema_has_no_other() {
    let bed = bed().await;
    let client = bed.client().await;
    let rows = client
        .query(
            "select class.relname, attribute.attname, format_type(attribute.atttypid, attribute.atttypmod)
             from pg_class as class
             join pg_attribute as attribute on attribute.attrelid = class.oid and attribute.attnum > 0
             where class.relnamespace = 'console'::regnamespace
             order by class.relname, attribute.attnum",
            &[],
        )
        .await
        .unwrap();
    let found: Vec<(String, String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let listed: Vec<(String, String, String)> = VIEWS
        .iter()
        .flat_map(|view| view.columns.iter().map(|column| (view.name, column)))
        .map(|(view, column)| {
            (view.to_owned(), column.name.to_owned(), column.data_type.to_owned())
        })
        .collect();
    assert_eq!(found, listed);
    for (view, column, _) in &found {
        let secret = ["password", "secret", "hash", "token", "session", "credential", "key"];
        assert!(!secret.iter().any(|word| column.contains(word)), "{view}.{column}");
    }
    let open: i64 = client
        .query_one(
            "select count(*) from pg_class where relnamespace = 'console'::regnamespace
             and not coalesce('security_barrier=true' = any (reloptions), false)",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(open, 0, "every relation of the schema is a security barrier");
}

#[tokio::test]
async fn each_role_reads_its_own_views_and_each_refusal_names_the_view() {
    let bed = bed().await;
    let replica = bed.replica().await;
    for role in Role::ALL {
        let browser = replica.sign_in(role.name()).await;
        let catalogue = browser.get("/api/v1/sql/catalogue").await.json();
        let shown: Vec<&str> = catalogue["views"]
            .as_array()
            .unwrap()
            .iter()
            .map(|view| view["name"].as_str().unwrap())
            .collect();
        for view in VIEWS {
            let may = view.is_readable_by(role);
            assert_eq!(
                shown.contains(&view.name),
                may,
                "{} in the catalogue of {role:?}",
                view.name
            );
            for sql in [
                format!("select * from {} limit 1", view.name),
                format!("select 1 where exists (select 1 from console.{})", view.name),
                format!("with x as (select count(*) from {}) select * from x", view.name),
            ] {
                let (status, answer) = ask(&browser, &sql).await;
                if may {
                    assert_eq!(status, 200, "{role:?}: {sql}: {answer}");
                } else {
                    assert_eq!(status, 403, "{role:?}: {sql}: {answer}");
                    assert_eq!(answer["type"], "/problems/forbidden");
                    assert_eq!(answer["view"], view.name);
                }
            }
        }
    }
}

#[tokio::test]
async fn the_same_denial_holds_over_rest_and_through_sql() {
    let bed = bed().await;
    let replica = bed.replica().await;
    for role in Role::ALL {
        let browser = replica.sign_in(role.name()).await;
        let rest = browser.get("/api/v1/audit?size=1").await.status;
        let (sql, _) = ask(&browser, "select id from audit_event limit 1").await;
        assert_eq!(rest, sql, "{role:?}");
    }
}

#[tokio::test]
async fn the_text_of_a_query_is_kept_in_the_trail_and_shown_in_no_view() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("administrator").await;
    ask(&browser, "select 'a very private remark'").await;
    let (_, answer) = ask(&browser, "select detail, outcome, row_count from audit_event where action = 'sql.query' order by id limit 1")
        .await;
    assert_eq!(answer["rows"], json!([[Value::Null, "complete", "1"]]));
    let (_, answer) = ask(
        &browser,
        "select count(*) from audit_event where detail::text like '%private remark%'",
    )
    .await;
    assert_eq!(answer["rows"], json!([["0"]]));
    let client = bed.client().await;
    let kept: String = client
        .query_one(
            "select detail ->> 'sql' from studio.audit_event where action = 'sql.query' order by id limit 1",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(kept, "select 'a very private remark'");
}

#[tokio::test]
async fn a_tokens_query_runs_under_the_weakest_login_that_reads_its_views() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.name()).collect();
    let program = replica.with_token(&bed.token("administrator", &all).await);
    let client = bed.client().await;
    for (view, login) in [
        (None, "studio_console_viewer"),
        (Some("audit_event"), "studio_console_operator"),
        (Some("account"), "studio_console_administrator"),
    ] {
        let sql = view.map_or_else(
            || ENDLESS.to_owned(),
            |view| format!("{ENDLESS} where exists (select 1 from {view} limit 1)"),
        );
        let request = tokio::spawn(question(&program, &sql).send());
        wait_until("the query to run under its login", PATIENCE, async || {
            let row = client
                .query_one(
                    "select count(*) from pg_stat_activity where datname = current_database() \
                     and state = 'active' and usename = $1",
                    &[&login],
                )
                .await;
            row.unwrap().get::<_, i64>(0) == 1
        })
        .await;
        request.abort();
    }
}
