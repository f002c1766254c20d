//! The protocol of each route, for whatever is around all routes: labels of metrics, and how errors look.

use std::collections::HashMap;
use std::sync::Arc;

use super::problem::ErrorFormat;
use crate::observe::ambient;

/// The name of the native protocol.
pub(super) const NATIVE: &str = "agent-chat";

/// What a route's protocol is to whatever is around all routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireInfo {
    /// Its name in metrics.
    pub(super) dialect: ambient::Dialect,
    /// How its errors look.
    pub(super) errors: ErrorFormat,
    /// Whether the local user needs no token for it.
    pub(super) local_user: bool,
    /// Whether a body is taken only where its `Content-Type` says that it is JSON: no page of another site can send that by
    /// itself.
    pub(super) says_json: bool,
    /// Whether a token may come as `x-api-key` too.
    pub(super) api_key: bool,
    /// The largest body of the requests that begin runs, in bytes, where it is more than `server.body_limit_bytes`.
    pub(super) body_bytes: usize,
}

impl WireInfo {
    /// Of a route without a protocol.
    const NONE: Self = Self {
        dialect: ambient::Dialect::NONE,
        errors: ErrorFormat::Problem,
        local_user: false,
        says_json: false,
        api_key: false,
        body_bytes: 0,
    };

    /// Of a protocol called `name`, whose errors look so.
    pub(super) fn named(name: &'static str, errors: ErrorFormat) -> Self {
        Self { dialect: ambient::Dialect::named(name), errors, ..Self::NONE }
    }

    /// Whether it is the native protocol.
    pub(super) fn is_native(self) -> bool {
        self.dialect == ambient::Dialect::named(NATIVE)
    }
}

/// The protocol of each route.
#[derive(Debug, Clone, Default)]
pub(super) struct WiresByRoute(Arc<HashMap<String, WireInfo>>);

impl WiresByRoute {
    /// Those of these routes, as the router or the description writes them.
    pub(super) fn new(by_route: HashMap<String, WireInfo>) -> Self {
        Self(Arc::new(by_route.into_iter().map(|(route, wire)| (plain(&route), wire)).collect()))
    }

    /// The protocol of a route, as the router or the description writes it.
    pub(super) fn find(&self, route: &str) -> WireInfo {
        self.0.get(&plain(route)).copied().unwrap_or(WireInfo::NONE)
    }
}

/// A route without the mark of a part that may have slashes, which no description knows.
fn plain(route: &str) -> String {
    route.replace("{*", "{")
}
