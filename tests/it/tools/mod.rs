//! The tools at the boundary: a chat request goes in as HTTP bytes, and what the model reads and the client sees is
//! checked.

mod data;
pub mod mcp;
mod one_file;
mod openapi;
mod openapi_forms;
pub mod rest;
mod selection;
mod tables;
mod web;
pub mod workflow;

use switchboard::agent::ports::tools::{KeepsFiles, Reporter, ToolContext};
use switchboard::chat::caller::{Bearer, Caller, Owner};
use switchboard::chat::ids::{ConversationId, RunId};

/// Somebody with this token.
fn somebody(token: &str) -> Caller {
    Caller {
        owner: Owner { tenant: String::new(), user: "u".to_owned() },
        known_as: None,
        expires_at_ms: None,
        roles: Vec::new(),
        bearer: Bearer::new(token),
        cookie: None,
    }
}

/// What a tool is called with in this conversation, where nothing else is known.
fn called<'a>(caller: &'a Caller, conversation: &'a ConversationId) -> ToolContext<'a> {
    ToolContext {
        caller,
        conversation,
        number: None,
        run: RunId::fresh(),
        call: None,
        context: None,
        place: None,
        completed: None,
        first_try: None,
        progress: Reporter::default(),
        files: KeepsFiles::default(),
    }
}
