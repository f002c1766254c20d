//! A run as the answer to a call: notices of its progress and then its result as a stream, its result alone, or the task that it
//! is.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;

use super::hearing::{Heard, Hearing, MadeFile};
use super::message::{Client, Era};
use super::outline::Id;
use super::results::{self, CallBody, ContentBody, InputRequiredBody, StructuredBody, TaskBody, Waiting};
use crate::bounded::json::{NodeBudget, compact};
use crate::chat::day::rfc3339;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::chat::run::RunState;
use crate::dialect::reply::{Document, Outcome, Position, Refusal, Reply};
use crate::dialect::{Encoder, RunIds, failures, frame};

/// What each event is called: clients pass over those without a name (java-sdk#885).
const EVENT: &str = "message";

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// A profile, whose words are the result.
    Profile,
    /// A tool of one, whose output it is.
    Own,
}

/// How a run is told to the client that has called.
#[derive(Debug, Clone)]
pub struct Telling {
    /// The request.
    pub id: Id,
    /// Its client.
    pub client: Client,
    /// What it calls.
    pub tool: Tool,
    /// Where people reach this server; empty where that is not known.
    pub public_url: Arc<str>,
    /// Where clients reach it.
    pub base: Arc<str>,
    /// What the runs have made that its run goes on behind.
    pub made: Vec<MadeFile>,
    /// Where its run is noted while it is told, for a client that calls it off.
    pub open: Option<Arc<OnceLock<RunId>>>,
}

impl Reply for Telling {
    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        self.note(&of);
        Box::new(CallEncoder { call: Call::new(self.clone(), of), steps: 0 })
    }

    fn document(&mut self, of: RunIds) -> Option<Box<dyn Document>> {
        self.note(&of);
        Some(Box::new(Call::new(self.clone(), of)))
    }

    fn begun(&mut self, of: &RunIds) -> Option<Vec<u8>> {
        Some(results::result(&self.id, &TaskBody::begun(of.run.to_string(), rfc3339(of.run.made_ms()))))
    }

    /// A call has one result: of several runs that one request asks for, that of the last.
    fn shows_last_only(&self) -> bool {
        true
    }

    fn broken_off(&mut self, refusal: &Refusal<'_>) -> Bytes {
        let mut out = BytesMut::new();
        frame::write_json(&mut out, EVENT, &Self::refused(self, &refusal.message));
        out.freeze()
    }
}

impl Telling {
    fn note(&self, of: &RunIds) {
        if let Some(open) = &self.open {
            // Of several runs of one request the last is told alone.
            let _ = open.set(of.run);
        }
    }

    /// The answer where the call was refused in these words, which its model reads.
    pub fn refused(&self, words: &str) -> Vec<u8> {
        let body = CallBody::of(vec![ContentBody::text(words)], None, true, self.client.era);
        results::result(&self.id, &body)
    }

    /// The result of a run that has told `events`, without the answer around it.
    pub fn result(self, of: RunIds, events: &[AgentEvent]) -> Option<Box<RawValue>> {
        let mut call = Call::new(self, of);
        let ended = events.iter().find_map(|event| match call.hearing.hear(event, &call.telling.public_url) {
            Heard::End(state, failure) => Some((state, failure)),
            Heard::Nothing | Heard::Step(_) => None,
        });
        let (state, failure) = ended?;
        serde_json::value::to_raw_value(&call.body(state, failure.as_deref())).ok()
    }
}

/// A call whose run goes on.
struct Call {
    telling: Telling,
    of: RunIds,
    hearing: Hearing,
}

impl Call {
    fn new(mut telling: Telling, of: RunIds) -> Self {
        let hearing = Hearing::behind(std::mem::take(&mut telling.made));
        Self { telling, of, hearing }
    }

    fn hear(&mut self, event: &AgentEvent) -> Heard {
        self.hearing.hear(event, &self.telling.public_url)
    }

    /// The answer to the request when its run has ended so.
    fn answer(&self, state: RunState, failure: Option<&str>) -> Vec<u8> {
        if state == RunState::AwaitingApproval
            && let Some(body) = self.input_required()
        {
            return results::result(&self.telling.id, &body);
        }
        results::result(&self.telling.id, &self.body(state, failure))
    }

    fn lost(&self) -> Vec<u8> {
        self.answer(RunState::Interrupted, Some(&failures::lost().message))
    }

    /// What its client is to ask its user, where it can, and where the user may decide.
    fn input_required(&self) -> Option<InputRequiredBody> {
        if self.telling.client.era == Era::Legacy || !self.telling.client.elicits {
            return None;
        }
        let forms = self.hearing.held.iter().map(|held| match held.needs_role {
            true => None,
            false => {
                let waiting = Waiting { tool: &held.tool, arguments: &held.arguments, digest: &held.digest };
                Some((held.approval.clone(), results::form(&waiting)?))
            }
        });
        let forms: BTreeMap<_, _> = forms.collect::<Option<_>>()?;
        (!forms.is_empty()).then(|| InputRequiredBody::of(forms, self.of.run.to_string()))
    }

    fn body(&self, state: RunState, failure: Option<&str>) -> CallBody<'_> {
        let Self { telling, of, hearing } = self;
        let notes = || hearing.notes.iter().map(|note| ContentBody::text(note.as_str()));
        let links = telling.client.links;
        let files = || hearing.files.iter().map(move |file| file.link(&telling.base, links));
        let mut content = Vec::new();
        if let Some(failure) = failure {
            content.push(ContentBody::text(failure.to_owned()));
        }
        match telling.tool {
            Tool::Profile => {
                if !hearing.text.is_empty() {
                    content.push(ContentBody::text(hearing.text.as_str()));
                }
                content.extend(notes().chain(files()));
                if content.is_empty() {
                    content.push(ContentBody::text(""));
                }
                let structured = StructuredBody::Answer {
                    answer: &hearing.text,
                    conversation_id: of.conversation.as_str(),
                    run_id: of.run.to_string(),
                    state: state.name(),
                    data: structured(&hearing.text),
                };
                CallBody::of(content, Some(structured), failure.is_some(), telling.client.era)
            }
            Tool::Own => {
                let (text, is_error) = match &hearing.result {
                    Some((text, is_error)) => (&**text, *is_error),
                    None if hearing.is_turned_down => ("the call was not made: it was turned down", true),
                    None if state == RunState::AwaitingApproval => ("the call was not made yet", false),
                    None => ("the call was not made", true),
                };
                content.push(ContentBody::text(text));
                content.extend(notes().chain(files()));
                let json = structured(text).map(StructuredBody::Json);
                CallBody::of(content, json, is_error || failure.is_some(), telling.client.era)
            }
        }
    }
}

/// The object that a tool's output is, on one line; `None` of any other text.
fn structured(text: &str) -> Option<Box<RawValue>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let one_line = compact(text, &mut NodeBudget::for_bytes(text.len(), None)).ok()?;
    RawValue::from_string(one_line).ok()
}

impl Document for Call {
    fn hear(&mut self, event: &AgentEvent) -> Option<Outcome> {
        match Call::hear(self, event) {
            Heard::End(state, failure) => Some(Outcome::Whole(self.answer(state, failure.as_deref()))),
            Heard::Nothing | Heard::Step(_) => None,
        }
    }

    fn lost(&mut self) -> Outcome {
        Outcome::Whole(Call::lost(self))
    }
}

struct CallEncoder {
    call: Call,
    /// How many steps were told.
    steps: u64,
}

#[derive(Serialize)]
struct Notice<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: NoticeParams<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NoticeParams<'a> {
    progress_token: &'a Id,
    progress: u64,
    message: &'a str,
}

impl Encoder for CallEncoder {
    fn opened(&mut self, _out: &mut BytesMut) {}

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match self.call.hear(event) {
            Heard::Nothing => {}
            Heard::Step(message) => {
                let Some(token) = &self.call.telling.client.progress else { return };
                self.steps += 1;
                let params = NoticeParams { progress_token: token, progress: self.steps, message: &message };
                let notice = Notice { jsonrpc: "2.0", method: "notifications/progress", params };
                frame::write(out, None, EVENT, &notice);
            }
            Heard::End(state, failure) => frame::write_json(out, EVENT, &self.call.answer(state, failure.as_deref())),
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        frame::write_json(out, EVENT, &self.call.lost());
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write_comment(out, "keep-alive");
    }

    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            self.lost(out);
        }
    }
}
