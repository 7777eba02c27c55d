//! What may be changed, by whom, and what is written when.

use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use studio::platform::access::{Permission, Role};
use studio::platform::in_force::catalogue;
use testkit::{CuttingProxy, wait_until};

use super::{SETTINGS, administrator, bed, put, set, setting, trail, value};
use crate::bed::{Answer, Bed, PATIENCE, Session, answer};

async fn put_if(session: &Session, version: &str, settings: &Value) -> Answer {
    let request = session.request(Method::PUT, SETTINGS).header(header::IF_MATCH, version);
    answer(request.json(&json!({ "settings": settings }))).await
}

/// How many rows the table of settings has.
async fn rows(bed: &Bed) -> i64 {
    let count = "select count(*) from studio.setting";
    bed.client().await.query_one(count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn every_setting_is_shown_with_what_it_is_may_be_and_means() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let administrator = administrator(&replica).await;
    let before = administrator.get(SETTINGS).await;
    assert_eq!(before.headers[header::ETAG], "\"0\"");
    assert_eq!(before.json()["version"], "0");
    let all = before.json()["settings"].as_array().unwrap().clone();
    assert_eq!(all.len(), catalogue::ALL.len());
    for setting in &all {
        assert!(setting["meaning"].as_str().unwrap().ends_with('.'), "{setting}");
        assert_eq!(setting["value"], setting["default"], "{setting}");
        assert_eq!(setting["changedAt"], Value::Null, "{setting}");
        let value = &setting["value"];
        if let Some(number) = value.as_u64() {
            let range = setting["minimum"].as_u64().unwrap()..=setting["maximum"].as_u64().unwrap();
            assert!(range.contains(&number) && setting["unit"].is_string(), "{setting}");
        } else {
            assert!(setting["choices"].as_array().unwrap().contains(value), "{setting}");
        }
    }

    let after = set(&administrator, json!({ "upload_window.uploads": 9 })).await;
    assert_eq!(after.headers[header::ETAG], "\"1\"");
    let uploads = setting(&after, "upload_window.uploads");
    assert_eq!((&uploads["value"], &uploads["default"]), (&json!(9), &json!(5)));
    assert_eq!(uploads["changedBy"], "administrator");
    assert!(uploads["changedAt"].as_str().unwrap().ends_with('Z'));
    let back = set(&administrator, json!({ "upload_window.uploads": null })).await;
    assert_eq!(setting(&back, "upload_window.uploads")["value"], 5);
    assert_eq!(back.json()["version"], "2");
}

#[tokio::test]
async fn a_value_that_cannot_be_changes_nothing_and_each_is_named() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let administrator = administrator(&replica).await;
    let before = administrator.get(SETTINGS).await.json();
    let good = ("upload_window.uploads", json!(9));
    for (name, wrong) in [
        ("sql_console.per_user", json!(101)),
        ("sql_console.per_user", json!(-1)),
        ("sql_console.per_user", json!(1.5)),
        ("sql_console.per_user", json!("3")),
        ("sql_console.per_user", json!(true)),
        ("sql_console.per_user", json!([3])),
        ("sql_console.per_user", json!({})),
        ("sql_console.rows", json!(10_001)),
        ("sql_console.rows", json!(0)),
        ("sql_console.time_bound_seconds", json!(301)),
        ("sql_console.mode", json!("off")),
        ("sql_console.mode", json!("Shadow")),
        ("sql_console.mode", json!(1)),
        ("installation.cap", json!(33)),
        ("installation.mode", json!("shadow")),
        ("audit_export.bytes", json!(18_446_744_073_709_551_615_u64)),
        ("no.such", json!(1)),
        ("", json!(null)),
        ("SQL_CONSOLE.ROWS", json!(1)),
        // By itself each may be so; together with the others it may not.
        ("login_attempt.first_wait_seconds", json!(901)),
        ("login_attempt.forgotten_after_seconds", json!(899)),
    ] {
        // A value that can be is not written either.
        let refused = put(&administrator, &json!({ name: wrong, good.0: good.1 })).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}: {wrong}");
        assert_eq!(refused.problem(), "invalid-settings", "{name}: {wrong}");
        let errors = refused.json()["errors"].clone();
        assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
        assert_eq!(errors[0]["name"], name);
        assert!(!errors[0]["detail"].as_str().unwrap().is_empty());
    }
    let many = json!({ "sql_console.rows": 0, "no.such": 1, "sql_console.mode": "off" });
    let errors = put(&administrator, &many).await.json()["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 3, "{errors}");
    for body in [json!({}), json!([]), json!({ "settings": [] }), json!({ "settings": {}, "a": 1 })]
    {
        let refused = answer(administrator.request(Method::PUT, SETTINGS).json(&body)).await;
        assert!(refused.status.is_client_error(), "{body}");
        assert_eq!(refused.problem(), "bad-request", "{body}");
    }
    assert_eq!(administrator.get(SETTINGS).await.json(), before);
    assert_eq!(rows(&bed).await, 0);
    assert_eq!(trail(&bed).await, []);
    // What fits once the other changes with it, may change with it.
    set(
        &administrator,
        json!({ "login_attempt.first_wait_seconds": 901, "login_attempt.longest_wait_seconds": 902 }),
    )
    .await;
    let refused = put(&administrator, &json!({ "login_attempt.longest_wait_seconds": null })).await;
    assert_eq!(refused.json()["errors"][0]["name"], "login_attempt.first_wait_seconds");
}

#[tokio::test]
async fn of_two_writers_with_one_version_one_is_told_and_changes_take_turns() {
    let bed = bed().await;
    let (one, other) = tokio::join!(bed.replica(), bed.replica());
    let here = administrator(&one).await;
    let there = here.at(&other);
    let (first, second) = tokio::join!(
        async { put_if(&here, "\"0\"", &json!({ "upload_window.uploads": 6 })).await },
        async { put_if(&there, "\"0\"", &json!({ "upload_window.uploads": 7 })).await },
    );
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    let (won, lost, value_won) =
        if first.status == StatusCode::OK { (first, second, 6) } else { (second, first, 7) };
    assert_eq!(setting(&won, "upload_window.uploads")["value"], value_won);
    assert_eq!(lost.problem(), "settings-changed");
    assert_eq!(lost.json()["version"], "1");
    for stale in ["\"0\"", "W/\"1\"", "1", ""] {
        let refused = put_if(&here, stale, &json!({ "upload_window.uploads": 8 })).await;
        assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED, "{stale}");
    }
    for fresh in ["\"1\"", "*", "\"9\", \"2\""] {
        // The second of these asks for nothing that is not so already, and is no change.
        let put = put_if(&here, fresh, &json!({ "upload_window.uploads": 8 })).await;
        if fresh.contains('9') {
            assert_eq!(put.json()["version"], "2");
        }
        assert_eq!(put.status, StatusCode::OK, "{fresh}: {}", put.text());
    }

    // Each fits by itself and both do not: whoever comes second sees the first.
    let (first, second) = tokio::join!(
        async { put(&here, &json!({ "login_attempt.first_wait_seconds": 500 })).await },
        async { put(&there, &json!({ "login_attempt.longest_wait_seconds": 400 })).await },
    );
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);

    let numbers = ["sql_console", "audit_history", "audit_export"];
    let writers = numbers.into_iter().flat_map(|endpoint| {
        [&here, &there].into_iter().zip(["rows", "per_user"]).map(
            move |(session, what)| async move {
                put(session, &json!({ format!("{endpoint}.{what}"): 3 })).await
            },
        )
    });
    let answers = futures_util::future::join_all(writers).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK), "{answers:?}");
    let all = here.get(SETTINGS).await;
    assert_eq!(all.json()["version"], "9");
    for endpoint in numbers {
        assert_eq!(setting(&all, &format!("{endpoint}.rows"))["value"], 3);
        assert_eq!(setting(&all, &format!("{endpoint}.per_user"))["value"], 3);
    }
}

#[tokio::test]
async fn a_change_is_in_the_trail_with_old_and_new_values_and_no_change_is_not() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let administrator = administrator(&replica).await;
    set(&administrator, json!({ "audit_history.rows": 50, "api_request_window.mode": "off" }))
        .await;
    set(&administrator, json!({ "audit_history.rows": 50 })).await;
    set(&administrator, json!({})).await;
    set(&administrator, json!({ "audit_history.rows": null, "audit_history.per_user": 9 })).await;
    let trail = trail(&bed).await;
    assert_eq!(trail.len(), 2, "{trail:?}");
    assert!(trail.iter().all(|(outcome, _, _)| outcome == "complete"), "{trail:?}");
    assert_eq!(
        trail[0].2["settings"],
        json!({
            "audit_history.rows": { "old": 500, "new": 50, "isDefault": false },
            "api_request_window.mode": { "old": "enforce", "new": "off", "isDefault": false },
        })
    );
    assert_eq!(
        trail[1].2["settings"],
        json!({
            "audit_history.rows": { "old": 50, "new": 500, "isDefault": true },
            "audit_history.per_user": { "old": 4, "new": 9, "isDefault": false },
        })
    );
}

#[tokio::test]
async fn only_an_administrator_in_a_session_changes_settings() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let change = json!({ "sql_console.rows": 5 });
    assert_eq!(put(&replica.nobody(), &change).await.problem(), "sign-in-required");
    for role in [Role::Viewer, Role::Operator] {
        let session = replica.sign_in(role.name()).await;
        assert_eq!(put(&session, &change).await.problem(), "forbidden");
        assert_eq!(session.get(SETTINGS).await.problem(), "forbidden");
    }
    let all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.name()).collect();
    let secret = bed.token("administrator", &all).await;
    let program = replica.with_token(&secret);
    assert_eq!(program.get(SETTINGS).await.status, StatusCode::OK);
    assert_eq!(put(&program, &change).await.problem(), "session-required");
    assert_eq!(rows(&bed).await, 0);
}

#[tokio::test]
async fn a_restart_of_all_replicas_keeps_what_was_changed() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let session = administrator(&replica).await;
    let changed =
        json!({ "sql_console.rows": 5, "sql_console.per_user": 7, "sql_console.mode": "shadow" });
    set(&session, changed.clone()).await;
    replica.process.terminate();
    replica.process.wait().await;
    let replica = bed.replica().await;
    let session = session.at(&replica);
    for (name, expected) in changed.as_object().unwrap() {
        assert_eq!(value(&session, name).await, *expected, "{name}");
    }
    let limits = session.get("/api/v1/sql/catalogue").await.json()["limits"].clone();
    assert_eq!((&limits["rows"], &limits["perUser"]), (&json!(5), &json!(7)));
}

#[tokio::test]
async fn without_the_limits_nothing_is_changed_and_a_half_is_shown_and_mended_by_asking_again() {
    let bed = bed().await;
    let upstream: tokio_postgres::Config = bed.limits_url().parse().unwrap();
    let proxy = CuttingProxy::before(upstream).await;
    let replica = bed.replica_with(&[("STUDIO_DATABASE_LIMITS_URL", &proxy.url())]).await;
    let session = administrator(&replica).await;
    let change = json!({ "sql_console.per_user": 7, "sql_console.rows": 5 });
    proxy.refuse();
    proxy.cut().await;
    let refused = put(&session, &change).await;
    assert_eq!(refused.problem(), "limits-unavailable");
    assert_eq!(rows(&bed).await, 0);
    proxy.restore();
    wait_until("the limits to be back", PATIENCE, async || {
        session.get(SETTINGS).await.status == StatusCode::OK
    })
    .await;

    // Studio's own database refuses at the commit, when the limits have the cap already.
    let client = bed.client().await;
    client.batch_execute(include_str!("refuse_at_commit.sql")).await.unwrap();
    let failed = put(&session, &change).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", failed.text());
    assert_eq!(rows(&bed).await, 0);
    assert_eq!(value(&session, "sql_console.per_user").await, 7, "what claims go by is shown");
    assert_eq!(value(&session, "sql_console.rows").await, 10_000);
    let (outcome, reason, detail) = trail(&bed).await.pop().unwrap();
    assert_eq!((outcome.as_str(), reason.as_deref()), ("failed", Some("database")));
    assert_eq!(detail["settings"]["sql_console.per_user"]["new"], 7);

    client.batch_execute("drop trigger refuse_at_commit on studio.setting").await.unwrap();
    let mended = set(&session, change).await;
    assert_eq!(setting(&mended, "sql_console.per_user")["changedBy"], "administrator");
    assert_eq!(setting(&mended, "sql_console.rows")["value"], 5);
}
