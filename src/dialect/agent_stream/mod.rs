//! `POST /api/agent/stream`: a chat with sessions, places and a focus (`docs/protocol/agent-stream.md`).
//!
//! Its clients read keys before they read the `type` of a frame: `status`, `progress`, `complete`, `done` and `result`
//! mean something to them wherever they are at the top. **Invariant:** no frame has one of the first four there, and
//! `error` is there only in the frame of that type.

mod encoder;
mod frames;
mod message;
mod plan_view;
mod request;
mod session_row;
mod state;
mod telemetry;
mod wire;

pub use message::{MessageBody, MessageRequest};
pub use request::{WhereBody, WhereRequest, is_in_project};
pub use session_row::{CacheRow, SessionRow, call, project_of};

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct AgentStream {
    /// The longest `message`, in bytes; 0 means no limit.
    max_message_bytes: usize,
    /// The largest object of a request, in bytes of JSON; 0 means no limit.
    max_context_bytes: usize,
}
