//! The user who needs no token: whoever works at this machine itself, where the settings name them (`workspace.user`). They
//! get a token of this server's own, so that all else is as with any other.
//!
//! **Invariant:** only a request that comes from this machine, says so in all its headers, and was sent by no page of
//! another site is theirs ([`is_from_this_machine`]).

use std::net::{IpAddr, SocketAddr};

use axum::http::{Extensions, HeaderMap, HeaderName, header};

use super::{AuthSetupError, DevTokens, Mode};
use crate::http::server::Peer;

/// The local user.
#[derive(Clone)]
pub struct LocalUser(DevTokens);

impl LocalUser {
    /// The user whose tokens `tokens` makes; `None` where tokens are another issuer's, or where this server listens at
    /// an address that others reach.
    pub fn new(mode: Mode, tokens: DevTokens, address: SocketAddr) -> Option<Self> {
        let can_sign = matches!(mode, Mode::Dev | Mode::Hs256);
        (can_sign && is_here(address.ip())).then_some(Self(tokens))
    }

    /// The token for a request of theirs; `None` where it is not.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub(super) fn token(&self, headers: &HeaderMap, extensions: &Extensions) -> Option<Result<String, AuthSetupError>> {
        is_from_this_machine(headers, extensions).then(|| self.token_of_own())
    }

    /// The token for what this server does for them by itself.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn token_of_own(&self) -> Result<String, AuthSetupError> {
        Ok(self.0.token()?.token)
    }
}

/// Whether somebody at this machine asks for themselves. A page of elsewhere may have its name resolve to this machine, and
/// then its requests count as its own: but they carry its name. So does what a proxy lets in from outside.
pub(in crate::http) fn is_from_this_machine(headers: &HeaderMap, extensions: &Extensions) -> bool {
    let one = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap_or_default());
        (first, values.next().is_some())
    };
    let is_near = extensions.get::<Peer>().is_some_and(|Peer(address)| is_here(address.ip()));
    let (Some(host), false) = one(&header::HOST) else { return false };
    let site = match one(&HeaderName::from_static("sec-fetch-site")) {
        (None | Some("same-origin" | "none"), false) => true,
        (Some(_) | None, _) => false,
    };
    let origin = match one(&header::ORIGIN) {
        (None, _) => true,
        (Some(origin), repeated) => !repeated && origin.eq_ignore_ascii_case(&format!("http://{host}")),
    };
    is_near && is_loopback(host) && site && origin && !headers.keys().any(is_of_proxy)
}

fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether proxies put such a header on requests of others.
fn is_of_proxy(name: &HeaderName) -> bool {
    let name = name.as_str();
    let is_one = ["forwarded", "via", "x-real-ip", "true-client-ip", "x-client-ip", "x-cluster-client-ip"];
    is_one.contains(&name) || ["x-forwarded", "cf-", "x-envoy-", "fastly-"].iter().any(|kind| name.starts_with(kind))
}

/// Whether a `Host` names this machine, whatever the port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}
