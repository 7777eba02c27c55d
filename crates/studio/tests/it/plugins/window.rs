//! The uploads that a user may make in an hour.

use bytes::Bytes;
use http::{StatusCode, header};
use studio::platform::access::Role;
use testkit::wait_until;

use super::{MEBIBYTE, an_hour_later, begin, content, nothing_is_left, rest, rows, upload};
use crate::bed::{Bed, PATIENCE, answer};

#[tokio::test]
async fn the_sixth_upload_of_an_hour_is_refused_on_every_replica() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.account("second", Role::Administrator).await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let here = one.sign_in("administrator").await;
    let there = here.at(&other);
    let client = bed.client().await;
    // Faults of ours do not count ..
    client.batch_execute("revoke insert on studio.plugin_chunk from studio_app").await.unwrap();
    for _ in 0..6 {
        let failed = upload(&here, content(10)).await;
        assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", failed.text());
    }
    nothing_is_left(&client).await;
    client.batch_execute("grant insert on studio.plugin_chunk to studio_app").await.unwrap();
    // .. nor what is refused before its first byte, but a cut one does.
    for wrong in ["name=", "name=a%2Fb", "name=a%00", "nothing=x", "name=%E2%80%AEx"] {
        let request = here.request(http::Method::POST, &format!("/api/v1/plugins?{wrong}"));
        assert_eq!(answer(request.body("x")).await.problem(), "bad-request", "{wrong}");
    }
    assert_eq!(upload(&here, Bytes::new()).await.problem(), "bad-request");
    drop(begin(&here, "Content-Length: 100", b"x").await);
    wait_until("the cut one is known", PATIENCE, async || {
        let sql = "select count(*) from studio.audit_event where outcome = 'aborted_by_client'";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    for session in [&here, &there, &here, &there] {
        assert_eq!(upload(session, content(10)).await.status, StatusCode::CREATED);
    }
    for session in [&here, &there] {
        // Its body never comes: the refusal does not wait for it.
        let said =
            rest(begin(session, "Expect: 100-continue\r\nContent-Length: 100", b"").await).await;
        assert!(said.starts_with("HTTP/1.1 429 "), "{said}");
        let refused = upload(session, content(10)).await;
        assert_eq!(refused.problem(), "too-many-uploads");
        let told = refused.json();
        assert_eq!((&told["limit"], &told["windowSeconds"]), (&5.into(), &3_600.into()));
        let wait: u64 = refused.headers[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((1..=3_600).contains(&wait), "{wait}");
        assert_eq!(refused.headers["ratelimit-policy"], "\"upload_window\";q=5;w=3600");
        assert!(
            refused.headers["ratelimit"].to_str().unwrap().starts_with("\"upload_window\";r=0;t=")
        );
    }
    // The window is each user's own.
    let second = other.sign_in("second").await;
    assert_eq!(upload(&second, content(10)).await.status, StatusCode::CREATED);
    an_hour_later(&bed).await;
    assert_eq!(upload(&there, content(10)).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn the_window_is_a_setting_and_in_shadow_it_refuses_nothing() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.setting("upload_window.uploads", "1").await;
    bed.setting("upload_window.seconds", "60").await;
    bed.setting("upload_window.mode", "shadow").await;
    let shadow = bed.replica().await;
    let here = shadow.sign_in("administrator").await;
    for _ in 0..3 {
        assert_eq!(upload(&here, content(10)).await.status, StatusCode::CREATED);
    }
    bed.setting("upload_window.mode", "enforce").await;
    let enforcing = bed.replica().await;
    let there = here.at(&enforcing);
    let refused = upload(&there, content(10)).await;
    assert_eq!(refused.problem(), "too-many-uploads");
    assert_eq!(refused.headers["ratelimit-policy"], "\"upload_window\";q=1;w=60");
}

#[tokio::test]
async fn a_replica_that_shuts_down_gives_the_count_back() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let one = bed.replica_with(&[("STUDIO_HTTP_DRAIN_SECONDS", "1")]).await;
    let other = bed.replica().await;
    let administrator = one.sign_in("administrator").await;
    let client = bed.client().await;
    let _stream = begin(&administrator, "Content-Length: 9000000", &content(MEBIBYTE + 1)).await;
    wait_until("a piece is stored", PATIENCE, async || rows(&client).await == (1, 1)).await;
    one.process.terminate();
    one.process.wait().await;
    assert_eq!(rows(&client).await, (0, 0));
    let elsewhere = administrator.at(&other);
    for _ in 0..5 {
        assert_eq!(upload(&elsewhere, content(10)).await.status, StatusCode::CREATED);
    }
    assert_eq!(upload(&elsewhere, content(10)).await.problem(), "too-many-uploads");
}
