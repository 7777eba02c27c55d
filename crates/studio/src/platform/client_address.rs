//! The address of the client that a request comes from, also behind proxies.
//!
//! What a header says is believed only from a proxy that is trusted, and counted from the right: each proxy adds at
//! the end whom it was asked by, so everything left of the first stranger may be invented.

mod forwarded;
mod trusted_proxies;

use std::net::IpAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};

pub use self::trusted_proxies::TrustedProxies;
use super::listener::Peer;
use super::problem::Problem;
use crate::app::App;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// How many proxies are followed; a longer way is not believed further.
const MOST_HOPS: usize = 32;

/// The address of a client: IPv4 in IPv6's clothes is IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(IpAddr);

impl FromRequestParts<App> for ClientAddress {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let peer = parts
            .extensions
            .get::<ConnectInfo<Peer>>()
            .ok_or_else(|| Problem::internal(&"a request without the address of its client"))?;
        let trusted = &app.settings.http.trusted_proxies;
        Ok(Self::of(peer.0.0.ip(), &parts.headers, trusted))
    }
}

impl ClientAddress {
    /// The client's address, from the connection and what trusted proxies say.
    pub fn of(peer: IpAddr, headers: &HeaderMap, trusted: &TrustedProxies) -> Self {
        let peer = peer.to_canonical();
        if !trusted.contains(peer) {
            return Self(peer);
        }
        let says = |name| said(headers, name, peer, trusted);
        Self(match (says(&header::FORWARDED), says(&X_FORWARDED_FOR)) {
            (Some(one), None) | (None, Some(one)) => one,
            (Some(one), Some(other)) if one == other => one,
            // A proxy that writes one header lets the client's own pass in the other: neither is believed.
            (Some(_), Some(_)) | (None, None) => peer,
        })
    }

    /// What attempts are counted by: an IPv4 address, or the /64 that an IPv6 client may choose its addresses from.
    pub fn network(&self) -> String {
        match self.0 {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                format!("{}/64", std::net::Ipv6Addr::from_bits(network))
            }
        }
    }
}

/// The first address from the right that is no trusted proxy; where the way ends in one, or in something that is no
/// address, the last proxy before it. Nothing without the header.
fn said(
    headers: &HeaderMap,
    name: &HeaderName,
    peer: IpAddr,
    trusted: &TrustedProxies,
) -> Option<IpAddr> {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
    let hops = lines.iter().rev().flat_map(|line| {
        if *name == header::FORWARDED { forwarded::hops(line) } else { forwarded::listed(line) }
    });
    let mut last = peer;
    for hop in hops.take(MOST_HOPS) {
        let Some(address) = hop else { break };
        last = address;
        if !trusted.contains(address) {
            break;
        }
    }
    (!lines.is_empty()).then_some(last)
}

#[cfg(test)]
mod tests;
