//! How an answer is used: what the model reads of it, and what the client gets.

use std::borrow::Cow;
use std::mem;

use serde_json::json;

use super::moves::Moves;
use super::projection::Projection;
use crate::bounded::json::{JsonText, NodeBudget, Wanted};
use crate::chat::payload::NewPayload;
use crate::chat::template::{Template, Values};
use crate::chat::tool::{Effect, ToolOutput};
use crate::tools::backend::{BackendError, Parts, Read};

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
    /// The names that its templates take values from.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let in_text = self.text.iter().flat_map(Template::names);
        in_text.chain(self.moves.iter().flat_map(Moves::names))
    }

    /// The parts of an answer that it takes. A payload that is all of it is its text.
    pub fn parts(&self) -> Parts {
        let takes_answer = self.names().any(|name| name == "result");
        let whole = if takes_answer { Wanted::All } else { Wanted::nothing() };
        let text = self.payload.as_ref().is_some_and(|kept| kept.projection.is_all());
        // Where its text is kept, whoever takes all of it needs no values.
        let of = |projection: &Projection, as_text: bool| match as_text && projection.is_all() {
            true => Wanted::nothing(),
            false => projection.wanted(Wanted::All),
        };
        let read = of(&self.projection, text && self.text.is_none());
        let kept = self.payload.as_ref().map_or_else(Wanted::nothing, |kept| of(&kept.projection, text));
        Parts { values: read.and(kept).and(whole), text }
    }

    /// Whether the model reads the answer as it is, and nothing else is made of it.
    pub fn is_plain(&self) -> bool {
        self.text.is_none() && self.payload.is_none() && self.moves.is_none() && self.projection.is_all()
    }

    /// The output of a call with this effect, of what is read of its answer, made in `budget`; `values` are those of its
    /// request's templates.
    ///
    /// # Errors
    /// When the answer has not the shape that the file expects, or is too large for it.
    pub fn output(
        &self,
        Read { value: mut answer, text: whole, done }: Read,
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
            None if effect == Effect::Write && answer.is_null() => {
                done.unwrap_or_else(|| json!({"done": true})).to_string()
            }
            None if self.projection.is_all() => {
                whole.as_ref().map_or_else(|| answer.to_string(), |whole| whole.as_str().to_owned())
            }
            None if self.payload.is_none() => {
                self.projection.apply(Cow::Owned(mem::take(&mut answer)), budget)?.to_string()
            }
            None => self.projection.apply(Cow::Borrowed(&answer), budget)?.to_string(),
        };
        // The last one that looks at the answer: where the payload is all of it, there is no second one.
        let payload = match &self.payload {
            None => None,
            Some(Keep { kind, projection }) => {
                let data = match whole {
                    Some(whole) if projection.is_all() => whole,
                    Some(_) | None => JsonText::of(&projection.apply(Cow::Owned(answer), budget)?),
                };
                (data != JsonText::null()).then(|| NewPayload { kind: kind.clone(), data })
            }
        };
        Ok(ToolOutput { payload, moves, ..ToolOutput::ok(content) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::bounded::json::JsonError;

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
        let budget = || NodeBudget::for_bytes(0, None);
        let kept = |data: Value| Some(NewPayload { kind: "articles".to_owned(), data: JsonText::of(&data) });
        let rows = [
            (reading("@", None, None), answer.to_string(), None, "all of it"),
            (reading("@", None, Some("@")), answer.to_string(), kept(answer.clone()), "all of it, twice"),
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
            for is_framed in [false, true] {
                let mut values = Values::default();
                values.insert("args", json!({"q": "x"}));
                let read = match is_framed {
                    false => Read::new(answer.to_string(), &reading.parts(), &mut budget()).unwrap(),
                    true => Read { value: answer.clone(), text: None, done: None },
                };
                let output = reading.output(read, Effect::Read, values, &mut budget()).unwrap();
                let expected = ToolOutput { payload: payload.clone(), ..ToolOutput::ok(content.clone()) };
                assert_eq!(output, expected, "{reason}, framed: {is_framed}");
            }
        }
        let too_many = format!("[{}0]", r#"{"":0},"#.repeat(100_000));
        let refused = Read::new(too_many, &reading("@", None, Some("@")).parts(), &mut budget()).unwrap_err();
        assert!(matches!(refused, JsonError::TooMany(_)), "{refused}: nobody could read it again");
        let nothing = reading("@", None, Some("@"));
        let read = Read::new("null".to_owned(), &nothing.parts(), &mut budget()).unwrap();
        let done = nothing.output(read, Effect::Write, Values::default(), &mut budget()).unwrap();
        assert_eq!(done, ToolOutput::ok("{\"done\":true}"), "a write that says nothing is done, and keeps nothing");
    }
}
