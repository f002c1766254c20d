//! A declared tool at work.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::answer;
use super::declared::Declared;
use super::lookup::{Lists, Origin};
use super::values::{self, BEFORE};
use crate::agent::ports::tools::ToolContext;
use crate::bounded::json::{NodeBudget, Wanted};
use crate::chat::caller::Owner;
use crate::chat::template::Values;
use crate::chat::tool::{Effect, ToolOutput};
use crate::tools::backend::{Backend, BackendError, Parts, Read, Request};
use crate::tools::rest::data::Loaders;
use crate::tools::{Tool, ToolError, idempotency, made};

/// Makes a declared call.
pub(super) struct RestTool {
    backend: Arc<Backend>,
    lists: Arc<Lists>,
    loaders: Arc<Loaders>,
    declared: Arc<Declared>,
    /// Whether some template takes the screen state.
    takes_context: bool,
}

#[async_trait]
impl Tool for RestTool {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Declared { answers, before, .. } = &*self.declared;
        let args = match cx.completed {
            Some(args) => args.clone(),
            None => self.complete(args, cx).await?,
        };
        let mut values = self.values(cx).await;
        values.insert("args", Value::Object(args.clone()));
        if let Some(output) = answer::find(answers, &values)? {
            return Ok(output);
        }
        let Some(request) = self.declared.request_for(&values)? else {
            return Err(ToolError::Refused("the tool has no answer to these arguments".to_owned()));
        };
        if let Some(before) = before
            && before.holds(&values)?
        {
            let filled = before.request.fill(&args, &values)?;
            let sent = filled.request(&before.request, None);
            let found = self.backend.read(cx.caller, sent, Wanted::All, |found, _| Ok(found)).await?;
            values.insert(BEFORE, found);
        }
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
            move |read: Read, budget: &mut NodeBudget| match declared.reading.output(read, effect, values, budget) {
                // The status was good, so it is done; only the answer is not of use.
                Err(error) if effect == Effect::Write => Ok(done(&error)),
                output => output,
            };
        let parts = self.declared.reading.parts();
        let output = match request.progress {
            Some(framing) => self.backend.follow(cx.caller, sent, (framing, cx.progress), parts, made).await,
            None => self.whole((sent, effect), parts, made, cx).await,
        };
        drop(stale);
        match effect {
            Effect::Read => Ok(output?),
            Effect::Write => written(output, request.progress.is_some(), cx.first_try.is_some()),
        }
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        self.declared.arguments.checked(args).map(drop)
    }

    async fn complete(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<Map<String, Value>, ToolError> {
        let Declared { arguments, lookups, .. } = &*self.declared;
        let args = arguments.checked(args)?;
        let mut values = self.values(cx).await;
        let mut args = arguments.complete(args, &values)?;
        let origin = Origin { backend: &self.backend, name: self.declared.backend() };
        for lookup in lookups {
            self.lists.resolve(lookup, origin, &mut args, cx.caller).await?;
        }
        // What is refused needs no approval, and nothing is asked for its sake.
        values.insert("args", Value::Object(args.clone()));
        answer::find(&self.declared.answers, &values)?;
        Ok(args)
    }

    fn effect(&self) -> Effect {
        self.declared.effect()
    }

    fn source(&self) -> Cow<'_, str> {
        Cow::Owned(self.declared.written())
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
    /// The tool that `declared` is.
    pub(super) fn new(
        backend: Arc<Backend>,
        lists: Arc<Lists>,
        loaders: Arc<Loaders>,
        declared: Arc<Declared>,
    ) -> Self {
        let takes_context = values::take_context(&declared.names());
        Self { backend, lists, loaders, declared, takes_context }
    }

    /// The values of its templates, but for the arguments.
    pub(super) async fn values(&self, cx: &ToolContext<'_>) -> Values<'static> {
        values::context_values(cx, self.takes_context, self.backend.intake()).await
    }

    /// What comes of an answer that is no stream of frames: JSON as `made` makes it, or a picture.
    async fn whole(
        &self,
        (sent, effect): (Request<'_>, Effect),
        parts: Parts,
        made: impl FnOnce(Read, &mut NodeBudget) -> Result<ToolOutput, BackendError> + Send + 'static,
        cx: &ToolContext<'_>,
    ) -> Result<ToolOutput, BackendError> {
        let answered = self.backend.ask(cx.caller, sent).await?;
        match effect {
            _ if answered.is_picture() => {
                Ok(made::picture(self.backend.picture(answered, made::FILE_BYTES).await?, cx).await)
            }
            Effect::Read if self.declared.reading.is_plain() => self.backend.text(answered).await.map(ToolOutput::ok),
            Effect::Read | Effect::Write => self.backend.rest(answered, parts, made).await,
        }
    }
}

/// What came of a write whose answer comes in frames, or whole, and that was tried before with the same key, or not.
fn written(
    output: Result<ToolOutput, BackendError>,
    in_frames: bool,
    was_tried: bool,
) -> Result<ToolOutput, ToolError> {
    match output {
        Ok(output) => Ok(output),
        // Of an answer in frames the status says only that the work has begun.
        Err(error) if error.is_of_good_status() && !in_frames => Ok(done(&error)),
        Err(error) if !error.proves_nothing_was_done() => Err(ToolError::Unconfirmed(error)),
        // It may be the first try that is in the way of this one.
        Err(error) if was_tried && error.is_conflict() => Err(ToolError::Unconfirmed(error)),
        Err(error) => Err(error.into()),
    }
}

/// The output of a write that was done, whose answer is not of use.
fn done(error: &BackendError) -> ToolOutput {
    ToolOutput::ok(json!({"done": true, "note": error.to_string()}).to_string())
}
