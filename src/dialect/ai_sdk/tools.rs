//! The parts of a message that show calls. A part is opened with its input and closed with its output; a client that hears
//! of an output without its input gives the answer up.
//!
//! A tool that the server runs is `dynamic`, since the page was not built with it. One that the page runs itself is
//! not, and its call is only sent when it is the page's turn.

use bytes::BytesMut;

use super::chunks::{Chunk, write};
use super::plain::{Plain, error_words};
use super::{Answer, Own, Version};
use crate::chat::fate::CallFate;
use crate::chat::ids::ApprovalId;
use crate::chat::tool::{ToolCall, ToolInput};

/// The error of a call whose arguments are no JSON object.
const UNREADABLE: &str = "The arguments of this call cannot be read";

/// The error of a call that the run's end prevented, or whose answer it did not wait for.
const CUT_OFF: &str = "The run ended before there was an answer to this call";

/// The text of an error without details.
pub(super) fn generic_error(fate: CallFate) -> &'static str {
    match fate {
        CallFate::Unknown => "It is not known whether this call took effect",
        CallFate::Failed => "This call failed",
        CallFate::Done | CallFate::NotRun | CallFate::AwaitsApproval | CallFate::AwaitsClient => {
            "This call was not made"
        }
    }
}

/// The error of a call that its user turned down, for clients that have no chunk for it.
const TURNED_DOWN: &str = "This call was turned down";

/// The calls that have no answer yet.
pub(super) struct Calls {
    version: Version,
    client_tools: Own,
    open: Vec<Open>,
    /// A call of this run that its client knows as one of an earlier run: its id here, and there.
    decided: Option<(String, String)>,
    held: Vec<Held>,
}

/// A call that has no answer yet.
struct Open {
    id: String,
    name: String,
    stage: Stage,
}

/// The state of a call at the client.
enum Stage {
    /// Nothing: it may be one for the client itself. With its arguments, once they are complete.
    Unknown(Option<ToolInput>),
    /// That there is one.
    ConversationRef,
    /// All but its result.
    Called,
    /// The same, from an earlier run, under this id.
    CalledAs(String),
    /// That it waits for a person.
    Held,
}

/// A call that waits for a person.
pub(super) struct Held {
    pub(super) approval: ApprovalId,
    pub(super) id: String,
    pub(super) name: String,
}

impl Calls {
    pub(super) fn new(answer: &Answer) -> Self {
        Self {
            version: answer.version,
            client_tools: answer.client_tools.clone(),
            open: Vec::new(),
            decided: None,
            held: Vec::new(),
        }
    }

    /// The calls that wait for a person, oldest first.
    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    /// A call of an earlier run was decided; its part is in the message that goes on.
    pub(super) fn decided(&mut self, requested_as: &str, runs_as: Option<&str>, out: &mut BytesMut) {
        match runs_as {
            Some(runs_as) => self.decided = Some((runs_as.to_owned(), requested_as.to_owned())),
            None if self.version >= Version::V6 => write(out, &Chunk::ToolOutputDenied { tool_call_id: requested_as }),
            None => {
                let chunk =
                    Chunk::ToolOutputError { tool_call_id: requested_as, error_text: TURNED_DOWN, dynamic: true };
                write(out, &chunk);
            }
        }
    }

    /// Whether the part of this call is in an earlier step.
    pub(super) fn is_of_earlier_run(&self, id: &str) -> bool {
        self.decided.as_ref().is_some_and(|(runs_as, _)| runs_as == id)
    }

    /// The id under which the client knows a call.
    pub(super) fn known_as<'a>(&'a self, id: &'a str) -> &'a str {
        match &self.decided {
            Some((runs_as, requested_as)) if runs_as == id => requested_as,
            Some(_) | None => id,
        }
    }

    /// The model named a tool.
    pub(super) fn started(&mut self, id: &str, name: &str, out: &mut BytesMut) {
        let stage = match &self.decided {
            Some((runs_as, requested_as)) if runs_as == id => Stage::CalledAs(requested_as.clone()),
            Some(_) | None if self.client_tools.may_have(name) => Stage::Unknown(None),
            Some(_) | None => {
                write(out, &Chunk::ToolInputStart { tool_call_id: id, tool_name: name, dynamic: true });
                Stage::ConversationRef
            }
        };
        self.open.push(Open { id: id.to_owned(), name: name.to_owned(), stage });
    }

    /// A call's arguments are complete.
    pub(super) fn ready(&mut self, id: &str, name: &str, input: &ToolInput, out: &mut BytesMut) {
        if self.position(id).is_none() {
            self.started(id, name, out);
        }
        let Some(at) = self.position(id) else { return };
        let Some(call) = self.open.get_mut(at) else { return };
        match call.stage {
            Stage::Unknown(_) => call.stage = Stage::Unknown(Some(input.clone())),
            Stage::ConversationRef if Self::tell_input(id, name, input, true, out) => call.stage = Stage::Called,
            Stage::ConversationRef => {
                self.open.remove(at);
            }
            Stage::Called | Stage::CalledAs(_) | Stage::Held => {}
        }
    }

    /// A call turns out to be one that the server makes, or answers itself.
    pub(super) fn reveal(&mut self, id: &str, out: &mut BytesMut) {
        let Some(at) = self.position(id) else { return };
        let Some(call) = self.open.get_mut(at) else { return };
        let input = match &mut call.stage {
            Stage::Unknown(input) => {
                write(out, &Chunk::ToolInputStart { tool_call_id: id, tool_name: &call.name, dynamic: true });
                input.take()
            }
            // The loop tells the arguments first; where it did not, an output without them must not go out.
            Stage::ConversationRef => None,
            Stage::Called | Stage::CalledAs(_) | Stage::Held => return,
        };
        let input = input.unwrap_or_else(|| ToolInput::Object(serde_json::Map::new()));
        if Self::tell_input(id, &call.name, &input, true, out) {
            call.stage = Stage::Called;
        } else {
            self.open.remove(at);
        }
    }

    /// Tells a call's arguments; `false` where they cannot be read, which closes its part.
    fn tell_input(id: &str, name: &str, input: &ToolInput, dynamic: bool, out: &mut BytesMut) -> bool {
        match input {
            ToolInput::Object(input) => {
                let input = &Plain::from_value(input);
                write(out, &Chunk::ToolInputAvailable { tool_call_id: id, tool_name: name, input, dynamic });
                true
            }
            ToolInput::Invalid(text) => {
                let chunk = Chunk::ToolInputError {
                    tool_call_id: id,
                    tool_name: name,
                    input: text,
                    error_text: UNREADABLE,
                    dynamic,
                };
                write(out, &chunk);
                false
            }
        }
    }

    /// A call waits for a person.
    pub(super) fn held_back(&mut self, id: &str, name: &str, approval: ApprovalId, out: &mut BytesMut) {
        self.reveal(id, out);
        // One that was let through and is another one by now waits again where its client knows it.
        let known_as = self.known_as(id).to_owned();
        self.held.push(Held { approval, id: known_as, name: name.to_owned() });
        // To version 5 the result that follows says it.
        if self.version >= Version::V6
            && let Some(call) = self.open.iter_mut().find(|call| call.id == id)
        {
            call.stage = Stage::Held;
        }
    }

    /// Whether a call is open here.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.position(id).is_some()
    }

    /// A call does not wait any more, and nobody can decide it.
    pub(super) fn take_back(&mut self, id: &str) {
        let known_as = self.known_as(id).to_owned();
        self.held.retain(|held| held.id != known_as);
        for call in self.open.iter_mut().filter(|call| call.id == id && matches!(call.stage, Stage::Held)) {
            call.stage = if known_as == id { Stage::Called } else { Stage::CalledAs(known_as.clone()) };
        }
    }

    /// The result of a call.
    pub(super) fn finished(&mut self, id: &str, fate: CallFate, result: &str, out: &mut BytesMut) {
        self.reveal(id, out);
        let Some(at) = self.position(id) else { return };
        let tool_call_id = match self.open.get(at).map(|call| &call.stage) {
            Some(Stage::CalledAs(requested_as)) => requested_as.clone(),
            Some(Stage::Called) => id.to_owned(),
            Some(Stage::Unknown(_) | Stage::ConversationRef | Stage::Held) | None => return,
        };
        let tool_call_id = tool_call_id.as_str();
        match fate.is_error() {
            true => {
                let words = error_words(result);
                let error_text = if words.is_empty() { generic_error(fate) } else { &*words };
                write(out, &Chunk::ToolOutputError { tool_call_id, error_text, dynamic: true });
            }
            false => {
                let output = &Plain::read(result);
                write(out, &Chunk::ToolOutputAvailable { tool_call_id, output, dynamic: true });
            }
        }
        self.open.remove(at);
    }

    /// The calls that the client is to make.
    pub(super) fn left_to_client(&mut self, calls: &[ToolCall], out: &mut BytesMut) {
        for call in calls {
            let id = call.id.as_str();
            let open = self.position(id).map(|at| self.open.remove(at));
            match open.map(|open| open.stage) {
                None | Some(Stage::Unknown(_)) => {
                    Self::tell_input(id, &call.name, &call.input, false, out);
                }
                // It was sent as one of the server's, whose page then cannot run it.
                Some(Stage::ConversationRef) => {
                    Self::tell_input(id, &call.name, &call.input, true, out);
                }
                Some(Stage::Called | Stage::CalledAs(_) | Stage::Held) => {}
            }
        }
    }

    /// Asks for the decisions on what waits.
    pub(super) fn ask(&mut self, out: &mut BytesMut) {
        for Held { approval, id, name: _ } in &self.held {
            let approval_id = &*approval.to_string();
            write(out, &Chunk::ToolApprovalRequest { approval_id, tool_call_id: id });
        }
        self.open.retain(|call| !matches!(call.stage, Stage::Held));
    }

    /// Closes the parts of all calls that have no answer: there will be none.
    pub(super) fn cut_off(&mut self, out: &mut BytesMut) {
        for call in self.open.drain(..) {
            let tool_call_id = match &call.stage {
                Stage::Unknown(_) => continue,
                Stage::ConversationRef => {
                    let (tool_call_id, tool_name) = (&*call.id, &*call.name);
                    let chunk = Chunk::ToolInputError {
                        tool_call_id,
                        tool_name,
                        input: "",
                        error_text: CUT_OFF,
                        dynamic: true,
                    };
                    write(out, &chunk);
                    continue;
                }
                Stage::Called | Stage::Held => &call.id,
                Stage::CalledAs(id) => id,
            };
            write(out, &Chunk::ToolOutputError { tool_call_id, error_text: CUT_OFF, dynamic: true });
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.open.iter().position(|call| call.id == id)
    }
}
