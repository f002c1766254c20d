//! A tool declared as data: one REST call, made of a definition's `request` and the model's arguments.
//!
//! **Invariant:** an argument is a value in its place (one path segment, one parameter, one field of the body) and
//! never chooses the place. **Invariant:** a write is never sent without the key of its run and call.

pub mod path;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use self::path::PathTemplate;
use super::backend::{Backend, BackendError, Request, Verb};
use super::executor::Handler;
use super::{Tool, ToolError, idempotency};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::{Effect, ToolOutput};

/// The call that a definition declares.
#[derive(Debug, Clone, PartialEq)]
pub struct RestRequest {
    /// What is done. `GET` and `DELETE` carry their arguments in the query, the others in a JSON body.
    pub verb: Verb,
    /// What it is done to.
    pub path: PathTemplate,
    /// What a second call could do.
    pub effect: Effect,
    /// Which arguments there are.
    pub arguments: Arguments,
}

/// The arguments that a definition's schema knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// Those that must be there.
    pub required: Vec<String>,
    /// Those that may be there.
    pub known: Vec<String>,
    /// Whether others may be there too: the schema says so with `additionalProperties`.
    pub may_be_others: bool,
}

/// Makes a declared call.
pub struct RestTool {
    backend: Arc<Backend>,
    request: RestRequest,
}

/// The handlers of declared tools, by the tools' names.
pub fn tools(backend: &Arc<Backend>, requests: impl IntoIterator<Item = (String, RestRequest)>) -> Vec<Handler> {
    let handler = |(name, request): (String, RestRequest)| -> Handler {
        (name.into(), Arc::new(RestTool { backend: Arc::clone(backend), request }))
    };
    requests.into_iter().map(handler).collect()
}

impl Arguments {
    /// The arguments of `schema`, a JSON Schema of the type object.
    pub fn of(schema: &Value) -> Self {
        let names = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let required: Vec<String> = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut known: Vec<String> = properties.into_iter().flat_map(Map::keys).cloned().collect();
        known.extend(required.iter().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>());
        let others = schema.get("additionalProperties");
        Self { required, known, may_be_others: others.is_some_and(|others| *others != Value::Bool(false)) }
    }
}

impl RestRequest {
    /// Whether the arguments that are not in the path go into a body.
    fn has_body(&self) -> bool {
        match self.verb {
            Verb::Get | Verb::Delete => false,
            Verb::Post | Verb::Put | Verb::Patch => true,
        }
    }

    /// Finds everything that is missing, or that nobody declared: what a model makes up is not for the backend.
    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        // A body can say `null`, and a PATCH may mean it; elsewhere it says nothing.
        let in_body = |name: &str| self.has_body() && !self.path.has(name);
        let is_missing = |name: &str| args.get(name).is_none_or(|value| value.is_null() && !in_body(name));
        let mut missing: Vec<&str> = Vec::new();
        for name in self.path.names().chain(self.arguments.required.iter().map(String::as_str)) {
            if is_missing(name) && !missing.contains(&name) {
                missing.push(name);
            }
        }
        if !missing.is_empty() {
            return Err(ToolError::BadParams(format!("missing {}", missing.join(", "))));
        }
        let Arguments { known, may_be_others, .. } = &self.arguments;
        let unknown: Vec<&str> = args.keys().map(String::as_str).filter(|name| !has(known, name)).collect();
        if unknown.is_empty() || *may_be_others {
            return Ok(());
        }
        let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(ToolError::BadParams(format!("no such argument: {}; there are: {all}", unknown.join(", "))))
    }
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

#[async_trait]
impl Tool for RestTool {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let RestRequest { verb, path, effect, .. } = &self.request;
        self.request.check(args)?;
        let segments = path.fill(args)?;
        let rest = args.iter().filter(|(name, _)| !path.has(name));
        let (query, body) = match self.request.has_body() {
            true => {
                (Vec::new(), Some(Value::Object(rest.map(|(name, value)| (name.clone(), value.clone())).collect())))
            }
            false => (rest.filter_map(|(name, value)| Some((name, parameter(value)?))).collect(), None),
        };
        let key = match (effect, cx.call) {
            (Effect::Read, _) => None,
            (Effect::Write, Some(call)) => Some(idempotency::key(cx.run, call)),
            (Effect::Write, None) => return Err(ToolError::Refused("a write needs the id of its call".to_owned())),
        };

        let mut request = Request::new(*verb, segments.iter().map(String::as_str));
        for (name, value) in &query {
            request = request.query(name, value);
        }
        if let Some(body) = &body {
            request = request.body(body);
        }
        if let Some(key) = &key {
            request = request.idempotency_key(key);
        }
        match (effect, self.backend.call(cx.caller, request).await) {
            (Effect::Write, Ok(Value::Null)) => Ok(ToolOutput::ok(json!({"done": true}).to_string())),
            (Effect::Read | Effect::Write, Ok(answer)) => Ok(ToolOutput::ok(answer.to_string())),
            // The status was good, so it is done; only the answer cannot be read.
            (Effect::Write, Err(error @ (BackendError::NotJson(_) | BackendError::TooLarge { .. }))) => {
                Ok(ToolOutput::ok(json!({"done": true, "note": error.to_string()}).to_string()))
            }
            (Effect::Write, Err(error)) if !error.proves_nothing_was_done() => Err(ToolError::Unconfirmed(error)),
            (Effect::Read | Effect::Write, Err(error)) => Err(error.into()),
        }
    }

    fn effect(&self) -> Effect {
        self.request.effect
    }
}

/// The value as a parameter of a query; `None` for `null`, which says nothing.
fn parameter(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}
