//! Names of subscribers become addresses; one that leads into a private network is no name of a subscriber.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::bounded::address::all_public;

/// Resolves names to addresses of the internet alone.
pub(super) struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
            all_public(&addresses)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
