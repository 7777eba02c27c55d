//! The route table and the documents made from it.

use std::path::{Path, PathBuf};

use http::header;
use studio::features;
use studio::platform::problem::KINDS;
use studio::platform::route::Cost;

use crate::bed::{self, Bed};

/// What a cheap request may cost at most, whatever it is.
const CHEAP_ROWS: u32 = 2_000;
const CHEAP_BYTES: u32 = 1 << 20;

#[test]
fn every_route_is_heavy_with_all_its_bounds_or_cheap_with_its_largest_cost() {
    for route in features::routes() {
        assert!(!route.operations().is_empty(), "{route:?} is not documented");
        match route.cost {
            Cost::Heavy(endpoint) => {
                assert!(endpoint.per_user() > 0 && !endpoint.time_bound().is_zero(), "{route:?}");
                assert!(endpoint.row_cap().is_some() && endpoint.byte_cap().is_some(), "{route:?}");
                assert!(
                    !matches!(route.access, studio::platform::route::Access::Public),
                    "no heavy endpoint is anonymous: {route:?}"
                );
            }
            Cost::Cheap { rows, bytes } => {
                assert!(rows <= CHEAP_ROWS && bytes <= CHEAP_BYTES, "{route:?}");
            }
        }
    }
}

#[tokio::test]
async fn cheap_routes_answer_within_their_bytes_however_long_the_trail() {
    let bed = Bed::new().await;
    bed.accounts().await;
    bed.events(1_000_000).await;
    let replica = bed.replica().await;
    let administrator = replica.sign_in("administrator").await;
    for route in features::routes() {
        let Cost::Cheap { bytes, .. } = route.cost else { continue };
        for (path, method) in route.operations() {
            if method != http::Method::GET {
                continue;
            }
            let answer = administrator.get(&bed::address_of(&path)).await;
            assert!(answer.status.is_success(), "{path}: {}", answer.status);
            assert!(
                answer.body.len() <= usize::try_from(bytes).unwrap(),
                "{path}: {}",
                answer.body.len()
            );
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_document_in_the_repository_is_the_one_that_is_served() {
    let path = repository().join("docs/openapi.json");
    let generated = studio::app::openapi().to_pretty_json().unwrap() + "\n";
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "docs/openapi.json has drifted; write it again with `cargo run -p studio -- openapi > docs/openapi.json`"
    );
}

#[test]
fn every_problem_has_a_page() {
    let mut sources = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut suffixes = Vec::new();
    while let Some(path) = sources.pop() {
        if path.is_dir() {
            sources.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(path).unwrap();
            for call in text.split("StatusCode::").skip(1) {
                // `Problem::new(StatusCode::X, "suffix", "Title")`, on one line or several.
                let mut pieces = call.splitn(3, '"');
                let is_call = pieces.next().is_some_and(|before| {
                    before.trim_end().ends_with(',') && before.trim().len() < 40
                });
                if is_call {
                    suffixes.push(pieces.next().unwrap().to_owned());
                }
            }
        }
    }
    assert!(suffixes.len() > 8, "the pattern finds nothing any more: {suffixes:?}");
    for suffix in suffixes {
        assert!(KINDS.iter().any(|kind| kind.suffix == suffix), "{suffix} has no page");
    }
}

#[tokio::test]
async fn problem_pages_exist_for_every_kind_and_for_no_other() {
    let bed = Bed::new().await;
    let replica = bed.replica().await;
    let nobody = replica.nobody();
    for kind in KINDS {
        let page = nobody.get(&format!("/problems/{}", kind.suffix)).await;
        assert_eq!(page.headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(page.text().contains(kind.title), "{}", kind.suffix);
    }
    assert_eq!(nobody.get("/problems/none").await.problem(), "not-found");
    assert_eq!(nobody.get("/api/v1/nothing").await.problem(), "not-found");
    assert_eq!(nobody.delete("/livez").await.problem(), "method-not-allowed");
}

#[tokio::test]
async fn every_answer_has_its_request_id_and_the_browsers_headers() {
    let bed = Bed::new().await;
    let replica = bed.replica().await;
    for path in ["/livez", "/api/v1/me", "/nothing"] {
        let answer = replica.nobody().get(path).await;
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
        let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        let id = answer.headers["x-request-id"].to_str().unwrap();
        if !answer.status.is_success() {
            assert_eq!(answer.json()["requestId"], id);
        }
    }
}

/// Features do not import each other; what two of them need lives in platform.
#[test]
fn no_feature_imports_another() {
    let features = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/features");
    let names: Vec<String> = std::fs::read_dir(&features)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    for name in &names {
        let mut folders = vec![features.join(name)];
        while let Some(path) = folders.pop() {
            if path.is_dir() {
                folders.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for other in names.iter().filter(|other| *other != name) {
                let import = format!("features::{other}");
                assert!(!text.contains(&import), "{} imports {other}", path.display());
            }
        }
    }
}
