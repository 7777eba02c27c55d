//! API tokens: what they may, and who sees them.

mod bearer;
mod endings;

use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::bed::{Answer, Bed, Replica, Session};

/// Makes a token and gives its id and its secret.
async fn make(session: &Session, body: &Value) -> (String, String) {
    let made = session.post("/api/v1/tokens", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let made = made.json();
    (made["token"]["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
}

async fn me(replica: &Replica, secret: &str) -> Answer {
    replica.with_token(secret).get("/api/v1/me").await
}

fn assert_invalid(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text());
    assert_eq!(answer.problem(), "invalid-token");
    let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
    assert!(challenge.starts_with("Bearer"), "{challenge}");
}

#[tokio::test]
async fn a_token_signs_in_on_every_replica_and_says_so() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let operator = one.sign_in("operator").await;
    let own = operator.get("/api/v1/me").await.json();
    assert_eq!((&own["signedInBy"], &own["token"]), (&"session".into(), &Value::Null));

    let grants = ["sql.query", "audit.read"];
    let (id, secret) = make(&operator, &json!({ "name": " nightly ", "grants": grants })).await;
    for replica in [&one, &other] {
        let shown = me(replica, &secret).await.json();
        assert_eq!(shown["signedInBy"], "token");
        assert_eq!(shown["token"], id.as_str());
        assert_eq!(shown["id"], own["id"]);
        assert_eq!(shown["permissions"], json!(["audit.read", "sql.query"]));
        let program = replica.with_token(&secret);
        assert_eq!(program.get("/api/v1/audit?size=1").await.status, StatusCode::OK);
        // A POST without Origin: there is no ambient credential that a page could borrow.
        let query = program.post("/api/v1/sql/query", &json!({ "sql": "select 1" })).await;
        assert_eq!(query.status, StatusCode::OK, "{}", query.text());
    }
    let listed = operator.get("/api/v1/tokens").await.json();
    let token = &listed["items"][0];
    assert_eq!((&token["name"], &token["state"]), (&"nightly".into(), &"live".into()));
    assert!(!listed.to_string().contains(&secret[40..]), "{listed}");
}

#[tokio::test]
async fn a_token_does_what_it_was_granted_and_no_more() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let (_, secret) =
        make(&administrator, &json!({ "name": "sql", "grants": ["sql.query"] })).await;
    let program = replica.with_token(&secret);
    let refused = program.get("/api/v1/audit").await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::FORBIDDEN, "forbidden"));
    assert_eq!(refused.json()["permission"], "audit.read");
    // The console asks for the permission of each view, which the role has and the token has not.
    for view in ["audit_event", "account"] {
        let sql = json!({ "sql": format!("select * from {view}") });
        let refused = program.post("/api/v1/sql/query", &sql).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{view}: {}", refused.text());
        assert_eq!(refused.json()["view"], view);
    }
    let catalogue = program.get("/api/v1/sql/catalogue").await.json();
    assert_eq!(catalogue["views"], json!([]));
}

#[tokio::test]
async fn wider_grants_than_ones_own_are_refused_by_name() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let viewer = replica.sign_in("viewer").await;
    let wish = json!({ "name": "x", "grants": ["sql.query", "audit.read"] });
    let refused = viewer.post("/api/v1/tokens", &wish).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::FORBIDDEN, "forbidden"));
    assert_eq!(refused.json()["permission"], "audit.read");
    for wish in [
        json!({ "name": "x", "grants": ["everything"] }),
        json!({ "name": "", "grants": [] }),
        json!({ "name": "a\u{0}b", "grants": [] }),
        json!({ "name": "x", "grants": [], "expiresInDays": 91 }),
        json!({ "name": "x", "grants": [], "expiresInDays": 0 }),
        json!({ "name": "x", "grants": [], "expiresInDays": -1 }),
        json!({ "name": "x" }),
    ] {
        let refused = viewer.post("/api/v1/tokens", &wish).await;
        assert!(refused.status.is_client_error(), "{wish}");
        assert_eq!(refused.problem(), "bad-request", "{wish}");
    }
    assert_eq!(viewer.get("/api/v1/tokens").await.json()["items"], json!([]));
}

#[tokio::test]
async fn tokens_of_others_are_seen_and_revoked_by_administrators_only_and_rotated_by_nobody() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let (viewer, operator) = (replica.sign_in("viewer").await, replica.sign_in("operator").await);
    let administrator = replica.sign_in("administrator").await;
    let (id, secret) = make(&viewer, &json!({ "name": "x", "grants": [] })).await;
    let owner = viewer.get("/api/v1/me").await.json()["id"].as_str().unwrap().to_owned();
    let list = format!("/api/v1/tokens?user={owner}");

    assert_eq!(operator.get(&list).await.status, StatusCode::FORBIDDEN);
    assert_eq!(viewer.get(&list).await.json()["items"].as_array().unwrap().len(), 1);
    assert_eq!(administrator.get(&list).await.json()["items"][0]["id"], id.as_str());
    assert_eq!(administrator.get("/api/v1/tokens?user=anna").await.problem(), "bad-request");
    let rotate = format!("/api/v1/tokens/{id}/rotate");
    for other in [&operator, &administrator] {
        // Its secret would make the administrator the owner.
        assert_eq!(other.post(&rotate, &json!({})).await.status, StatusCode::NOT_FOUND);
    }
    let revoke = format!("/api/v1/tokens/{id}");
    assert_eq!(operator.delete(&revoke).await.status, StatusCode::NOT_FOUND);
    assert_eq!(me(&replica, &secret).await.status, StatusCode::OK);
    assert_eq!(administrator.delete(&revoke).await.status, StatusCode::NO_CONTENT);
    assert_invalid(&me(&replica, &secret).await);
    assert_eq!(administrator.delete("/api/v1/tokens/none").await.problem(), "not-found");
}

#[tokio::test]
async fn an_account_has_fifty_live_tokens_also_when_they_are_asked_for_at_once() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let viewer = one.sign_in("viewer").await;
    let wish = json!({ "name": "x", "grants": [] });
    for _ in 0..44 {
        bed.token("viewer", &[]).await;
    }
    let asked = (0..12).map(|number| {
        let session = if number % 2 == 0 { viewer.clone() } else { viewer.at(&other) };
        let wish = wish.clone();
        async move { session.post("/api/v1/tokens", &wish).await }
    });
    let answers = futures_util::future::join_all(asked).await;
    let made = answers.iter().filter(|answer| answer.status == StatusCode::CREATED).count();
    assert_eq!(made, 6);
    for refused in answers.iter().filter(|answer| answer.status != StatusCode::CREATED) {
        assert_eq!(
            (refused.status, refused.problem().as_str()),
            (StatusCode::CONFLICT, "too-many-tokens")
        );
        assert_eq!(refused.json()["limit"], 50);
    }
    // One that has ended counts no longer.
    let id = viewer.get("/api/v1/tokens").await.json()["items"][0]["id"].clone();
    viewer.delete(&format!("/api/v1/tokens/{}", id.as_str().unwrap())).await;
    assert_eq!(viewer.post("/api/v1/tokens", &wish).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn the_list_is_bounded_and_shows_every_live_token_however_many_have_ended() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let viewer = replica.sign_in("viewer").await;
    make(&viewer, &json!({ "name": "live", "grants": [] })).await;
    bed.client()
        .await
        .batch_execute(
            "insert into studio.api_token (id, account_id, name, secret_hash, grants, created_at, expires_at) \
             select gen_random_uuid(), account.id, repeat(chr(233), 100), sha256('x'), '{sql.query,audit.read}', \
                    now() - interval '80 days', now() - number * interval '1 second' \
             from studio.account, generate_series(1, 100000) as number where name = 'viewer'",
        )
        .await
        .unwrap();
    let listed = viewer.get("/api/v1/tokens").await;
    assert!(listed.body.len() < 256 << 10, "{}", listed.body.len());
    let items = listed.json()["items"].as_array().unwrap().clone();
    assert_eq!(items.len(), 100);
    assert_eq!((&items[0]["name"], &items[0]["state"]), (&"live".into(), &"live".into()));
    assert!(items[1..].iter().all(|token| token["state"] == "expired"));
}

#[tokio::test]
async fn secrets_are_kept_as_hashes_only_and_every_act_is_in_the_trail() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let operator = replica.sign_in("operator").await;
    let wish = json!({ "name": "nightly", "grants": ["audit.read"] });
    let (id, first) = make(&operator, &wish).await;
    let rotated = operator.post(&format!("/api/v1/tokens/{id}/rotate"), &json!({})).await.json();
    let second = rotated["secret"].as_str().unwrap().to_owned();
    let program = replica.with_token(&second);
    program.get("/api/v1/audit/export?format=csv").await;
    operator.delete(&format!("/api/v1/tokens/{id}")).await;
    me(&replica, &second).await;

    let client = bed.client().await;
    let row = client
        .query_one(
            "select secret_hash = sha256($1::text::bytea) and previous_hash = sha256($2::text::bytea) \
             from studio.api_token",
            &[&second, &first],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0));
    let rows = client
        .query(
            "select action, target, outcome, detail from studio.audit_event \
             where action like 'token.%' or action = 'audit.export' order by id",
            &[],
        )
        .await
        .unwrap();
    let acts: Vec<(&str, &str)> = rows.iter().map(|row| (row.get(0), row.get(2))).collect();
    let expected = ["token.create", "token.rotate", "audit.export", "token.revoke"];
    assert_eq!(acts, expected.map(|action| (action, "complete")));
    assert_eq!(rows[0].get::<_, &str>(1), format!("token {id}"));
    // What a program did names its token.
    assert_eq!(rows[2].get::<_, Value>(3)["token"], id.as_str());
    let everything: String = client
        .query_one(
            "select (select string_agg(audit_event::text, '') from studio.audit_event) \
                 || (select string_agg(api_token::text, '') from studio.api_token)",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    let log = replica.process.lines().join("\n");
    for secret in [&first, &second] {
        let random = secret.rsplit('_').next().unwrap();
        assert!(!everything.contains(random), "in the database");
        assert!(!log.contains(random), "in the log");
    }
}
