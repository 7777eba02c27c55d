//! The shape of answers and problems.

use serde_json::{Value, json};

use super::{ask, bed};

#[tokio::test]
async fn values_are_text_with_all_their_digits_and_null_is_null() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let (status, answer) = ask(&browser, "select 9223372036854775807 as big, 0.1::float8 + 0.2::float8 as float, null as nothing, \
             timestamptz '2026-01-02 03:04:05.123456+02' as at, 'a\"\\b' || chr(10) || chr(128512) as text, \
             '{\"a\": 1}'::jsonb as document, '\\x00ff'::bytea as bytes, array[1, null] as list",
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["columns"],
        json!([
            {"name": "big", "type": "int8"},
            {"name": "float", "type": "float8"},
            {"name": "nothing", "type": "text"},
            {"name": "at", "type": "timestamptz"},
            {"name": "text", "type": "text"},
            {"name": "document", "type": "jsonb"},
            {"name": "bytes", "type": "bytea"},
            {"name": "list", "type": "_int4"},
        ])
    );
    assert_eq!(
        answer["rows"],
        json!([[
            "9223372036854775807",
            "0.30000000000000004",
            null,
            "2026-01-02 01:04:05.123456+00",
            "a\"\\b\n😀",
            "{\"a\": 1}",
            "\\x00ff",
            "{1,NULL}"
        ]])
    );
    assert_eq!(answer["rowCount"], 1);
    assert_eq!(answer["complete"], true);
    assert_eq!(answer["bound"], Value::Null);
    assert_eq!(answer["limits"]["rows"], 10_000);
}

#[tokio::test]
async fn columns_may_be_many_unnamed_of_one_name_or_none() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let names = |answer: &Value| {
        answer["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (_, answer) = ask(&browser, "select 1 as a, 2 as a, 3, 4 as \"c1\", 5 as octets").await;
    assert_eq!(names(&answer), ["a", "a", "?column?", "c1", "octets"]);
    assert_eq!(answer["rows"], json!([["1", "2", "3", "4", "5"]]));

    let (_, answer) = ask(&browser, "select from (values (1), (2)) v").await;
    assert_eq!((names(&answer).len(), &answer["rows"]), (0, &json!([[], []])));

    let (_, answer) = ask(&browser, "select").await;
    assert_eq!(answer["rows"], json!([[]]));

    let (status, answer) = ask(&browser, &format!("select {}1", "1,".repeat(1_599))).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(names(&answer).len(), 1_600);

    let (status, answer) = ask(&browser, &format!("select {}1", "1,".repeat(1_600))).await;
    assert_eq!((status.as_u16(), &answer["type"]), (400, &"/problems/invalid-sql".into()));
    assert!(answer["detail"].as_str().unwrap().contains("1601 columns"), "{answer}");
}

#[tokio::test]
async fn order_and_volatile_values_are_those_of_the_query() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let (_, answer) = ask(
        &browser,
        "select v.a from (values (3), (1), (2)) as v (a) order by v.a desc limit 2 offset 1",
    )
    .await;
    assert_eq!(answer["rows"], json!([["2"], ["1"]]));
    // Computed once, although the bounds look at it several times.
    let (_, answer) =
        ask(&browser, "select s.t = s.t as same from (select clock_timestamp() as t limit 1) s")
            .await;
    assert_eq!(answer["rows"], json!([["true"]]));
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_said_to_its_author() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("operator").await;
    for (sql, member, value, detail) in [
        ("select 1 / 0 from audit_event", "sqlstate", "22012", "division by zero"),
        ("select nothing", "sqlstate", "42703", "column \"nothing\" does not exist"),
        (
            "select lower(1)",
            "sqlstate",
            "42883",
            "function pg_catalog.lower(integer) does not exist",
        ),
        ("select (select * from (values (1), (2)) v)", "sqlstate", "21000", "more than one row"),
        ("select 'x'::int", "sqlstate", "22P02", "invalid input syntax"),
        ("selec 1", "construct", "SELEC", "SELEC is not allowed"),
        ("select 1 from", "construct", "syntax", "does not parse"),
        ("delete from audit_event", "construct", "DELETE", "DELETE is not allowed"),
        ("select pg_sleep(1)", "construct", "function pg_sleep", "Function pg_sleep"),
        ("select * from pg_class", "construct", "relation pg_class", "pg_class is not one of"),
    ] {
        let (status, answer) = ask(&browser, sql).await;
        assert_eq!(status, 400, "{sql}: {answer}");
        assert_eq!(answer["type"], "/problems/invalid-sql", "{sql}");
        assert_eq!(answer[member], value, "{sql}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{sql}: {answer}");
        assert!(answer["requestId"].is_string());
    }
    let (status, answer) = ask(&browser, &format!("select '{}'", "x".repeat(65 << 10))).await;
    assert_eq!((status.as_u16(), &answer["construct"]), (400, &"query text".into()));
}

#[tokio::test]
async fn the_trail_has_a_row_for_each_query_that_ran_with_its_outcome() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("operator").await;
    for sql in [
        "select 1",
        "select 1 / 0 from audit_event",
        "with recursive n(i) as (select 1 union all select n.i + 1 from n where n.i < 20000) select n.i from n",
        "select pg_sleep(1)",
    ] {
        ask(&browser, sql).await;
    }
    let client = bed.client().await;
    let rows = client
        .query(
            "select outcome, bound, row_count from studio.audit_event where action = 'sql.query' order by id",
            &[],
        )
        .await
        .unwrap();
    let outcomes: Vec<(String, Option<String>, i64)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert_eq!(
        outcomes,
        [
            ("complete".to_owned(), None, 1),
            ("failed".to_owned(), Some("invalid-sql".to_owned()), 0),
            ("partial".to_owned(), Some("ROWS".to_owned()), 10_000),
        ],
        "what the check refused did not run and is not in the trail"
    );
}
