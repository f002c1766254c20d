//! The toolbox: definitions joined with handlers by name. Only here a call's failure becomes data.
//!
//! **Invariant:** nothing a handler does leaves here but an output; not even its panic.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use serde_json::{Map, Value};

use super::worded::NO_OBJECT;
use super::{BuiltIn, Source, Tool};
use crate::agent::ports::tools::{OfferedTool, ToolContext, ToolExecutor};
use crate::chat::causes::Causes;
use crate::chat::fate::{CallError, CallFate};
use crate::chat::fit::{add_note, fit};
use crate::chat::tool::{Effect, ToolCall, ToolInput, ToolOutput};
use crate::observe::metrics::{Outcome, ToolCall as Meter};
use crate::observe::{names, spans};

/// A handler and the name it answers to.
pub type Handler = (Cow<'static, str>, Arc<dyn Tool>);

/// All handlers by name.
pub struct Toolbox {
    handlers: HashMap<Cow<'static, str>, Arc<dyn Tool>>,
    /// Tools that come and go.
    source: Option<Arc<dyn Source>>,
    max_result_bytes: usize,
    max_payload_bytes: usize,
}

impl Toolbox {
    /// A toolbox of `handlers`. Results longer than `max_result_bytes` are cut, with a note for the model, or become an
    /// error where a part is of no use; 0 allows any length.
    pub fn new(handlers: impl IntoIterator<Item = Handler>, max_result_bytes: usize) -> Self {
        Self { handlers: handlers.into_iter().collect(), source: None, max_result_bytes, max_payload_bytes: 0 }
    }

    /// The same toolbox; a payload of more than `max_payload_bytes` of JSON is left out, with a note for the model. 0
    /// allows any size.
    pub fn payloads_up_to(mut self, max_payload_bytes: usize) -> Self {
        self.max_payload_bytes = max_payload_bytes;
        self
    }

    /// What the handler of this name says of itself, where there is one.
    pub fn built_in(&self, name: &str) -> Option<BuiltIn> {
        let handler = self.handlers.get(name)?;
        Some(BuiltIn {
            policy: handler.policy(),
            effect: handler.effect(),
            is_on: handler.is_on(),
            in_workspace: handler.in_workspace(),
            only_if: handler.only_if(),
        })
    }

    /// The same toolbox with `handlers` added, whose names are new, or those of tools that are switched off.
    pub fn with(mut self, handlers: impl IntoIterator<Item = Handler>) -> Self {
        self.handlers.extend(handlers);
        self
    }

    /// The same toolbox with the tools of `source`; one that has the name of a handler is never found.
    pub fn sourced_by(mut self, source: Arc<dyn Source>) -> Self {
        self.source = Some(source);
        self
    }

    fn handler(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let handler = self.handlers.get(name).map(Arc::clone);
        handler.or_else(|| self.source.as_ref()?.find(name))
    }

    /// Tools of ours by their names; those of servers, whose names are not ours to bound, and unknown ones, by
    /// one name each.
    fn meter(&self, name: &str) -> Meter {
        let is_of_server = || self.source.as_ref().is_some_and(|source| source.find(name).is_some());
        Meter::begin(match self.handlers.contains_key(name) {
            true => name,
            false if is_of_server() => "mcp",
            false => "unknown",
        })
    }

    fn is_too_long(&self, content: &str) -> bool {
        self.max_result_bytes != 0 && content.len() > self.max_result_bytes
    }

    /// A payload that is too large is not kept: it would be sent to every client that opens the conversation.
    fn leave_out_too_large(&self, output: &mut ToolOutput) {
        let bytes = output.payload.as_ref().map_or(0, |payload| payload.data.as_str().len());
        if self.max_payload_bytes != 0 && bytes > self.max_payload_bytes {
            let max = self.max_payload_bytes;
            output.payload = None;
            let note = format!(
                "the data of this result was not kept, and the user does not see it: {bytes} bytes, and at most {max} are kept"
            );
            add_note(&mut output.content, &note);
        }
    }

    /// The message is cut before it is wrapped, so that the wrapping stays JSON: errors repeat what the model wrote.
    fn failure(&self, mut message: String) -> ToolOutput {
        cut_content(&mut message, self.max_result_bytes, "ask for less");
        ToolOutput::error(&message)
    }

    /// The same of a handler's error.
    fn failed(&self, error: &super::ToolError) -> ToolOutput {
        if let super::ToolError::Worded { content, error } = error {
            let mut content = content.clone();
            cut_content(&mut content, self.max_result_bytes, "ask for less");
            return ToolOutput { content, ..ToolOutput::refused("", *error) };
        }
        ToolOutput { error: Some(error.call_error()), ..self.failure(error.to_string()) }
    }

    fn no_object(&self, handler: &dyn Tool) -> ToolOutput {
        let bad = || super::ToolError::BadParams(NO_OBJECT.to_owned());
        self.failed(&handler.wording().map_or_else(bad, |wording| wording.no_object()))
    }

    fn unknown(&self, name: &str) -> ToolOutput {
        ToolOutput { error: Some(CallError::NotOffered), ..self.failure(format!("unknown tool: {name}")) }
    }
}

#[async_trait]
impl ToolExecutor for Toolbox {
    async fn execute(&self, call: &ToolCall, cx: &ToolContext<'_>) -> ToolOutput {
        let mut meter = self.meter(&call.name);
        let Some(handler) = self.handler(&call.name) else {
            meter.ends(Outcome::failed("unknown_tool"));
            return self.unknown(&call.name);
        };
        let args = match &call.input {
            ToolInput::Object(args) => args,
            ToolInput::Invalid(_) => {
                meter.ends(Outcome::failed("bad_params"));
                return self.no_object(&*handler);
            }
        };
        let cx = &ToolContext { call: Some(&call.id), ..*cx };
        // A handler keeps no state of its own across calls but caches, which are whole at every await.
        let Ok(result) = AssertUnwindSafe(handler.call(args, cx)).catch_unwind().await else {
            ended(&mut meter, Outcome::failed("panicked"));
            let fate = match handler.effect() {
                Effect::Read => CallFate::Failed,
                Effect::Write => CallFate::Unknown,
            };
            return ToolOutput { fate, ..panicked(call, cx) };
        };
        ended(&mut meter, result.as_ref().map_or_else(|error| Outcome::failed(error_kind(error)), |_| Outcome::OK));
        match result {
            Ok(output) if handler.is_all_or_nothing() && self.is_too_long(&output.content) => {
                let (whole, max) = (output.content.len(), self.max_result_bytes);
                ToolOutput::error(&format!(
                    "the result is too large: {whole} bytes, and at most {max} can be read here, so it is left out whole; \
                     do not repeat the call, tell the user"
                ))
            }
            Ok(mut output) => {
                let advice = match handler.effect() {
                    Effect::Read => "ask for less",
                    Effect::Write => "it is done; do not repeat the call",
                };
                cut_content(&mut output.content, self.max_result_bytes, advice);
                self.leave_out_too_large(&mut output);
                output
            }
            Err(error) => {
                note_failure(call, cx, &error);
                ToolOutput { fate: error.fate(), ..self.failed(&error) }
            }
        }
    }

    fn check(&self, call: &ToolCall) -> Result<Effect, Box<ToolOutput>> {
        let Some(handler) = self.handler(&call.name) else {
            return Err(Box::new(self.unknown(&call.name)));
        };
        let ToolInput::Object(args) = &call.input else {
            return Err(Box::new(self.no_object(&*handler)));
        };
        handler.check(args).map_err(|error| Box::new(self.failed(&error)))?;
        Ok(handler.effect())
    }

    async fn complete(&self, call: &ToolCall, cx: &ToolContext<'_>) -> Result<Map<String, Value>, Box<ToolOutput>> {
        let Some(handler) = self.handler(&call.name) else {
            return Err(Box::new(self.unknown(&call.name)));
        };
        let ToolInput::Object(args) = &call.input else {
            return Err(Box::new(self.no_object(&*handler)));
        };
        let cx = &ToolContext { call: Some(&call.id), ..*cx };
        match AssertUnwindSafe(handler.complete(args, cx)).catch_unwind().await {
            Ok(Ok(completed)) => Ok(completed),
            // It is not made, so nothing else counts it.
            Ok(Err(error)) => {
                self.meter(&call.name).ends(Outcome::failed(error_kind(&error)));
                note_failure(call, cx, &error);
                Err(Box::new(self.failed(&error)))
            }
            Err(_) => {
                self.meter(&call.name).ends(Outcome::failed("panicked"));
                Err(Box::new(panicked(call, cx)))
            }
        }
    }

    fn source(&self, name: &str) -> String {
        self.handler(name).map(|handler| handler.source().into_owned()).unwrap_or_default()
    }

    fn sourced(&self, source: &str) -> Vec<OfferedTool> {
        self.source.as_ref().map(|tools| tools.offered(source)).unwrap_or_default()
    }
}

/// Notes how a call ended, for the trace too.
fn ended(meter: &mut Meter, outcome: Outcome) {
    meter.ends(outcome);
    if outcome != Outcome::OK {
        spans::tell_current(names::ERROR_TYPE, || outcome.label());
    }
}

fn note_failure(call: &ToolCall, cx: &ToolContext<'_>, error: &super::ToolError) {
    tracing::warn!(
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = call.id.as_str(),
        run.id = %cx.run,
        error.kind = error_kind(error),
        error.reason = reason(error),
        "tool call failed"
    );
}

fn panicked(call: &ToolCall, cx: &ToolContext<'_>) -> ToolOutput {
    tracing::error!(
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = call.id.as_str(),
        run.id = %cx.run,
        "tool call panicked"
    );
    ToolOutput::error("the tool failed inside the server; do not repeat the call, tell the user")
}

/// What the log says of a failure: never the backend's words or the model's, which may be a user's data.
fn reason(error: &super::ToolError) -> Option<String> {
    match error {
        super::ToolError::Backend(error) | super::ToolError::Unconfirmed(error) => Some(error.for_log()),
        super::ToolError::Lookup { source, .. } => Some(source.for_log()),
        super::ToolError::Mcp(error) => error.for_log(),
        super::ToolError::Store(error) => Some(Causes(error).to_string()),
        super::ToolError::BadParams(_)
        | super::ToolError::Unfit(_)
        | super::ToolError::Refused(_)
        | super::ToolError::Worded { .. }
        | super::ToolError::Draft(_) => None,
    }
}

fn error_kind(error: &super::ToolError) -> &'static str {
    match error {
        super::ToolError::BadParams(_) | super::ToolError::Unfit(_) => "bad_params",
        super::ToolError::Refused(_) => "refused",
        super::ToolError::Worded { .. } => "failed",
        super::ToolError::Unconfirmed(_) => "unconfirmed",
        super::ToolError::Backend(_) | super::ToolError::Lookup { .. } => "backend",
        super::ToolError::Mcp(_) => "mcp",
        super::ToolError::Draft(_) => "draft",
        super::ToolError::Store(_) => "store",
    }
}

/// Makes `content` fit and says so, with `advice` for the model.
fn cut_content(content: &mut String, max_bytes: usize, advice: &str) {
    if max_bytes != 0
        && let Some(fitting) = fit(content, max_bytes, advice)
    {
        *content = fitting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::ports::tools::{KeepsFiles, Reporter};
    use crate::chat::caller::{Bearer, Caller, Owner};
    use crate::chat::ids::{ConversationId, RunId, ToolCallId};
    use crate::tools::ToolError;

    /// Does what its name in the toolbox says.
    enum Scripted {
        Answers,
        AnswersWhole,
        Writes,
        Refuses,
        Panics,
    }

    #[async_trait]
    impl Tool for Scripted {
        async fn call(&self, _: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
            match self {
                Self::Answers | Self::AnswersWhole | Self::Writes => Ok(ToolOutput::ok("grün ".repeat(10))),
                Self::Refuses => Err(ToolError::Refused("no ".repeat(20))),
                Self::Panics => panic!("scripted"),
            }
        }

        fn effect(&self) -> Effect {
            match self {
                Self::Writes => Effect::Write,
                Self::Answers | Self::AnswersWhole | Self::Refuses | Self::Panics => Effect::Read,
            }
        }

        fn is_all_or_nothing(&self) -> bool {
            matches!(self, Self::AnswersWhole)
        }
    }

    #[tokio::test]
    async fn whatever_a_call_does_its_result_is_an_output_of_bounded_size() {
        let handlers: [Handler; 5] = [
            ("answers".into(), Arc::new(Scripted::Answers)),
            ("answers_whole".into(), Arc::new(Scripted::AnswersWhole)),
            ("writes".into(), Arc::new(Scripted::Writes)),
            ("refuses".into(), Arc::new(Scripted::Refuses)),
            ("panics".into(), Arc::new(Scripted::Panics)),
        ];
        let toolbox = Toolbox::new(handlers, 9);
        let owner = Owner { tenant: String::new(), user: "u".to_owned() };
        let caller = Caller {
            owner,
            known_as: None,
            expires_at_ms: None,
            roles: Vec::new(),
            bearer: Bearer::new("t"),
            cookie: None,
        };
        let conversation = ConversationId::fresh();
        let cx = ToolContext {
            caller: &caller,
            conversation: &conversation,
            number: None,
            run: RunId::fresh(),
            call: None,
            place: None,
            context: None,
            completed: None,
            first_try: None,
            progress: Reporter::default(),
            files: KeepsFiles::default(),
        };
        let note = |whole| format!("\n[cut: 9 of {whole} bytes shown; ask for less]");
        let rows = [
            ("answers", "{}", ToolOutput::ok(format!("grün gr{}", note(60))), "cut before the character at the border"),
            (
                "writes",
                "{}",
                ToolOutput::ok("grün gr\n[cut: 9 of 60 bytes shown; it is done; do not repeat the call]"),
                "no model is asked to repeat a write",
            ),
            (
                "answers_whole",
                "{}",
                ToolOutput::error(
                    "the result is too large: 60 bytes, and at most 9 can be read here, so it is left out whole; do not \
                     repeat the call, tell the user",
                ),
                "a part is of no use",
            ),
            ("refuses", "{}", ToolOutput::error(&format!("no no no {}", note(60))), "a cut error is still JSON"),
            (
                "panics",
                "{}",
                ToolOutput::error("the tool failed inside the server; do not repeat the call, tell the user"),
                "a panic stays here",
            ),
            (
                "answers",
                "[1]",
                ToolOutput::refused(&format!("bad param{}", note(47)), CallError::BadArguments),
                "no object",
            ),
            ("x", "{}", ToolOutput::refused(&format!("unknown t{}", note(15)), CallError::NotOffered), "no such tool"),
        ];
        for (name, input, expected, reason) in rows {
            let call = ToolCall { id: ToolCallId::mint(), name: name.to_owned(), input: ToolInput::parse(input) };
            assert_eq!(toolbox.execute(&call, &cx).await, expected, "{reason}");
        }
        let check = |tool: &str| {
            let call = ToolCall { id: ToolCallId::mint(), name: tool.to_owned(), input: ToolInput::parse("{}") };
            toolbox.check(&call)
        };
        assert_eq!(["writes", "answers"].map(check), [Ok(Effect::Write), Ok(Effect::Read)]);
        assert!(check("x").is_err());
    }
}
