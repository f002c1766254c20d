//! Answers in a form that the client wants: a JSON object, or a call of a tool of its own.
//!
//! A model that does not give it is told what is wrong and asked again, once; then the run fails. Nobody reads half a JSON
//! object, so its text waits until it has been checked, and what does not have the form is never told: neither that nor
//! what a model says beside its calls on the way. The transcript has all of it.

use super::ask::{empty_answer, log_answer};
use super::context::{Ended, TurnRequest, Turns, failed};
use super::fold::Turn;
use super::language::LanguageGate;
use super::state::Transcript;
use crate::agent::offer::Offer;
use crate::agent::ports::llm::{MustCall, SystemPrompt};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::event::AgentEvent;
use crate::chat::failure::FailureCode;
use crate::chat::line;
use crate::chat::message::{AssistantPart, Author, Message, UserMessage};
use crate::observe::metrics;

impl TurnRequest<'_> {
    /// Whether the answer is free text, or calls.
    pub(super) fn is_free(&self) -> bool {
        self.format.is_none() && self.must_call == MustCall::No
    }

    /// The JSON object that a turn with `text` answers with; `None` where it calls tools, or may say what it likes.
    fn judge<'t>(&self, text: &'t str, has_calls: bool) -> Result<Option<&'t str>, Vec<String>> {
        match (has_calls, self.must_call, self.format) {
            (true, _, _) | (false, MustCall::No, None) => Ok(None),
            (false, MustCall::Any, _) => Err(vec!["no tool was called".to_owned()]),
            (false, MustCall::This(name), _) => Err(vec![format!("the tool {name} was not called")]),
            (false, MustCall::No, Some(format)) => format.read(text).map(Some),
        }
    }

    /// What the model is told about its `mistakes`.
    fn correction(&self, mistakes: &str) -> String {
        let again = match (self.must_call, self.format) {
            (MustCall::This(name), _) => format!("Call the tool {name} now"),
            (MustCall::Any, _) => "Call a tool now".to_owned(),
            (MustCall::No, Some(AnswerFormat::Schema(_))) => {
                "Answer again, with one JSON object that fits the schema and nothing else".to_owned()
            }
            (MustCall::No, _) => "Answer again, with one JSON object and nothing else".to_owned(),
        };
        format!("[Your answer is not what was asked for: {mistakes}. {again}.]")
    }
}

impl Turns<'_> {
    /// The request of a turn with `offer`.
    pub(super) fn turn_request<'r>(
        &'r self,
        (system, offer): (&'r SystemPrompt, &'r Offer),
        may_call: bool,
        holds_ideographs: bool,
    ) -> TurnRequest<'r> {
        let must_call = self.terms.must_call(offer);
        // A call that has to be made is the answer.
        let format = self.terms.format.filter(|_| must_call == MustCall::No);
        TurnRequest { system, tools: offer.defs(), may_call, must_call, format, holds_ideographs }
    }

    /// The model's next turn, complete and in the form that is wanted; in that its text has been told. Calls that may not
    /// be made are left out.
    pub(super) async fn ask_as_wanted(
        &self,
        transcript: &mut Transcript,
        mut request: TurnRequest<'_>,
    ) -> Result<(Turn, LanguageGate), Ended> {
        let mut is_last = false;
        loop {
            let (mut turn, gate) = self.ask_model(transcript, request).await?;
            if !request.may_call {
                turn.message.parts.retain(|part| !matches!(part, AssistantPart::ToolCall { .. }));
            }
            if !turn.message.parts.iter().any(AssistantPart::is_visible) {
                transcript.end_turn();
                return Err(empty_answer());
            }
            if request.is_free() {
                return Ok((turn, gate));
            }
            let (text, has_calls) = (turn.message.text(), turn.message.calls().next().is_some());
            let mistakes = match request.judge(&text, has_calls) {
                Ok(json) => {
                    if let Some(json) = json {
                        transcript.speech.push_plain(json);
                        self.emit_text(json.to_owned());
                    }
                    return Ok((turn, LanguageGate::new(false)));
                }
                Err(mistakes) => one_line(&mistakes),
            };
            log_answer(
                transcript,
                FailureCode::InvalidAnswer,
                "the model's answer has another form than was asked for",
            );
            transcript.end_turn();
            if is_last || !self.may_ask_once_more(transcript) {
                transcript.messages.push_text(turn.message);
                let words = format!("The model's answer is not what was asked for: {mistakes}");
                return Err(failed(FailureCode::InvalidAnswer, &words, true));
            }
            transcript.messages.push(Message::Assistant(turn.message));
            let correction = request.correction(&mistakes);
            transcript.messages.push(Message::User(UserMessage::by(Author::Correction, correction)));
            self.commit_round(transcript).await?;
            // Without tools every vendor that can hold its model to a form does.
            request.may_call &= request.format.is_none();
            is_last = true;
            transcript.ledger.count_model_call();
            self.emit(AgentEvent::TurnStarted { turn: transcript.turn() });
            metrics::turn();
        }
    }
}

/// Mistakes as they stand in a sentence: they quote what the model wrote.
fn one_line(mistakes: &[String]) -> String {
    mistakes.iter().map(|mistake| line::one_line(mistake)).collect::<Vec<_>>().join("; ")
}
