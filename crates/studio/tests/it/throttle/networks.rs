//! Whose address counts, behind proxies and without.

use http::StatusCode;
use studio::platform::access::Role;

use super::{is_throttled, sign_in};
use crate::bed::{Bed, Replica};

const TRUSTED: [(&str, &str); 1] = [("STUDIO_HTTP_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")];

async fn fail_from(replica: &Replica, name: &str, headers: &[(&str, &str)]) {
    let answer = sign_in(replica, name, "wrong", headers).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{headers:?}: {}", answer.text());
}

#[tokio::test]
async fn without_a_trusted_proxy_no_header_makes_another_client() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica().await;
    for number in 0..5 {
        let (listed, forwarded) =
            (format!("203.0.113.{number}"), format!("for=198.51.100.{number}"));
        fail_from(&replica, "anna", &[("x-forwarded-for", &listed), ("forwarded", &forwarded)])
            .await;
    }
    assert!(is_throttled(&replica, "anna", &[("x-forwarded-for", "192.0.2.1")]).await);
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_address_counts_from_the_right() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica_with(&TRUSTED).await;
    // What the client invents stands left of what the proxies add.
    for number in 0..5 {
        let listed = format!("192.0.2.{number}, 203.0.113.7, 10.1.2.3");
        fail_from(&replica, "anna", &[("x-forwarded-for", &listed)]).await;
    }
    assert!(is_throttled(&replica, "anna", &[("x-forwarded-for", "203.0.113.7")]).await);
    assert!(is_throttled(&replica, "anna", &[("forwarded", "for=\"203.0.113.7:4711\"")]).await);
    // Somebody else's client is another network.
    assert!(!is_throttled(&replica, "anna", &[("x-forwarded-for", "203.0.113.8")]).await);
    // And what is no address is the proxy's.
    for text in ["unknown", "_hidden", "\u{e9}", "1.2.3.4.5", "[::", "\"", ",,,"] {
        let answer = sign_in(&replica, "nobody", "wrong", &[("x-forwarded-for", text)]).await;
        let is_counted = matches!(answer.status.as_u16(), 401 | 429);
        assert!(is_counted, "{text}: {}", answer.text());
    }
    assert!(is_throttled(&replica, "nobody", &[]).await);
}

#[tokio::test]
async fn rotating_addresses_inside_an_ipv6_network_is_one_client() {
    let bed = Bed::new().await;
    bed.account("anna", Role::Viewer).await;
    let replica = bed.replica_with(&TRUSTED).await;
    for number in 1..=5 {
        let listed = format!("2001:db8:7:1:{number}::{number}");
        fail_from(&replica, "anna", &[("x-forwarded-for", &listed)]).await;
    }
    let inside = "[2001:db8:7:1:ffff::99]:4711";
    assert!(is_throttled(&replica, "anna", &[("x-forwarded-for", inside)]).await);
    assert!(!is_throttled(&replica, "anna", &[("x-forwarded-for", "2001:db8:7:2::1")]).await);
}

#[tokio::test]
async fn a_network_that_tries_many_names_and_a_name_tried_from_many_networks_are_throttled() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica_with(&TRUSTED).await;
    for number in 0..30 {
        fail_from(&replica, &format!("name-{number}"), &[("x-forwarded-for", "203.0.113.7")]).await;
    }
    assert!(is_throttled(&replica, "viewer", &[("x-forwarded-for", "203.0.113.7")]).await);
    assert!(!is_throttled(&replica, "viewer", &[("x-forwarded-for", "203.0.113.8")]).await);
    for number in 0..100 {
        let address = format!("198.51.100.{number}");
        fail_from(&replica, "operator", &[("x-forwarded-for", &address)]).await;
    }
    assert!(is_throttled(&replica, "operator", &[("x-forwarded-for", "192.0.2.99")]).await);
    assert!(!is_throttled(&replica, "viewer", &[("x-forwarded-for", "192.0.2.99")]).await);
}
