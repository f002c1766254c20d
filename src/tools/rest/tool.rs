//! A declared tool at work.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::answer;
use super::declared::Declared;
use super::lookup::{Lists, Origin};
use super::values;
use crate::agent::ports::tools::ToolContext;
use crate::bounded::json::NodeBudget;
use crate::chat::caller::Owner;
use crate::chat::tool::{Effect, ToolOutput};
use crate::tools::backend::{Backend, BackendError};
use crate::tools::rest::data::Loaders;
use crate::tools::{Tool, ToolError, idempotency};

/// Makes a declared call.
pub(super) struct RestTool {
    pub(super) backend: Arc<Backend>,
    pub(super) lists: Arc<Lists>,
    pub(super) loaders: Arc<Loaders>,
    pub(super) declared: Arc<Declared>,
}

#[async_trait]
impl Tool for RestTool {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Declared { answers, request, .. } = &*self.declared;
        let args = match cx.completed {
            Some(args) => args.clone(),
            None => self.complete(args, cx).await?,
        };
        let mut values = values::context_values(cx);
        values.insert("args", Value::Object(args.clone()));
        if let Some(output) = answer::find(answers, &values)? {
            return Ok(output);
        }
        let Some(request) = request else {
            return Err(ToolError::Refused("the tool has no answer to these arguments".to_owned()));
        };
        let filled = request.fill(&args, &values)?;
        let key = match (request.effect, cx.first_try.or(cx.call)) {
            (Effect::Read, _) => None,
            (Effect::Write, Some(call)) => Some(idempotency::key(cx.run, call)),
            (Effect::Write, None) => return Err(ToolError::Refused("a write needs the id of its call".to_owned())),
        };
        // Whoever loads while the write is under way may still get what was there before it. A call that is dropped may
        // have been done too.
        let stale = Stale::before(&self.loaders, &cx.caller.owner, &self.declared.invalidates).await;
        let sent = filled.request(request, key.as_deref());
        let (declared, effect) = (self.declared.clone(), request.effect);
        let made =
            move |answer: Value, budget: &mut NodeBudget| match declared.reading.output(answer, effect, values, budget)
            {
                // The status was good, so it is done; only the answer is not of use.
                Err(error) if effect == Effect::Write => Ok(done(&error)),
                output => output,
            };
        let wanted = self.declared.reading.wanted();
        let output = match request.progress {
            Some(framing) => self.backend.follow(cx.caller, sent, (framing, cx.progress), wanted, made).await,
            None if effect == Effect::Read && self.declared.reading.is_plain() => {
                self.backend.text(cx.caller, sent).await.map(ToolOutput::ok)
            }
            None => self.backend.read(cx.caller, sent, wanted, made).await,
        };
        drop(stale);
        match effect {
            Effect::Read => Ok(output?),
            Effect::Write => self.written(output),
        }
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        self.declared.arguments.checked(args).map(drop)
    }

    async fn complete(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<Map<String, Value>, ToolError> {
        let Declared { arguments, lookups, .. } = &*self.declared;
        let mut args = arguments.complete(arguments.checked(args)?, &values::context_values(cx))?;
        let origin = Origin { backend: &self.backend, name: self.declared.backend() };
        for lookup in lookups {
            self.lists.resolve(lookup, origin, &mut args, cx.caller).await?;
        }
        // What is refused needs no approval, and nothing is asked for its sake.
        let mut values = values::context_values(cx);
        values.insert("args", Value::Object(args.clone()));
        answer::find(&self.declared.answers, &values)?;
        Ok(args)
    }

    fn effect(&self) -> Effect {
        self.declared.effect()
    }

    fn source(&self) -> Cow<'_, str> {
        let Declared { answers, request, .. } = &*self.declared;
        // What waits since before there were answers without a call is still the same call.
        Cow::Owned(match (request, answers.is_empty()) {
            (Some(request), true) => format!("rest {}", request.written()),
            (Some(request), false) => format!("rest {} unless {}", request.written(), answer::written(answers)),
            (None, _) => format!("answers {}", answer::written(answers)),
        })
    }
}

/// Makes loaded data stale once more when a write is over, also one that is dropped.
struct Stale<'a> {
    loaders: &'a Loaders,
    owner: &'a Owner,
    tags: &'a [String],
}

impl<'a> Stale<'a> {
    /// The write begins.
    async fn before(loaders: &'a Loaders, owner: &'a Owner, tags: &'a [String]) -> Self {
        loaders.stale(owner, tags).await;
        Self { loaders, owner, tags }
    }
}

impl Drop for Stale<'_> {
    fn drop(&mut self) {
        self.loaders.stale_again(self.owner, self.tags);
    }
}

impl RestTool {
    fn written(&self, output: Result<ToolOutput, BackendError>) -> Result<ToolOutput, ToolError> {
        match output {
            Ok(output) => Ok(output),
            // The status was good, so it is done; only the answer cannot be read. Of an answer in frames the status says
            // only that the work has begun.
            Err(error @ (BackendError::NotJson(_) | BackendError::Unreadable(_) | BackendError::TooLarge { .. }))
                if self.declared.request.as_ref().is_none_or(|request| request.progress.is_none()) =>
            {
                Ok(done(&error))
            }
            Err(error) if !error.proves_nothing_was_done() => Err(ToolError::Unconfirmed(error)),
            Err(error) => Err(error.into()),
        }
    }
}

/// The output of a write that was done, whose answer is not of use.
fn done(error: &BackendError) -> ToolOutput {
    ToolOutput::ok(json!({"done": true, "note": error.to_string()}).to_string())
}
