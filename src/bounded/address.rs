//! Where this server may be sent by others: an address that a model, a page or a user names is followed to the public
//! internet only, unless the operator has named it as an exception.
//!
//! **Invariant:** it is pure. Spellings of hosts (decimal, octal, short ones) are read by the URL crate, as the HTTP
//! client reads them; so what is vetted is what is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Blocks of IPv4 that are private or special, by IANA's registry (RFC 6890): first address, bits.
const SPECIAL_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // With the metadata of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // In nobody's registry: Azure's own services, which answer machines inside only.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // Relays of 6to4.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast; reserved, with the broadcast address.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// All addresses of IPv6 that are given out to networks of the internet are in this block: first address, bits. Loopback,
/// local and multicast ones are outside, and so is IPv4 in the dress of IPv6 (mapped, compatible).
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Special blocks inside of it.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    // Protocols: Teredo, benchmarking, ORCHID.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4, which holds an address of IPv4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Why an address is not followed, in words for whoever named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another scheme, or no host.
    #[error("only http and https addresses can be reached")]
    Scheme,
    /// It has a user or a password, by which an address can look like another.
    #[error("an address with a user name or a password in it cannot be reached")]
    UserInfo,
    /// Its host is not on the public internet, or its name leads elsewhere too.
    #[error("the host is not on the public internet, and this server is not allowed to reach others")]
    NotPublic,
    /// Its name leads to where clouds tell their machines' secrets, and nowhere else.
    #[error("the name of the host leads to a link-local or metadata address, where there is no such server")]
    Metadata,
}

/// How an address may be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Once all addresses of its name have been vetted too ([`all_public`]).
    Public,
    /// The operator has allowed it by name, wherever it leads.
    Excepted,
}

/// Hosts with ports that may be reached wherever they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exceptions(Vec<(Host<String>, u16)>);

/// An entry that is no `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no host:port")]
pub struct BadException(String);

impl Exceptions {
    /// The exceptions in `list`: `host:port`, comma separated; addresses of IPv6 stand in brackets.
    ///
    /// # Errors
    /// The first entry that is none.
    pub fn parse(list: &str) -> Result<Self, BadException> {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| exception(entry).ok_or_else(|| BadException(entry.to_owned())))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn have(&self, host: &Host<String>, port: u16) -> bool {
        self.0.iter().any(|(excepted, at)| excepted == host && *at == port)
    }
}

/// Whether a host is an address at which clouds tell their machines' secrets ([`is_metadata`]): no server that somebody means is
/// there.
pub fn is_metadata_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_metadata(address.into()),
        Some(Host::Ipv6(address)) => is_metadata(address.into()),
        Some(Host::Domain(_)) | None => false,
    }
}

/// Whether an address is of the machine's own link only, where clouds tell their machines' secrets, or one of those that clouds
/// have elsewhere for it: Alibaba's, Azure's and Oracle's, and those of IPv6; in the dress of IPv6 too.
pub fn is_metadata(address: IpAddr) -> bool {
    let v4 = match address.to_canonical() {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => match address.segments() {
            // Amazon's, Google's, Oracle's, Scaleway's, Linode's.
            [0xfd00, 0xec2, ..]
            | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
            | [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]
            | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]
            | [0xfd00, 0xa9fe, 0xa9fe, ..] => return true,
            _ if address.is_unicast_link_local() => return true,
            // NAT64, its local form (RFC 8215), compatible and translated ones, then 6to4.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x64, 0xff9b, 1, _, _, _, high, low]
            | [0, 0, 0, 0, 0, 0, high, low]
            | [0, 0, 0, 0, 0xffff, 0, high, low]
            | [0x2002, high, low, ..] => inside(high, low),
            _ => return false,
        },
    };
    let elsewhere = [[100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]];
    v4.is_link_local() || elsewhere.contains(&v4.octets())
}

/// How `url` may be followed. A host that is an address is vetted here, since clients resolve nothing then; one that is a
/// name has to be resolved by a resolver that vets.
///
/// # Errors
/// When it may not.
pub fn vet(url: &Url, exceptions: &Exceptions) -> Result<Way, Refused> {
    let (true, Some(host)) = (matches!(url.scheme(), "http" | "https"), url.host()) else {
        return Err(Refused::Scheme);
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    let port = url.port_or_known_default().ok_or(Refused::Scheme)?;
    let host = without_dot(host.to_owned());
    if exceptions.have(&host, port) {
        return Ok(Way::Excepted);
    }
    let is_allowed = match host {
        Host::Ipv4(address) => is_public(address.into()),
        Host::Ipv6(address) => is_public(address.into()),
        // This machine, by RFC 6761, whatever a resolver makes of it.
        Host::Domain(name) => name != "localhost" && !name.ends_with(".localhost"),
    };
    if is_allowed { Ok(Way::Public) } else { Err(Refused::NotPublic) }
}

/// Whether `url` says that it is this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host().map(|host| without_dot(host.to_owned())) {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Passes the addresses of one name, where there is none among them that is not public: whoever answers with a mixture
/// chooses which one is taken.
///
/// # Errors
/// [`Refused::NotPublic`] otherwise.
pub fn all_public(addresses: &[IpAddr]) -> Result<(), Refused> {
    if addresses.iter().copied().all(is_public) { Ok(()) } else { Err(Refused::NotPublic) }
}

/// Whether the address is one of the internet, and of no private or special network.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.into_iter().any(|(first, bits)| {
            let shift = u32::BITS - bits;
            address.to_bits() >> shift == first.to_bits() >> shift
        }),
        IpAddr::V6(address) => {
            let is_in = |(first, bits): (Ipv6Addr, u32)| {
                let shift = u128::BITS - bits;
                address.to_bits() >> shift == first.to_bits() >> shift
            };
            match address.segments() {
                // NAT64 (RFC 6052): what a network without IPv4 calls hosts of the internet that have nothing else.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public(inside(high, low).into()),
                _ => is_in(GLOBAL_V6) && !SPECIAL_V6.into_iter().any(is_in),
            }
        }
    }
}

/// The address of IPv4 that is in one of IPv6.
fn inside(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

fn exception(entry: &str) -> Option<(Host<String>, u16)> {
    let (host, port) = entry.rsplit_once(':')?;
    Some((without_dot(Host::parse(host).ok()?), port.parse().ok()?))
}

/// The host without the dot at the end, which says that a name is whole and changes nothing else.
fn without_dot(host: Host<String>) -> Host<String> {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(&name).to_owned()),
        address @ (Host::Ipv4(_) | Host::Ipv6(_)) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        let rows = [
            ("8.8.8.8", true, "the internet"),
            ("1.1.1.1", true, "the internet"),
            ("9.255.255.255", true, "before a private block"),
            ("11.0.0.0", true, "behind a private block"),
            ("100.63.255.255", true, "before the block of providers"),
            ("100.128.0.0", true, "behind the block of providers"),
            ("172.15.255.255", true, "before a private block"),
            ("172.32.0.0", true, "behind a private block"),
            ("198.17.255.255", true, "before the block of benchmarks"),
            ("198.20.0.0", true, "behind the block of benchmarks"),
            ("223.255.255.255", true, "before multicast"),
            ("2606:4700::1111", true, "the internet"),
            ("2a00:1450:4001::1", true, "the internet"),
            ("2001:200::1", true, "behind the block of protocols"),
            ("0.0.0.0", false, "unspecified"),
            ("0.1.2.3", false, "this network"),
            ("10.0.0.0", false, "private"),
            ("10.255.255.255", false, "private"),
            ("100.64.0.0", false, "shared by providers"),
            ("100.100.100.200", false, "shared by providers; metadata of a cloud"),
            ("100.127.255.255", false, "shared by providers"),
            ("127.0.0.1", false, "loopback"),
            ("127.255.255.254", false, "loopback"),
            ("168.63.129.16", false, "services of a cloud"),
            ("169.254.169.254", false, "link-local; metadata of clouds"),
            ("172.16.0.1", false, "private"),
            ("172.31.255.255", false, "private"),
            ("192.0.0.8", false, "protocols"),
            ("192.0.2.1", false, "documentation"),
            ("192.88.99.1", false, "relays of 6to4"),
            ("192.168.0.1", false, "private"),
            ("198.18.0.1", false, "benchmarks"),
            ("198.19.255.255", false, "benchmarks"),
            ("198.51.100.7", false, "documentation"),
            ("203.0.113.7", false, "documentation"),
            ("224.0.0.1", false, "multicast"),
            ("239.255.255.255", false, "multicast"),
            ("240.0.0.1", false, "reserved"),
            ("255.255.255.255", false, "broadcast"),
            ("::", false, "unspecified"),
            ("::1", false, "loopback"),
            ("::127.0.0.1", false, "IPv4-compatible"),
            ("::ffff:127.0.0.1", false, "IPv4-mapped"),
            ("::ffff:8.8.8.8", false, "IPv4-mapped, whatever is in it"),
            ("64:ff9b::808:808", true, "NAT64 of a host of the internet"),
            ("64:ff9b::7f00:1", false, "NAT64 of this machine"),
            ("64:ff9b::10.0.0.1", false, "NAT64 of a private network"),
            ("64:ff9b::169.254.169.254", false, "NAT64 of the metadata of clouds"),
            ("64:ff9b:0:0:0:1:808:808", false, "beside NAT64"),
            ("64:ff9b:1::1", false, "NAT64 of a network's own"),
            ("100::1", false, "discarded"),
            ("2001::1", false, "Teredo"),
            ("2001:2::1", false, "benchmarks"),
            ("2001:20::1", false, "ORCHID"),
            ("2001:db8::1", false, "documentation"),
            ("2002:7f00:1::", false, "6to4"),
            ("3fff::1", false, "documentation"),
            ("5f00::1", false, "segments"),
            ("fc00::1", false, "unique-local"),
            ("fd00:ec2::254", false, "unique-local; metadata of a cloud"),
            ("fe80::1", false, "link-local"),
            ("fec0::1", false, "site-local"),
            ("ff02::1", false, "multicast"),
        ];
        for (address, expected, why) in rows {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}: {why}");
        }
    }

    #[test]
    fn metadata_is_known_in_each_dress() {
        let rows = [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("100.100.100.200", true),
            ("168.63.129.16", true),
            ("::ffff:169.254.169.254", true),
            ("::169.254.169.254", true),
            ("64:ff9b::169.254.169.254", true),
            ("2002:a9fe:a9fe::1", true),
            ("fd00:ec2::254", true),
            ("fd20:ce::254", true),
            ("fd00:c1::a9fe:a9fe", true),
            ("fd00:42::42", true),
            ("fd00:a9fe:a9fe::1", true),
            ("192.0.0.192", true),
            ("64:ff9b:1::a9fe:a9fe", true),
            ("::ffff:0:169.254.169.254", true),
            ("fd00:ec2::23", true),
            ("fe80::1", true),
            ("169.253.255.255", false),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("100.100.100.201", false),
            ("::1", false),
            ("fd00::1", false),
            ("64:ff9b::8.8.8.8", false),
            ("2606:4700::1111", false),
        ];
        for (address, expected) in rows {
            assert_eq!(is_metadata(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_host_is_vetted_in_each_of_its_spellings() {
        let rows = [
            ("http://127.0.0.1/", "plain"),
            ("http://127.0.0.1./", "with a dot at the end"),
            ("http://127.1/", "short"),
            ("http://127.0.1/", "short"),
            ("http://2130706433/", "decimal"),
            ("http://2130706433./", "decimal with a dot"),
            ("http://0x7f000001/", "hexadecimal"),
            ("http://0x7f.0.0.1/", "hexadecimal in one part"),
            ("http://0X7F.1/", "hexadecimal and short"),
            ("http://017700000001/", "octal"),
            ("http://0177.0.0.1/", "octal in one part"),
            ("http://0177.0.0.01./", "octal with a dot"),
            ("http://00000177.1/", "octal with zeros"),
            ("http://127%2e0%2e0%2e1/", "percent-encoded"),
            ("http://%31%32%37.1/", "percent-encoded digits"),
            ("http://１２７.０.０.１/", "wide digits"),
            ("http://127。0。0。1/", "ideographic dots"),
            ("http://①②⑦.0.0.1/", "circled digits"),
            ("http://12\t7.0.0.1/", "with a tab, which is dropped"),
            ("  http://127.0.0.1/  ", "with blanks around"),
            ("http:127.0.0.1/", "without slashes"),
            ("http:\\\\127.0.0.1\\", "with backslashes"),
            ("HTTP://127.0.0.1:80/", "with the port"),
            ("http://0/", "short for unspecified"),
            ("http://0.0.0.0:8080/", "unspecified"),
            ("http://10.1/", "short and private"),
            ("http://3232235777/", "decimal and private"),
            ("http://0xa9fea9fe/", "hexadecimal metadata"),
            ("http://0251.0376.0251.0376/", "octal metadata"),
            ("http://169.254.43518/", "short metadata"),
            ("http://[::1]/", "IPv6"),
            ("http://[0:0:0:0:0:0:0:1]/", "IPv6 in full"),
            ("http://[::]/", "IPv6, unspecified"),
            ("http://[::ffff:127.0.0.1]/", "mapped"),
            ("http://[::ffff:7f00:1]/", "mapped, hexadecimal"),
            ("http://[::127.0.0.1]/", "compatible"),
            ("http://[64:ff9b::127.0.0.1]/", "NAT64"),
            ("http://[64:ff9b::a00:1]/", "NAT64, private"),
            ("http://[2002:7f00:1::1]/", "6to4"),
            ("http://[2002:a9fe:a9fe::]/", "6to4, metadata"),
            ("http://[fe80::1]/", "link-local"),
            ("https://[FD00::1]:8443/", "unique-local"),
            ("http://localhost/", "this machine by name"),
            ("http://LocalHost./", "the same with a dot"),
            ("http://a.localhost/", "below it"),
            ("http://ｌocalhost/", "wide letters"),
        ];
        for (text, why) in rows {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(vet(&url, &Exceptions::default()), Err(Refused::NotPublic), "{text}: {why}");
        }
        let unreadable =
            ["http://[fe80::1%25eth0]/", "http://256.0.0.1/", "http://127.0.0.1.1/", "http://0x1ffffffff/"];
        for text in unreadable {
            assert!(Url::parse(text).is_err(), "{text} is read by nobody");
        }
    }

    #[test]
    fn only_plain_http_addresses_are_followed() {
        let rows = [
            ("https://example.com/", Ok(Way::Public)),
            ("http://8.8.8.8:8080/a?b", Ok(Way::Public)),
            ("http://[2606:4700::1111]/", Ok(Way::Public)),
            ("ftp://example.com/", Err(Refused::Scheme)),
            ("file:///etc/passwd", Err(Refused::Scheme)),
            ("gopher://example.com/", Err(Refused::Scheme)),
            ("data:text/plain,x", Err(Refused::Scheme)),
            ("javascript:alert(1)", Err(Refused::Scheme)),
            ("ws://example.com/", Err(Refused::Scheme)),
            ("http://user@example.com/", Err(Refused::UserInfo)),
            ("http://:secret@example.com/", Err(Refused::UserInfo)),
            ("http://example.com:80@127.0.0.1/", Err(Refused::UserInfo)),
        ];
        for (text, expected) in rows {
            assert_eq!(vet(&Url::parse(text).unwrap(), &Exceptions::default()), expected, "{text}");
        }
    }

    #[test]
    fn an_exception_is_a_host_with_its_port() {
        let exceptions = Exceptions::parse(" 127.0.0.1:8080, docs.internal.:80,[::1]:9 ,").unwrap();
        let rows = [
            ("http://127.0.0.1:8080/", Ok(Way::Excepted), "as it is listed"),
            ("http://0x7f.1:8080/", Ok(Way::Excepted), "in another spelling"),
            ("http://127.0.0.1:8081/", Err(Refused::NotPublic), "on another port"),
            ("http://127.0.0.2:8080/", Err(Refused::NotPublic), "another address"),
            ("http://DOCS.internal/", Ok(Way::Excepted), "the port of the scheme"),
            ("http://docs.internal./", Ok(Way::Excepted), "with a dot"),
            ("https://docs.internal/", Ok(Way::Public), "the port of another scheme: to be resolved and vetted"),
            ("http://[0::1]:9/", Ok(Way::Excepted), "IPv6"),
            ("http://user@127.0.0.1:8080/", Err(Refused::UserInfo), "user info is refused everywhere"),
            ("ftp://127.0.0.1:8080/", Err(Refused::Scheme), "and so are other schemes"),
        ];
        for (text, expected, why) in rows {
            assert_eq!(vet(&Url::parse(text).unwrap(), &exceptions), expected, "{text}: {why}");
        }
        for bad in ["localhost", "a:b", "a:70000", ":80", "http://a:80", "::1:80"] {
            assert_eq!(Exceptions::parse(&format!("ok:1,{bad}")), Err(BadException(bad.to_owned())));
        }
    }

    #[test]
    fn one_private_address_refuses_a_name() {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(all_public(&addresses(&["8.8.8.8", "2606:4700::1111"])), Ok(()));
        assert_eq!(all_public(&addresses(&["64:ff9b::8.8.8.8"])), Ok(()), "an IPv6-only network");
        assert_eq!(all_public(&addresses(&["8.8.8.8", "10.0.0.1"])), Err(Refused::NotPublic));
        assert_eq!(all_public(&addresses(&["fd00::1", "8.8.8.8"])), Err(Refused::NotPublic));
    }
}
