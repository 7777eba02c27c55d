//! The limits' database goes away; replicas and PostgreSQL are started again.

use http::StatusCode;
use local_postgres::StopMode;
use studio::platform::access::Role;
use studio::platform::account::{self, AccountName};
use testkit::{CuttingProxy, OwnCluster, wait_until};
use tokio_postgres::NoTls;

use super::{checks, fail, is_throttled, sign_in};
use crate::bed::{Bed, PASSWORD, PATIENCE, ROLE_PASSWORD, Replica};

#[tokio::test]
async fn without_the_limits_nobody_signs_in_and_no_password_is_checked() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let upstream: tokio_postgres::Config = bed.limits_url().parse().unwrap();
    let proxy = CuttingProxy::before(upstream).await;
    let replicas = [bed.replica_with(&[("STUDIO_DATABASE_LIMITS_URL", &proxy.url())]).await];
    proxy.refuse();
    proxy.cut().await;
    for (name, password) in [("anna", PASSWORD), ("anna", "wrong"), ("nobody", "wrong")] {
        let answer = sign_in(&replicas[0], name, password, &[]).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
        assert_eq!(answer.problem(), "limits-unavailable");
        assert!(answer.headers.contains_key(http::header::RETRY_AFTER));
    }
    assert_eq!(checks(&replicas).await, 0);
    proxy.restore();
    wait_until("sign-ins to be let in again", PATIENCE, || async {
        sign_in(&replicas[0], "anna", PASSWORD, &[]).await.status == StatusCode::OK
    })
    .await;
}

/// An installation on a server of its own.
struct Own {
    bed: Bed,
    environment: Vec<(&'static str, String)>,
}

impl Own {
    async fn on(cluster: &OwnCluster) -> Self {
        let address = |user: &str, database: &str| {
            format!("postgresql://{user}:{ROLE_PASSWORD}@127.0.0.1:{}/{database}", cluster.port())
        };
        let environment = vec![
            ("STUDIO_DATABASE_URL", address("studio_app", "studio")),
            ("STUDIO_DATABASE_LIMITS_URL", address("studio_app", "studio_limits")),
            ("STUDIO_DATABASE_MIGRATION_URL", cluster.url("studio")),
            ("STUDIO_CONSOLE_VIEWER_URL", String::new()),
            ("STUDIO_CONSOLE_OPERATOR_URL", String::new()),
            ("STUDIO_CONSOLE_ADMINISTRATOR_URL", String::new()),
        ];
        let own = Self { bed: Bed::bare().await, environment };
        let output = own.bed.run(&["migrate"], &own.environment()).await;
        assert!(output.status.success(), "{}", crate::bed::text(&output));
        own
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    async fn three(&self) -> [Replica; 3] {
        let environment = self.environment();
        let replica = || self.bed.replica_with(&environment);
        let (one, two, three) = tokio::join!(replica(), replica(), replica());
        [one, two, three]
    }
}

#[tokio::test]
async fn a_restart_of_all_replicas_and_of_postgresql_keeps_the_counts() {
    let mut cluster = testkit::own_cluster(|options| options.setting("fsync", "on")).await;
    let own = Own::on(&cluster).await;
    let (client, connection) = cluster.config("studio").connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let anna = AccountName::parse("anna").unwrap();
    account::create(&client, &anna, Role::Viewer, PASSWORD).await.unwrap().unwrap();
    drop(client);

    let replicas = own.three().await;
    for failure in 0..4 {
        fail(&replicas[failure % 3], "anna").await;
    }
    for replica in &replicas {
        replica.process.terminate();
    }
    for replica in &replicas {
        assert!(replica.process.wait().await.success());
    }
    cluster.stop(StopMode::Fast).await;
    cluster.start_again().await;
    let replicas = own.three().await;
    fail(&replicas[0], "anna").await;
    assert!(is_throttled(&replicas[1], "anna", &[]).await);
    // The same replicas outlive the next restart.
    cluster.stop(StopMode::Fast).await;
    cluster.start_again().await;
    for replica in &replicas {
        wait_until("the limits to be asked again", PATIENCE, || async {
            let answer = sign_in(replica, "anna", PASSWORD, &[]).await;
            assert_ne!(answer.status, StatusCode::OK);
            answer.status == StatusCode::TOO_MANY_REQUESTS
        })
        .await;
    }
}
