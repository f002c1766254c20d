//! A run's events as content blocks, one after the other, and one end. How blocks are framed, and what is around them, is for
//! others.
//!
//! A call is told of when it turns out to be one that the server makes: until then it may be one for the client.

use std::sync::Arc;

use super::block::Block;
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolCall, ToolInput};
use crate::dialect::sentences::Sentences;
use crate::dialect::{RunIds, call_ids, failures};

/// The result of a call that the run's end has left without one.
const CUT_OFF: &str = "The call did not come to an end";

/// Something to tell of a block. Each block either begins and ends, or is whole at once.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// A text begins, in the block with that position.
    Begins(u32, Kind),
    /// A piece of it; never empty.
    Text(&'a str),
    /// It is whole. Of a thought, its signature.
    Ends(u32, Option<String>),
    /// A whole block.
    Whole(u32, Block),
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
    /// For that reason, one of the protocol's.
    Stopped(&'static str),
    /// With an error.
    Failed(Failure),
}

impl End {
    /// With all that it had to say.
    const TURN: Self = Self::Stopped("end_turn");

    fn of_failure(failure: &Failure) -> Self {
        match failure.code {
            FailureCode::MaxTokens => Self::Stopped("max_tokens"),
            FailureCode::ContentFiltered | FailureCode::ModelRefused => Self::Stopped("refusal"),
            _ => Self::Failed(failure.clone()),
        }
    }
}

/// What a request wants to see.
#[derive(Debug, Clone)]
pub(super) struct Shows {
    pub(super) thinking: bool,
    /// Whether the answer has a form.
    pub(super) in_form: bool,
    /// Where people reach this server; empty where that is not known.
    pub(super) public_url: Arc<str>,
}

/// The blocks of a run so far.
#[derive(Debug)]
pub(super) struct Blocks {
    run: RunId,
    conversation: ConversationId,
    shows_thinking: bool,
    sentences: Sentences,
    /// How many there are.
    count: u32,
    /// How many calls of the server's are among them.
    made: u32,
    open: Option<(u32, Kind)>,
    calls: Vec<Call>,
    usage: Usage,
}

/// A call without a result.
#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    input: ToolInput,
    /// Its id to the client, where it is told of.
    told: Option<String>,
}

type Tell<'a> = dyn FnMut(Piece<'_>) + 'a;

impl Blocks {
    /// Of a run that begins.
    pub(super) fn new(of: &RunIds, Shows { thinking, in_form, public_url }: Shows) -> Self {
        Self {
            run: of.run,
            conversation: of.conversation.clone(),
            shows_thinking: thinking,
            sentences: Sentences::new(public_url, in_form),
            count: 0,
            made: 0,
            open: None,
            calls: Vec::new(),
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
            AgentEvent::ThinkingDelta { text } if self.shows_thinking => self.say(Kind::Thought, text, tell),
            AgentEvent::TurnStarted { .. } => self.close(tell),
            AgentEvent::TurnEnded { usage, .. } => self.usage += *usage,
            AgentEvent::ToolCallStarted { id, name } => {
                self.close(tell);
                self.call(id.as_str(), name);
            }
            AgentEvent::ToolCallReady { id, name, input } => {
                self.close(tell);
                self.call(id.as_str(), name).input = (**input).clone();
            }
            AgentEvent::ToolProgress { id, .. } => self.begin_call(id.as_str(), tell),
            AgentEvent::ToolCallHeld { id, .. } => self.drop_call(id.as_str(), tell),
            AgentEvent::ToolCallFinished { id, name, fate, result, .. } => {
                self.finish_call(id.as_str(), name, *fate, result, tell);
            }
            AgentEvent::Artifact(artifact) => self.artifact(artifact, tell),
            AgentEvent::ThinkingDelta { .. }
            | AgentEvent::PlaceChanged { .. }
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
                return Some(self.end(End::TURN, tell));
            }
            AgentEvent::AwaitingClient { usage, calls } => {
                self.usage = *usage;
                self.close(tell);
                calls.iter().for_each(|call| self.leave(call, tell));
                return Some(self.end(End::Stopped("tool_use"), tell));
            }
            AgentEvent::Failed(failure) => return Some(self.end(End::of_failure(failure), tell)),
            AgentEvent::Cancelled => return Some(self.end(End::TURN, tell)),
            AgentEvent::Interrupted => return Some(self.end(End::Failed(failures::interrupted()), tell)),
        }
        None
    }

    /// Ends what is open, where the rest is missing.
    pub(super) fn lose(&mut self, tell: &mut Tell<'_>) -> End {
        self.end(End::Failed(failures::lost()), tell)
    }

    /// Ends what is open with the run.
    fn end(&mut self, end: End, tell: &mut Tell<'_>) -> End {
        self.close(tell);
        std::mem::take(&mut self.calls).into_iter().for_each(|call| self.cut_off(call, tell));
        end
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    fn whole(&mut self, block: Block, tell: &mut Tell<'_>) {
        self.close(tell);
        tell(Piece::Whole(self.next(), block));
    }

    fn say(&mut self, kind: Kind, text: &str, tell: &mut Tell<'_>) {
        if text.is_empty() {
            return;
        }
        if self.open.is_none_or(|(_, open)| open != kind) {
            self.close(tell);
            let index = self.next();
            tell(Piece::Begins(index, kind));
            self.open = Some((index, kind));
        }
        tell(Piece::Text(text));
    }

    /// Ends the open text.
    fn close(&mut self, tell: &mut Tell<'_>) {
        let Some((index, kind)) = self.open.take() else { return };
        let signature = (kind == Kind::Thought).then(|| format!("thought_{}_{index}", self.run));
        tell(Piece::Ends(index, signature));
    }

    /// The call of that id, which begins where it is not there.
    fn call(&mut self, id: &str, name: &str) -> &mut Call {
        let at = self.calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            let input = ToolInput::Object(serde_json::Map::new());
            self.calls.push(Call { id: id.to_owned(), name: name.to_owned(), input, told: None });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// A call turns out to be the server's.
    fn begin_call(&mut self, id: &str, tell: &mut Tell<'_>) {
        let (run, made) = (self.run, self.made);
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id && call.told.is_none()) else { return };
        let told = format!("mcptoolu_{run}_{made}");
        let block = Block::call(&told, &call.name, &call.input);
        call.told = Some(told);
        self.made += 1;
        self.whole(block, tell);
    }

    fn finish_call(&mut self, id: &str, name: &str, fate: CallFate, result: &str, tell: &mut Tell<'_>) {
        // One that waits for somebody is told of as such.
        if matches!(fate, CallFate::AwaitsApproval | CallFate::AwaitsClient) {
            return self.drop_call(id, tell);
        }
        self.call(id, name);
        self.begin_call(id, tell);
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        let Some(told) = self.calls.swap_remove(at).told else { return };
        self.whole(Block::result(told, fate.is_error(), result), tell);
    }

    /// A call gets no result here.
    fn drop_call(&mut self, id: &str, tell: &mut Tell<'_>) {
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        let call = self.calls.remove(at);
        self.cut_off(call, tell);
    }

    /// Ends a call without a result, where it is told of.
    fn cut_off(&mut self, call: Call, tell: &mut Tell<'_>) {
        let Some(told) = call.told else { return };
        self.whole(Block::result(told, true, CUT_OFF), tell);
    }

    /// A call for the client.
    fn leave(&mut self, call: &ToolCall, tell: &mut Tell<'_>) {
        self.drop_call(call.id.as_str(), tell);
        let id = call_ids::tool_use(&self.conversation, &call.id);
        self.whole(Block::tool_use(id, &call.name, &call.input), tell);
    }

    /// What waits for a person, and files, in a sentence: the protocol has nothing for them.
    fn artifact(&mut self, artifact: &Artifact, tell: &mut Tell<'_>) {
        let Some(sentence) = self.sentences.of(artifact) else { return };
        self.close(tell);
        self.say(Kind::Words, &sentence, tell);
        self.close(tell);
    }
}
