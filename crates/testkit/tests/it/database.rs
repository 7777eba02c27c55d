use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::{Built, CuttingProxy, TestDatabase};
use tokio_postgres::{Config, NoTls};

static BUILT: AtomicUsize = AtomicUsize::new(0);

async fn build(config: Config) -> Built {
    BUILT.fetch_add(1, Ordering::SeqCst);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("create table orders (id bigint primary key)").await?;
    Ok(())
}

async fn orders(database: &TestDatabase) -> i64 {
    let client = database.client().await;
    client.query_one("select count(*) from orders", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn each_test_has_a_copy_of_its_own_and_the_template_is_built_once() {
    let (one, other) = tokio::join!(
        TestDatabase::from_template("orders", build),
        TestDatabase::from_template("orders", build)
    );
    let third = TestDatabase::from_template("orders", build).await;
    assert_eq!(BUILT.load(Ordering::SeqCst), 1);
    one.client().await.batch_execute("insert into orders values (1)").await.unwrap();
    assert_eq!((orders(&one).await, orders(&other).await, orders(&third).await), (1, 0, 0));
}

#[tokio::test]
async fn a_database_is_reached_by_socket_by_tcp_and_by_address() {
    let database = TestDatabase::empty().await;
    let address: Config = database.url().parse().unwrap();
    for config in [database.config(), database.tcp_config(), address] {
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        let row = client.query_one("select current_database()", &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), database.name());
    }
}

#[tokio::test]
#[should_panic(expected = "template_broken cannot be built: no such luck")]
async fn a_template_that_cannot_be_built_fails_the_test_with_its_reason() {
    TestDatabase::from_template("broken", |_| async { Err("no such luck".into()) }).await;
}

#[tokio::test]
async fn a_cut_proxy_ends_a_session_and_shows_the_statements_it_named() {
    let database = TestDatabase::empty().await;
    for config in [database.tcp_config(), database.config()] {
        let proxy = CuttingProxy::before(&config).await;
        let mut through = proxy.config();
        through.application_name("cut");
        let (client, connection) = through.connect(NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.query_typed("select 1", &[]).await.unwrap();
        assert_eq!(proxy.named_statements(), []);
        client.query("select 2", &[]).await.unwrap();
        let named = proxy.named_statements();
        assert_eq!(named.len(), 1);
        assert_eq!(named[0].query, "select 2");
        assert!(!named[0].name.is_empty());
        proxy.cut().await;
        connection.await.unwrap().unwrap_err();
        assert!(client.query_typed("select 1", &[]).await.unwrap_err().is_closed());
    }
}
