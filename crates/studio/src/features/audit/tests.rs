//! The plans of the trail's statements, on a real database.

use std::time::Duration;

use testkit::TestDatabase;
use tokio_postgres::Client;

use super::filter::{CHUNK, COUNT, Filter, FilterParameters, PAGE, PLAN, Statements};
use crate::platform::schema;
use crate::settings::Settings;

const ROWS: i64 = 60_000;

async fn database() -> Client {
    let (studio, limits) = (TestDatabase::empty().await, TestDatabase::empty().await);
    let app = |database: &TestDatabase| format!("{}?application_name=app", database.url());
    let mut settings = Settings::default();
    settings.database.url = app(&studio).replace("//postgres", "//studio_app");
    settings.database.limits_url = app(&limits).replace("//postgres", "//studio_app");
    settings.database.migration_url = Some(studio.url());
    schema::migrate(&settings).await.unwrap();
    let client = studio.client().await;
    client.execute(include_str!("tests/events.sql"), &[&ROWS]).await.unwrap();
    client.batch_execute("vacuum analyze studio.audit_event").await.unwrap();
    client
}

/// Every set of filters, with values that are common, rare and absent.
fn filters() -> Vec<Filter> {
    let mut filters = Vec::new();
    for actor in [None, Some("actor-1"), Some("rare"), Some("nobody")] {
        for action in [None, Some("action-1"), Some("none")] {
            for outcome in [None, Some("complete"), Some("interrupted")] {
                let [actor, action, outcome] =
                    [actor, action, outcome].map(|value| value.map(ToOwned::to_owned));
                let parameters = FilterParameters { from: None, to: None, actor, action, outcome };
                filters.push(Filter::parse(parameters).unwrap());
            }
        }
    }
    filters
}

async fn plan(client: &Client, statement: &str, types: &str, values: &str) -> String {
    client
        .batch_execute(&format!("deallocate all; prepare it ({types}) as {statement}"))
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    let rows = client.simple_query(&format!("explain execute it ({values})")).await.unwrap();
    rows.iter()
        .filter_map(|message| {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                row.get(0)
            } else {
                None
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn every_statement_of_the_trail_follows_an_index() {
    let client = tokio::time::timeout(Duration::from_mins(2), database()).await.unwrap();
    client.batch_execute(&PLAN.replace("set local", "set")).await.unwrap();
    // In the middle of the trail: what follows is as long as what precedes.
    let middle =
        format!("'2026-01-01'::timestamptz + {} * interval '1 second', {}", ROWS / 2, ROWS / 2);
    for filter in filters() {
        let [actor, action, outcome] = filter.values();
        let texts = format!("'{actor}', '{action}', '{outcome}'");
        let types = |first: &str| format!("{first}, text, text, text");
        let cases: [(&str, &Statements, String, String); 3] = [
            (
                "page",
                &PAGE,
                types("timestamptz, int8, timestamptz, int8, int8"),
                format!("{middle}, '-infinity', 0, 501, {texts}"),
            ),
            (
                "count",
                &COUNT,
                types("timestamptz, timestamptz, int8, int8, int8"),
                format!("'infinity', '-infinity', 10001, 0, 0, {texts}"),
            ),
            (
                "chunk",
                &CHUNK,
                types("timestamptz, int8, timestamptz, text, int8") + ", text",
                format!("{middle}, 'infinity', '9999999', 1000, {texts}, '9999999'"),
            ),
        ];
        for (name, statements, types, values) in cases {
            let plan = plan(&client, statements.of(&filter), &types, &values).await;
            let follows = plan.contains("Index Scan") || plan.contains("Index Only Scan");
            let reads_all = plan.contains("Seq Scan") || plan.contains("Sort");
            assert!(follows && !reads_all, "{name} {filter:?}:\n{plan}");
            // A value that is rare or absent is found by its own index, not by reading past all the others.
            let by_actor = plan.contains("audit_event_actor_idx");
            let is_rare = actor == "rare" || actor == "nobody";
            assert!(
                by_actor || !is_rare || action == "none" || outcome == "interrupted",
                "{name} {filter:?}:\n{plan}"
            );
        }
    }
}
