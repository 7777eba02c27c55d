//! The proxies whose word about their clients counts, as the settings name them.

use std::net::IpAddr;
use std::str::FromStr;

/// Addresses and networks, separated by commas: `10.0.0.5, 192.168.0.0/16, fd00::/8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct TrustedProxies(Vec<Network>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    /// Mapped into IPv6, as the prefix is.
    bits: u128,
    prefix: u32,
}

impl TrustedProxies {
    /// Whether the address is one of theirs.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = bits(address);
        self.0.iter().any(|network| masked(bits, network.prefix) == network.bits)
    }

    /// Whether every address is trusted, in one family at least.
    pub fn is_everybody(&self) -> bool {
        self.0.iter().any(|network| matches!(network.prefix, 0 | 96))
    }
}

impl FromStr for TrustedProxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(network).collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for TrustedProxies {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

fn network(name: &str) -> Result<Network, String> {
    let wrong = || format!("`{name}` is neither an address nor a network like 10.0.0.0/8");
    let (address, prefix) = match name.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (name, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(prefix) => prefix.parse().map_err(|_| wrong())?,
        None => width,
    };
    if prefix > width {
        return Err(wrong());
    }
    // An IPv4 network is the same network in IPv6's clothes.
    let prefix = prefix + (128 - width);
    Ok(Network { bits: masked(bits(address), prefix), prefix })
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn masked(bits: u128, prefix: u32) -> u128 {
    bits & u128::MAX.checked_shl(128 - prefix).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::TrustedProxies;

    #[test]
    fn addresses_and_networks_of_both_families_are_recognised() {
        let trusted: TrustedProxies =
            "10.0.0.5, 192.168.0.0/16,fd00::/8 ,::1, 172.16.3.4/12".parse().unwrap();
        for inside in
            ["10.0.0.5", "192.168.255.1", "fdff::1", "::1", "172.31.0.1", "::ffff:10.0.0.5"]
        {
            assert!(trusted.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["10.0.0.6", "192.169.0.1", "fe00::1", "::2", "172.32.0.1", "0.0.0.1"] {
            assert!(!trusted.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(!trusted.is_everybody());
        assert!("0.0.0.0/0".parse::<TrustedProxies>().unwrap().is_everybody());
        assert!(!TrustedProxies::default().contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_network_is_named() {
        for wrong in ["proxy", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0/8", "1.2.3.4/-1"] {
            let error = wrong.parse::<TrustedProxies>().unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
