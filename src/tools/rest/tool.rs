//! A declared tool at work.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::lookup::{Lists, Lookup};
use super::reading::Reading;
use super::request::RestRequest;
use super::values;
use crate::agent::ports::tools::ToolContext;
use crate::chat::template::Values;
use crate::chat::tool::{Effect, ToolOutput};
use crate::tools::backend::{Backend, BackendError};
use crate::tools::data::Loaders;
use crate::tools::executor::Handler;
use crate::tools::{Tool, ToolError, idempotency};

/// What a file says about a tool, beside what the model is told of it.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The arguments.
    pub arguments: Arguments,
    /// The arguments that may be names.
    pub lookups: Vec<Lookup>,
    /// The call.
    pub request: RestRequest,
    /// What becomes of the answer.
    pub reading: Reading,
    /// Tags of loaded data that a call makes stale.
    pub invalidates: Vec<String>,
}

/// Makes a declared call.
struct RestTool {
    backend: Arc<Backend>,
    lists: Arc<Lists>,
    loaders: Arc<Loaders>,
    declared: Declared,
}

/// The handlers of declared tools, by the tools' names. What a write makes stale is dropped from `loaders`.
pub fn tools(
    backend: &Arc<Backend>,
    loaders: &Arc<Loaders>,
    declared: impl IntoIterator<Item = (String, Declared)>,
) -> Vec<Handler> {
    let lists = Arc::new(Lists::new(backend.clone()));
    let handler = |(name, declared): (String, Declared)| -> Handler {
        let (backend, lists, loaders) = (backend.clone(), lists.clone(), loaders.clone());
        (name.into(), Arc::new(RestTool { backend, lists, loaders, declared }))
    };
    declared.into_iter().map(handler).collect()
}

#[async_trait]
impl Tool for RestTool {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Declared { request, .. } = &self.declared;
        let args = match cx.approved {
            Some(args) => args.clone(),
            None => self.complete(args, cx).await?,
        };
        let mut values = values::of(cx);
        values.insert("args", Value::Object(args.clone()));
        let filled = request.fill(&args, &values)?;
        let key = match (request.effect, cx.call) {
            (Effect::Read, _) => None,
            (Effect::Write, Some(call)) => Some(idempotency::key(cx.run, call)),
            (Effect::Write, None) => return Err(ToolError::Refused("a write needs the id of its call".to_owned())),
        };
        // Whoever loads while the write is under way may still get what was there before it. A call that is dropped may
        // have been done too.
        let _stale = Stale::now(&self.loaders, &self.declared.invalidates);
        let sent = filled.request(request, key.as_deref());
        let answer = match request.progress {
            Some(framing) => self.backend.follow(cx.caller, sent, framing, cx.progress).await,
            None => self.backend.call(cx.caller, sent).await,
        };
        match request.effect {
            Effect::Read => self.read(answer?, values),
            Effect::Write => self.written(answer, values),
        }
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        self.declared.arguments.said(args).map(drop)
    }

    async fn complete(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<Map<String, Value>, ToolError> {
        let Declared { arguments, lookups, .. } = &self.declared;
        let mut args = arguments.complete(arguments.said(args)?, &values::of(cx))?;
        for lookup in lookups {
            self.lists.resolve(lookup, &mut args, cx.caller).await?;
        }
        Ok(args)
    }

    fn effect(&self) -> Effect {
        self.declared.request.effect
    }
}

/// Makes loaded data stale, and once more when it is dropped.
struct Stale<'a> {
    loaders: &'a Loaders,
    tags: &'a [String],
}

impl<'a> Stale<'a> {
    fn now(loaders: &'a Loaders, tags: &'a [String]) -> Self {
        loaders.stale(tags);
        Self { loaders, tags }
    }
}

impl Drop for Stale<'_> {
    fn drop(&mut self) {
        self.loaders.stale(self.tags);
    }
}

impl RestTool {
    fn read(&self, answer: Value, values: Values<'_>) -> Result<ToolOutput, ToolError> {
        let output = self.declared.reading.of(answer, Effect::Read, values);
        output.map_err(|reason| BackendError::Shape(reason).into())
    }

    fn written(&self, answer: Result<Value, BackendError>, values: Values<'_>) -> Result<ToolOutput, ToolError> {
        let Declared { request, reading, .. } = &self.declared;
        let done = |note: String| ToolOutput::ok(json!({"done": true, "note": note}).to_string());
        match answer {
            Ok(answer) => Ok(reading
                .of(answer, Effect::Write, values)
                .unwrap_or_else(|reason| done(BackendError::Shape(reason).to_string()))),
            // The status was good, so it is done; only the answer cannot be read. Of an answer in frames the status says
            // only that the work has begun.
            Err(error @ (BackendError::NotJson(_) | BackendError::TooLarge { .. })) if request.progress.is_none() => {
                Ok(done(error.to_string()))
            }
            Err(error) if !error.proves_nothing_was_done() => Err(ToolError::Unconfirmed(error)),
            Err(error) => Err(error.into()),
        }
    }
}
