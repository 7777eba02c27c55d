//! Each bound, and that it is named.

use serde_json::{Value, json};
use testkit::wait_until;

use super::{ENDLESS, ask, bed, long_text, question};
use crate::bed::PATIENCE;

#[tokio::test]
async fn rows_beyond_the_bound_are_not_sent_and_the_bound_is_named() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let numbers = |last: u32| {
        format!(
            "with recursive n(i) as (select 1 union all select n.i + 1 from n where n.i < {last}) select n.i from n"
        )
    };
    let (_, answer) = ask(&browser, &numbers(10_000)).await;
    assert_eq!((&answer["rowCount"], &answer["bound"]), (&json!(10_000), &Value::Null));
    assert_eq!(answer["complete"], true);
    let (_, answer) = ask(&browser, &numbers(10_001)).await;
    assert_eq!((&answer["rowCount"], &answer["bound"]), (&json!(10_000), &json!("ROWS")));
    assert_eq!(answer["complete"], false);
    assert_eq!(answer["rows"].as_array().unwrap().len(), 10_000);
}

#[tokio::test]
async fn long_values_and_rows_are_cut_and_named() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let (_, answer) =
        ask(&browser, &format!("{} select d.x, 1, d.x || d.x from d", long_text())).await;
    assert_eq!((&answer["bound"], &answer["complete"]), (&json!("CELL"), &json!(false)));
    assert_eq!(answer["cutCells"], json!({"count": 1, "first": [{"row": 0, "column": 2}]}));
    let row = &answer["rows"][0];
    assert_eq!(row[0].as_str().unwrap().len(), 900_000, "the short one is whole");
    assert_eq!(row[2].as_str().unwrap().len(), 1 << 20, "the long one has as much as fits");

    // Characters of four bytes are never cut in their middle, and the bytes hold.
    let (_, answer) =
        ask(&browser, &format!("{} select replace(d.x, 'xxx', chr(128512)) from d", long_text()))
            .await;
    let text = answer["rows"][0][0].as_str().unwrap();
    assert!(text.len() <= 1 << 20 && text.chars().all(|c| c == '\u{1f600}'), "{}", text.len());

    // Eight values of 1 MB are all that a row may have: of twenty, each gets its part.
    let columns = vec!["d.x"; 20].join(", ");
    let (_, answer) = ask(&browser, &format!("{} select {columns} from d", long_text())).await;
    assert_eq!(answer["cutCells"]["count"], 20);
    assert_eq!(answer["rows"][0][19].as_str().unwrap().len(), (8 << 20) / 20);
}

#[tokio::test]
async fn an_answer_over_32_mib_ends_at_the_row_before_and_says_so() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let sql = format!("{} select d.x from d, n", long_text());
    let response = question(&browser, &sql).send().await.unwrap();
    let body = response.bytes().await.unwrap();
    assert!(body.len() <= 32 << 20, "{}", body.len());
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["bound"], "BYTES");
    assert_eq!(answer["rowCount"], 37);
}

#[tokio::test]
async fn a_query_that_spills_too_much_is_a_problem_of_its_own() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    let sql = format!(
        "{}, m as materialized (select d.x, n.i from d, n) select count(*) from m",
        long_text()
    );
    let (status, answer) = ask(&browser, &sql).await;
    assert_eq!(
        (status.as_u16(), &answer["type"]),
        (422, &json!("/problems/query-too-large")),
        "{answer}"
    );
}

#[tokio::test]
async fn a_query_at_its_time_bound_is_stopped_and_named() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    // Side by side: one has no row when it is stopped, the other some long ones.
    let rows = format!(
        "{} select c.x, (select count(*) from n a, (select n.i from n where n.i <= 1000) b where a.i + b.i > n.i) \
         from c, n",
        long_text()
    );
    let (empty, some) = tokio::join!(ask(&browser, ENDLESS), ask(&browser, &rows));
    let (status, answer) = empty;
    assert_eq!(status, 503, "{answer}");
    assert_eq!(answer["type"], "/problems/heavy-request-timed-out");
    assert_eq!(
        (&answer["endpoint"], &answer["timeBoundSeconds"]),
        (&json!("sql_console"), &json!(30))
    );
    let (status, answer) = some;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["bound"], &answer["complete"]), (&json!("TIME"), &json!(false)));
    let client = bed.client().await;
    wait_until("both queries to end in the database", PATIENCE, || async {
        let active = "select count(*) from pg_stat_activity where datname = $1 and usename like 'studio_console_%'";
        client.query_one(active, &[&bed.studio.name()]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
}

#[tokio::test]
async fn a_third_query_of_a_user_is_refused_on_either_replica() {
    let bed = bed().await;
    let (one, two) = (bed.replica().await, bed.replica().await);
    let browser = one.sign_in("operator").await;
    let there = browser.at(&two);
    let running = [
        tokio::spawn(question(&browser, ENDLESS).send()),
        tokio::spawn(question(&there, ENDLESS).send()),
    ];
    let limits = bed.limits.client().await;
    wait_until("two live permits of the user", PATIENCE, || async {
        let live = "select count(distinct permit) from limits.live_permit";
        let live: i64 = limits.query_one(live, &[]).await.unwrap().get(0);
        live == 2
    })
    .await;
    for third in [&browser, &there] {
        let response = question(third, "select 1").send().await.unwrap();
        assert_eq!(response.status(), 429);
        assert!(response.headers().contains_key("retry-after"));
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["type"], "/problems/too-many-heavy-requests");
        assert_eq!((&answer["endpoint"], &answer["limit"]), (&json!("sql_console"), &json!(2)));
        assert_eq!(answer["scope"], "user");
    }
    // Somebody else is not affected.
    let other = two.sign_in("administrator").await;
    assert_eq!(ask(&other, "select 1").await.0, 200);
    for request in running {
        request.abort();
    }
}
