//! What the templates of declared calls take values from.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::agent::ports::tools::ToolContext;
use crate::bounded::intake::{Intake, LARGE};
use crate::chat::place::Place;
use crate::chat::template::{TemplateError, ValueTemplate, Values};

/// The names that every template of a call may use; `args` is not there yet where arguments are made.
pub const NAMES: [&str; 7] = ["args", "context", "place", "user", "tenant", "roles", "conversation_id"];

/// What was read before the call, to the templates of bodies.
pub const BEFORE: &str = "before";

/// The names that a text about an answer may use besides.
pub const OF_ANSWERS: [&str; 2] = ["result", "projected"];

/// The name of the screen state.
const CONTEXT: &str = "context";

/// Whether templates that take values of these names take the screen state.
pub fn take_context(names: &BTreeSet<&str>) -> bool {
    names.contains(CONTEXT)
}

/// The values of `cx`, for templates that take the screen state, or do not; a large one is converted by `intake`. The caller's
/// token is not among them.
pub async fn context_values(cx: &ToolContext<'_>, takes_context: bool, intake: &Intake) -> Values<'static> {
    let mut values = Values::default();
    match cx.context {
        Some(context) => values.screen(CONTEXT, context.clone()),
        None => values.insert(CONTEXT, Value::Null),
    }
    values.insert("place", cx.place.map_or(Value::Null, Place::value));
    values.insert("user", json!(cx.caller.owner.user));
    values.insert("tenant", json!(cx.caller.owner.tenant_name()));
    values.insert("roles", json!(cx.caller.roles));
    values.insert("conversation_id", cx.conversation_id());
    let size = cx.context.filter(|_| takes_context).map_or(0, |context| context.as_str().len());
    if size > LARGE {
        let converted = values.clone();
        intake.work(size, move || converted.convert(CONTEXT)).await;
    }
    values
}

/// Whether a condition is true of `values`.
///
/// # Errors
/// When it cannot be filled.
pub fn holds(when: &ValueTemplate, values: &Values<'_>) -> Result<bool, TemplateError> {
    Ok(when.fill(values)?.is_some_and(|value| is_true(&value)))
}

/// Whether a condition's value holds: everything does but nothing, `false`, zero and what is empty.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
