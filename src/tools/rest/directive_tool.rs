//! A declared tool whose call is a directive: it is requested, and what became of it within a while is the result.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::command::Command;
use super::tool::RestTool;
use crate::agent::ports::directives::{AskError, DirectiveDesk, RequestKey, Requested, Wanted};
use crate::agent::ports::tools::ToolContext;
use crate::chat::directive::{Directive, DirectiveNotice, DirectiveStatus, RunsAs};
use crate::chat::fate::{CallError, CallFate};
use crate::chat::tool::{CallNote, Effect, ToolOutput};
use crate::tools::{Tool, ToolError, idempotency};

/// Requests a directive.
pub(super) struct DirectiveTool {
    pub(super) rest: RestTool,
    pub(super) command: Arc<Command>,
    pub(super) desk: Arc<dyn DirectiveDesk>,
}

#[async_trait]
impl Tool for DirectiveTool {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args = match cx.completed {
            Some(args) => args.clone(),
            None => self.rest.complete(args, cx).await?,
        };
        let Some(call) = cx.call else {
            return Err(ToolError::Refused("a directive needs the id of its call".to_owned()));
        };
        let spec = &self.command.spec;
        let prepared = self.command.prepared(args, self.rest.values(cx).await).map_err(ToolError::BadParams)?;
        let wanted = Wanted {
            name: spec.rule.name.as_str(),
            prepared,
            correlation: cx.run.to_string(),
            call: Some((call, cx.conversation)),
            // Where its caller's token is needed, the call itself has waited for the approval.
            is_approved: spec.rule.runs_as == RunsAs::Caller,
            key: Some(RequestKey::Call(idempotency::key(cx.run, cx.first_try.unwrap_or(call)))),
            scheduled_at_ms: None,
        };
        let Requested { directive, created: _ } = match self.desk.request(wanted, cx.caller).await {
            Ok(requested) => requested,
            Err(error) => return refused(error),
        };
        let told = |notice: DirectiveNotice| cx.progress.directive(notice);
        // It is kept, whatever becomes of looking at it.
        let outcome = self.desk.outcome(cx.caller, directive.id, spec.wait, &told).await.ok().flatten();
        Ok(output(&outcome.unwrap_or(directive)))
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        self.rest.check(args)
    }

    async fn complete(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<Map<String, Value>, ToolError> {
        self.rest.complete(args, cx).await
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn source(&self) -> Cow<'_, str> {
        Cow::Owned(self.command.source())
    }
}

/// What the model reads of a request that was not kept.
fn refused(error: AskError) -> Result<ToolOutput, ToolError> {
    use crate::agent::ports::directives::RequestError;
    match error {
        // It may be kept: a call that repeats this one finds it by its key.
        AskError::Request(RequestError::Store(error)) => Ok(ToolOutput::unknown(&error.to_string())),
        error => Ok(ToolOutput::refused(&error.to_string(), CallError::Failed)),
    }
}

/// What the model reads of a directive.
fn output(directive: &Directive) -> ToolOutput {
    let status = directive.status;
    let fate = match status {
        DirectiveStatus::PendingApproval
        | DirectiveStatus::Requested
        | DirectiveStatus::Running
        | DirectiveStatus::Succeeded => CallFate::Done,
        DirectiveStatus::Failed | DirectiveStatus::Canceled => CallFate::Failed,
        DirectiveStatus::Unknown => CallFate::Unknown,
    };
    let is_ok = fate == CallFate::Done;
    let mut content = json!({
        "ok": is_ok,
        "type": format!("{}.{}", directive.name, status.name()),
        "directive_id": directive.id.to_string(),
        "status": status.name(),
    });
    if let Some(subject) = &directive.subject {
        content["subject"] = json!({"type": subject.kind, "id": subject.id});
    }
    if let Some(result) = directive.result.as_ref().filter(|_| status == DirectiveStatus::Succeeded) {
        content["result"] = result.clone();
    }
    if let Some(error) = directive.error.as_ref().filter(|_| !is_ok) {
        content["error"] = json!({"code": error.code.name(), "message": error.message});
    }
    content["human_readable"] = Value::from(words(directive));
    let error = (!is_ok).then_some(CallError::Failed);
    let note = Some(CallNote::Directive(directive.id));
    ToolOutput { fate, error, note, ..ToolOutput::ok(content.to_string()) }
}

/// The same in a sentence.
fn words(directive: &Directive) -> String {
    match directive.status {
        DirectiveStatus::PendingApproval => {
            "This waits until a person has approved it. You cannot do that; tell the user that it waits.".to_owned()
        }
        DirectiveStatus::Requested | DirectiveStatus::Running => {
            "This is requested and will be carried out; it is not done yet. Do not request it again.".to_owned()
        }
        DirectiveStatus::Succeeded => directive.text.clone().unwrap_or_else(|| "It is done.".to_owned()),
        DirectiveStatus::Failed => "It was not done.".to_owned(),
        DirectiveStatus::Canceled => "It was canceled, and will not be done.".to_owned(),
        DirectiveStatus::Unknown => {
            "It was sent, and it is not known whether it was done. Do not repeat it: look whether it was, or tell the user."
                .to_owned()
        }
    }
}
