//! The next step of a call: made, held for a person, left to the client, or answered instead.

use super::context::{Helping, Role, Turns};
use super::state::Transcript;
use crate::agent::offer::{Look, Offer};
use crate::agent::ports::store::ApprovedCall;
use crate::chat::approval::Consent;
use crate::chat::fate::CallError;
use crate::chat::tool::{CallNote, Effect, ToolCall, ToolOutput};
use crate::chat::worded::{TOOL_ERROR, Worded};

/// Whether the calls of a turn were let through before.
#[derive(Clone, Copy)]
pub(super) enum Leave<'a> {
    /// A person has let this one through.
    Given(&'a ApprovedCall),
    /// It needs the consent of its policy.
    Needed,
}

/// The next step of a call.
pub(super) enum Step {
    /// It is made.
    Make(Effect),
    /// It is not, and the model reads why.
    Answer(ToolOutput),
    /// It waits.
    Hold(Consent),
    /// The client makes it.
    Leave,
    /// The loop itself carries it out.
    Own,
}

impl Turns<'_> {
    /// The next step of `call`.
    pub(super) fn step(&self, call: &ToolCall, offer: &mut Offer, leave: Leave<'_>) -> Step {
        let policy = match (offer.look(call), leave) {
            (Look::Own, Leave::Needed) => return Step::Own,
            (Look::Client(Ok(())), Leave::Needed) => return Step::Leave,
            (Look::Client(Err(output)), Leave::Needed) => return Step::Answer(*output),
            // A person has let another tool of this name through, which is gone.
            (Look::Client(_) | Look::Own, Leave::Given(_)) | (Look::Unknown, _) => {
                return Step::Answer(self.unknown_tool(call));
            }
            (Look::Denied, _) => {
                return Step::Answer(ToolOutput { note: Some(CallNote::Denied), ..self.unknown_tool(call) });
            }
            (Look::Unseen, Leave::Needed) => {
                offer.add(&call.name);
                let words = format!("{} was not loaded; it is now: read its description and call it again", call.name);
                let output = ToolOutput::not_made(&words);
                return Step::Answer(ToolOutput { error: Some(CallError::NotOffered), ..output });
            }
            (Look::Unseen, Leave::Given(_)) => return self.checked(call),
            (Look::Offered(policy), _) => policy,
        };
        match (self.checked(call), policy.consent, leave) {
            (Step::Make(_), consent @ (Consent::User | Consent::Role { .. }), Leave::Needed) => match self.role {
                Role::Answers | Role::Helps(Helping { may_wait: true, .. }) => Step::Hold(consent),
                Role::Helps(Helping { may_wait: false, .. }) => Step::Answer(ToolOutput::not_made(
                    "this call needs the approval of a person, who cannot be asked here; the assistant that answers the user has \
                     to make it itself",
                )),
            },
            (step, _, _) => step,
        }
    }

    /// `step`, unless the call has been made so often in a row that it leads nowhere.
    pub(super) fn unless_repeated(&self, call: &ToolCall, step: Step, transcript: &mut Transcript) -> Step {
        let most = match step {
            // Pages are made for loops of a few rounds, in which reading again is the model's own affair.
            Step::Make(Effect::Read) if self.profile.is_page => 0,
            Step::Make(_) | Step::Hold(_) | Step::Own | Step::Answer(_) | Step::Leave => {
                self.agent.limits.repeated_calls
            }
        };
        match step {
            Step::Make(_) | Step::Hold(_) | Step::Own => match transcript.repeats.note(call, most) {
                Some(output) => Step::Answer(output),
                None => step,
            },
            // What is not made costs nothing, and its answer says why.
            Step::Answer(_) | Step::Leave => step,
        }
    }

    /// `step`, unless the call would move the conversation to where its caller may not be, or once too often.
    pub(super) fn unless_nowhere(&self, call: &ToolCall, step: Step, offer: &Offer, transcript: &Transcript) -> Step {
        let leads_to = offer.tool(&call.name).and_then(|tool| tool.moves_to.as_deref());
        match (step, leads_to) {
            (step @ (Step::Make(_) | Step::Hold(_)), Some(context_type)) => {
                match self.check_move(context_type, transcript) {
                    Ok(()) => step,
                    Err(output) => Step::Answer(*output),
                }
            }
            (step, _) => step,
        }
    }

    /// Whether a call may move the conversation to that kind of screen.
    ///
    /// # Errors
    /// The output for the model where it may not.
    fn check_move(&self, context_type: &str, transcript: &Transcript) -> Result<(), Box<ToolOutput>> {
        let refused = |words: &str| Err(Box::new(ToolOutput::not_made(words)));
        let profile = self.agent.profiles.of_type(context_type);
        match profile.is_some_and(|profile| profile.lets(self.cx.caller)) {
            false => refused("this leads to a part of the application that its user may not use"),
            true if !transcript.moves.may_go_on() => {
                refused("the conversation was moved often enough in this answer; go on where it is")
            }
            true => Ok(()),
        }
    }

    fn checked(&self, call: &ToolCall) -> Step {
        match self.agent.tools.check(call) {
            Ok(effect) => Step::Make(effect),
            Err(output) => Step::Answer(*output),
        }
    }

    /// What the model reads of a tool that its caller cannot use: the same, whether there is one. Where files are worked on it
    /// has the words of the tools there.
    fn unknown_tool(&self, call: &ToolCall) -> ToolOutput {
        let words = format!("unknown tool: {}", call.name);
        let worded = Worded { kind: TOOL_ERROR, name: &call.name, code: "unknown_tool", error: &words, details: None };
        let refused = ToolOutput::refused(&words, CallError::NotOffered);
        match worded.to_json() {
            Ok(content) if self.profile.in_workspace => ToolOutput { content, ..refused },
            Ok(_) | Err(_) => refused,
        }
    }
}
