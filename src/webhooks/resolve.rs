//! Names of subscribers become addresses, of which those of private networks are left out.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A name that leads nowhere it may.
#[derive(Debug, thiserror::Error)]
#[error("the name has no public address")]
struct NoPublicAddress;

/// Resolves names to addresses of the internet alone.
pub(super) struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether the address is one of the internet, and of no private or special network (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_special = a == 0 || a >= 224 || (a, b, c) == (192, 0, 0) || (a == 198 && (b == 18 || b == 19));
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || is_shared
                || is_special
                || v4.is_documentation())
        }
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            let is_local = first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80 || first & 0xff00 == 0xff00;
            // Addresses of IPv4 in another dress: NAT64 and 6to4.
            let is_dressed = (first, v6.segments()[1]) == (0x64, 0xff9b) || first == 0x2002;
            !(v6.is_loopback() || v6.is_unspecified() || is_local || is_dressed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn private_and_special_addresses_are_left_out() {
        let rows = [
            ("8.8.8.8", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.100.1.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("198.18.0.1", false),
            ("::1", false),
            ("::", false),
            ("::ffff:10.0.0.1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("64:ff9b::a00:1", false),
            ("2002:a00:1::", false),
        ];
        for (address, expected) in rows {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
