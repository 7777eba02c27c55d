//! The SQL console, from the outside and from under its login roles.

mod answers;
mod bounds;
mod departures;
mod meaning;
mod memory;
mod roles;
mod views;

use http::StatusCode;
use serde_json::{Value, json};
use studio::platform::access::Role;
use testkit::TestDatabase;
use tokio_postgres::{Client, Config, NoTls};

use crate::bed::{Bed, ROLE_PASSWORD, Session, answer};

/// Runs for hours, in little memory, and gives one row at its end.
pub(crate) const ENDLESS: &str = "with recursive n(i) as materialized \
     (select 1 union all select n.i + 1 from n where n.i < 3000) \
     select sum((select count(*) from n b, n c where b.i + c.i > a.i)) from n a";

/// `with … d as …, n as …`: a text of 900,000 characters named `x`, and the numbers to 10,000 named `i`.
fn long_text() -> String {
    let ten = ["x"; 10].join("||");
    format!(
        "with recursive a as materialized (select '{}' as x), b as materialized (select {ten} as x from a), \
         c as materialized (select {ten} as x from b), d as materialized (select {ten} as x from c), \
         n(i) as (select 1 union all select n.i + 1 from n where n.i < 10000) ",
        "x".repeat(900)
    )
}

/// A migrated installation with an account for each role, named after it.
async fn bed() -> Bed {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed
}

/// The login role that queries of a Studio role run under.
fn login_role(role: Role) -> String {
    format!("studio_console_{}", role.name())
}

/// A login role's way into a database.
fn login(database: &TestDatabase, user: &str) -> Config {
    let mut config = database.tcp_config();
    config.user(user).password(ROLE_PASSWORD);
    config
}

/// A session of a login role, with nothing in between.
async fn session(database: &TestDatabase, user: &str) -> Client {
    let (client, connection) = login(database, user).connect(NoTls).await.expect("it may log in");
    tokio::spawn(connection);
    client
}

/// Asks the console, without waiting for the answer.
pub(crate) fn question(browser: &Session, sql: &str) -> reqwest::RequestBuilder {
    browser.request(http::Method::POST, "/api/v1/sql/query").json(&json!({ "sql": sql }))
}

/// Asks the console.
async fn ask(browser: &Session, sql: &str) -> (StatusCode, Value) {
    let answer = answer(question(browser, sql)).await;
    (answer.status, answer.json())
}
