//! AG-UI among all other protocols: its routes, CopilotKit's among them, and how its requests are answered.

use bytes::Bytes;
use utoipa::OpenApi;

use super::encoder::AgUiEncoder;
use super::request::{self, Read};
use super::{AgUi, Answered, Entry, Stream};
use crate::chat::approval::{Approval, Deciding, DecisionRule, Seen};
use crate::chat::ids::ApprovalId;
use crate::chat::input::Screen;
use crate::dialect::asked::{Asked, Assistants, BranchPoint, ConversationRef, Question, Shape, What};
use crate::dialect::given::Ask;
use crate::dialect::reply::{NOT_BEGUN, Position, Refusal, RefusalReason, RefusalResponse, Reply};
use crate::dialect::{DecodeError, Dialect, Encoder, FieldError, Request, RunIds, Settings, instructions};

#[derive(OpenApi)]
#[openapi(
    paths(run, copilot_kit_run),
    tags(
        (name = "AG-UI", description = "A `RunAgentInput` in, AG-UI events out.",
            external_docs(url = "https://docs.ag-ui.com/concepts/events", description = "The protocol")),
        (name = "CopilotKit", description = "What CopilotKit's browser client asks of a runtime.",
            external_docs(url = "https://docs.copilotkit.ai", description = "The client")),
    )
)]
struct Api;

#[utoipa::path(
    post,
    path = "/v1/ag-ui/{agent}",
    operation_id = "agUiRun",
    tag = "AG-UI",
    summary = "Run an agent",
    description = "Also at `/v1/copilotkit/agent/{agent}/run`.",
    params(
        ("agent" = String, Path, description = "A profile's `context_type`."),
    ),
    request_body = super::RequestBody<'static>,
    responses(
        (status = 200, description = "AG-UI events, each a nameless frame whose JSON says its `type`.", content((String = "text/event-stream"))),
        (status = 404, description = "`not_found`: there is no such agent."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn run() {}

#[utoipa::path(
    post,
    path = "/v1/copilotkit/agent/{agent}/run",
    operation_id = "copilotKitRun",
    tag = "CopilotKit",
    summary = "Run an agent",
    description = "The same as `POST /v1/ag-ui/{agent}`.",
    params(
        ("agent" = String, Path, description = "A profile's `context_type`."),
    ),
    request_body = super::RequestBody<'static>,
    responses(
        (status = 200, description = "AG-UI events, each a nameless frame whose JSON says its `type`.", content((String = "text/event-stream"))),
        (status = 404, description = "`not_found`: there is no such agent."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn copilot_kit_run() {}

impl From<&Settings> for AgUi {
    fn from(settings: &Settings) -> Self {
        let Settings { message_bytes, context_bytes, open_interrupts, .. } = *settings;
        Self { max_message_bytes: message_bytes, max_context_bytes: context_bytes, open_interrupts }
    }
}

impl Dialect for AgUi {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn is_retold(&self) -> bool {
        true
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let agent = request.path.ok_or(DecodeError::NoSuchAssistant)?;
        is_for(request.assistants, agent)?;
        let Read { asker, resume, results, ask, replaces, beside, mut options } =
            request::read(self, request.body, request.unawaited)?;
        options.instructions =
            instructions::of_body(request.body, request.assistants.choices(agent), self.max_message_bytes)?;
        let known_as = options.asked_as.clone().map_or(BranchPoint::Newest, BranchPoint::KnownAs);
        let question = |ask: Ask| Question {
            branch: replaces.map_or(known_as, BranchPoint::Message),
            unlisted: beside.is_some(),
            earlier: beside.unwrap_or_default(),
            ..Question::new(ask, Screen::Type(agent.to_owned()))
        };
        let what = match (resume.is_empty(), ask.map(question)) {
            (true, Some(question)) if results.is_empty() => What::Answer(question),
            (true, Some(question)) => {
                let first = Question::new(Ask::Results(results), question.screen.clone());
                What::Both(Box::new(first), Box::new(question))
            }
            (_, question) => What::Decide(resume.into_iter().map(deciding).collect(), question),
        };
        Ok(Asked {
            what,
            rule: DecisionRule::All,
            conversation: ConversationRef::Id(Some(asker.thread.clone())),
            options,
            mark: format!("ag-ui {agent}"),
            shape: Shape::Stream,
            reply: Box::new(Stream::new(asker).with_open(self.open_interrupts)),
        })
    }
}

/// Whether there is such an agent, for this caller.
///
/// # Errors
/// When there is none, or it is for others.
pub fn is_for(assistants: &dyn Assistants, agent: &str) -> Result<(), DecodeError> {
    match (assistants.has(agent), assistants.choices(agent)) {
        (false, _) => Err(DecodeError::NoSuchAssistant),
        (true, None) => Err(DecodeError::NotForYou),
        (true, Some(_)) => Ok(()),
    }
}

fn deciding(Answered { approval, entry }: Answered) -> Deciding {
    let is_farewell = entry == Entry::Cancelled;
    Deciding { approval, decision: entry.decision(), is_farewell, seen: Seen::Unknown }
}

impl Reply for Stream {
    fn encoder(&mut self, of: RunIds, at: Position) -> Box<dyn Encoder> {
        Box::new(AgUiEncoder::new(self.clone(), of.run, at.is_first, at.is_last))
    }

    fn goes_on(&self) -> bool {
        Self::goes_on(self)
    }

    fn waits_besides(&mut self, calls: &[Approval]) {
        self.remember(calls);
    }

    fn refused(&mut self, refusal: &Refusal<'_>) -> RefusalResponse {
        match refusal.why {
            RefusalReason::Waiting(calls) => RefusalResponse::Stream(self.decide_first(calls)),
            RefusalReason::NothingLeft => RefusalResponse::Stream(self.nothing()),
            RefusalReason::NotOnBranch(id) => {
                let id = id.map(|id| id.to_string()).unwrap_or_default();
                let reason =
                    format!("has the id {id}, which is no message of the user on the newest branch of this thread");
                RefusalResponse::Mistake(DecodeError::Fields(vec![FieldError { field: "messages", reason }]))
            }
            why => match about_interrupts(why, refusal.call) {
                None => RefusalResponse::AsUsual,
                Some((code, words)) => {
                    RefusalResponse::Stream(self.refusal(code, words.as_ref().unwrap_or(&refusal.message)))
                }
            },
        }
    }

    fn finished(&mut self) -> Bytes {
        Self::finished(self)
    }

    fn broken_off(&mut self, refusal: &Refusal<'_>) -> Bytes {
        let code = about_interrupts(refusal.why, None).map_or(NOT_BEGUN, |(code, _)| code);
        self.failure(code, &format!("Not everything was carried out: {}", refusal.message))
    }
}

/// The code of an error that is about what was to be decided; and its words, where they name the call.
fn about_interrupts(why: RefusalReason<'_>, call: Option<ApprovalId>) -> Option<(&'static str, Option<String>)> {
    match why {
        RefusalReason::RoleRequired => Some(("role_required", None)),
        RefusalReason::OwnRequest => Some(("own_request", None)),
        RefusalReason::NoSuchApproval => {
            Some(("unknown_interrupt", call.map(|id| format!("There is no interrupt {id} in this thread"))))
        }
        RefusalReason::AlreadyDecided => {
            Some(("already_decided", call.map(|id| format!("{id} has been decided already"))))
        }
        RefusalReason::Expired => {
            Some(("approval_expired", call.map(|id| format!("It is too late to decide {id}; please ask again"))))
        }
        RefusalReason::Waiting(_)
        | RefusalReason::NothingLeft
        | RefusalReason::Kept
        | RefusalReason::Forbidden
        | RefusalReason::NoSuchAssistant
        | RefusalReason::NoSuchConversation
        | RefusalReason::DataDenied
        | RefusalReason::DataUnavailable
        | RefusalReason::OtherCall
        | RefusalReason::NotOnBranch(_)
        | RefusalReason::NoSuchMessage
        | RefusalReason::NothingToRepeat
        | RefusalReason::NoSuchRun
        | RefusalReason::Other => None,
    }
}
