//! The Model Context Protocol as a wire: `POST /mcp` and `POST /mcp/{profile}` (`docs/protocol/mcp.md`). A profile is a tool to
//! these clients, `ask_…`; so are the tools that a profile exposes. A call is a run, and its result the run's answer.
//!
//! Both eras are spoken at once, and neither has a session: each request says all that it needs, so that any replica answers.
//!
//! **Invariant:** what a client sends back of a call that waits is a name of ours and never believed: whose it is, which call
//! it was and whether it still waits is looked up.
//! **Invariant:** names and descriptions of tools come from the configuration, since another model reads them.

mod call;
mod encoder;
mod hearing;
mod message;
mod names;
mod outline;
mod results;

use super::waiting;
use crate::chat::approval::Approval;

/// The sentence about a call that waits for a person; people reach this server at `public_url`.
pub fn waits(approval: &Approval, public_url: &str) -> Option<String> {
    waiting::waits(&approval.artifact(), public_url)
}

pub use call::{AskArguments, CallRequest, InputReply, MARK, asked, decided, direct};
pub use encoder::{Telling, Tool};
pub use hearing::MadeFile;
pub use message::{Client, Era, Incoming, LEGACY, NEWEST, Refused, Request, RpcError, error, error_of, read};
pub use names::{is_tool_name, of_profile};
pub use outline::{Id, Outline, Params};
pub use results::{
    AnnotationsBody, DiscoverBody, InitializeBody, ServerBody, TaskBody, TaskOutcome, TaskStatus, ToolBody,
    ToolListBody, TtlBody, ask_input_schema, ask_output_schema, complete, elicited, result, without_header_marks,
};
