//! Accounts: listing, making, changing them, and what ends with a change.

use http::StatusCode;
use serde_json::{Value, json};
use studio::platform::access::{Permission, Role};

use crate::bed::{Answer, Bed, PASSWORD, Session, answer};

async fn id_of(session: &Session) -> String {
    session.get("/api/v1/me").await.json()["id"].as_str().unwrap().to_owned()
}

async fn change(session: &Session, id: &str, role: &str, is_disabled: bool) -> Answer {
    let body = json!({ "role": role, "isDisabled": is_disabled });
    answer(session.request(http::Method::PUT, &format!("/api/v1/users/{id}")).json(&body)).await
}

fn told(answer: &Answer) -> (StatusCode, String) {
    (answer.status, answer.problem())
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_account_is_made_with_a_password_that_is_shown_once() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let made =
        administrator.post("/api/v1/users", &json!({ "name": " Anna ", "role": "operator" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let made = made.json();
    assert_eq!(made["user"]["name"], "anna");
    let password = made["password"].as_str().unwrap();
    let credentials = json!({ "name": "anna", "password": password });
    let signed_in = replica.nobody().post("/api/v1/session", &credentials).await;
    assert_eq!(signed_in.json()["role"], "operator");

    let given = json!({ "name": "bob", "role": "viewer", "password": PASSWORD });
    let made = administrator.post("/api/v1/users", &given).await;
    assert_eq!(made.json()["password"], Value::Null);
    replica.sign_in("bob").await;

    let again = json!({ "name": "ANNA", "role": "viewer" });
    let taken = administrator.post("/api/v1/users", &again).await;
    assert_eq!(told(&taken), (StatusCode::CONFLICT, "name-taken".to_owned()));
    for wrong in [
        json!({ "name": "", "role": "viewer" }),
        json!({ "name": "a\u{7}b", "role": "viewer" }),
        json!({ "name": "x".repeat(129), "role": "viewer" }),
        json!({ "name": "carol", "role": "emperor" }),
        json!({ "name": "carol", "role": "viewer", "password": "short" }),
        json!({ "name": "carol", "role": "viewer", "password": "x".repeat(1025) }),
        json!({ "name": "carol", "role": "viewer", "isAdministrator": true }),
    ] {
        let refused = administrator.post("/api/v1/users", &wrong).await;
        assert!(refused.status.is_client_error(), "{wrong}");
        assert_eq!(refused.problem(), "bad-request", "{wrong}");
    }
}

#[tokio::test]
async fn accounts_are_listed_by_name_and_found_by_how_it_begins() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.client()
        .await
        .batch_execute(
            "insert into studio.account (id, name, role, password_hash) \
             select gen_random_uuid(), 'person-' || lpad(number::text, 6, '0'), 'viewer', '' \
             from generate_series(1, 100000) as number; \
             insert into studio.account (id, name, role, password_hash) values \
                 (gen_random_uuid(), 'jos\u{e9}', 'viewer', ''), (gen_random_uuid(), 'jos', 'viewer', ''), \
                 (gen_random_uuid(), 'jot', 'viewer', ''), (gen_random_uuid(), 'jo%', 'viewer', ''); \
             analyze studio.account",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;

    let mut seen: Vec<String> = Vec::new();
    let mut address = "/api/v1/users?name=person-0000&size=7".to_owned();
    loop {
        let page = administrator.get(&address).await.json();
        seen.extend(names(&page).into_iter().map(ToOwned::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        address = format!("/api/v1/users?name=person-0000&size=7&after={next}");
    }
    let expected: Vec<String> = (1..100).map(|number| format!("person-{number:06}")).collect();
    assert_eq!(seen, expected);

    for (prefix, expected) in [
        ("jos", vec!["jos", "jos\u{e9}"]),
        ("JOS%C3%89", vec!["jos\u{e9}"]),
        ("jo%25", vec!["jo%"]),
        ("nobody", vec![]),
    ] {
        let page = administrator.get(&format!("/api/v1/users?name={prefix}")).await.json();
        assert_eq!(names(&page), expected, "{prefix}");
        assert_eq!(page["next"], Value::Null);
    }
    let first = administrator.get("/api/v1/users?size=200").await;
    assert_eq!(names(&first.json()).len(), 200);
    assert!(first.body.len() < 512 << 10);
    assert!(!first.text().contains("assword"), "no hash: {}", first.text());
    let next = first.json()["next"].as_str().unwrap().to_owned();
    for (query, problem) in [
        ("size=0".to_owned(), "bad-request"),
        ("size=201".to_owned(), "bad-request"),
        ("name=a%00".to_owned(), "bad-request"),
        ("after=zz".to_owned(), "invalid-cursor"),
        (format!("after={next}00"), "invalid-cursor"),
        // Given out for another filter.
        (format!("name=p&after={next}"), "invalid-cursor"),
    ] {
        let refused = administrator.get(&format!("/api/v1/users?{query}")).await;
        assert_eq!(told(&refused), (StatusCode::BAD_REQUEST, problem.to_owned()), "{query}");
    }
}

#[tokio::test]
async fn disabling_ends_sessions_and_tokens_and_enabling_brings_nothing_back() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let administrator = one.sign_in("administrator").await;
    let (here, there) = (one.sign_in("operator").await, other.sign_in("operator").await);
    let wish = json!({ "name": "x", "grants": ["audit.read"] });
    let secret = here.post("/api/v1/tokens", &wish).await.json()["secret"].clone();
    let secret = secret.as_str().unwrap();
    let program = other.with_token(secret);
    let id = id_of(&here).await;
    assert_eq!(program.get("/api/v1/me").await.status, StatusCode::OK);

    let changed = change(&administrator, &id, "operator", true).await;
    assert_eq!(changed.json()["isDisabled"], true);
    let credentials = json!({ "name": "operator", "password": PASSWORD });
    let refused = other.nobody().post("/api/v1/session", &credentials).await;
    assert_eq!(refused.problem(), "wrong-credentials");
    for ended in [&here, &there, &program] {
        assert_eq!(ended.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
    }
    let changed = change(&administrator, &id, "operator", false).await;
    assert_eq!(changed.json()["isDisabled"], false);
    for ended in [&here, &there, &program] {
        assert_eq!(ended.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
    }
    let again = one.sign_in("operator").await;
    assert_eq!(again.get("/api/v1/tokens").await.json()["items"][0]["state"], "revoked");

    let row = bed
        .client()
        .await
        .query_one(
            "select actor, target, detail from studio.audit_event where action = 'account.change' order by id limit 1",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get(0), row.get(1)), ("administrator", "operator"));
    let detail: Value = row.get(2);
    assert_eq!((&detail["sessionsEnded"], &detail["tokensRevoked"]), (&2.into(), &1.into()));
}

#[tokio::test]
async fn a_changed_role_ends_sessions_and_narrows_tokens_but_does_not_end_them() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let operator = replica.sign_in("operator").await;
    let secret = bed.token("operator", &["audit.read", "sql.query"]).await;
    let id = id_of(&operator).await;
    // What changes nothing ends nothing.
    assert_eq!(change(&administrator, &id, "operator", false).await.status, StatusCode::OK);
    assert_eq!(operator.get("/api/v1/me").await.status, StatusCode::OK);

    assert_eq!(change(&administrator, &id, "viewer", false).await.json()["role"], "viewer");
    assert_eq!(operator.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
    let shown = replica.with_token(&secret).get("/api/v1/me").await.json();
    assert_eq!(shown["permissions"], json!(["sql.query"]));
    assert_eq!(change(&administrator, "none", "viewer", false).await.problem(), "not-found");
    let nobody = uuid::Uuid::nil().to_string();
    assert_eq!(change(&administrator, &nobody, "viewer", false).await.problem(), "not-found");
}

#[tokio::test]
async fn nobody_locks_themselves_out_by_accident() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.account("second", Role::Administrator).await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let id = id_of(&administrator).await;
    let conflict = (StatusCode::CONFLICT, "own-account".to_owned());
    assert_eq!(told(&change(&administrator, &id, "viewer", false).await), conflict);
    assert_eq!(told(&change(&administrator, &id, "administrator", true).await), conflict);
    let password = administrator.post(&format!("/api/v1/users/{id}/password"), &json!({})).await;
    assert_eq!(told(&password), conflict);
    assert_eq!(administrator.get("/api/v1/users").await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_last_administrator_stays_also_when_each_takes_the_others_place_at_once() {
    let bed = Bed::new().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    bed.account("ada", Role::Administrator).await;
    bed.account("bob", Role::Administrator).await;
    let (ada, bob) = (one.sign_in("ada").await, other.sign_in("bob").await);
    let ids = (id_of(&ada).await, id_of(&bob).await);
    // Both requests are let in before either has done anything.
    let mut holder = bed.client().await;
    let turn = holder.transaction().await.unwrap();
    turn.batch_execute(
        "select pg_advisory_xact_lock(hashtextextended('studio.account.change', 0))",
    )
    .await
    .unwrap();
    let both = tokio::spawn(async move {
        tokio::join!(change(&ada, &ids.1, "viewer", false), change(&bob, &ids.0, "viewer", true))
    });
    bed.waiting(2).await;
    turn.commit().await.unwrap();
    let (by_ada, by_bob) = both.await.unwrap();
    let (done, refused) =
        if by_ada.status == StatusCode::OK { (by_ada, by_bob) } else { (by_bob, by_ada) };
    assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    assert_eq!(told(&refused), (StatusCode::CONFLICT, "last-administrator".to_owned()));
    let left =
        "select count(*) from studio.account where role = 'administrator' and not is_disabled";
    let left: i64 = bed.client().await.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 1);
}

#[tokio::test]
async fn an_administrator_sets_a_new_password_and_ends_the_sessions() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let viewer = replica.sign_in("viewer").await;
    let secret = bed.token("viewer", &[]).await;
    let address = format!("/api/v1/users/{}/password", id_of(&viewer).await);
    let set = administrator.post(&address, &json!({})).await.json();
    let password = set["password"].as_str().unwrap();
    assert_eq!(viewer.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(replica.with_token(&secret).get("/api/v1/me").await.status, StatusCode::OK);
    for (password, status) in [(PASSWORD, StatusCode::UNAUTHORIZED), (password, StatusCode::OK)] {
        let credentials = json!({ "name": "viewer", "password": password });
        assert_eq!(replica.nobody().post("/api/v1/session", &credentials).await.status, status);
    }
    let given = administrator.post(&address, &json!({ "password": PASSWORD })).await;
    assert_eq!(given.json()["password"], Value::Null);
    replica.sign_in("viewer").await;
    let short = administrator.post(&address, &json!({ "password": "short" })).await;
    assert_eq!(short.problem(), "bad-request");
    let nobody = format!("/api/v1/users/{}/password", uuid::Uuid::nil());
    assert_eq!(administrator.post(&nobody, &json!({})).await.problem(), "not-found");
    let trail: String = bed
        .client()
        .await
        .query_one("select string_agg(audit_event::text, '') from studio.audit_event", &[])
        .await
        .unwrap()
        .get(0);
    for secret in [password, PASSWORD, "argon2"] {
        assert!(!trail.contains(secret), "{secret} is in the trail");
        assert!(!replica.process.lines().join("\n").contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn ones_own_password_is_changed_for_the_old_one_and_leaves_one_new_session() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let (mut here, there) = (one.sign_in("viewer").await, other.sign_in("viewer").await);
    let new = "another password for tests";
    let wrong = json!({ "oldPassword": "not the password", "newPassword": new });
    let refused = here.post("/api/v1/me/password", &wrong).await;
    assert_eq!(told(&refused), (StatusCode::FORBIDDEN, "wrong-password".to_owned()));
    let short = json!({ "oldPassword": PASSWORD, "newPassword": "short" });
    assert_eq!(here.post("/api/v1/me/password", &short).await.problem(), "bad-request");
    assert_eq!(there.get("/api/v1/me").await.status, StatusCode::OK);

    let right = json!({ "oldPassword": PASSWORD, "newPassword": new });
    let changed = here.post("/api/v1/me/password", &right).await;
    assert_eq!(changed.status, StatusCode::NO_CONTENT, "{}", changed.text());
    for ended in [&here, &there] {
        assert_eq!(ended.get("/api/v1/me").await.status, StatusCode::UNAUTHORIZED);
    }
    here.cookie = changed.cookie().unwrap();
    assert_eq!(here.get("/api/v1/me").await.json()["name"], "viewer");
    for (password, status) in [(PASSWORD, StatusCode::UNAUTHORIZED), (new, StatusCode::OK)] {
        let credentials = json!({ "name": "viewer", "password": password });
        assert_eq!(one.nobody().post("/api/v1/session", &credentials).await.status, status);
    }
}

#[tokio::test]
async fn guesses_at_ones_own_old_password_are_throttled_as_sign_ins_are() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let viewer = one.sign_in("viewer").await;
    let wrong = json!({ "oldPassword": "not the password", "newPassword": PASSWORD });
    for number in 0..5 {
        let session = if number % 2 == 0 { viewer.clone() } else { viewer.at(&other) };
        let refused = session.post("/api/v1/me/password", &wrong).await;
        assert_eq!(refused.problem(), "wrong-password");
    }
    let right = json!({ "oldPassword": PASSWORD, "newPassword": "another password for tests" });
    let throttled = (StatusCode::TOO_MANY_REQUESTS, "login-throttled".to_owned());
    assert_eq!(told(&viewer.post("/api/v1/me/password", &right).await), throttled);
    let credentials = json!({ "name": "viewer", "password": PASSWORD });
    assert_eq!(told(&other.nobody().post("/api/v1/session", &credentials).await), throttled);
    assert_eq!(viewer.get("/api/v1/me").await.status, StatusCode::OK);
}

/// A sign-in checks the password first and begins its session later; what happens between must win.
#[tokio::test]
async fn a_sign_in_that_was_under_way_gives_no_session_to_a_disabled_account() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let client = bed.client().await;
    for change in ["is_disabled = true", "password_hash = 'another'"] {
        let mut holder = bed.client().await;
        let transaction = holder.transaction().await.unwrap();
        transaction
            .batch_execute(&format!("update studio.account set {change} where name = 'viewer'"))
            .await
            .unwrap();
        let nobody = replica.nobody();
        let signing_in = tokio::spawn(async move {
            let credentials = json!({ "name": "viewer", "password": PASSWORD });
            nobody.post("/api/v1/session", &credentials).await
        });
        // Its password was right; now it waits for the row.
        bed.waiting(1).await;
        transaction.commit().await.unwrap();
        let refused = signing_in.await.unwrap();
        assert_eq!(told(&refused), (StatusCode::UNAUTHORIZED, "wrong-credentials".to_owned()));
        let sessions = client.query_one("select count(*) from studio.session", &[]).await.unwrap();
        assert_eq!(sessions.get::<_, i64>(0), 0, "{change}");
        client.batch_execute("update studio.account set is_disabled = false").await.unwrap();
    }
}

#[tokio::test]
async fn a_token_looks_at_accounts_when_it_was_granted_that_and_changes_none() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.name()).collect();
    let program = replica.with_token(&bed.token("administrator", &all).await);
    assert_eq!(program.get("/api/v1/users").await.json()["items"].as_array().unwrap().len(), 3);
    let roles = program.get("/api/v1/roles").await.json();
    assert_eq!(roles["items"][2]["permissions"], json!(all));
    let made = program.post("/api/v1/users", &json!({ "name": "x", "role": "viewer" })).await;
    assert_eq!(told(&made), (StatusCode::FORBIDDEN, "session-required".to_owned()));
}
