//! How many model calls a run may make, and what it does when there are no more.
//!
//! **Invariant:** a chain of runs with a limit makes at most one model call more, whatever it is for.

use super::context::{Ended, TurnRequest, Turns};
use super::language::Verdict;
use super::state::Transcript;
use crate::agent::offer::Offer;
use crate::agent::ports::llm::{LAST_REQUEST, MustCall, SystemPrompt};
use crate::chat::event::AgentEvent;
use crate::chat::message::{Author, Message, UserMessage};
use crate::observe::within::within;
use crate::observe::{metrics, spans};

impl Turns<'_> {
    /// The most model calls that the profile's chain of runs may make, but for one; 0 is no limit.
    pub(super) fn max_turns(&self) -> u32 {
        self.profile.bounds.max_turns.unwrap_or(self.agent.limits.max_turns)
    }

    /// Whether one more model call may be made beyond the turns: the last answer, or an empty one that is asked for again.
    pub(super) fn may_ask_once_more(&self, transcript: &Transcript) -> bool {
        let max_turns = self.max_turns();
        max_turns == 0 || transcript.ledger.used().model_calls <= max_turns
    }

    /// Asks the model once more, without tools, to answer with what it has. Where no call is left for that, the run ends with
    /// its `limit`.
    pub(super) async fn last_words(
        &self,
        transcript: &mut Transcript,
        (system, offer): (&SystemPrompt, &Offer),
        limit: Ended,
    ) -> Result<(), Ended> {
        if !self.may_ask_once_more(transcript) {
            return Err(limit);
        }
        let format = self.terms.format;
        if self.terms.must_call(offer) != MustCall::No && format.is_none() {
            // Its client wants a call, and none is made any more.
            return Err(limit);
        }
        transcript.messages.push(Message::User(UserMessage::by(Author::LastAnswer, LAST_REQUEST)));
        self.emit(AgentEvent::LimitReached);
        if let Some(diagnosis) = &mut transcript.diagnosis {
            diagnosis.limit_reached();
        }
        let turn = transcript.turn();
        transcript.ledger.count_model_call();
        self.emit(AgentEvent::TurnStarted { turn });
        metrics::turn();
        let span = spans::agent_turn(turn);
        let request =
            TurnRequest { must_call: MustCall::No, format, ..self.turn_request((system, offer), false, false) };
        let (answer, mut gate) = within(span, self.ask_as_wanted(transcript, request)).await?;
        transcript.end_turn();
        transcript.messages.push(Message::Assistant(answer.message));
        if let Verdict::Accepted(rest) = gate.close() {
            self.say(transcript, rest);
        }
        Ok(())
    }
}
