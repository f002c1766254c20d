//! This protocol among all others: its route, and how its requests are answered.

use serde_json::{Value, json};
use utoipa::OpenApi;

use super::Smithy;
use super::encoder::SmithyEncoder;
use super::request::{Body, Read};
use super::words;
use crate::chat::approval::{APPROVAL_REQUEST, DecisionRule};
use crate::chat::artifact::CHECKPOINT;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::input::{OnBusy, RunOptions, Screen};
use crate::chat::model::ModelWish;
use crate::dialect::asked::{Asked, ConversationRef, Question, Shape, What};
use crate::dialect::failures::friendly;
use crate::dialect::given::Ask;
use crate::dialect::reply::{Document, Outcome, Position, Reply};
use crate::dialect::{DecodeError, Dialect, Encoder, Request, RunIds, Settings};

#[derive(OpenApi)]
#[openapi(
    paths(chat),
    tags((name = "Smithy", description = "A coding agent for editors. An error's body is `{\"detail\"}`."))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "smithyChat",
    tag = "Smithy",
    summary = "Answer a message",
    description = "Starts a run and streams it; it ends when its client goes away. A message to a dialog that is being answered stops that answer. There only with a workspace.",
    request_body = Body<'static>,
    responses(
        (status = 200, description = "Frames without a name; their JSON says what each is. Without `stream` one document.", content((String = "text/event-stream"))),
        (status = 400, description = "`invalid_request`: there is no message, or the dialog's id is none."),
        (status = 404, description = "`not_found`: there is no workspace."),
        (status = 422, description = "`invalid_request`: what is wrong."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn chat() {}

impl From<&Settings> for Smithy {
    fn from(settings: &Settings) -> Self {
        let Settings { message_bytes, smithy: (context_type, role), .. } = settings;
        Self { context_type: context_type.clone(), role: role.clone(), max_message_bytes: *message_bytes }
    }
}

impl Dialect for Smithy {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        if self.context_type.is_empty() {
            return Err(DecodeError::NoSuchAssistant);
        }
        if !self.role.is_empty() && request.roles.iter().all(|role| **role != *self.role) {
            return Err(DecodeError::NotForYou);
        }
        let Read { message, context, is_stream, dialog, workload } = self.parse(request.body)?;
        let screen = Screen::Type(self.context_type.to_string());
        Ok(Asked {
            what: What::Answer(Question::new(Ask::message(message.clone()), screen)),
            rule: DecisionRule::Any,
            conversation: dialog.map_or(ConversationRef::Current, |dialog| ConversationRef::Id(Some(dialog))),
            options: RunOptions {
                context,
                background: Some(false),
                on_busy: Some(OnBusy::Interrupt),
                details: true,
                model: ModelWish { workload, ..ModelWish::default() },
                ..RunOptions::default()
            },
            mark: "smithy".to_owned(),
            shape: if is_stream { Shape::Stream } else { Shape::Document },
            reply: Box::new(Frames { message: Some(message) }),
        })
    }
}

/// A stream of frames, or one document.
struct Frames {
    /// What the user has said, until a run tells it.
    message: Option<String>,
}

impl Reply for Frames {
    /// AgentSmithy protocol, response.
    fn headers(&self, _of: &RunIds) -> Vec<(&'static str, String)> {
        vec![("cache-control", "no-cache".to_owned())]
    }

    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(SmithyEncoder::new(&of, self.message.take()))
    }

    fn document(&mut self, of: RunIds) -> Option<Box<dyn Document>> {
        Some(Box::new(Whole {
            dialog: of.conversation.to_string(),
            text: String::new(),
            waiting: Vec::new(),
            checkpoint: None,
            session: None,
        }))
    }
}

/// All of an answer.
struct Whole {
    dialog: String,
    text: String,
    /// What is told of calls that wait, at the end.
    waiting: Vec<String>,
    checkpoint: Option<String>,
    session: Option<String>,
}

impl Whole {
    fn answer(&self) -> Vec<u8> {
        let mut metadata = json!({"agent_used": "universal_agent", "dialog_id": self.dialog});
        for (name, value) in [("checkpoint", &self.checkpoint), ("session", &self.session)] {
            if let Some(value) = value {
                metadata[name] = json!(value);
            }
        }
        json!({"content": self.text, "done": true, "metadata": metadata}).to_string().into_bytes()
    }

    fn failed(failure: Failure) -> Outcome {
        let detail = json!({"detail": friendly(&failure)}).to_string().into_bytes();
        Outcome::Failed(failure, detail)
    }
}

impl Document for Whole {
    fn hear(&mut self, event: &AgentEvent) -> Option<Outcome> {
        match event {
            AgentEvent::TextDelta { text } => self.text.push_str(text),
            AgentEvent::Notice(notice) => self.text.push_str(&notice.said),
            AgentEvent::Artifact(artifact) if artifact.kind == APPROVAL_REQUEST => {
                let tool = artifact.payload.get("tool").and_then(Value::as_str);
                self.waiting.push(words::waits(tool.unwrap_or_default()));
            }
            AgentEvent::AwaitingApproval { .. } => {
                self.text.extend(self.waiting.drain(..));
                return Some(Outcome::Whole(self.answer()));
            }
            AgentEvent::Artifact(artifact) if artifact.kind == CHECKPOINT => {
                let text = |name: &str| artifact.payload.get(name).and_then(|value| value.as_str().map(str::to_owned));
                (self.checkpoint, self.session) = (text("checkpoint_id"), text("session"));
            }
            AgentEvent::Failed(failure) => return Some(Self::failed(failure.clone())),
            AgentEvent::Cancelled | AgentEvent::Interrupted => return Some(self.lost()),
            event if event.is_terminal() => return Some(Outcome::Whole(self.answer())),
            _ => {}
        }
        None
    }

    fn lost(&mut self) -> Outcome {
        let message = words::INTERRUPTED.to_owned();
        Self::failed(Failure { code: FailureCode::Interrupted, message, retryable: true })
    }
}
