use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::{ClientAddress, TrustedProxies};

const PROXY: &str = "10.0.0.1";

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
        })
        .collect()
}

fn trusted() -> TrustedProxies {
    "10.0.0.0/8, fd00::/8".parse().unwrap()
}

fn seen_from(peer: &str, lines: &[(&str, &str)]) -> String {
    ClientAddress::of(peer.parse().unwrap(), &headers(lines), &trusted()).0.to_string()
}

fn listed(value: &str) -> String {
    seen_from(PROXY, &[("x-forwarded-for", value)])
}

fn forwarded(value: &str) -> String {
    seen_from(PROXY, &[("forwarded", value)])
}

#[test]
fn a_stranger_is_who_he_connects_as_whatever_he_says() {
    for name in ["x-forwarded-for", "forwarded"] {
        assert_eq!(seen_from("203.0.113.9", &[(name, "1.2.3.4")]), "203.0.113.9");
    }
    assert_eq!(seen_from("::ffff:203.0.113.9", &[]), "203.0.113.9");
    assert_eq!(seen_from(PROXY, &[]), PROXY);
}

#[test]
fn addresses_are_counted_from_the_right_past_trusted_proxies() {
    assert_eq!(listed("203.0.113.9"), "203.0.113.9");
    assert_eq!(listed("1.1.1.1, 203.0.113.9"), "203.0.113.9");
    assert_eq!(listed("1.1.1.1, 203.0.113.9, 10.2.0.1 , fd00::1"), "203.0.113.9");
    assert_eq!(listed("10.3.0.1, 10.2.0.1"), "10.3.0.1");
    assert_eq!(seen_from("::ffff:10.0.0.1", &[("x-forwarded-for", "1.1.1.1")]), "1.1.1.1");
    let many: Vec<String> = (0..100).map(|number| format!("9.9.9.{number}")).collect();
    assert_eq!(listed(&many.join(",")), "9.9.9.99");
    // A hundred trusted hops are not followed to their end.
    assert_eq!(listed(&format!("1.1.1.1, {}", ["10.0.0.7"; 100].join(", "))), "10.0.0.7");
}

#[test]
fn many_lines_are_one_list() {
    let lines = [("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "10.9.9.9")];
    assert_eq!(seen_from(PROXY, &lines), "2.2.2.2");
    let lines = [("forwarded", "for=1.1.1.1"), ("forwarded", "for=10.9.9.9")];
    assert_eq!(seen_from(PROXY, &lines), "1.1.1.1");
}

#[test]
fn every_way_to_write_an_address_is_understood() {
    for (text, wanted) in [
        ("203.0.113.9:4711", "203.0.113.9"),
        ("\"203.0.113.9\"", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("\"[2001:DB8::1]:4711\"", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("[::ffff:203.0.113.9]:1", "203.0.113.9"),
    ] {
        assert_eq!(listed(text), wanted, "{text}");
        let quoted = format!("proto=https; For=\"{}\";by=10.0.0.1", text.trim_matches('"'));
        assert_eq!(forwarded(&quoted), wanted, "{text}");
    }
    assert_eq!(forwarded("for=192.0.2.43, for=198.51.100.17;by=203.0.113.60"), "198.51.100.17");
    assert_eq!(forwarded("for=192.0.2.43:80;proto=http"), "192.0.2.43");
    assert_eq!(forwarded("for=\"[2001:db8::1]:_port\""), "2001:db8::1");
    assert_eq!(forwarded("for=\"192.0.2\\.43\""), "192.0.2.43");
    assert_eq!(forwarded(",, for=192.0.2.43 ,"), "192.0.2.43");
}

#[test]
fn what_is_no_address_ends_the_way_at_the_last_proxy() {
    for text in [
        "unknown",
        "_hidden",
        "1.2.3",
        "1.2.3.4.5",
        "010.0.0.1",
        "[2001:db8::1",
        "2001:db8::1]:1",
        "1.2.3.4:port",
        "1.2.3.4:999999",
        "fe80::1%eth0",
        "\"",
        "\u{e9}",
        "<script>",
        "[]:1",
        ":",
    ] {
        assert_eq!(listed(&format!("1.1.1.1, {text}")), PROXY, "{text}");
        assert_eq!(listed(&format!("1.1.1.1, {text}, 10.5.5.5")), "10.5.5.5", "{text}");
        let quoted = text.replace('"', "\\\"");
        assert_eq!(forwarded(&format!("for=1.1.1.1, for=\"{quoted}\"")), PROXY, "{text}");
    }
    assert_eq!(listed(""), PROXY);
    assert_eq!(forwarded("for=1.1.1.1, proto=https"), PROXY);
}

#[test]
fn a_client_cannot_swallow_what_a_proxy_adds() {
    for text in [
        "for=\"1.1.1.1, for=203.0.113.9",
        "for=\"1.1.1.1, for=\"[2001:db8::1]:47\"",
        "for=1.1.1.1;for=2.2.2.2, for=10.0.0.2",
        "=, for=10.0.0.2",
        "for=1.1.1.1 2.2.2.2",
        "for",
        "for=",
        "for=\"1.1.1.1\\",
    ] {
        assert_eq!(forwarded(text), PROXY, "{text}");
    }
    // Garbage of the client's left of what the proxy added changes nothing.
    assert_eq!(listed("\"\u{fffd},,;for=\", 203.0.113.9"), "203.0.113.9");
}

#[test]
fn two_headers_that_disagree_are_not_believed() {
    let disagree = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "203.0.113.9")];
    assert_eq!(seen_from(PROXY, &disagree), PROXY);
    let agree = [("forwarded", "for=203.0.113.9"), ("x-forwarded-for", "1.1.1.1, 203.0.113.9")];
    assert_eq!(seen_from(PROXY, &agree), "203.0.113.9");
}

#[test]
fn an_ipv6_client_is_its_network() {
    let network = |text: &str| ClientAddress(text.parse::<IpAddr>().unwrap()).network();
    assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    assert_eq!(network("2001:db8:1:2::"), "2001:db8:1:2::/64");
    assert_ne!(network("2001:db8:1:3::"), "2001:db8:1:2::/64");
    assert_eq!(network("203.0.113.9"), "203.0.113.9");
}

proptest! {
    #[test]
    fn nothing_a_client_sends_panics_or_is_believed_over_its_proxy(
        lines in prop::collection::vec(
            (prop::bool::ANY, prop::collection::vec(prop::num::u8::ANY, 0..200)), 0..5),
    ) {
        let mut headers = HeaderMap::new();
        for (is_forwarded, bytes) in lines {
            let name = if is_forwarded { "forwarded" } else { "x-forwarded-for" };
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.append(name, value);
            }
        }
        ClientAddress::of(PROXY.parse().unwrap(), &headers, &trusted()).network();
        // With one header only, the proxy's own line comes last, and only that is believed.
        for (name, added) in [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9")] {
            let mut headers = headers.clone();
            headers.remove(if name == "forwarded" { "x-forwarded-for" } else { "forwarded" });
            headers.append(name, HeaderValue::from_static(added));
            let seen = ClientAddress::of(PROXY.parse().unwrap(), &headers, &trusted());
            prop_assert_eq!(seen.0.to_string(), "203.0.113.9");
        }
    }

    #[test]
    fn pieces_of_the_grammar_in_any_order_are_never_believed_over_the_proxys_end(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "for=", "\"", ",", ";", "[", "]", ":", "1.1.1.1", "2001:db8::1", "\\", "=", "by", " ", "unknown", "_a",
            ]), 0..30),
    ) {
        let sent = pieces.concat();
        // The proxy adds to the same line: its word, or nothing at all.
        let seen = forwarded(&format!("{sent}, for=203.0.113.9"));
        prop_assert!(seen == "203.0.113.9" || seen == PROXY, "{} from {}", seen, sent);
        prop_assert_eq!(listed(&format!("{sent}, 203.0.113.9")), "203.0.113.9");
    }
}
