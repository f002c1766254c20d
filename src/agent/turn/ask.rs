//! One model call of a run: streamed to the client, folded, and judged by how it ended.

use std::collections::HashMap;

use futures::StreamExt;
use tokio::task::yield_now;
use tokio::time::sleep_until;

use super::context::{Ended, TurnRequest, Turns, failed};
use super::files::{leave_out, log_unread, take_back};
use super::fold::{Turn, TurnFold};
use super::language::{LanguageGate, Verdict};
use super::state::{Open, Times, Transcript};
use crate::agent::ports::llm::{ChatRequest, EventStream, Loaded, ProviderError, ProviderErrorKind, SentFiles};
use crate::agent::spend::tally::Tally;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::FileId;
use crate::chat::message::AssistantPart;
use crate::chat::stream::{Counted, FinishReason, StreamEvent, Usage};
use crate::observe::within::within;
use crate::observe::{names, spans};

impl From<ProviderError> for Ended {
    fn from(error: ProviderError) -> Self {
        let failure = Failure { code: error.kind.code(), message: error.to_string(), retryable: error.retryable };
        Self::Failed(failure)
    }
}

impl Turns<'_> {
    /// The model's next turn, complete. An empty one is requested again, once, as one more model call of the run; one that was
    /// cut off, refused or is still empty is an error, its text kept.
    pub(super) async fn ask_model(
        &self,
        transcript: &mut Transcript,
        request: TurnRequest<'_>,
    ) -> Result<(Turn, LanguageGate), Ended> {
        let mut may_ask_again = true;
        loop {
            let since_ms = self.now_ms();
            let (turn, mut gate) = self.answer(transcript, request).await?;
            let times = Times { since_ms, now_ms: self.now_ms() };
            let finish = turn.reason.map_or("truncated", FinishReason::name);
            transcript.note_turn(Some(&turn.message), finish, turn.usage.map(Counted::reported), times);
            let failure = match turn.reason {
                Some(FinishReason::Stop) if turn.message.parts.iter().any(AssistantPart::is_visible) => {
                    return Ok((turn, gate));
                }
                Some(FinishReason::Stop) if may_ask_again && self.may_ask_once_more(transcript) => {
                    may_ask_again = false;
                    transcript.ledger.count_model_call();
                    log_answer(
                        transcript,
                        FailureCode::EmptyAnswer,
                        "the model gave an empty answer; asking once more",
                    );
                    continue;
                }
                Some(FinishReason::Stop) => empty_answer(),
                Some(FinishReason::Length) => {
                    failed(FailureCode::MaxTokens, "The answer was cut off at the model's length limit", false)
                }
                Some(FinishReason::ContentFilter) => failed(
                    FailureCode::ContentFiltered,
                    "The answer was stopped by the model service's safety filter",
                    false,
                ),
                Some(FinishReason::Refusal) => {
                    failed(FailureCode::ModelRefused, "The model declined to answer this", false)
                }
                None => {
                    let detail = "the stream ended without a finish";
                    provider_failed(ProviderError::new(ProviderErrorKind::Truncated, detail))
                }
            };
            if let (Some(_), Ended::Failed(Failure { code, .. })) = (turn.reason, &failure) {
                log_answer(transcript, *code, "the model did not give a whole answer");
            }
            transcript.messages.push_text(turn.message);
            transcript.end_turn();
            if let Verdict::Accepted(rest) = gate.close() {
                self.say(transcript, rest);
            }
            return Err(failure);
        }
    }

    /// One answer, streamed to its end, whatever that is.
    async fn answer(
        &self,
        transcript: &mut Transcript,
        request: TurnRequest<'_>,
    ) -> Result<(Turn, LanguageGate), Ended> {
        self.stay_within_budget().await?;
        let mut gate = match request.is_free() {
            true => LanguageGate::new(request.holds_ideographs),
            false => LanguageGate::shut(),
        };
        let streamed = self.stream_turn(transcript, request, &mut gate).await;
        if let Err(ended) = streamed {
            // Nothing was decided about withheld text; emit it with the rest of the text, unless it would be rejected.
            if let (Ended::Failed(_), Verdict::Accepted(rest)) = (&ended, gate.close()) {
                self.say(transcript, rest);
            }
            return Err(ended);
        }
        let Open::Streaming { fold, .. } = std::mem::replace(&mut transcript.open, Open::Nothing) else {
            return Err(Ended::Failed(Failure::internal()));
        };
        let turn = fold.finish();
        let (model, usage) = (turn.message.origin.clone(), turn.usage.unwrap_or_default());
        let cost = self.charge_ended(transcript, model.clone(), turn.usage).await;
        self.emit(AgentEvent::TurnEnded { model, usage, cost });
        Ok((turn, gate))
    }

    /// Ends the run where its user or their tenant have used what they may.
    async fn stay_within_budget(&self) -> Result<(), Ended> {
        match self.agent.is_within_budget(&self.cx.caller.owner).await {
            true => Ok(()),
            false => {
                Err(failed(FailureCode::QuotaExceeded, "The budget of this user or their tenant is used up", false))
            }
        }
    }

    /// The beginning of an answer of the model, which is sent these files.
    async fn ask_with(
        &self,
        transcript: &Transcript,
        request: TurnRequest<'_>,
        files: &HashMap<FileId, Loaded>,
    ) -> Result<EventStream, ProviderError> {
        let request = ChatRequest {
            system: request.system,
            messages: transcript.messages.all(),
            files: SentFiles { bytes: Some(files), ..SentFiles::default() },
            tools: request.tools,
            may_call: request.may_call,
            must_call: request.must_call,
            format: request.format,
            model: self.model,
            deadline: self.deadline,
        };
        self.agent.llm.stream_chat(request).await
    }

    async fn stream_turn(
        &self,
        transcript: &mut Transcript,
        request: TurnRequest<'_>,
        gate: &mut LanguageGate,
    ) -> Result<(), Ended> {
        // The model is known when it answers.
        let span = spans::llm_chat();
        let streamed = async {
            let mut files = self.load_files(&transcript.messages).await.map_err(|error| {
                log_unread(&error);
                let words = "The files of this conversation cannot be read now; please try again";
                failed(FailureCode::StoreUnavailable, words, true)
            })?;
            leave_out(&mut files, &transcript.refused_files);
            let since_ms = self.now_ms();
            transcript.answered_by = None;
            transcript.open = Open::Asking { since_ms };
            let sent = transcript.messages.all().len();
            if let Some(diagnosis) = &mut transcript.diagnosis {
                diagnosis.sent(sent);
            }
            transcript.ledger.tally = Some(Tally::new(request.system, request.tools));
            let (may_call, is_free) = (request.may_call, request.is_free());
            let mut answered = self.ask_with(transcript, request, &files).await;
            while let Err(error) = &answered
                && error.kind == ProviderErrorKind::Rejected
                && take_back(&mut files, transcript)
            {
                tracing::info!(error = %Causes(&*error.detail), "asked again without files");
                answered = self.ask_with(transcript, request, &files).await;
            }
            let mut stream = match answered {
                Ok(stream) => stream,
                Err(error) => {
                    // Whoever does not answer charges nothing.
                    transcript.ledger.tally = None;
                    return Err(provider_failed(error));
                }
            };
            let takes = self.agent.llm.takes(&stream.origin);
            let sent = SentFiles { bytes: Some(&files), takes };
            self.tell_not_shown(transcript, sent, is_free);
            if let Some(tally) = &mut transcript.ledger.tally {
                tally.shown(transcript.messages.all(), sent);
            }
            drop(files);
            spans::answered_by(&stream.origin.provider, &stream.origin.model);
            if let Some(id) = &stream.request_id {
                spans::tell_current(names::RESPONSE_ID, || id.clone());
            }
            transcript.answered_by = Some((stream.origin.clone(), stream.request_id.take()));
            let fold = TurnFold::new(stream.origin.clone(), transcript.call_ids.clone());
            transcript.open = Open::Streaming { fold, since_ms };
            loop {
                let event = match gate.waits_until() {
                    None => stream.events.next().await,
                    // Text waits no longer than it may, also while the model says nothing.
                    Some(until) => tokio::select! {
                        biased;
                        () = sleep_until(until) => {
                            self.say(transcript, gate.out_of_time());
                            continue;
                        }
                        event = stream.events.next() => event,
                    },
                };
                let Some(event) = event else { break };
                let event = event.map_err(provider_failed)?;
                if let StreamEvent::Finished { reason, usage } = &event {
                    tell_end(*reason, usage.unwrap_or_default());
                }
                if let Some(tally) = &mut transcript.ledger.tally {
                    tally.push(&event);
                }
                if !self.events.holds(held(&event)) {
                    // Where the run is stopped is polled before the stream, which may be ready for long.
                    yield_now().await;
                }
                let Open::Streaming { fold, .. } = &mut transcript.open else { break };
                let Some(event) = fold.push(event) else { continue };
                match event {
                    AgentEvent::TextDelta { text } => self.say(transcript, gate.push(text)),
                    AgentEvent::ToolCallStarted { .. } => {
                        self.say(transcript, gate.open());
                        self.end_speech(transcript).await;
                        // A call that may not be made is dropped.
                        if may_call {
                            self.emit(event);
                        }
                    }
                    AgentEvent::ThinkingDelta { .. } if !self.profile.shows_thinking => {}
                    other => self.emit(other),
                }
            }
            Ok(())
        };
        within(span, streamed).await
    }
}

/// 64 bytes for each sign of a value in arguments: half of what three trees of them take.
const VALUE_BYTES: usize = 64;

/// Half of the most bytes that are held of a piece of an answer besides its event: a run may hold twice its bound. A
/// text grows by doubling, in the message and in the user's answer; at the end the message is written as JSON, which
/// the database takes and keeps until it is on the disk. Arguments become values, in the message, the trail and an
/// event.
fn held(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::Text(text) => 7 * text.len(),
        StreamEvent::Thinking(text) => 4 * text.len(),
        StreamEvent::ToolCallInput { json, .. } => {
            let values = json.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
            4 * json.len() + VALUE_BYTES * values
        }
        StreamEvent::Replay { data, .. } => 4 * data.raw().get().len(),
        StreamEvent::ToolCallStarted { .. } | StreamEvent::Used(_) | StreamEvent::Finished { .. } => 0,
    }
}

/// The end of a run whose model says nothing.
pub(super) fn empty_answer() -> Ended {
    failed(FailureCode::EmptyAnswer, "The model gave an empty answer; please try again", true)
}

/// Tells the trace how an answer ended and what it took.
fn tell_end(reason: FinishReason, usage: Usage) {
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    spans::tell_current(names::FINISH_REASONS, || reason.name());
    spans::tell_current(names::INPUT_TOKENS, || count(usage.input_tokens));
    spans::tell_current(names::OUTPUT_TOKENS, || count(usage.output_tokens));
    spans::tell_current(names::CACHED_INPUT_TOKENS, || count(usage.cached_input_tokens));
    spans::tell_current(names::REASONING_TOKENS, || count(usage.reasoning_tokens));
}

/// Notes an answer that came to its end and is still none.
pub(super) fn log_answer(transcript: &Transcript, code: FailureCode, message: &'static str) {
    let (origin, request_id) = transcript.answered_by.as_ref().map(|(origin, id)| (origin, id.as_deref())).unzip();
    tracing::warn!(
        error.code = code.name(),
        gen_ai.provider.name = origin.map(|origin| &*origin.provider),
        gen_ai.request.model = origin.map(|origin| &*origin.model),
        llm.request_id = request_id.flatten(),
        "{message}"
    );
}

/// Logs a model's failure, as the only function, with the vendor's own words.
fn provider_failed(error: ProviderError) -> Ended {
    tracing::error!(
        error.code = error.kind.code().name(),
        gen_ai.provider.name = error.origin.as_ref().map(|origin| &*origin.provider),
        gen_ai.request.model = error.origin.as_ref().map(|origin| &*origin.model),
        llm.request_id = error.request_id,
        error = %Causes(&*error.detail),
        "model call failed"
    );
    spans::tell_current(names::ERROR_TYPE, || error.kind.code().name());
    error.into()
}
