//! What the templates of declared calls take values from.

use serde_json::{Value, json};

use crate::agent::ports::tools::ToolContext;
use crate::chat::template::Values;

/// The names that every template of a call may use; `args` is not there yet where arguments are made.
pub const NAMES: [&str; 5] = ["args", "context", "user", "roles", "conversation_id"];

/// The names that a text about an answer may use besides.
pub const OF_ANSWERS: [&str; 2] = ["result", "projected"];

/// The values of `cx`. The caller's token is not among them.
pub fn context_values(cx: &ToolContext<'_>) -> Values<'static> {
    let mut values = Values::default();
    match cx.context {
        Some(context) => values.screen("context", context.clone()),
        None => values.insert("context", Value::Null),
    }
    values.insert("user", json!(cx.caller.owner.user));
    values.insert("roles", json!(cx.caller.roles));
    values.insert("conversation_id", cx.conversation_id());
    values
}
