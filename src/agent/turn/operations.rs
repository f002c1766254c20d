//! Operations of calls: what is told of a call besides, in words that users know.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::about::read;
use super::context::Turns;
use super::names::{self, Names};
use super::state::Transcript;
use super::steps::Step;
use crate::agent::offer::Offer;
use crate::agent::ports::tools::ToolContext;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::operation::{Action, Operation, OperationRule, OperationStatus};
use crate::chat::tool::{Effect, ToolCall, ToolInput};

/// 2 seconds for the name of what is about to be changed.
const LOOKUP: Duration = Duration::from_secs(2);

/// An operation that a call begins.
pub(super) struct Begun {
    operation: Operation,
    rule: Arc<OperationRule>,
    /// Whether its name is one, and not just the word for its kind.
    is_named: bool,
}

impl Begun {
    /// The argument under which clients see the name, with the name.
    pub(super) fn shown(&self) -> Option<(&str, &str)> {
        let argument = self.rule.shown_as.as_deref().filter(|_| self.is_named)?;
        Some((argument, &self.operation.name))
    }
}

impl Turns<'_> {
    /// The operation that `call` begins; `None` where its tool has none, or the call is not for the backend now.
    pub(super) async fn operation(
        &self,
        call: &ToolCall,
        step: &Step,
        offer: &Offer,
        transcript: &Transcript,
    ) -> Option<Begun> {
        let is_made = match step {
            // Whatever comes after a call that waits is not made.
            Step::Make(_) if !transcript.pending.approvals.is_empty() => return None,
            Step::Make(_) => true,
            Step::Answer(_) => false,
            Step::Hold(_) | Step::Leave | Step::Own => return None,
        };
        let rule = offer.tool(&call.name)?.operation.clone()?;
        let none = Map::new();
        let arguments = match &call.input {
            ToolInput::Object(arguments) => arguments,
            ToolInput::Invalid(_) => &none,
        };
        let id = match &rule.id {
            Some(argument) if rule.action.is_of_one() => self.id_of(call, arguments, argument, is_made).await,
            Some(_) | None => None,
        };
        let names = &transcript.names;
        let said = rule.name.iter().find_map(|path| names::name(at(arguments, path)?));
        let found = match (said, &id) {
            (Some(name), _) => Some(name),
            (None, Some(id)) => self.name_of((call, id), &rule, is_made, names).await,
            (None, None) => None,
        };
        // An id is no name, whoever says that it is.
        let found = found.filter(|name| Some(name) != id.as_ref());
        let is_named = found.is_some();
        let name = found.unwrap_or_else(|| match rule.action {
            Action::List | Action::Search => format!("{}s", rule.kind),
            Action::Create | Action::Read | Action::Update | Action::Delete => rule.kind.clone(),
        });
        let (action, kind) = (rule.action, rule.kind.clone());
        let operation = Operation { call: call.id.clone(), action, kind, id, name, status: OperationStatus::Start };
        Some(Begun { operation, rule, is_named })
    }

    /// Tells that the operation begins.
    pub(super) fn begin_operation(&self, begun: Option<&Begun>) {
        if let Some(begun) = begun {
            self.emit(AgentEvent::Operation(Box::new(begun.operation.clone())));
        }
    }

    /// Tells what came of an operation, with what its call has said.
    pub(super) fn end_operation(&self, begun: Option<Begun>, result: Option<&Value>, fate: CallFate, names: &Names) {
        let Some(Begun { mut operation, rule, is_named }) = begun else { return };
        operation.status = match fate {
            CallFate::Done => OperationStatus::Success,
            CallFate::Failed
            | CallFate::Unknown
            | CallFate::NotRun
            | CallFate::AwaitsApproval
            | CallFate::AwaitsClient => OperationStatus::Error,
        };
        if let Some(result) = result.filter(|_| fate == CallFate::Done) {
            if operation.action == Action::Create {
                operation.id = made(result, &rule.kind);
            }
            match &operation.id {
                // What the backend calls it counts.
                Some(id) if is_named => {
                    let told = thing(result, &rule.kind).and_then(names::named);
                    if told.is_none() {
                        names.call(id, &operation.name);
                    }
                }
                Some(id) => {
                    let found = names.of(id).or_else(|| names::named(thing(result, &rule.kind)?));
                    if let Some(found) = found.filter(|name| name != id) {
                        operation.name = found;
                    }
                }
                None => {}
            }
        }
        self.emit(AgentEvent::Operation(Box::new(operation)));
    }

    /// The id of what a call is about: as the model says it, or as it would be sent.
    async fn id_of(
        &self,
        call: &ToolCall,
        arguments: &Map<String, Value>,
        argument: &str,
        is_made: bool,
    ) -> Option<String> {
        let text = |arguments: &Map<String, Value>| {
            let id = arguments.get(argument)?.as_str()?.trim();
            (!id.is_empty()).then(|| id.to_owned())
        };
        match text(arguments) {
            None if is_made => text(&self.agent.tools.complete(call, &self.cx).await.ok()?),
            id => id,
        }
    }

    /// The name of the thing of that id: as it is known here or from earlier runs, or as the backend says it now.
    async fn name_of(
        &self,
        (call, id): (&ToolCall, &str),
        rule: &OperationRule,
        is_made: bool,
        names: &Names,
    ) -> Option<String> {
        if let Some(name) = names.of(id) {
            return Some(name);
        }
        let (owner, conversation) = (&self.cx.caller.owner, self.cx.conversation);
        match self.agent.names.name_of(owner, conversation, id).await {
            Ok(Some(name)) => {
                names.recall(id, &name);
                return Some(name);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = %Causes(&error), "the name of a thing was not read"),
        }
        let argument = rule.id.as_ref().filter(|_| is_made)?;
        // What its tool refuses is not worth a request.
        self.agent.tools.complete(call, &self.cx).await.ok()?;
        let input = ToolInput::Object(Map::from_iter([(argument.clone(), Value::from(id))]));
        let call = ToolCall { id: ToolCallId::from_model("lookup"), name: rule.lookup.clone()?, input };
        if !matches!(self.agent.tools.check(&call), Ok(Effect::Read)) {
            return None;
        }
        let cx = ToolContext { completed: None, first_try: None, ..self.cx };
        let output = tokio::time::timeout(LOOKUP, self.agent.tools.execute(&call, &cx)).await.ok()?;
        let value = (output.fate == CallFate::Done).then(|| read(&output.content)).flatten()?;
        names.note(&value);
        names.of(id).or_else(|| names::named(thing(&value, &rule.kind)?))
    }
}

/// The value at a path of names with dots between them.
fn at<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match rest {
        None => arguments.get(first),
        Some(rest) => at(arguments.get(first)?.as_object()?, rest),
    }
}

/// The object of a result that is the thing: that under the name of its kind, or the result itself.
fn thing<'a>(result: &'a Value, kind: &str) -> Option<&'a Map<String, Value>> {
    result.get(kind).and_then(Value::as_object).or_else(|| result.as_object())
}

/// The id of what a call has made.
fn made(result: &Value, kind: &str) -> Option<String> {
    let fields = result.as_object()?;
    let own = || fields.get(&format!("{kind}_id"));
    let id = thing(result, kind)?.get("id").or_else(own)?.as_str()?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}
