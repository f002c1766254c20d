//! The `input` of a request: what is new behind the last thing that the assistant said, and what was said before.
//!
//! **Invariant:** of what was said before, words of a user and of an assistant are told, and calls that have the shape of the
//! client's own. An item of ours names its run, and what that did is read from what is kept of it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ids, tools};
use crate::bounded::json::parse;
use crate::chat::approval::{Deciding, Decision, Seen};
use crate::chat::ids::RunId;
use crate::dialect::given::{ClientMessage, Content, content};
use crate::dialect::json;
use crate::dialect::told::{ToldTurn, content_in, text_in};

/// The parts of a content that are text.
const TEXT: [&str; 4] = ["input_text", "output_text", "text", "refusal"];

/// What a request tells.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Input {
    /// What a client wants of the assistant: its system messages, in order.
    pub(super) instructions: Vec<String>,
    /// What was said before what is new.
    pub(super) earlier: Vec<ClientMessage>,
    /// The run of ours that said the last thing before what is new.
    pub(super) last_run: Option<RunId>,
    /// New words of the user's, message by message.
    pub(super) texts: Vec<Content>,
    /// New results of the client's tools, by the ids that it knows.
    pub(super) outputs: Vec<(String, Content)>,
    /// New decisions.
    pub(super) decisions: Vec<Deciding>,
}

impl Input {
    /// Whether it has nothing but instructions.
    pub(super) fn is_empty(&self) -> bool {
        let Self { instructions: _, earlier, last_run: _, texts, outputs, decisions } = self;
        earlier.is_empty() && texts.is_empty() && outputs.is_empty() && decisions.is_empty()
    }
}

#[derive(Deserialize)]
struct Item<'a> {
    r#type: Option<String>,
    role: Option<String>,
    id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    call_id: Option<String>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    approval_request_id: Option<String>,
    approve: Option<bool>,
    reason: Option<String>,
}

/// Whose an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The user's words.
    User,
    /// The assistant's words.
    Assistant,
    /// A call of a tool of the client's.
    Call,
    /// Something else that the assistant, or what serves it, has made.
    Made,
    /// A call that waited for a decision.
    Waiting,
    /// A result of a client's tool.
    Output,
    /// A decision.
    Decision,
    /// What the client wants of the assistant.
    Instructions,
    /// Nothing that is read here.
    Passed,
}

impl Item<'_> {
    fn of(&self) -> Option<Of> {
        Some(match (self.r#type.as_deref(), self.role.as_deref()) {
            (None | Some("message"), Some("user")) => Of::User,
            (None | Some("message"), Some("assistant")) => Of::Assistant,
            (None | Some("message"), Some("system" | "developer")) => Of::Instructions,
            (None | Some("message"), _) => return None,
            (Some("function_call_output" | "custom_tool_call_output"), _) => Of::Output,
            (Some("mcp_approval_response"), _) => Of::Decision,
            (Some("mcp_approval_request"), _) => Of::Waiting,
            (Some("item_reference"), _) if self.id.as_deref().and_then(ids::approval_of).is_some() => Of::Waiting,
            (Some("function_call" | "custom_tool_call"), _) => Of::Call,
            (Some("reasoning" | "item_reference" | "mcp_list_tools"), _) => Of::Made,
            (Some(kind), _) if kind.ends_with("_call") => Of::Made,
            (Some(_), _) => Of::Passed,
        })
    }

    fn run(&self) -> Option<RunId> {
        self.id.as_deref().and_then(ids::run_of_item)
    }
}

/// What `raw` tells: a text, or items.
///
/// # Errors
/// What it must be.
pub(super) fn read(raw: &RawValue) -> Result<Input, String> {
    if let Ok(text) = parse::<String>(raw.get()) {
        return Ok(Input { texts: vec![Content { text, files: Vec::new() }], ..Input::default() });
    }
    let list = json::objects::<Item<'_>>(raw, "a text or a list of items")?;
    let mut items = Vec::with_capacity(list.len());
    for (at, item) in list.into_iter().enumerate() {
        let of = item.as_ref().and_then(Item::of);
        let (Some(item), Some(of)) = (item, of) else {
            return Err(format!("must have an item with a type, or with a role, at {at}"));
        };
        items.push((at, of, item));
    }
    let own = items.iter().filter(|(_, of, _)| *of == Of::Instructions);
    let instructions = own.filter_map(|(_, _, item)| text_in(item.content, &TEXT)).collect();
    let new = items.split_off(begin_of_new(&items));
    let is_assistants = |of: &Of| matches!(of, Of::Assistant | Of::Call | Of::Made | Of::Waiting);
    let last_run = items.iter().rev().take_while(|(_, of, _)| is_assistants(of)).find_map(|(_, _, item)| item.run());
    let earlier = earlier(&items);
    let mut input = Input { instructions, earlier, last_run, ..Input::default() };
    for (at, of, item) in new {
        match of {
            Of::User => input.texts.push(content(item.content, &TEXT).map_err(|why| format!("{why} (item {at})"))?),
            Of::Output => input.outputs.push(output(at, item)?),
            Of::Decision => input.decisions.push(decision(at, item)?),
            Of::Assistant | Of::Call | Of::Made | Of::Waiting | Of::Instructions | Of::Passed => {}
        }
    }
    Ok(input)
}

/// Where what is new begins: behind the last thing that the assistant said. Calls that waited stand among the decisions on
/// them, and before those there is nothing new.
fn begin_of_new(items: &[(usize, Of, Item<'_>)]) -> usize {
    let mut has_waited = false;
    let begin = items.iter().rposition(|(_, of, _)| match of {
        Of::Assistant | Of::Call | Of::Made => true,
        Of::User | Of::Output => has_waited,
        Of::Waiting => {
            has_waited = true;
            false
        }
        Of::Decision | Of::Instructions | Of::Passed => false,
    });
    begin.map_or(0, |last| last + 1)
}

/// What was said before; what else there was has been refused or answered when it was new.
fn earlier(items: &[(usize, Of, Item<'_>)]) -> Vec<ClientMessage> {
    let (mut earlier, mut turn) = (Vec::new(), ToldTurn::default());
    for (_, of, item) in items {
        match of {
            Of::User => {
                earlier.extend(turn.end());
                earlier.extend(content_in(item.content, &TEXT).of_user());
            }
            Of::Assistant => {
                earlier.extend(turn.end());
                let text = text_in(item.content, &TEXT).filter(|text| !text.trim().is_empty());
                earlier.extend(text.map(ClientMessage::Assistant));
            }
            Of::Call => {
                if turn.has_result() {
                    earlier.extend(turn.end());
                }
                if let Some((id, name, arguments)) = call(item) {
                    turn.call(id, name, arguments);
                }
            }
            Of::Output => {
                if let Some(id) = &item.call_id {
                    turn.result(id, content_in(item.output, &TEXT), false);
                }
            }
            Of::Made | Of::Waiting | Of::Decision | Of::Instructions | Of::Passed => {}
        }
    }
    earlier.extend(turn.end());
    earlier
}

/// A call's id, its tool as the model knows it, and its arguments.
fn call(item: &Item<'_>) -> Option<(String, String, String)> {
    let text = |raw: Option<&RawValue>| raw.and_then(|raw| parse::<String>(raw.get()).ok());
    let (id, name) = (item.call_id.clone()?, text(item.name)?);
    let (namespace, input) = (text(item.namespace), text(item.input));
    let arguments = tools::told_arguments(text(item.arguments), input.as_deref());
    Some((id, tools::known_as(&name, namespace.as_deref(), input.is_some()), arguments))
}

fn output(at: usize, item: Item<'_>) -> Result<(String, Content), String> {
    let id = item.call_id.filter(|id| !id.is_empty()).ok_or_else(|| format!("must have a call_id in item {at}"))?;
    let output = content(item.output, &TEXT).map_err(|why| format!("{why} (item {at})"))?;
    Ok((id, output))
}

fn decision(at: usize, item: Item<'_>) -> Result<Deciding, String> {
    let approval = item.approval_request_id.as_deref().and_then(ids::approval_of);
    let approval = approval.ok_or_else(|| format!("must have an approval_request_id of this server in item {at}"))?;
    let approve = item.approve.ok_or_else(|| format!("must have approve, true or false, in item {at}"))?;
    let comment = item.reason.filter(|reason| !reason.trim().is_empty());
    Ok(Deciding { approval, decision: Decision { approve, comment }, is_farewell: false, seen: Seen::Unknown })
}
