//! Reading `Forwarded` (RFC 7239) and `X-Forwarded-For`: whatever a client may send.

use std::net::{IpAddr, Ipv6Addr};

/// One proxy's word about whom it was asked by; nothing where that is no address.
pub(super) type Hop = Option<IpAddr>;

/// The hops of one line of `X-Forwarded-For`, from the right.
pub(super) fn listed(line: &[u8]) -> Vec<Hop> {
    line.rsplit(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|text| !text.is_empty())
        .map(|text| {
            let inner = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
            node(inner.unwrap_or(text))
        })
        .collect()
}

/// The hops of one line of `Forwarded`, from the right. A line that is not well formed is one hop that says nothing:
/// an open quote of a client's could swallow what a proxy added.
pub(super) fn hops(line: &[u8]) -> Vec<Hop> {
    let Some(mut hops) = elements(line) else { return vec![None] };
    hops.reverse();
    hops
}

fn elements(line: &[u8]) -> Option<Vec<Hop>> {
    let mut rest = line;
    let mut hops = Vec::new();
    loop {
        let mut element = Element::default();
        loop {
            rest = rest.trim_ascii_start();
            match rest.first() {
                None | Some(b',') => break,
                Some(b';') => rest = rest.get(1..)?,
                Some(_) => {
                    let pair = pair(rest)?;
                    element.take(&pair)?;
                    rest = pair.rest.trim_ascii_start();
                    if !matches!(rest.first(), None | Some(b',' | b';')) {
                        return None;
                    }
                }
            }
        }
        if element.is_there {
            hops.push(element.hop);
        }
        match rest.split_first() {
            Some((_comma, after)) => rest = after,
            None => return Some(hops),
        }
    }
}

#[derive(Default)]
struct Element {
    is_there: bool,
    has_for: bool,
    hop: Hop,
}

impl Element {
    /// Takes one pair in; nothing when it says twice whom it was asked by.
    fn take(&mut self, pair: &Pair<'_>) -> Option<()> {
        self.is_there = true;
        if pair.name.eq_ignore_ascii_case(b"for") {
            if self.has_for {
                return None;
            }
            self.has_for = true;
            self.hop = node(&pair.value);
        }
        Some(())
    }
}

struct Pair<'a> {
    name: &'a [u8],
    value: Vec<u8>,
    rest: &'a [u8],
}

/// `name=value` at the beginning of a text, the value perhaps in quotes.
fn pair(text: &[u8]) -> Option<Pair<'_>> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (text.get(..equals)?, text.get(equals + 1..)?);
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return None;
    }
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let (value, rest) = unquoted(quoted)?;
        return Some(Pair { name, value, rest });
    }
    // Ports and IPv6 addresses should be quoted, and often are not.
    let end = value
        .iter()
        .position(|byte| !(is_token(*byte) || b":[]".contains(byte)))
        .unwrap_or(value.len());
    let (value, rest) = value.split_at(end);
    (!value.is_empty()).then(|| Pair { name, value: value.to_vec(), rest })
}

/// What stands before the closing quote, and what follows it.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((value, text.get(at + 1..)?)),
            b'\\' => value.push(*bytes.next()?.1),
            _ => value.push(*byte),
        }
    }
    None
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// An address, perhaps with a port, an IPv6 one perhaps in brackets. `unknown` and hidden names are none.
fn node(text: &[u8]) -> Hop {
    let text = std::str::from_utf8(text).ok()?.trim();
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, after) = bracketed.split_once(']')?;
        if !(after.is_empty() || after.strip_prefix(':').is_some_and(is_port)) {
            return None;
        }
        IpAddr::V6(address.parse::<Ipv6Addr>().ok()?)
    } else if let Ok(address) = text.parse() {
        address
    } else {
        let (address, port) = text.split_once(':')?;
        if !is_port(port) {
            return None;
        }
        IpAddr::V4(address.parse().ok()?)
    };
    Some(address.to_canonical())
}

/// A number, or a hidden one (`_` and a name).
fn is_port(text: &str) -> bool {
    let is_number = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hidden = text.len() > 1 && text.starts_with('_') && text.bytes().all(is_token);
    is_number || is_hidden
}
