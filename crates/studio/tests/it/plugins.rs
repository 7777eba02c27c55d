//! Uploading plugins: whole or not at all, whatever the client says and does.

mod window;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::wait_until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::Client;

use crate::bed::{Answer, Bed, PATIENCE, Session, answer};

const MOST: usize = 52_428_800;
const MEBIBYTE: usize = 1 << 20;

/// Bytes that do not repeat at the length of a piece.
fn content(length: usize) -> Bytes {
    (0_u32..).flat_map(u32::to_le_bytes).take(length).collect::<Vec<u8>>().into()
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn post(session: &Session) -> reqwest::RequestBuilder {
    session.request(http::Method::POST, "/api/v1/plugins?name=rules.jar")
}

async fn upload(session: &Session, body: Bytes) -> Answer {
    answer(post(session).body(body)).await
}

/// The same without a declared length, in pieces.
async fn upload_unmeasured(session: &Session, body: Bytes) -> Answer {
    let pieces: Vec<Result<Bytes, std::io::Error>> =
        body.chunks(100_000).map(|piece| Ok(body.slice_ref(piece))).collect();
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    answer(post(session).body(body)).await
}

/// Sends the head of an upload and the beginning of its body, by hand.
async fn begin(session: &Session, headers: &str, body: &[u8]) -> TcpStream {
    let host = session.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!(
        "POST /api/v1/plugins?name=cut.jar HTTP/1.1\r\nHost: {host}\r\nOrigin: {}\r\nCookie: {}\r\n{headers}\r\n\r\n",
        session.base, session.cookie
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

/// Everything that the server still says on a connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.ok();
    String::from_utf8_lossy(&text).into_owned()
}

async fn rows(client: &Client) -> (i64, i64) {
    let sql =
        "select (select count(*) from studio.plugin), (select count(*) from studio.plugin_chunk)";
    let row = client.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

async fn nothing_is_left(client: &Client) {
    wait_until("nothing of the upload is left", PATIENCE, async || rows(client).await == (0, 0))
        .await;
}

async fn listed(session: &Session) -> Vec<Value> {
    session.get("/api/v1/plugins").await.json()["items"].as_array().unwrap().clone()
}

/// Takes the hour's counts away, as if it were over.
async fn an_hour_later(bed: &Bed) {
    bed.limits.client().await.batch_execute("delete from limits.window_count").await.unwrap();
}

#[tokio::test]
async fn a_plugin_is_stored_whole_with_its_hash_and_deleted_whole() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let administrator = one.sign_in("administrator").await;
    let body = content(2 * MEBIBYTE + 7);
    let sha256 = hash(&body);
    let request = post(&administrator).header("x-content-sha256", sha256.to_uppercase());
    let made = answer(request.body(body.clone())).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let made = made.json();
    assert_eq!((&made["name"], &made["sizeBytes"]), (&"rules.jar".into(), &body.len().into()));
    assert_eq!((&made["sha256"], &made["uploadedBy"]), (&sha256.into(), &"administrator".into()));
    let elsewhere = administrator.at(&other);
    assert_eq!(listed(&elsewhere).await, std::slice::from_ref(&made));

    let client = bed.client().await;
    let row = client
        .query_one(
            "select string_agg(bytes, '' order by number) = $1, max(octet_length(bytes)), count(*) from studio.plugin_chunk",
            &[&&body[..]],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0), "the very bytes");
    assert_eq!((row.get::<_, i32>(1), row.get::<_, i64>(2)), (1 << 20, 3));

    let address = format!("/api/v1/plugins/{}", made["id"].as_str().unwrap());
    assert_eq!(elsewhere.delete(&address).await.status, StatusCode::NO_CONTENT);
    assert_eq!(elsewhere.delete(&address).await.status, StatusCode::NOT_FOUND);
    assert_eq!(rows(&client).await, (0, 0));
    let acts: Vec<(String, String)> = client
        .query(
            "select action, outcome from studio.audit_event where action like 'plugin.%' order by id",
            &[],
        )
        .await
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let expected =
        ["plugin.upload", "plugin.delete"].map(|act| (act.to_owned(), "complete".to_owned()));
    assert_eq!(acts, expected);
}

#[tokio::test]
async fn fifty_megabytes_fit_and_one_byte_more_does_not() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let client = bed.client().await;
    let body = content(MOST + 1);
    for is_measured in [true, false] {
        let whole = body.slice(..MOST);
        let sha256 = hash(&whole);
        let made = if is_measured {
            upload(&administrator, whole).await
        } else {
            upload_unmeasured(&administrator, whole).await
        };
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        assert_eq!(made.json()["sha256"], sha256);
        assert_eq!(rows(&client).await, (1, 50));
        client.batch_execute("delete from studio.plugin").await.unwrap();
    }
    // Declared: refused without a byte of it, and not counted.
    let stream = begin(
        &administrator,
        &format!("Expect: 100-continue\r\nContent-Length: {}", MOST + 1),
        b"",
    )
    .await;
    let said = rest(stream).await;
    assert!(said.starts_with("HTTP/1.1 413 ") && said.contains("upload-too-large"), "{said}");
    // Not declared: counted while it comes.
    let refused = upload_unmeasured(&administrator, body).await;
    assert_eq!(refused.problem(), "upload-too-large");
    assert_eq!(refused.json()["byteLimit"], MOST);
    nothing_is_left(&client).await;
}

#[tokio::test]
async fn an_upload_that_is_cut_or_lies_leaves_nothing_behind() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let client = bed.client().await;
    let body = content(MEBIBYTE + MEBIBYTE / 2);

    // Longer declared than sent, in one case with the writing side closed and the reading side open.
    for is_half_closed in [true, false] {
        let mut stream = begin(&administrator, "Content-Length: 2000000", &body).await;
        wait_until("a piece is stored", PATIENCE, async || rows(&client).await == (1, 1)).await;
        assert_eq!(listed(&administrator).await, Vec::<Value>::new());
        if is_half_closed {
            stream.shutdown().await.unwrap();
            let said = rest(stream).await;
            assert!(!said.contains(" 201 "), "{said}");
        } else {
            drop(stream);
        }
        nothing_is_left(&client).await;
    }
    // A chunked body without its end.
    let mut stream = begin(&administrator, "Transfer-Encoding: chunked", b"5\r\nhello\r\n").await;
    wait_until("it has begun", PATIENCE, async || rows(&client).await == (1, 0)).await;
    stream.shutdown().await.unwrap();
    drop(stream);
    nothing_is_left(&client).await;
    // Shorter declared than sent: what was declared is the plugin, and the rest is no part of it.
    let headers = "Content-Length: 5\r\nConnection: close";
    let said = rest(begin(&administrator, headers, b"hello, and more of it").await).await;
    assert!(said.contains(&format!("\"sha256\":\"{}\"", hash(b"hello"))), "{said}");
    client.batch_execute("delete from studio.plugin").await.unwrap();
    // Another body than the one that was hashed.
    let request = post(&administrator).header("x-content-sha256", hash(b"another"));
    assert_eq!(answer(request.body(body)).await.problem(), "upload-broken");
    nothing_is_left(&client).await;

    let outcomes: Vec<String> = client
        .query(
            "select outcome from studio.audit_event where action = 'plugin.upload' order by id",
            &[],
        )
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let cut = "aborted_by_client";
    assert_eq!(outcomes, [cut, cut, cut, "complete", "failed"]);
}

#[tokio::test]
async fn an_upload_that_stands_still_holds_nothing_and_is_stopped() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed
        .replica_with(&[
            ("STUDIO_HTTP_UPLOAD_STALL_SECONDS", "10"),
            ("STUDIO_DATABASE_MAIN_POOL", "2"),
        ])
        .await;
    let administrator = replica.sign_in("administrator").await;
    let client = bed.client().await;
    let body = content(MEBIBYTE + 1);
    // More uploads than the pool has connections.
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(begin(&administrator, "Content-Length: 9000000", &body).await);
    }
    wait_until("all stand still", PATIENCE, async || rows(&client).await == (4, 4)).await;
    let busy = "select count(*) from pg_stat_activity where datname = current_database() \
                and usename = 'studio_app' and state <> 'idle'";
    wait_until("no connection is busy", PATIENCE, async || {
        client.query_one(busy, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    assert_eq!(administrator.get("/api/v1/me").await.status, StatusCode::OK);
    for stream in streams {
        let said = rest(stream).await;
        assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("upload-too-slow"), "{said}");
    }
    nothing_is_left(&client).await;
}

#[tokio::test]
async fn a_replica_killed_in_the_middle_leaves_nothing_visible_and_the_rest_is_swept() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let (one, other) = (bed.replica().await, bed.replica().await);
    let administrator = one.sign_in("administrator").await;
    let elsewhere = administrator.at(&other);
    let client = bed.client().await;
    let body = content(MEBIBYTE + 1);
    let _stream = begin(&administrator, "Content-Length: 9000000", &body).await;
    wait_until("a piece is stored", PATIENCE, async || rows(&client).await == (1, 1)).await;
    one.process.kill_9();
    one.process.wait().await;
    assert_eq!(listed(&elsewhere).await, Vec::<Value>::new());
    let id: uuid::Uuid =
        client.query_one("select id from studio.plugin", &[]).await.unwrap().get(0);
    // What was never whole is no plugin, also by its id.
    let deleted = elsewhere.delete(&format!("/api/v1/plugins/{id}")).await;
    assert_eq!(deleted.status, StatusCode::NOT_FOUND);
    client.batch_execute("update studio.plugin set lapses_at = now()").await.unwrap();
    nothing_is_left(&client).await;
}

#[tokio::test]
async fn every_other_route_keeps_its_small_body() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    for path in ["/api/v1/session", "/api/v1/tokens", "/api/v1/users", "/api/v1/sql/query"] {
        let refused = administrator.post(path, &json!({ "name": "x".repeat(600 << 10) })).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}: {}", refused.text());
    }
}

#[tokio::test]
async fn the_list_is_bounded_and_pages_lose_and_repeat_nothing() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.client()
        .await
        .batch_execute(
            "insert into studio.plugin (id, name, uploaded_by, lapses_at, size_bytes, sha256, completed_at) \
             select gen_random_uuid(), repeat(chr(233), 200), account.id, now(), 1, sha256('x'), now() \
             from studio.account, generate_series(1, 1050) as number where account.name = 'administrator'",
        )
        .await
        .unwrap();
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    let (mut ids, mut address) = (Vec::new(), "/api/v1/plugins?size=200".to_owned());
    loop {
        let page = administrator.get(&address).await;
        assert!(page.body.len() < 512 << 10, "{}", page.body.len());
        let page = page.json();
        ids.extend(page["items"].as_array().unwrap().iter().map(|plugin| plugin["id"].to_string()));
        let Some(next) = page["next"].as_str() else { break };
        address = format!("/api/v1/plugins?size=200&after={next}");
    }
    assert_eq!(ids.len(), 1_050);
    assert!(ids.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once");
    for (query, problem) in [("size=201", "bad-request"), ("after=00", "invalid-cursor")] {
        let refused = administrator.get(&format!("/api/v1/plugins?{query}")).await;
        assert_eq!(refused.problem(), problem);
    }
}
