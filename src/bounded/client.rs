//! Clients for HTTP: none follows a redirect by itself, and a name that leads where it must not is not connected to.
//!
//! **Invariant:** names become addresses once for each connection, and the client connects to what was vetted here. Behind a proxy
//! of the environment it is the proxy that looks names up.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, redirect};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::BuilderVerifierExt;

use super::address::{Refused, all_public, is_metadata};

/// How this program calls itself to other servers: what stands before some of them refuses whoever does not say.
const USER_AGENT: &str = concat!("switchboard/", env!("CARGO_PKG_VERSION"));

/// Looks the addresses of a name up.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The look-up of this machine.
pub fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// A name without an address.
#[derive(Debug, thiserror::Error)]
#[error("the name of the host is not known")]
pub struct UnknownName(#[source] Option<io::Error>);

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoConnection {
    /// The address, or what its name leads to, is not connected to.
    Refused(Refused),
    /// The name has no address.
    UnknownName,
    /// There is a server, whose certificate is not trusted.
    Certificate,
    /// There is a machine, and no server.
    Closed,
}

impl NoConnection {
    /// What an error of a client says of it.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(cause) = next {
            let io = cause.downcast_ref::<io::Error>();
            if let Some(refused) = cause.downcast_ref::<Refused>() {
                return Some(Self::Refused(*refused));
            } else if cause.is::<UnknownName>() {
                return Some(Self::UnknownName);
            } else if matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))) {
                return Some(Self::Certificate);
            } else if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
                return Some(Self::Closed);
            }
            next = match io.and_then(io::Error::get_ref) {
                // Its source is only the next one behind this.
                Some(inner) => Some(inner),
                None => cause.source(),
            };
        }
        None
    }
}

/// Where the names of a client may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To the internet alone: whoever names them is a stranger.
    Public,
    /// To private networks too, and not to where clouds tell their machines' secrets: the operator names them.
    Private,
    /// Anywhere: the operator has named that very host as an exception.
    Anywhere,
}

/// TLS with the certificates that this machine trusts, which are read once: a client that is left to itself reads all of them.
static TLS: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(|| {
    let versions = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    Ok(versions.with_safe_default_protocol_versions()?.with_platform_verifier()?.with_no_client_auth())
});

/// A client whose names may lead as far as `reach` says; its caller sets the rest.
pub fn builder(reach: Reach) -> ClientBuilder {
    builder_over(system_lookup(), reach)
}

/// The same over HTTP/1.1 alone, where each request has a connection of its own.
pub fn builder_http1(reach: Reach) -> ClientBuilder {
    over(system_lookup(), reach, &["http/1.1"])
}

/// A client with names that `lookup` looks up.
pub fn builder_over(lookup: Lookup, reach: Reach) -> ClientBuilder {
    over(lookup, reach, &["h2", "http/1.1"])
}

/// `protocols` are those of TLS (ALPN). A server that is reached without TLS is spoken to in HTTP/1.1.
fn over(lookup: Lookup, reach: Reach, protocols: &[&str]) -> ClientBuilder {
    // A redirect could carry keys and tokens to another host.
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .dns_resolver(Arc::new(Resolver { lookup, reach }))
        .user_agent(USER_AGENT);
    match &*TLS {
        Ok(tls) => {
            let mut tls = tls.clone();
            tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            builder.tls_backend_preconfigured(tls)
        }
        // The same fails when the client is built, and its caller is told.
        Err(_) => builder,
    }
}

/// Resolves names for one client.
struct Resolver {
    lookup: Lookup,
    reach: Reach,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (looked_up, reach) = ((self.lookup)(name.as_str().to_owned()), self.reach);
        Box::pin(async move {
            let mut found = looked_up.await.map_err(|error| UnknownName(Some(error)))?;
            if found.is_empty() {
                return Err(UnknownName(None).into());
            }
            match reach {
                Reach::Public => all_public(&found)?,
                // A machine may have an address on its link beside its others.
                Reach::Private => found.retain(|address| !is_metadata(*address)),
                Reach::Anywhere => {}
            }
            if found.is_empty() {
                return Err(Refused::Metadata.into());
            }
            // The port is the URL's.
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A name server that says something else each time.
    fn answering(answers: &[&[&str]]) -> Lookup {
        let parsed = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let answers = Mutex::new(answers.iter().map(parsed).collect::<Vec<_>>().into_iter());
        Arc::new(move |_| {
            let answer = answers.lock().unwrap().next().expect("no more look-ups");
            Box::pin(async move { Ok(answer) })
        })
    }

    async fn resolved(resolver: &Resolver) -> Result<Vec<IpAddr>, Refused> {
        match resolver.resolve("a.test".parse().unwrap()).await {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => Err(*error.downcast_ref::<Refused>().expect("refused")),
        }
    }

    #[tokio::test]
    async fn what_is_vetted_is_what_is_connected_to() {
        // One look-up for each request: a second one, with its other answer, is never made for the first.
        let seconds: [&[&str]; 7] = [
            &["127.0.0.1"],
            &["10.0.0.1"],
            &["169.254.169.254"],
            &["8.8.8.8", "192.168.1.1"],
            &["::1"],
            &["::ffff:127.0.0.1"],
            &["fd00:ec2::254"],
        ];
        for second in seconds {
            let resolver = Resolver { lookup: answering(&[&["8.8.8.8"], second, &["1.1.1.1"]]), reach: Reach::Public };
            assert_eq!(resolved(&resolver).await, Ok(vec!["8.8.8.8".parse().unwrap()]), "{second:?}");
            assert_eq!(resolved(&resolver).await, Err(Refused::NotPublic), "{second:?}");
            assert_eq!(resolved(&resolver).await, Ok(vec!["1.1.1.1".parse().unwrap()]), "{second:?}");
        }
    }

    #[tokio::test]
    async fn one_private_address_among_public_ones_refuses_the_name() {
        let mixed: &[&[&str]] = &[&["8.8.8.8", "10.0.0.1"], &["::1", "8.8.8.8"], &["8.8.8.8", "::ffff:8.8.8.8"]];
        let resolver = Resolver { lookup: answering(mixed), reach: Reach::Public };
        for _ in mixed {
            assert_eq!(resolved(&resolver).await, Err(Refused::NotPublic));
        }
    }

    #[tokio::test]
    async fn a_name_without_addresses_is_not_known() {
        let resolver = Resolver { lookup: answering(&[&[]]), reach: Reach::Private };
        let Err(error) = resolver.resolve("a.test".parse().unwrap()).await else { panic!("resolved") };
        assert!(error.downcast_ref::<UnknownName>().is_some());
    }

    #[tokio::test]
    async fn an_excepted_name_may_lead_anywhere() {
        let resolver = Resolver { lookup: answering(&[&["169.254.1.1"]]), reach: Reach::Anywhere };
        assert_eq!(resolved(&resolver).await, Ok(vec!["169.254.1.1".parse().unwrap()]));
    }

    #[tokio::test]
    async fn a_name_of_the_operator_leads_to_private_networks_and_not_to_metadata() {
        type Expected = Result<&'static [&'static str], Refused>;
        let rows: [(&[&str], Expected, &str); 6] = [
            (&["10.0.0.1"], Ok(&["10.0.0.1"]), "a private network"),
            (&["127.0.0.1", "::1"], Ok(&["127.0.0.1", "::1"]), "this machine"),
            (&["169.254.169.254"], Err(Refused::Metadata), "metadata of clouds"),
            (&["100.100.100.200", "fd00:ec2::254"], Err(Refused::Metadata), "the same elsewhere"),
            (&["fe80::1", "192.168.1.7"], Ok(&["192.168.1.7"]), "a machine of the house has one on its link too"),
            (&["169.254.169.254", "10.0.0.1"], Ok(&["10.0.0.1"]), "what is vetted is what is connected to"),
        ];
        for (found, expected, why) in rows {
            let resolver = Resolver { lookup: answering(&[found]), reach: Reach::Private };
            let expected = expected.map(|found| found.iter().map(|address| address.parse().unwrap()).collect());
            assert_eq!(resolved(&resolver).await, expected, "{why}");
        }
    }

    #[tokio::test]
    async fn a_client_connects_to_no_name_that_leads_to_metadata() {
        let lookup = answering(&[&["169.254.169.254"]]);
        let client = builder_over(lookup, Reach::Private).no_proxy().build().unwrap();
        let error = client.get("http://metadata.test/").send().await.unwrap_err();
        assert_eq!(NoConnection::of(&error), Some(NoConnection::Refused(Refused::Metadata)), "{error:?}");
    }

    #[tokio::test]
    async fn an_error_says_why_there_is_no_connection() {
        let rows: [(&[&str], Reach, NoConnection); 3] = [
            (&["10.0.0.1"], Reach::Public, NoConnection::Refused(Refused::NotPublic)),
            (&[], Reach::Public, NoConnection::UnknownName),
            (&["127.0.0.1"], Reach::Private, NoConnection::Closed),
        ];
        for (found, reach, expected) in rows {
            let client = builder_over(answering(&[found]), reach).no_proxy().build().unwrap();
            let error = client.get("http://a.test:1/").send().await.unwrap_err();
            assert_eq!(NoConnection::of(&error), Some(expected), "{error:?}");
        }
        // As the TLS library and the client above it hand it on.
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let untrusted = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, untrusted));
        assert_eq!(NoConnection::of(&untrusted), Some(NoConnection::Certificate));
        assert_eq!(NoConnection::of(&io::Error::from(io::ErrorKind::ConnectionReset)), None);
    }
}
