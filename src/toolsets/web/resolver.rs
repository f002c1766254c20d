//! Names become addresses once for each request, and the client connects to what was found here.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::bounded::address::all_public;

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
pub(super) struct UnknownName(#[source] Option<io::Error>);

/// Resolves names for one HTTP client.
pub(super) struct Resolver {
    lookup: Lookup,
    is_vetting: bool,
}

impl Resolver {
    /// Refuses a name with any address that is not public.
    pub(super) fn vetting(lookup: Lookup) -> Self {
        Self { lookup, is_vetting: true }
    }

    /// Takes what is found.
    pub(super) fn trusting(lookup: Lookup) -> Self {
        Self { lookup, is_vetting: false }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (looked_up, is_vetting) = ((self.lookup)(name.as_str().to_owned()), self.is_vetting);
        Box::pin(async move {
            let found = looked_up.await.map_err(|error| UnknownName(Some(error)))?;
            if found.is_empty() {
                return Err(UnknownName(None).into());
            }
            if is_vetting {
                all_public(&found)?;
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
    use crate::bounded::address::Refused;

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
            let resolver = Resolver::vetting(answering(&[&["8.8.8.8"], second, &["1.1.1.1"]]));
            assert_eq!(resolved(&resolver).await, Ok(vec!["8.8.8.8".parse().unwrap()]), "{second:?}");
            assert_eq!(resolved(&resolver).await, Err(Refused::NotPublic), "{second:?}");
            assert_eq!(resolved(&resolver).await, Ok(vec!["1.1.1.1".parse().unwrap()]), "{second:?}");
        }
    }

    #[tokio::test]
    async fn one_private_address_among_public_ones_refuses_the_name() {
        let mixed: &[&[&str]] = &[&["8.8.8.8", "10.0.0.1"], &["::1", "8.8.8.8"], &["8.8.8.8", "::ffff:8.8.8.8"]];
        let resolver = Resolver::vetting(answering(mixed));
        for _ in mixed {
            assert_eq!(resolved(&resolver).await, Err(Refused::NotPublic));
        }
    }

    #[tokio::test]
    async fn a_name_without_addresses_is_not_known() {
        let resolver = Resolver::vetting(answering(&[&[]]));
        let Err(error) = resolver.resolve("a.test".parse().unwrap()).await else { panic!("resolved") };
        assert!(error.downcast_ref::<UnknownName>().is_some());
    }

    #[tokio::test]
    async fn an_excepted_name_may_lead_anywhere() {
        let resolver = Resolver::trusting(answering(&[&["10.0.0.1"]]));
        assert_eq!(resolved(&resolver).await, Ok(vec!["10.0.0.1".parse().unwrap()]));
    }
}
