//! A run's events as items: words, thoughts, calls, and one end. How items are framed, and what is around them, is for
//! others.
//!
//! A call is told of when it turns out to be one that the server makes: until then it may be one for the client.

use super::ids;
use super::item::{COMPLETED, FAILED, IN_PROGRESS, INCOMPLETE, Item, Part, SERVER_LABEL, SummaryPart};
use super::tools::{self, arguments};
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolCall, ToolInput};
use crate::dialect::sentences::Sentences;
use crate::dialect::{RunIds, call_ids, failures};

/// The error of a call that failed without words.
const CALL_FAILED: &str = "The call failed";

/// Something to tell of an item. Each item is [`Piece::Added`] once, and then [`Piece::Done`] once.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// The item begins.
    Added(u32, &'a Item),
    /// Its text begins.
    TextBegins(Spot<'a>, Kind),
    /// A piece of its text; never empty.
    Text(Spot<'a>, Kind, &'a str),
    /// Its text is whole.
    TextEnds(Spot<'a>, Kind, &'a str),
    /// The server makes the call, with these arguments.
    CallBegins(Spot<'a>, &'a str),
    /// The call has been made; whether it failed.
    CallEnds(Spot<'a>, bool),
    /// The arguments of a call of this tool that is the client's.
    Arguments(Spot<'a>, &'a str, &'a str),
    /// The same of a tool that takes a text.
    Input(Spot<'a>, &'a str),
    /// The item is whole.
    Done(u32, Item),
}

/// The item that a piece is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spot<'a> {
    /// Its position.
    pub(super) index: u32,
    /// Its id.
    pub(super) id: &'a str,
}

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// For the user.
    Words,
    /// Of what the model thought.
    Thought,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// With all that it had to say.
    Completed,
    /// Too early, for that reason.
    Incomplete(&'static str),
    /// Since nobody wanted it any more.
    Cancelled,
    /// With an error.
    Failed(Failure),
}

impl End {
    fn of_failure(failure: &Failure) -> Self {
        match failure.code {
            FailureCode::MaxTokens => Self::Incomplete("max_output_tokens"),
            FailureCode::ContentFiltered => Self::Incomplete("content_filter"),
            _ => Self::Failed(failure.clone()),
        }
    }
}

/// The items of a run so far.
#[derive(Debug)]
pub(super) struct Items {
    run: RunId,
    conversation: ConversationId,
    /// How many there are.
    count: u32,
    /// How many there are of each prefix.
    numbers: Vec<(&'static str, u32)>,
    open: Option<Segment>,
    calls: Vec<Call>,
    sentences: Sentences,
    usage: Usage,
}

/// A text that goes on.
#[derive(Debug)]
struct Segment {
    index: u32,
    id: String,
    kind: Kind,
    text: String,
}

/// A call without a result.
#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    /// Its item, where it is told of.
    item: Option<(u32, String)>,
}

type Tell<'a> = dyn FnMut(Piece<'_>) + 'a;

impl Items {
    /// Of a run that begins.
    pub(super) fn new(of: &RunIds, sentences: Sentences) -> Self {
        Self {
            run: of.run,
            conversation: of.conversation.clone(),
            count: 0,
            numbers: Vec::new(),
            open: None,
            calls: Vec::new(),
            sentences,
            usage: Usage::default(),
        }
    }

    /// The tokens of the run; before its end, those of the turns that have ended.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Tells what `event` adds, possibly nothing; the run's end, where it is that.
    pub(super) fn hear(&mut self, event: &AgentEvent, tell: &mut Tell<'_>) -> Option<End> {
        match event {
            AgentEvent::TextDelta { text } => self.say(Kind::Words, text, tell),
            AgentEvent::Notice(notice) => self.say(Kind::Words, &notice.said, tell),
            AgentEvent::ThinkingDelta { text } => self.say(Kind::Thought, text, tell),
            AgentEvent::TurnStarted { .. } => self.close(None, tell),
            AgentEvent::TurnEnded { usage, .. } => self.usage += *usage,
            AgentEvent::ToolCallStarted { id, name } => {
                self.close(None, tell);
                self.call(id.as_str(), name);
            }
            AgentEvent::ToolCallReady { id, name, input } => {
                self.close(None, tell);
                self.call(id.as_str(), name).arguments = arguments(input);
            }
            AgentEvent::ToolProgress { id, .. } => self.begin_call(id.as_str(), tell),
            AgentEvent::ToolCallHeld { id, .. } => self.drop_call(id.as_str(), tell),
            AgentEvent::ToolCallFinished { id, name, fate, result, .. } => {
                self.finish_call(id.as_str(), name, *fate, result, tell);
            }
            AgentEvent::Artifact(artifact) => self.artifact(artifact, tell),
            AgentEvent::PlaceChanged { .. }
            | AgentEvent::State(_)
            | AgentEvent::CallDecided { .. }
            | AgentEvent::Directive(_)
            | AgentEvent::Operation(_)
            | AgentEvent::Payload(_)
            | AgentEvent::Plan(_)
            | AgentEvent::Within(_)
            | AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
            AgentEvent::Finished { usage } | AgentEvent::AwaitingApproval { usage } => {
                self.usage = *usage;
                return Some(self.end(End::Completed, tell));
            }
            AgentEvent::AwaitingClient { usage, calls } => {
                self.usage = *usage;
                self.close(None, tell);
                calls.iter().for_each(|call| self.leave(call, tell));
                return Some(self.end(End::Completed, tell));
            }
            AgentEvent::Failed(failure) => return Some(self.end(End::of_failure(failure), tell)),
            AgentEvent::Cancelled => return Some(self.end(End::Cancelled, tell)),
            AgentEvent::Interrupted => return Some(self.end(End::Failed(failures::interrupted()), tell)),
        }
        None
    }

    /// Ends what is open with the run.
    fn end(&mut self, end: End, tell: &mut Tell<'_>) -> End {
        self.close(Some(&end), tell);
        self.cut_off(tell);
        end
    }

    /// Ends what is open, where no more is told.
    pub(super) fn finish(&mut self, tell: &mut Tell<'_>) {
        self.close(Some(&End::Completed), tell);
    }

    /// Ends what is open, where the rest is missing.
    pub(super) fn lose(&mut self, tell: &mut Tell<'_>) -> End {
        self.end(End::Failed(failures::lost()), tell)
    }

    fn next(&mut self, prefix: &'static str) -> (u32, String) {
        let at = match self.numbers.iter().position(|(known, _)| *known == prefix) {
            Some(at) => at,
            None => {
                self.numbers.push((prefix, 0));
                self.numbers.len() - 1
            }
        };
        let number = self.numbers.get_mut(at).map_or(0, |(_, next)| {
            *next += 1;
            *next - 1
        });
        self.count += 1;
        (self.count - 1, ids::item_id(prefix, self.run, number))
    }

    fn say(&mut self, kind: Kind, text: &str, tell: &mut Tell<'_>) {
        if text.is_empty() {
            return;
        }
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close(None, tell);
            let (index, id) = self.next(match kind {
                Kind::Words => ids::MESSAGE,
                Kind::Thought => ids::REASONING,
            });
            let segment = Segment { index, id, kind, text: String::new() };
            tell(Piece::Added(index, &segment.item(IN_PROGRESS, None)));
            tell(Piece::TextBegins(segment.spot(), kind));
            self.open = Some(segment);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        tell(Piece::Text(open.spot(), kind, text));
    }

    /// Ends the open text; with the run, where that ends.
    fn close(&mut self, end: Option<&End>, tell: &mut Tell<'_>) {
        let Some(open) = self.open.take() else { return };
        tell(Piece::TextEnds(open.spot(), open.kind, &open.text));
        let status = match end {
            None | Some(End::Completed) => COMPLETED,
            Some(End::Incomplete(_) | End::Cancelled | End::Failed(_)) => INCOMPLETE,
        };
        let phase = if end.is_some() { "final_answer" } else { "commentary" };
        let index = open.index;
        tell(Piece::Done(index, open.item(status, Some(phase))));
    }

    /// The call of that id, which begins where it is not there.
    fn call(&mut self, id: &str, name: &str) -> &mut Call {
        let at = self.calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            let arguments = "{}".to_owned();
            self.calls.push(Call { id: id.to_owned(), name: name.to_owned(), arguments, item: None });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// A call turns out to be the server's.
    fn begin_call(&mut self, id: &str, tell: &mut Tell<'_>) {
        let Some(at) = self.calls.iter().position(|call| call.id == id && call.item.is_none()) else { return };
        self.close(None, tell);
        let (index, item) = self.next(ids::CALL);
        let Some(call) = self.calls.get_mut(at) else { return };
        let begun = mcp_call(&item, &call.name, "", (None, None), IN_PROGRESS);
        tell(Piece::Added(index, &begun));
        tell(Piece::CallBegins(Spot { index, id: &item }, &call.arguments));
        call.item = Some((index, item));
    }

    fn finish_call(&mut self, id: &str, name: &str, fate: CallFate, result: &str, tell: &mut Tell<'_>) {
        // One that waits for somebody is told of as such.
        if matches!(fate, CallFate::AwaitsApproval | CallFate::AwaitsClient) {
            return self.drop_call(id, tell);
        }
        self.call(id, name);
        self.begin_call(id, tell);
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        let Call { name, arguments, item, .. } = self.calls.swap_remove(at);
        let Some((index, id)) = item else { return };
        let is_error = fate.is_error();
        tell(Piece::CallEnds(Spot { index, id: &id }, is_error));
        let words = (!result.is_empty()).then(|| result.to_owned());
        let (outcome, status) = match is_error {
            true => ((None, Some(words.unwrap_or_else(|| CALL_FAILED.to_owned()))), FAILED),
            false => ((words, None), COMPLETED),
        };
        tell(Piece::Done(index, mcp_call(&id, &name, &arguments, outcome, status)));
    }

    /// A call gets no result here.
    fn drop_call(&mut self, id: &str, tell: &mut Tell<'_>) {
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        self.calls.remove(at).cut_off(tell);
    }

    /// Ends the calls that the run's end has left without a result.
    fn cut_off(&mut self, tell: &mut Tell<'_>) {
        std::mem::take(&mut self.calls).into_iter().for_each(|call| call.cut_off(tell));
    }

    /// A call for the client.
    fn leave(&mut self, call: &ToolCall, tell: &mut Tell<'_>) {
        self.drop_call(call.id.as_str(), tell);
        let call_id = call_ids::with_conversation(&self.conversation, &call.id);
        let tools::Called { name, namespace, arguments, is_custom } = tools::called(&call.name, &call.input);
        let (index, id) = self.next(if is_custom { ids::CUSTOM } else { ids::FUNCTION });
        let item = |text: &str, status| match is_custom {
            true => Item::CustomToolCall {
                id: id.clone(),
                call_id: call_id.clone(),
                name: name.clone(),
                input: text.to_owned(),
            },
            false => Item::FunctionCall {
                id: id.clone(),
                call_id: call_id.clone(),
                name: name.clone(),
                namespace: namespace.clone(),
                arguments: text.to_owned(),
                status,
            },
        };
        tell(Piece::Added(index, &item("", IN_PROGRESS)));
        let spot = Spot { index, id: &id };
        tell(match is_custom {
            true => Piece::Input(spot, &arguments),
            false => Piece::Arguments(spot, &name, &arguments),
        });
        tell(Piece::Done(index, item(&arguments, COMPLETED)));
    }

    /// What waits for a person: a request for an approval, and a sentence where its decision is not the caller's alone. Files
    /// have a sentence.
    fn artifact(&mut self, artifact: &Artifact, tell: &mut Tell<'_>) {
        let payload = &artifact.payload;
        let text = |name: &str| payload.get(name).and_then(serde_json::Value::as_str);
        let approval = text("approval_id").filter(|_| *artifact.kind == *APPROVAL_REQUEST);
        if approval.is_none() || text("role").is_some() {
            let Some(sentence) = self.sentences.of(artifact) else { return };
            self.close(None, tell);
            self.say(Kind::Words, &sentence, tell);
        }
        let Some(approval) = approval else { return };
        self.close(None, tell);
        let index = self.count;
        self.count += 1;
        let input = match payload.get("arguments") {
            Some(serde_json::Value::Object(fields)) => ToolInput::Object(fields.clone()),
            _ => ToolInput::Object(serde_json::Map::new()),
        };
        let item = Item::McpApprovalRequest {
            id: ids::approval_id(approval),
            server_label: SERVER_LABEL,
            name: text("tool").unwrap_or_default().to_owned(),
            arguments: arguments(&input),
        };
        tell(Piece::Added(index, &item));
        tell(Piece::Done(index, item));
    }
}

impl Call {
    /// Ends it without a result, where it is told of.
    fn cut_off(self, tell: &mut Tell<'_>) {
        let Some((index, id)) = self.item else { return };
        tell(Piece::CallEnds(Spot { index, id: &id }, true));
        tell(Piece::Done(index, mcp_call(&id, &self.name, &self.arguments, (None, None), INCOMPLETE)));
    }
}

fn mcp_call(
    id: &str,
    name: &str,
    arguments: &str,
    (output, error): (Option<String>, Option<String>),
    status: &'static str,
) -> Item {
    let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
    Item::McpCall { id, server_label: SERVER_LABEL, name, arguments, output, error, status }
}

impl Segment {
    fn spot(&self) -> Spot<'_> {
        Spot { index: self.index, id: &self.id }
    }

    /// The item with its text so far.
    fn item(&self, status: &'static str, phase: Option<&'static str>) -> Item {
        let id = self.id.clone();
        match self.kind {
            Kind::Words => {
                let content = if self.text.is_empty() { Vec::new() } else { vec![Part::output(&*self.text)] };
                Item::Message { id, role: "assistant", status, content, phase }
            }
            Kind::Thought => {
                let text = SummaryPart::SummaryText { text: self.text.clone() };
                let summary = if self.text.is_empty() { Vec::new() } else { vec![text] };
                Item::Reasoning { id, summary, status }
            }
        }
    }
}
