//! What the templates of declared calls take values from.

use serde_json::{Map, Value, json};

use crate::agent::ports::tools::ToolContext;

/// The names that every template of a call may use; `args` is not there yet where arguments are made.
pub const NAMES: [&str; 5] = ["args", "context", "user", "roles", "conversation_id"];

/// The names that a text about an answer may use besides.
pub const OF_ANSWERS: [&str; 2] = ["result", "projected"];

/// The values of `cx`. The caller's token is not among them.
pub fn of(cx: &ToolContext<'_>) -> Map<String, Value> {
    let values = [
        ("context", cx.context.map_or(Value::Null, |context| Value::Object(context.clone()))),
        ("user", json!(cx.caller.owner.user)),
        ("roles", json!(cx.caller.roles)),
        ("conversation_id", json!(cx.conversation.as_str())),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
