//! How many connections one address may hold at once. Behind a reverse proxy all of them come from that proxy, whose
//! addresses are therefore not counted: it counts its own clients. What it says of them is not read here.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bits of an IPv6 address identify a client: whoever has one has all of its 2^64 neighbours.
const SITE_BITS: u32 = 64;

/// A network of addresses, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

impl Network {
    /// The network in `text`: an address, or an address and how many of its bits count.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().ok()?;
        let all = if first.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => all,
            Some(text) => text.parse().ok().filter(|bits| *bits <= all && text.bytes().all(|b| b.is_ascii_digit()))?,
        };
        Some(Self { first, bits })
    }

    fn holds(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = u32::from(first) ^ u32::from(address);
                differs.leading_zeros() >= self.bits
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = u128::from(first) ^ u128::from(address);
                differs.leading_zeros() >= self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// The number of connections of each address.
#[derive(Debug)]
pub(super) struct Addresses {
    most: usize,
    uncounted: Arc<[Network]>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    of: Option<(Arc<Addresses>, IpAddr)>,
}

impl Addresses {
    /// At most `most` of each address but those of `uncounted`; 0 means no limit.
    pub(super) fn new(most: usize, uncounted: Arc<[Network]>) -> Arc<Self> {
        Arc::new(Self { most, uncounted, open: Mutex::default() })
    }

    /// Counts one more of `peer`; `None` when it has as many as it may.
    pub(super) fn hold(self: &Arc<Self>, peer: IpAddr) -> Option<Held> {
        let peer = peer.to_canonical();
        if self.most == 0 || self.uncounted.iter().any(|network| network.holds(peer)) {
            return Some(Held { of: None });
        }
        let who = match peer {
            IpAddr::V4(_) => peer,
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> SITE_BITS << SITE_BITS)),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(who).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(open);
        Some(Held { of: Some((self.clone(), who)) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some((addresses, who)) = self.of.take() else { return };
        let mut open = addresses.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&who) {
            *count -= 1;
            if *count == 0 {
                open.remove(&who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Addresses, Network};

    #[test]
    fn a_network_holds_its_own_addresses() {
        let rows = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "203.0.113.1", true),
            ("0.0.0.0/0", "::1", false),
            ("fc00::/7", "fd12::1", true),
            ("fc00::/7", "fe80::1", false),
        ];
        for (network, address, expected) in rows {
            let holds = Network::parse(network).unwrap().holds(address.parse().unwrap());
            assert_eq!(holds, expected, "{network} {address}");
        }
        for text in ["", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "::/129", "example.com", "10.0.0/8"] {
            assert_eq!(Network::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn each_address_has_its_own_count_and_neighbours_of_a_site_share_one() {
        let addresses = Addresses::new(1, [Network::parse("127.0.0.0/8").unwrap()].into());
        let hold = |peer: &str| addresses.hold(peer.parse().unwrap());
        let first = hold("203.0.113.1").unwrap();
        assert!(hold("203.0.113.1").is_none() && hold("::ffff:203.0.113.1").is_none(), "written in two ways");
        let _other = hold("203.0.113.2").unwrap();
        let _site = hold("2001:db8::1").unwrap();
        assert!(hold("2001:db8::2").is_none(), "a neighbour");
        let _proxied = [hold("127.0.0.1").unwrap(), hold("127.0.0.1").unwrap()];
        drop(first);
        assert!(hold("203.0.113.1").is_some(), "a slot that was given back");
    }
}
