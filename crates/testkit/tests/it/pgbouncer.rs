use testkit::{PgBouncer, TestDatabase};
use tokio_postgres::{Client, NoTls, error::SqlState};

async fn connect(pgbouncer: &PgBouncer) -> Client {
    let (client, connection) = pgbouncer.config().connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn unnamed_statements_pass_pgbouncer_and_leave_no_trace_of_a_name() {
    let database = TestDatabase::empty().await;
    let pgbouncer = PgBouncer::before(&database.tcp_config(), database.name()).await;
    let client = connect(&pgbouncer).await;
    let row = client.query_typed("select current_database()", &[]).await.unwrap();
    assert_eq!(row[0].get::<_, String>(0), database.name());
    assert_eq!(pgbouncer.named_statements(), []);
    // PgBouncer 1.18 logs that there was a Parse (and how long it was), which says nothing of a
    // name: the log alone could not tell this test from the next one.
    pgbouncer.front().cut().await;
    testkit::wait_until("the log", std::time::Duration::from_mins(1), || async {
        pgbouncer.log().contains("read pkt='P' len=")
    })
    .await;
}

/// The positive control: what is looked for above is seen when it is there, and breaks.
#[tokio::test]
async fn a_named_statement_is_seen_and_is_lost_on_another_session_of_the_server() {
    let database = TestDatabase::empty().await;
    let pgbouncer = PgBouncer::before(&database.tcp_config(), database.name()).await;
    let (client, other) = (connect(&pgbouncer).await, connect(&pgbouncer).await);
    let statement = client.prepare("select 42").await.unwrap();
    let named = pgbouncer.named_statements();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].query, "select 42");
    assert!(!pgbouncer.log().contains("select 42"), "the log shows no statements");
    // The only session of the server so far is taken, so that the statement meets a new one.
    other.batch_execute("begin").await.unwrap();
    let error = client.query(&statement, &[]).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
}

#[tokio::test]
async fn a_role_keeps_its_identity_through_pgbouncer_in_any_database() {
    let (database, other) = (TestDatabase::empty().await, TestDatabase::empty().await);
    let create = "create role through_pgbouncer login password 'it\"s secret'";
    database.client().await.batch_execute(create).await.unwrap();
    let roles = [("through_pgbouncer", "it\"s secret")];
    let pgbouncer =
        PgBouncer::before_with_roles(&database.tcp_config(), database.name(), &roles).await;
    let mut config = pgbouncer.config();
    for (user, name) in [("through_pgbouncer", other.name()), ("postgres", database.name())] {
        let (client, connection) = config.user(user).dbname(name).connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        let who = "select current_user::text, current_database()::text";
        let row = client.query_typed(who, &[]).await.unwrap();
        assert_eq!((row[0].get::<_, &str>(0), row[0].get::<_, &str>(1)), (user, name));
    }
}
