//! The limits through PgBouncer in transaction mode, which must never see a named statement.

use std::time::Duration;

use pg_limits::{Config, Endpoint, HeavyRequests, Scope, Statements};
use testkit::PgBouncer;

use crate::fixture::{WORK, database, granted, live, refused, wait_for_live};

async fn through(pooler: &PgBouncer, endpoint: Endpoint, installation: u32) -> HeavyRequests {
    HeavyRequests::connect(
        Config::new(pooler.config(), installation, &[endpoint])
            .statements(Statements::Unnamed)
            .margin(Duration::from_millis(300)),
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn permits_hold_through_a_transaction_pooler_without_a_named_statement() {
    let database = database().await;
    let pooler = PgBouncer::before(&database.tcp_config(), database.name()).await;
    let (one, two) = (through(&pooler, WORK, 8).await, through(&pooler, WORK, 8).await);
    let client = database.client().await;
    let first = granted(&one, &WORK, "ada").await;
    let second = granted(&two, &WORK, "ada").await;
    let refusal = refused(&one, &WORK, "ada").await;
    assert_eq!((refusal.scope, refusal.limit, refusal.live), (Scope::User, 2, 2));
    first.release().await;
    drop(second);
    wait_for_live(&client, 0).await;
    one.set_cap("work", Some(0)).await.unwrap();
    assert_eq!(refused(&two, &WORK, "ada").await.limit, 0);
    one.set_cap("work", None).await.unwrap();
    client.batch_execute("drop table limits.heavy_permit cascade").await.unwrap();
    granted(&two, &WORK, "ada").await.release().await;
    assert_eq!(two.holders().await.unwrap().len(), 0);
    assert_eq!(one.replicas().await.unwrap().len(), 2);
    assert_eq!(one.sweep().await.unwrap(), Some(0));
    one.shutdown(Duration::from_secs(10)).await;
    assert_eq!(pooler.named_statements().len(), 0, "{:?}", pooler.named_statements());
}

#[tokio::test]
async fn many_claimers_through_the_pooler_never_exceed_the_cap() {
    let database = database().await;
    let pooler = PgBouncer::before(&database.tcp_config(), database.name()).await;
    let heavy = through(&pooler, WORK, 8).await;
    let client = database.client().await;
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let heavy = heavy.clone();
            tokio::spawn(async move {
                let mut refusals = 0;
                for _ in 0..50 {
                    match heavy.claim(&WORK, "ada").await.unwrap() {
                        pg_limits::Claim::Granted(permit) => permit.release().await,
                        pg_limits::Claim::Refused(refusal) => {
                            assert!(refusal.live >= refusal.limit);
                            refusals += 1;
                        }
                    }
                }
                refusals
            })
        })
        .collect();
    let mut most = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(live(&client).await);
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!((1..=2).contains(&most), "{most}");
}
