//! Answers without a call: what a file says a tool answers by itself, always or where something is true of the arguments.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::values::holds;
use crate::chat::template::{Template, TemplateError, ValueTemplate, Values};
use crate::chat::tool::ToolOutput;
use crate::tools::ToolError;

/// One answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// It is given where this is true; `None`: always.
    pub when: Option<ValueTemplate>,
    /// What the model reads.
    pub content: Content,
    /// Whether it says what is wrong with the arguments.
    pub is_error: bool,
}

/// What the model reads of an answer.
#[derive(Debug, Clone)]
pub enum Content {
    /// A text.
    Text(Template),
    /// JSON.
    Json(ValueTemplate),
}

impl Answer {
    /// The names that its templates take values from.
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = self.when.as_ref().map(ValueTemplate::names).unwrap_or_default();
        match &self.content {
            Content::Text(text) => names.extend(text.names()),
            Content::Json(json) => names.extend(json.names()),
        }
        names
    }
}

/// The first of `answers` that is given for `values`, if any is.
///
/// # Errors
/// What is wrong with the arguments, be it that no answer can be made of them or that it says so.
pub fn find(answers: &[Answer], values: &Values<'_>) -> Result<Option<ToolOutput>, ToolError> {
    let unfit = |error: TemplateError| ToolError::BadParams(format!("no answer can be made of them: {error}"));
    for Answer { when, content, is_error } in answers {
        if let Some(when) = when
            && !holds(when, values).map_err(unfit)?
        {
            continue;
        }
        let content = match content {
            Content::Text(text) => text.render(values).map_err(unfit)?,
            Content::Json(json) => json.fill(values).map_err(unfit)?.unwrap_or(Value::Null).to_string(),
        };
        return match is_error {
            true => Err(ToolError::Unfit(content)),
            false => Ok(Some(ToolOutput::ok(content))),
        };
    }
    Ok(None)
}

/// The answers as they were written, for what a person lets through.
pub fn written(answers: &[Answer]) -> Value {
    let written = answers.iter().map(|answer| {
        let content = match &answer.content {
            Content::Text(text) => json!(text.written()),
            Content::Json(json) => json!({"json": json.written()}),
        };
        json!([answer.when.as_ref().map(ValueTemplate::written), content, answer.is_error])
    });
    written.collect()
}
