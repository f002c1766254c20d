//! Requests whose answer has a form: a JSON object, or a call; and what a client tells the model.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::agent::ports::llm::{MustCall, SystemPrompt};
use switchboard::chat::answer_format::{AnswerFormat, AnswerSchema};
use switchboard::chat::model::Effort;

use super::scenarios::{Asked, Scenario, first_words, one_call};

/// As front ends make it of a type with another type in it.
fn trip() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1},
            "days": {"type": "integer", "minimum": 1},
            "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
        },
        "required": ["city", "days", "stops"],
        "additionalProperties": false,
        "$defs": {
            "Stop": {
                "type": "object",
                "properties": {"at": {"type": "string", "description": "Where. ``` is no end"}},
                "required": ["at"],
                "additionalProperties": false,
            },
        },
    })
}

fn format() -> Option<AnswerFormat> {
    let schema = AnswerSchema::parse("trip".to_owned(), Some("A trip.".to_owned()), true, trip()).unwrap();
    Some(AnswerFormat::Schema(Arc::new(schema)))
}

/// A schema, without tools; a temperature and an effort.
pub(super) fn schema(asked: &Asked) -> Scenario {
    Scenario { format: format(), effort: Some(Effort::Low), ..first_words(asked) }
}

/// A schema behind a call, with tools that may be called again.
pub(super) fn beside_tools(asked: &Asked) -> Scenario {
    Scenario { format: format(), ..one_call(asked) }
}

/// The same when nothing may be called any more.
pub(super) fn again(asked: &Asked) -> Scenario {
    Scenario { may_call: false, ..beside_tools(asked) }
}

/// Any JSON object.
pub(super) fn any_object(asked: &Asked) -> Scenario {
    Scenario { format: Some(AnswerFormat::Object), ..first_words(asked) }
}

/// Any tool has to be called; a model that thinks.
pub(super) fn must_call(asked: &Asked) -> Scenario {
    Scenario { must_call: MustCall::Any, effort: Some(Effort::Low), ..one_call(asked) }
}

/// One tool has to be called.
pub(super) fn must_call_this(asked: &Asked) -> Scenario {
    Scenario { must_call: MustCall::This("find"), ..one_call(asked) }
}

/// What a client tells the model, between what the profile and the screen say.
pub(super) fn instructions(asked: &Asked) -> Scenario {
    let scenario = one_call(asked);
    let system = SystemPrompt { client: "[application a1]\nSay please.".to_owned(), ..scenario.system };
    Scenario { system, ..scenario }
}
