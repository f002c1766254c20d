//! The call that a tool or a data loader makes, and that call with its placeholders filled.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::path::PathTemplate;
use crate::chat::template::{Template, TemplateError, ValueTemplate, Values};
use crate::chat::tool::Effect;
use crate::tools::ToolError;
use crate::tools::backend::{Framing, Request, Verb};

/// 4 KiB: what servers still take of a header.
const MAX_HEADER_BYTES: usize = 4096;

/// The call as a file says it.
#[derive(Debug, Clone)]
pub struct RestRequest {
    /// The name of the backend; `None`: `[backend]`.
    pub backend: Option<String>,
    /// The method.
    pub verb: Verb,
    /// The path.
    pub path: PathTemplate,
    /// The parameters by name. `None`: the arguments that are not in the path, where there is no body.
    pub query: Option<Vec<(String, ValueTemplate)>>,
    /// The body.
    pub body: Body,
    /// The media type of the body, a kind of JSON; `None`: `application/json`.
    pub content_type: Option<String>,
    /// What answers are wanted; `None`: JSON, and pictures.
    pub accept: Option<String>,
    /// Headers by name.
    pub headers: Vec<(String, Template)>,
    /// What a second call could do.
    pub effect: Effect,
    /// The bound of a whole call; `None`: as the settings say.
    pub timeout: Option<Duration>,
    /// How the answer comes in frames, if it does.
    pub progress: Option<Framing>,
    /// Statuses with which the backend promises that nothing was done, where that is not plain.
    pub failed_statuses: Vec<u16>,
}

/// What a call sends.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing.
    Nothing,
    /// An object of the arguments that are not in the path.
    Arguments,
    /// What the template makes; nothing, where it has no value.
    Made(ValueTemplate),
}

/// The call with its placeholders filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    segments: Vec<String>,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Option<Value>,
}

impl RestRequest {
    /// The arguments that its templates take by name.
    pub fn arguments(&self) -> BTreeSet<&str> {
        let query = self.query.iter().flatten().flat_map(|(_, value)| value.fields("args"));
        let headers = self.headers.iter().flat_map(|(_, template)| template.fields("args"));
        let body = match &self.body {
            Body::Nothing | Body::Arguments => None,
            Body::Made(template) => Some(template.fields("args")),
        };
        query.chain(headers).chain(body.into_iter().flatten()).collect()
    }

    /// The names that its templates take values from.
    pub fn names(&self) -> BTreeSet<&str> {
        let query = self.query.iter().flatten().flat_map(|(_, value)| value.names());
        let headers = self.headers.iter().flat_map(|(_, template)| template.names());
        let body = match &self.body {
            Body::Nothing | Body::Arguments => None,
            Body::Made(template) => Some(template.names()),
        };
        query.chain(headers).chain(body.into_iter().flatten()).collect()
    }

    /// The call as it was written: two that send different things are written differently.
    pub fn written(&self) -> Value {
        let Self { backend, verb, path, query, body, content_type, accept, headers, effect, .. } = self;
        let query = query.iter().flatten().map(|(name, value)| json!([name, value.written()]));
        let body = match body {
            Body::Nothing => json!("nothing"),
            Body::Arguments => json!("arguments"),
            Body::Made(template) => json!({"made": template.written()}),
        };
        let mut written = json!({
            "method": verb.name(),
            "path": path.written(),
            "query": query.collect::<Value>(),
            "body": body,
            "headers": headers.iter().map(|(name, value)| json!([name, value.written()])).collect::<Value>(),
            "writes": *effect == Effect::Write,
        });
        // What waits since before there were further backends is still the same call.
        if let Some(backend) = backend {
            written["backend"] = json!(backend);
        }
        if let Some(content_type) = content_type {
            written["content_type"] = json!(content_type);
        }
        if let Some(accept) = accept {
            written["accept"] = json!(accept);
        }
        written
    }

    /// The call for these arguments; `values` are those of the templates, the arguments among them.
    ///
    /// # Errors
    /// The mistakes in the arguments, in words for the model.
    pub fn fill(&self, args: &Map<String, Value>, values: &Values<'_>) -> Result<Filled, ToolError> {
        let segments = self.path.fill(args)?;
        let rest = || args.iter().filter(|(name, _)| !self.path.has(name));
        let mut query = Vec::new();
        match &self.query {
            Some(templates) => {
                for (name, template) in templates {
                    let value = template.fill(values).map_err(|error| unfit(name, &error))?;
                    parameters(name, &value.unwrap_or(Value::Null), &mut query);
                }
            }
            None if self.verb.has_body() || !matches!(self.body, Body::Nothing) => {}
            None => rest().for_each(|(name, value)| parameters(name, value, &mut query)),
        }
        let body = match &self.body {
            Body::Nothing => None,
            Body::Arguments => Some(Value::Object(rest().map(|(name, value)| (name.clone(), value.clone())).collect())),
            Body::Made(template) => {
                let body = template.fill(values).map_err(|error| unfit("body", &error))?;
                // To a server that deletes, an empty one may be another request than none.
                body.filter(|body| self.verb.has_body() || !is_left_empty(template, body))
            }
        };
        let mut headers = Vec::new();
        for (name, template) in &self.headers {
            let value = template.render(values).map_err(|error| unfit(name, &error))?;
            let value = value.trim();
            let is_plain = value.len() <= MAX_HEADER_BYTES && value.bytes().all(|b| (0x20..0x7f).contains(&b));
            if !is_plain {
                return Err(ToolError::BadParams(format!("the header {name} cannot have such a value")));
            }
            if !value.is_empty() {
                headers.push((name.clone(), value.to_owned()));
            }
        }
        Ok(Filled { segments, query, headers, body })
    }
}

impl Filled {
    /// The request, with the key of a write.
    pub fn request<'a>(&'a self, of: &'a RestRequest, key: Option<&'a str>) -> Request<'a> {
        let mut request = Request::new(of.verb, self.segments.iter().map(String::as_str));
        request = request.failed_statuses(&of.failed_statuses);
        for (name, value) in &self.query {
            request = request.query(name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &self.body {
            request = request.body(body);
        }
        if let Some(content_type) = &of.content_type {
            request = request.content_type(content_type);
        }
        if let Some(accept) = &of.accept {
            request = request.accept(accept);
        }
        if let Some(key) = key {
            request = request.idempotency_key(key);
        }
        if let Some(timeout) = of.timeout {
            request = request.timeout(timeout);
        }
        request
    }

    /// A text that two fillings of one call share only when they ask the same.
    pub fn identity(&self) -> String {
        let Self { segments, query, headers, body } = self;
        json!([segments, query, headers, body]).to_string()
    }
}

/// Whether none of the fields of a body has a value.
fn is_left_empty(template: &ValueTemplate, body: &Value) -> bool {
    let has_fields = matches!(template, ValueTemplate::Object(fields) if !fields.is_empty());
    has_fields && body.as_object().is_some_and(Map::is_empty)
}

/// Adds `value` as parameters: each item of a list as one, an object as JSON text, nothing as none.
fn parameters(name: &str, value: &Value, query: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Null => return,
        Value::Array(items) => {
            let is_flat = items.iter().all(|item| !item.is_array());
            if is_flat {
                items.iter().for_each(|item| parameters(name, item, query));
                return;
            }
            value.to_string()
        }
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    query.push((name.to_owned(), text));
}

fn unfit(what: &str, error: &TemplateError) -> ToolError {
    ToolError::BadParams(format!("{what} cannot be made of them: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_parameters_by_their_type() {
        let rows = [
            (json!(null), vec![], "nothing"),
            (json!("a b"), vec!["a b"], "text"),
            (json!(false), vec!["false"], "a truth"),
            (json!(["a", 1, null]), vec!["a", "1"], "a list is the parameter several times"),
            (json!([]), vec![], "an empty list"),
            (json!({"a": [1]}), vec!["{\"a\":[1]}"], "an object is text"),
            (json!([{"a": 1}]), vec!["{\"a\":1}"], "and so is each of a list"),
            (json!([[1], [2]]), vec!["[[1],[2]]"], "lists in lists are text"),
        ];
        for (value, expected, reason) in rows {
            let mut query = Vec::new();
            parameters("p", &value, &mut query);
            let expected: Vec<_> = expected.into_iter().map(|text| ("p".to_owned(), text.to_owned())).collect();
            assert_eq!(query, expected, "{reason}");
        }
    }
}
