//! What becomes of an answer: what the model reads of it, and what the client gets.

use serde_json::{Map, Value, json};

use super::projection::Projection;
use crate::chat::payload::NewPayload;
use crate::chat::template::Template;
use crate::chat::tool::{Effect, ToolOutput};

/// What a file says about a tool's result.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What the model reads.
    pub projection: Projection,
    /// Words in its place.
    pub text: Option<Template>,
    /// What is kept for the client.
    pub payload: Option<Keep>,
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
    /// The output of a call with this effect whose answer is `answer`; `values` are those of its request's templates.
    ///
    /// # Errors
    /// When the answer is not of the form that the file expects.
    pub fn of(&self, answer: Value, effect: Effect, mut values: Map<String, Value>) -> Result<ToolOutput, String> {
        let payload = match &self.payload {
            None => None,
            Some(Keep { kind, projection }) => {
                let data = projection.of(&answer)?;
                (!data.is_null()).then(|| NewPayload { kind: kind.clone(), data })
            }
        };
        let projected = self.projection.of(&answer)?;
        let content = match &self.text {
            Some(text) => {
                values.insert("result".to_owned(), answer);
                values.insert("projected".to_owned(), projected);
                text.render(&values).map_err(|error| error.to_string())?
            }
            None if effect == Effect::Write && answer.is_null() => json!({"done": true}).to_string(),
            None => projected.to_string(),
        };
        Ok(ToolOutput { payload, ..ToolOutput::ok(content) })
    }
}
