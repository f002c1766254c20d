//! How an answer is used: what the model reads of it, and what the client gets.

use std::borrow::Cow;
use std::mem;

use serde_json::{Value, json};

use super::moves::Moves;
use super::projection::Projection;
use crate::bounded::json::{JsonText, NodeBudget, Wanted};
use crate::chat::payload::NewPayload;
use crate::chat::template::{Template, Values};
use crate::chat::tool::{Effect, ToolOutput};
use crate::tools::backend::BackendError;

/// What a file says about a tool's result.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What the model reads.
    pub projection: Projection,
    /// A text for the model instead of it.
    pub text: Option<Template>,
    /// The payload for the client.
    pub payload: Option<Keep>,
    /// Where the conversation goes with it.
    pub moves: Option<Moves>,
}

/// A payload that an answer makes.
#[derive(Debug, Clone)]
pub struct Keep {
    /// The name of its type.
    pub kind: String,
    /// What of the answer it is.
    pub projection: Projection,
}

impl Reading {
    /// What of an answer it looks at.
    pub fn wanted(&self) -> Wanted {
        let in_text = self.text.iter().flat_map(Template::names);
        let takes_answer = in_text.chain(self.moves.iter().flat_map(Moves::names)).any(|name| name == "result");
        let kept = self.payload.as_ref().map_or_else(Wanted::nothing, |kept| kept.projection.wanted(Wanted::All));
        let whole = if takes_answer { Wanted::All } else { Wanted::nothing() };
        self.projection.wanted(Wanted::All).and(kept).and(whole)
    }

    /// Whether the model reads the answer as it is, and nothing else is made of it.
    pub fn is_plain(&self) -> bool {
        self.text.is_none() && self.payload.is_none() && self.moves.is_none() && self.projection.is_all()
    }

    /// The output of a call with this effect whose answer is `answer`, made in `budget`; `values` are those of its
    /// request's templates.
    ///
    /// # Errors
    /// When the answer has not the shape that the file expects, or is too large for it.
    pub fn output(
        &self,
        mut answer: Value,
        effect: Effect,
        values: Values<'_>,
        budget: &mut NodeBudget,
    ) -> Result<ToolOutput, BackendError> {
        let moves = match &self.moves {
            None => None,
            Some(moves) => {
                let mut values = values.clone();
                values.lend("result", &answer);
                moves.after(&values).map_err(|error| BackendError::Shape(error.to_string()))?
            }
        };
        let content = match &self.text {
            Some(text) => {
                let projected = self.projection.apply(Cow::Borrowed(&answer), budget)?;
                let mut values = values;
                values.lend("result", &answer);
                values.insert("projected", projected);
                text.render(&values).map_err(|error| BackendError::Shape(error.to_string()))?
            }
            None if effect == Effect::Write && answer.is_null() => json!({"done": true}).to_string(),
            None if self.projection.is_all() => answer.to_string(),
            None if self.payload.is_none() => {
                self.projection.apply(Cow::Owned(mem::take(&mut answer)), budget)?.to_string()
            }
            None => self.projection.apply(Cow::Borrowed(&answer), budget)?.to_string(),
        };
        // The last one that looks at the answer: where the payload is all of it, there is no second one.
        let payload = match &self.payload {
            None => None,
            Some(Keep { kind, projection }) => {
                let data = projection.apply(Cow::Owned(answer), budget)?;
                (!data.is_null()).then(|| NewPayload { kind: kind.clone(), data: JsonText::of(&data) })
            }
        };
        Ok(ToolOutput { payload, moves, ..ToolOutput::ok(content) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(projection: &str, text: Option<&str>, payload: Option<&str>) -> Reading {
        let keep = |text: &str| Keep { kind: "articles".to_owned(), projection: Projection::parse(text).unwrap() };
        Reading {
            projection: Projection::parse(projection).unwrap(),
            text: text.map(|text| Template::parse(text).unwrap()),
            payload: payload.map(keep),
            moves: None,
        }
    }

    #[test]
    fn the_model_reads_one_thing_and_the_client_gets_another() {
        let answer = json!({"total": 2, "items": [{"id": 1}, {"id": 2}]});
        let kept = |data: Value| Some(NewPayload { kind: "articles".to_owned(), data: JsonText::of(&data) });
        let rows = [
            (reading("@", None, None), answer.to_string(), None, "all of it"),
            (reading("items[].id", None, Some("@")), "[1,2]".to_owned(), kept(answer.clone()), "a part and all of it"),
            (
                reading("items[0]", Some("{{ args.q }}: {{ result.total }}, {{ projected.id }}"), Some("items")),
                "x: 2, 1".to_owned(),
                kept(json!([{"id": 1}, {"id": 2}])),
                "words",
            ),
            (reading("nothing", None, Some("nothing")), "null".to_owned(), None, "nothing is no payload"),
        ];
        for (reading, content, payload, reason) in rows {
            let mut values = Values::default();
            values.insert("args", json!({"q": "x"}));
            let output =
                reading.output(answer.clone(), Effect::Read, values, &mut NodeBudget::for_bytes(0, None)).unwrap();
            assert_eq!(output, ToolOutput { payload, ..ToolOutput::ok(content) }, "{reason}");
        }
        let budget = &mut NodeBudget::for_bytes(0, None);
        let done = reading("@", None, None).output(Value::Null, Effect::Write, Values::default(), budget).unwrap();
        assert_eq!(done, ToolOutput::ok("{\"done\":true}"), "a write that says nothing is done");
    }
}
