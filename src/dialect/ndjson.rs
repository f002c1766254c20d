//! The native protocol's events as lines of JSON (`docs/protocol/ndjson.md`), for clients that read no Server-Sent Events.

use http::HeaderMap;
use utoipa::openapi::OpenApi;

use super::accept::{Wanted, wanted};
use super::agent_chat::AgentChat;
use super::asked::Asked;
use super::{DecodeError, Dialect, Request};

/// The protocol: requests are those of [`AgentChat`], which says by their headers how they are answered.
#[derive(Debug, Clone, Copy)]
pub struct Ndjson(pub AgentChat);

impl Dialect for Ndjson {
    fn api(&self) -> OpenApi {
        self.0.api()
    }

    fn is_meant(&self, headers: &HeaderMap) -> bool {
        wanted(headers) == Wanted::Lines
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        self.0.decode(request)
    }
}
