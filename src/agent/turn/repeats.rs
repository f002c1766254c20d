//! Notices a model that makes the same call over and over: a note replaces the next result.

use serde_json::json;

use crate::chat::tool::{ToolCall, ToolInput, ToolOutput};

/// The newest call of a run, and how often it was made in a row.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<String>,
    times: u32,
}

impl Repeats {
    /// Notes that `call` is about to be made; what the model reads instead when that is the `most`-th time in a row, or a
    /// later one. 0 allows any number.
    pub(super) fn note(&mut self, call: &ToolCall, most: u32) -> Option<ToolOutput> {
        let input = match &call.input {
            ToolInput::Object(input) => json!([call.name, input]).to_string(),
            ToolInput::Invalid(text) => json!([call.name, text]).to_string(),
        };
        match self.last.as_ref() == Some(&input) {
            true => self.times = self.times.saturating_add(1),
            false => (self.last, self.times) = (Some(input), 1),
        }
        (most != 0 && self.times >= most).then(|| {
            ToolOutput::not_made(&format!(
                "this call was not made: it is the same call with the same arguments, {} times in a row, and its result stands \
                 above. Do something else, or answer with what you have",
                self.times
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::chat::ids::ToolCallId;

    #[test]
    fn the_same_call_in_a_row_is_noticed_from_the_third_time_on() {
        let call = |name: &str, input: Value| ToolCall {
            id: ToolCallId::mint(),
            name: name.to_owned(),
            input: ToolInput::parse(&input.to_string()),
        };
        let rows = [
            (call("look", json!({"id": 1})), false, "the first time"),
            (call("look", json!({"id": 1})), false, "the second"),
            (call("look", json!({"id": 1})), true, "the third"),
            (call("look", json!({"id": 1})), true, "and every one after it"),
            (call("look", json!({"id": 2})), false, "other arguments"),
            (call("look", json!({"id": 1})), false, "the first again, and not in a row"),
            (call("look", json!({"id": 1})), false, "the second"),
            (call("peek", json!({"id": 1})), false, "another tool"),
        ];
        let (mut bounded, mut free) = (Repeats::default(), Repeats::default());
        for (call, expected, reason) in rows {
            assert_eq!(bounded.note(&call, 3).is_some(), expected, "{reason}");
            assert_eq!(free.note(&call, 0), None, "no bound: {reason}");
        }
    }
}
