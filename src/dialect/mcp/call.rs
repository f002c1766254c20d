//! `tools/call`: what a call says, and what it asks for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::encoder::Telling;
use super::message::RpcError;
use crate::bounded::json::{object, parse};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::approval::{Deciding, Decision, DecisionRule, Seen};
use crate::chat::ids::{ApprovalId, ConversationId};
use crate::chat::input::{Ask, Direct, RunOptions, Screen};
use crate::dialect::answer_format::{self, DeclaredSchema};
use crate::dialect::asked::{Asked, ConversationRef, Question, Shape, What};
use crate::dialect::json;

/// What distinguishes these requests from those of other protocols with the same body.
pub const MARK: &str = "mcp";

/// The longest comment of a decision, in bytes.
const COMMENT_BYTES: usize = 4096;

/// What a call says.
#[derive(Debug)]
pub struct CallRequest<'a> {
    /// The tool.
    pub name: String,
    /// The arguments, an object.
    arguments: Option<&'a RawValue>,
    /// What an earlier answer to this call gave its client to send back.
    pub state: Option<String>,
    /// What its client's user has said meanwhile.
    pub replies: Vec<InputReply>,
}

/// What a client's user has said of a call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReply {
    /// The call.
    pub approval: ApprovalId,
    /// The decision on it; `None`: none.
    pub decision: Option<Decision>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
    #[serde(borrow)]
    input_responses: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Replies<'a> {
    #[serde(borrow, rename = "inputResponses")]
    replies: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Reply<'a> {
    action: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Form<'a> {
    decision: String,
    #[serde(borrow)]
    comment: Option<&'a RawValue>,
}

/// What a profile is asked.
#[derive(Debug, PartialEq)]
pub struct AskArguments {
    /// The words.
    pub message: String,
    /// The conversation to go on with.
    pub conversation: Option<String>,
    /// The form of the answer, where it is not free text.
    pub form: Option<AnswerFormat>,
}

impl<'a> CallRequest<'a> {
    /// The call in the parameters of a request.
    ///
    /// # Errors
    /// When they are none.
    pub fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let wrong = |text: &str| RpcError::Params(text.to_owned());
        let raw: Raw<'_> = params.and_then(json::fields).ok_or_else(|| wrong("params must be an object"))?;
        let name = text(raw.name).ok_or_else(|| wrong("params.name must be the name of a tool"))?;
        let arguments = json::given(raw.arguments);
        if arguments.is_some_and(|raw| !raw.get().starts_with('{')) {
            return Err(wrong("params.arguments must be an object"));
        }
        let state = json::given(raw.request_state);
        let state = state.map(|raw| text(Some(raw)).ok_or_else(|| wrong("params.requestState must be a text")));
        let (state, replies) = (state.transpose()?, replies(raw.input_responses)?);
        if state.is_none() && !replies.is_empty() {
            return Err(wrong("params.requestState is missing beside inputResponses"));
        }
        Ok(Self { name, arguments, state, replies })
    }

    /// The arguments of a tool that asks a profile.
    ///
    /// # Errors
    /// What is wrong with them, in words for the model that has written them.
    pub fn ask(&self, max_message_bytes: usize) -> Result<AskArguments, String> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            #[serde(borrow)]
            message: Option<&'a RawValue>,
            #[serde(borrow)]
            conversation_id: Option<&'a RawValue>,
            #[serde(borrow)]
            answer_schema: Option<&'a RawValue>,
        }
        let fields = self.arguments.and_then(json::fields::<Fields<'_>>).ok_or("message is missing")?;
        let message = text(fields.message).filter(|text| !text.trim().is_empty());
        let message = message.ok_or("message must be a text that is not empty")?;
        if max_message_bytes != 0 && message.len() > max_message_bytes {
            return Err(format!("message is longer than {max_message_bytes} bytes"));
        }
        let conversation = json::given(fields.conversation_id);
        let conversation = conversation.map(|raw| text(Some(raw)).ok_or("conversation_id must be a text"));
        let form = json::given(fields.answer_schema).map(form_of).transpose()?.flatten();
        Ok(AskArguments { message, conversation: conversation.transpose()?, form })
    }

    /// The arguments of any other tool.
    ///
    /// # Errors
    /// When their values would take too much memory.
    pub fn arguments(&self) -> Result<Map<String, Value>, String> {
        match self.arguments {
            None => Ok(Map::new()),
            Some(raw) => object(raw.get()).ok_or_else(|| "the arguments are too large, or no object".to_owned()),
        }
    }
}

impl InputReply {
    /// The task and the replies in the parameters of a `tasks/update`.
    ///
    /// # Errors
    /// When they are none.
    pub fn of_task(params: Option<&RawValue>) -> Result<(String, Vec<Self>), RpcError> {
        let raw: Option<Replies<'_>> = params.and_then(json::fields);
        let task = raw.as_ref().and_then(|raw| text(raw.task));
        let task = task.ok_or_else(|| RpcError::Params("params.taskId must be the id of a task".to_owned()))?;
        Ok((task, replies(raw.and_then(|raw| raw.replies))?))
    }
}

/// The form that a schema asks for.
fn form_of(schema: &RawValue) -> Result<Option<AnswerFormat>, String> {
    let (field, mut errors) = ("answer_schema", Vec::new());
    let declared = DeclaredSchema { name: None, description: None, is_strict: true, schema };
    let form = answer_format::schema(declared, field, &mut errors).map_err(|_| format!("{field} is too large"))?;
    match errors.into_iter().next() {
        Some(error) => Err(format!("{field} {}", error.reason)),
        None => Ok(form),
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    parse(raw?.get()).ok()
}

fn replies(raw: Option<&RawValue>) -> Result<Vec<InputReply>, RpcError> {
    let wrong = |text: &str| RpcError::Params(format!("params.inputResponses {text}"));
    let Some(raw) = json::given(raw) else { return Ok(Vec::new()) };
    let all: BTreeMap<String, &RawValue> = json::fields(raw).ok_or_else(|| wrong("must be an object"))?;
    let replies = all.into_iter().map(|(key, raw)| {
        let approval = ApprovalId::parse(&key).map_err(|_| wrong("answers what was not asked"))?;
        let reply: Reply<'_> = json::fields(raw).ok_or_else(|| wrong("must have results of an elicitation"))?;
        let decision = match reply.action.as_str() {
            "accept" => Some(form(reply.content).ok_or_else(|| wrong("must have the decision approve or reject"))?),
            "decline" => Some(Decision { approve: false, comment: None }),
            "cancel" => None,
            _ => return Err(wrong("must have the action accept, decline or cancel")),
        };
        Ok(InputReply { approval, decision })
    });
    replies.collect()
}

fn form(raw: Option<&RawValue>) -> Option<Decision> {
    let form: Form<'_> = json::fields(raw?)?;
    let approve = match form.decision.as_str() {
        "approve" => true,
        "reject" => false,
        _ => return None,
    };
    let comment = match json::given(form.comment) {
        None => None,
        Some(raw) => Some(text(Some(raw)).filter(|comment| comment.len() <= COMMENT_BYTES)?),
    };
    Some(Decision { approve, comment: comment.filter(|comment| !comment.trim().is_empty()) })
}

/// What a question to the profile of that `context_type` asks for, told as `telling` says.
pub fn asked(context_type: String, arguments: AskArguments, telling: Telling, shape: Shape) -> Asked {
    let AskArguments { message, conversation, form } = arguments;
    let conversation = conversation.map_or(ConversationRef::Id(None), ConversationRef::Existing);
    let question = Question::new(Ask::message(message), Screen::Type(context_type));
    let options = RunOptions { answer_format: form, ..options(shape, None) };
    begun(What::Answer(question), conversation, options, telling, shape)
}

/// What a call of a tool of that profile asks for.
pub fn direct(
    context_type: String,
    (name, arguments): (String, Map<String, Value>),
    telling: Telling,
    shape: Shape,
) -> Asked {
    // A conversation for this call alone, which no list shows.
    let question = Question { unlisted: true, ..Question::new(Ask::message(name.clone()), Screen::Type(context_type)) };
    let options = options(shape, Some(Direct::Call { name, arguments }));
    begun(What::Answer(question), ConversationRef::Id(None), options, telling, shape)
}

/// What decisions on calls of a conversation ask for; `is_direct` where no model is to hear of them, else with
/// the form of the answer behind them.
pub fn decided(
    conversation: ConversationId,
    decisions: impl IntoIterator<Item = (ApprovalId, Decision)>,
    (is_direct, form): (bool, Option<AnswerFormat>),
    telling: Telling,
    shape: Shape,
) -> Asked {
    let decisions = decisions.into_iter().map(|(approval, decision)| Deciding {
        approval,
        decision,
        is_farewell: false,
        seen: Seen::Unknown,
    });
    let options = RunOptions { answer_format: form, ..options(shape, is_direct.then_some(Direct::Decided)) };
    begun(What::Decide(decisions.collect(), None), ConversationRef::Id(Some(conversation)), options, telling, shape)
}

fn begun(what: What, conversation: ConversationRef, options: RunOptions, telling: Telling, shape: Shape) -> Asked {
    Asked {
        what,
        rule: DecisionRule::Conversation,
        conversation,
        options,
        mark: MARK.to_owned(),
        shape,
        reply: Box::new(telling),
    }
}

/// A task goes on by itself, behind decisions too; any other call ends when its client goes away. Whoever calls a tool of ours
/// reads its result.
fn options(shape: Shape, direct: Option<Direct>) -> RunOptions {
    let is_task = matches!(shape, Shape::Record);
    RunOptions {
        background: Some(is_task),
        keeps_form: is_task,
        details: direct.is_some(),
        direct: direct.map(Box::new),
        ..RunOptions::default()
    }
}
