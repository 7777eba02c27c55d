//! Ending another's heavy request from another replica: its work ends first, and only then is its permit free.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use studio::platform::access::Permission;
use testkit::{TestDatabase, wait_until};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::bed::{Answer, Bed, LARGE, PATIENCE, Replica, Session};
use crate::sql_console::{ENDLESS, question};

/// Two replicas: where the operator works, and where the administrator looks on.
struct Installation {
    bed: Bed,
    one: Replica,
    operator: Session,
    administrator: Session,
    /// Kept: it serves the administrator.
    _other: Replica,
}

impl Installation {
    async fn new() -> Self {
        let bed = Bed::new().await;
        bed.accounts().await;
        let (one, two) = (bed.replica().await, bed.replica().await);
        let operator = one.sign_in("operator").await;
        let administrator = two.sign_in("administrator").await;
        Self { bed, one, operator, administrator, _other: two }
    }

    /// The only permit that is held, as the other replica shows it.
    async fn holder(&self) -> Value {
        let limits = &self.administrator;
        wait_until("one permit to be held", PATIENCE, || async move {
            let shown = limits.get("/api/v1/limits").await.json();
            let holders = shown["holders"].as_array().unwrap();
            (holders.len() == 1).then(|| holders[0].clone())
        })
        .await
    }

    /// The newest act of that name, once it has an outcome: outcome, why, rows, detail.
    async fn trail(&self, action: &str) -> (String, Option<String>, Option<i64>, Value) {
        let client = self.bed.client().await;
        wait_until("the act to have an outcome", PATIENCE, || async {
            let newest = "select outcome, bound, row_count, detail::text, actor from studio.audit_event \
                          where action = $1 order by id desc limit 1";
            let row = client.query_opt(newest, &[&action]).await.unwrap()?;
            let (outcome, detail): (String, String) = (row.get(0), row.get(3));
            let mut detail: Value = serde_json::from_str(&detail).unwrap();
            detail["actor"] = row.get::<_, String>(4).into();
            (outcome != "open").then(|| (outcome, row.get(1), row.get(2), detail))
        })
        .await
    }

    async fn acts(&self) -> i64 {
        let acts = "select count(*) from studio.audit_event where action = 'permit.evict'";
        self.bed.client().await.query_one(acts, &[]).await.unwrap().get(0)
    }
}

fn address(holder: &Value) -> String {
    format!("/api/v1/limits/permits/{}", holder["permit"].as_str().unwrap())
}

async fn answer(request: reqwest::RequestBuilder) -> Answer {
    crate::bed::answer(request).await
}

/// Permits that are held and queries of the console that run, at one moment: the permits are of the
/// statement's beginning, the queries are looked at later.
async fn look(limits: &Client, studio: &TestDatabase) -> (i64, i64) {
    let row = limits
        .query_one(
            "select (select count(*) from limits.live_permit), count(*)
             from pg_stat_activity
             where datname = $1 and usename like 'studio\\_console\\_%' and state = 'active'",
            &[&studio.name()],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_query_ends_in_the_database_before_its_permit_is_free_and_both_are_told() {
    let installation = Installation::new().await;
    let limits = installation.bed.limits.client().await;
    let query = tokio::spawn(answer(question(&installation.operator, ENDLESS)));
    wait_until("the query to run under its permit", PATIENCE, || async {
        look(&limits, &installation.bed.studio).await == (1, 1)
    })
    .await;
    let holder = installation.holder().await;
    let (administrator, address) = (installation.administrator.clone(), address(&holder));
    let evicting = tokio::spawn(async move { administrator.delete(&address).await });
    wait_until("the permit to be free", PATIENCE, || async {
        let (permits, active) = look(&limits, &installation.bed.studio).await;
        assert!(permits >= active, "a permit was free while its query ran");
        permits == 0
    })
    .await;
    let evicted = evicting.await.unwrap();
    assert_eq!(evicted.status, StatusCode::NO_CONTENT, "{}", evicted.text());
    let stopped = query.await.unwrap();
    assert_eq!(stopped.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stopped.problem(), "query-stopped");
    let (outcome, why, ..) = installation.trail("sql.query").await;
    assert_eq!((outcome.as_str(), why.as_deref()), ("failed", Some("stopped by administrator")));
    let (outcome, _, _, detail) = installation.trail("permit.evict").await;
    assert_eq!(outcome, "complete");
    assert_eq!((&detail["actor"], &detail["name"]), (&json!("administrator"), &json!("operator")));
    for member in ["endpoint", "user", "replica"] {
        assert_eq!(detail[member], holder[member], "{member}");
    }
    // Ended once: there is no such permit any more.
    assert_eq!(
        installation.administrator.delete(&self::address(&holder)).await.problem(),
        "not-found"
    );
}

#[tokio::test]
async fn an_export_whose_client_does_not_read_ends_as_a_broken_file() {
    let installation = Installation::new().await;
    installation.bed.large_events().await;
    let response =
        installation.operator.request(Method::GET, "/api/v1/audit/export").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let holder = installation.holder().await;
    let evicted = installation.administrator.delete(&address(&holder)).await;
    assert_eq!(evicted.status, StatusCode::NO_CONTENT, "{}", evicted.text());
    assert_eq!(installation.administrator.get("/api/v1/limits").await.json()["holders"], json!([]));
    let (outcome, why, rows, _) = installation.trail("audit.export").await;
    assert_eq!((outcome.as_str(), why.as_deref()), ("failed", Some("stopped by administrator")));
    assert!(rows.unwrap() < LARGE, "{rows:?}");
    assert!(response.bytes().await.is_err(), "no reader can take it for a whole file");
}

#[tokio::test]
async fn two_administrators_who_end_one_request_at_once_are_both_told_that_it_ended() {
    let installation = Installation::new().await;
    let three = installation.bed.replica().await;
    let (limits, client) =
        (installation.bed.limits.client().await, installation.bed.client().await);
    let query = tokio::spawn(answer(question(&installation.operator, ENDLESS)));
    wait_until("the query to run under its permit", PATIENCE, || async {
        look(&limits, &installation.bed.studio).await == (1, 1)
    })
    .await;
    let address = address(&installation.holder().await);
    let other = three.sign_in("administrator").await;
    // The replica hears of neither before both have asked.
    installation.one.process.pause().await;
    let evicting = [installation.administrator.clone(), other].map(|session| {
        let address = address.clone();
        tokio::spawn(async move { session.delete(&address).await })
    });
    wait_until("both to be under way, and the stop to be asked for", PATIENCE, || async {
        let acts =
            "select from studio.audit_event where action = 'permit.evict' and outcome = 'open'";
        let asked = "select from limits.stop_request";
        client.query(acts, &[]).await.unwrap().len() == 2
            && limits.query(asked, &[]).await.unwrap().len() == 1
    })
    .await;
    installation.one.process.resume();
    for evicting in evicting {
        let evicted = evicting.await.unwrap();
        assert_eq!(evicted.status, StatusCode::NO_CONTENT, "{}", evicted.text());
    }
    assert_eq!(query.await.unwrap().problem(), "query-stopped");
    assert_eq!(look(&limits, &installation.bed.studio).await, (0, 0));
}

#[tokio::test]
async fn the_permit_of_a_killed_replica_is_not_freed_and_the_answer_says_why() {
    let installation = Installation::new().await;
    let limits = installation.bed.limits.client().await;
    let query = tokio::spawn(question(&installation.operator, ENDLESS).send());
    wait_until("the query to run under its permit", PATIENCE, || async {
        look(&limits, &installation.bed.studio).await == (1, 1)
    })
    .await;
    let holder = installation.holder().await;
    installation.one.process.kill_9();
    assert!(query.await.unwrap().is_err());
    let lease = "select permit, ends_at::text from limits.live_permit";
    let before = limits.query_one(lease, &[]).await.unwrap();
    let answer = installation.administrator.delete(&address(&holder)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
    assert_eq!(answer.problem(), "permit-still-held");
    let problem = answer.json();
    assert_eq!(
        (&problem["replicaState"], &problem["replica"], &problem["endpoint"]),
        (&json!("gone"), &holder["replica"], &json!("sql_console"))
    );
    let after = limits.query_one(lease, &[]).await.unwrap();
    assert_eq!(before.get::<_, Uuid>(0), after.get::<_, Uuid>(0));
    assert_eq!(before.get::<_, String>(1), after.get::<_, String>(1));
    let (outcome, why, ..) = installation.trail("permit.evict").await;
    assert_eq!((outcome.as_str(), why.as_deref()), ("failed", Some("still held")));
}

#[tokio::test]
async fn who_may_not_evict_or_names_nothing_changes_nothing() {
    let installation = Installation::new().await;
    let limits = installation.bed.limits.client().await;
    let query = tokio::spawn(answer(question(&installation.operator, ENDLESS)));
    wait_until("the query to run under its permit", PATIENCE, || async {
        look(&limits, &installation.bed.studio).await == (1, 1)
    })
    .await;
    let address = address(&installation.holder().await);
    let refused = installation.operator.delete(&address).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::FORBIDDEN, "forbidden"));
    let secret =
        installation.bed.token("administrator", &Permission::ALL.map(Permission::name)).await;
    let refused = installation.one.with_token(&secret).delete(&address).await;
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (StatusCode::FORBIDDEN, "session-required")
    );
    for nothing in [Uuid::now_v7().to_string(), Uuid::nil().to_string(), "7".to_owned()] {
        let answer =
            installation.administrator.delete(&format!("/api/v1/limits/permits/{nothing}")).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (StatusCode::NOT_FOUND, "not-found")
        );
    }
    assert_eq!(
        (installation.acts().await, look(&limits, &installation.bed.studio).await),
        (0, (1, 1))
    );
    query.abort();
}
