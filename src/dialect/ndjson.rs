//! The native protocol's events as lines of JSON (`docs/protocol/ndjson.md`), for clients that read no Server-Sent Events.

use super::agent_chat::{AgentChat, Framing};
use super::{DecodeError, Dialect, Encoder, RunIds};
use crate::chat::input::{Manner, RunInput};

/// The protocol: requests are those of [`AgentChat`].
#[derive(Debug, Clone, Copy)]
pub struct Ndjson(pub AgentChat);

impl Dialect for Ndjson {
    fn decode(&self, body: &[u8]) -> Result<RunInput, DecodeError> {
        self.0.decode(body)
    }

    fn decode_manner(&self, body: &[u8]) -> Result<Manner, DecodeError> {
        self.0.decode_manner(body)
    }

    fn encoder(&self, of: RunIds) -> Box<dyn Encoder> {
        self.0.framed(of, Framing::Line)
    }
}
