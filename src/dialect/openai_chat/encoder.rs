//! Events as `chat.completion.chunk` frames. The first names the role, one has the `finish_reason`, and `[DONE]` comes
//! last. A run that fails ends with an error frame and no `[DONE]`, which would say that the answer is whole.

use bytes::{BufMut, Bytes, BytesMut};

use super::chunks::{CallBody, Choice, Chunk, Delta, ErrorBody, FunctionBody, UsageBody};
use super::transcript::{self, Piece, Transcript};
use super::{Telling, name_of};
use crate::chat::event::AgentEvent;
use crate::chat::failure::Failure;
use crate::chat::ids::ConversationId;
use crate::chat::tool::{ToolCall, ToolInput};
use crate::dialect::reply::NOT_BEGUN;
use crate::dialect::{Encoder, RunIds, call_ids, failures, frame};

pub(super) struct ChunkEncoder {
    transcript: Transcript,
    writer: Writer,
}

/// The fields that all frames of an answer share.
struct Writer {
    id: String,
    created: u64,
    conversation: ConversationId,
    telling: Telling,
}

impl ChunkEncoder {
    pub(super) fn new(of: &RunIds, telling: Telling) -> Self {
        let (id, created) = name_of(of.run);
        Self {
            transcript: Transcript::new(telling.sentences()),
            writer: Writer { id, created, conversation: of.conversation.clone(), telling },
        }
    }
}

impl Writer {
    fn delta(&self, out: &mut BytesMut, delta: Delta<'_>, finish_reason: Option<&'static str>) {
        self.chunk(out, &[Choice { index: 0, delta, finish_reason }], None);
    }

    fn chunk(&self, out: &mut BytesMut, choices: &[Choice<'_>], usage: Option<UsageBody>) {
        let chunk = Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.telling.model,
            choices,
            usage,
        };
        frame::write_data(out, None, &chunk);
    }

    fn piece(&self, out: &mut BytesMut, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) => self.delta(out, Delta { content: Some(text), ..Delta::default() }, None),
            Piece::Reasoning(text) => {
                self.delta(out, Delta { reasoning_content: Some(text), ..Delta::default() }, None);
            }
            Piece::Calls(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    let call = [CallBody { index: Some(index), ..body(call, &self.conversation, &self.telling) }];
                    self.delta(out, Delta { tool_calls: &call, ..Delta::default() }, None);
                }
            }
            Piece::Finished(reason) => self.delta(out, Delta::default(), Some(reason)),
            Piece::Failed(failure) => write_failure(out, &failure),
        }
    }
}

/// A call as its client sees it.
pub(super) fn body(call: &ToolCall, conversation: &ConversationId, telling: &Telling) -> CallBody {
    let id = match telling.is_keyed {
        true => call.id.as_str().to_owned(),
        false => call_ids::with_conversation(conversation, &call.id),
    };
    let arguments = match &call.input {
        // Maps of JSON values always serialise.
        ToolInput::Object(arguments) => serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned()),
        ToolInput::Invalid(text) => text.clone(),
    };
    CallBody { index: None, id, r#type: "function", function: FunctionBody { name: call.name.clone(), arguments } }
}

fn write_failure(out: &mut BytesMut, failure: &Failure) {
    frame::write_data(
        out,
        None,
        &ErrorBody::new(&failure.message, transcript::error_type(failure), None, failure.code.name()),
    );
}

/// A whole stream of a completion whose run did not begin.
pub(super) fn broken_off(message: &str) -> Bytes {
    let mut out = BytesMut::new();
    frame::write_data(&mut out, None, &ErrorBody::new(message, "server_error", None, NOT_BEGUN));
    out.freeze()
}

impl Encoder for ChunkEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        self.writer.delta(out, Delta { role: Some("assistant"), content: Some(""), ..Delta::default() }, None);
    }

    /// These clients never come back to a stream, so events have no numbers here.
    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        let Self { transcript, writer } = self;
        let mut is_whole = false;
        transcript.hear(event, &mut |piece| {
            is_whole = matches!(piece, Piece::Finished(_));
            writer.piece(out, piece);
        });
        if is_whole {
            if writer.telling.include_usage {
                writer.chunk(out, &[], Some(UsageBody::from_usage(transcript.usage())));
            }
            out.put_slice(b"data: [DONE]\n\n");
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        write_failure(out, &failures::lost());
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write_comment(out, "keep-alive");
    }

    /// A stream that goes on elsewhere is over for these clients.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            self.lost(out);
        }
    }
}
