//! What chats look like in JSON bodies. A chat that is read again has the same content as its streams had.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::agent::ports::chats::{ChatHead, ChatRun, ChatView};
use crate::chat::answer::AnswerPiece;
use crate::chat::approval::Approval;
use crate::chat::day::rfc3339 as time;
use crate::chat::message::Message;
use crate::chat::run::RunState;
use crate::chat::screen::ScreenState;
use crate::chat::tool::ToolResult;
use crate::dialect::chat_stream::{Answer, ToolUse, input};

/// 50 characters of a first message are a title.
const TITLE_CHARS: usize = 50;

/// A list of chats.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatList)]
pub(in crate::http) struct ListBody {
    chats: Vec<HeadBody>,
}

impl ListBody {
    pub(super) fn from_chats(chats: Vec<ChatHead>) -> Self {
        Self { chats: chats.into_iter().map(|chat| HeadBody::from_chat(&chat)).collect() }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatHead)]
struct HeadBody {
    id: i64,
    title: String,
    created_at: String,
    updated_at: String,
}

impl HeadBody {
    fn from_chat(chat: &ChatHead) -> Self {
        Self {
            id: chat.number,
            title: title(&chat.title),
            created_at: time(chat.created_at_ms),
            updated_at: time(chat.updated_at_ms),
        }
    }
}

/// A list of chats of several users.
#[derive(Serialize, ToSchema)]
#[schema(as = AdminChatList)]
pub(in crate::http) struct AdminListBody {
    chats: Vec<AdminHeadBody>,
    total: u64,
    limit: u32,
    offset: u32,
}

impl AdminListBody {
    pub(super) fn from_chats(chats: Vec<ChatHead>, total: u64, limit: u32, offset: u32) -> Self {
        Self { chats: chats.iter().map(AdminHeadBody::from_chat).collect(), total, limit, offset }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AdminChatHead)]
struct AdminHeadBody {
    #[serde(flatten)]
    head: HeadBody,
    #[serde(flatten)]
    user: UserBody,
    message_count: u64,
}

impl AdminHeadBody {
    fn from_chat(chat: &ChatHead) -> Self {
        Self { head: HeadBody::from_chat(chat), user: UserBody::from_chat(chat), message_count: chat.message_count }
    }
}

/// Whose chat. Of users only the name in their token is kept, and what their pages call them by.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatUser)]
struct UserBody {
    /// A number where it is one.
    #[schema(value_type = String)]
    user_id: Value,
    user_email: Option<String>,
    user_name: String,
}

impl UserBody {
    fn from_chat(chat: &ChatHead) -> Self {
        let user = &chat.owner.user;
        let email = Some(user.clone()).filter(|user| user.contains('@'));
        let known_as = chat.known_as.as_ref().unwrap_or(user);
        // What a page knows as a number it compares as one.
        let number = known_as.parse::<i64>().ok().filter(|number| number.to_string() == *known_as);
        let user_id = number.map_or_else(|| Value::from(known_as.as_str()), Value::from);
        Self { user_id, user_email: email, user_name: user.clone() }
    }
}

/// A chat.
#[derive(Serialize, ToSchema)]
#[schema(as = Chat)]
pub(in crate::http) struct ChatBody {
    #[serde(flatten)]
    head: HeadBody,
    messages: Vec<MessageBody>,
}

impl ChatBody {
    /// `waiting` is what its user can still decide.
    pub(super) fn from_chat(chat: ChatView, waiting: &[Approval]) -> Self {
        Self { head: HeadBody::from_chat(&chat.head), messages: messages(&chat, waiting) }
    }
}

/// Another user's chat.
#[derive(Serialize, ToSchema)]
#[schema(as = AdminChat)]
pub(in crate::http) struct AdminChatBody {
    #[serde(flatten)]
    head: AdminHeadBody,
    messages: Vec<MessageBody>,
}

impl AdminChatBody {
    pub(super) fn from_chat(chat: ChatView) -> Self {
        Self { head: AdminHeadBody::from_chat(&chat.head), messages: messages(&chat, &[]) }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatMessage)]
struct MessageBody {
    id: i64,
    role: &'static str,
    content: String,
    #[serde(serialize_with = "as_it_is")]
    #[schema(value_type = Option<serde_json::Map<String, Value>>)]
    context: Option<ScreenState>,
    extras: Option<Value>,
    created_at: String,
}

fn as_it_is<S: serde::Serializer>(state: &Option<ScreenState>, serializer: S) -> Result<S::Ok, S::Error> {
    state.as_ref().map(ScreenState::raw).serialize(serializer)
}

/// A run has two messages at most: the user's, and the answer. One that began with a decision has the answer alone.
/// What waits stands with the newest of those that ended so.
fn messages(chat: &ChatView, waiting: &[Approval]) -> Vec<MessageBody> {
    let waits = chat.runs.iter().rposition(|run| run.state == RunState::AwaitingApproval);
    let messages = chat.runs.iter().enumerate().flat_map(|(at, run)| {
        let waiting = if Some(at) == waits { waiting } else { &[] };
        [user_message(run), answered(run, chat.head.number, waiting)]
    });
    messages.flatten().collect()
}

/// The user's text; `None` where they pressed a button instead.
fn user_message(run: &ChatRun) -> Option<MessageBody> {
    let Some(Message::User(message)) = run.messages.first().filter(|_| !run.by_server) else { return None };
    Some(MessageBody {
        id: run.run_seq.saturating_mul(2),
        role: "user",
        content: message.text.clone(),
        context: run.context.clone(),
        extras: None,
        created_at: time(run.started_at_ms),
    })
}

/// `None` while the run lives: its answer is in its stream.
fn answered(run: &ChatRun, number: i64, waiting: &[Approval]) -> Option<MessageBody> {
    let outcome = match run.state {
        RunState::Queued | RunState::Running => return None,
        RunState::Completed | RunState::AwaitingApproval => None,
        RunState::Failed => Some("error"),
        RunState::Cancelled | RunState::Interrupted => Some("cancelled"),
    };
    let mut answer = assistant_answer(run);
    // As `complete` had it: one of them is shown, and a call that waits goes before it.
    if let Some(made) = run.artifacts.last() {
        answer.artifact(&made.artifact);
    }
    for approval in waiting {
        answer.artifact(&approval.artifact());
    }
    // What there is of an answer that reached a limit stands.
    let stands = run.error.as_ref().is_some_and(|failure| answer.cut_short(failure).is_some());
    let (error, outcome) = if stands { (None, None) } else { (run.error.as_ref(), outcome) };
    let trace = run.id.to_string();
    Some(MessageBody {
        id: run.run_seq.saturating_mul(2).saturating_add(1),
        role: "assistant",
        content: answer.message().to_owned(),
        context: run.context.clone(),
        extras: answer.extras((&trace, number), error, outcome).into_json(),
        created_at: time(run.finished_at_ms.unwrap_or(run.started_at_ms)),
    })
}

fn assistant_answer(run: &ChatRun) -> Answer {
    let mut body = Answer::default();
    match &run.answer {
        Some(answer) => {
            let mut uses = rounds(&run.messages).into_iter().flat_map(|(_, uses)| uses);
            for piece in &answer.pieces {
                match piece {
                    AnswerPiece::Text(text) | AnswerPiece::Notice(text) => body.text(text),
                    AnswerPiece::NotShown(notice) => body.text(&notice.said),
                    AnswerPiece::Call(_) => {
                        if let Some(used) = uses.next() {
                            body.call(used);
                        }
                    }
                    AnswerPiece::RoundEnd => body.round_end(),
                }
            }
            // Calls of a turn that was cut short have results that were never sent.
            uses.for_each(|used| body.silent_call(used));
            body.suggested(&answer.suggestions);
            if let Some(diagnosed) = &answer.diagnostics {
                body.diagnosed(diagnosed.clone());
            }
        }
        // A run that its process did not see to the end.
        None => {
            for (text, uses) in rounds(&run.messages) {
                body.text(&text);
                let has_called = !uses.is_empty();
                for used in uses {
                    body.call(used);
                }
                if has_called {
                    body.round_end();
                }
            }
        }
    }
    for payload in &run.payloads {
        body.payload(payload);
    }
    body
}

/// The texts and calls of the model, turn by turn.
fn rounds(messages: &[Message]) -> Vec<(String, Vec<ToolUse>)> {
    let mut rounds = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::User(_) => {}
            Message::Assistant(turn) => {
                ids = turn.calls().map(|call| call.id.as_str()).collect();
                let uses = turn.calls().map(|call| ToolUse {
                    tool_name: call.name.clone(),
                    input: input(&call.input),
                    output: String::new(),
                });
                rounds.push((turn.text(), uses.collect::<Vec<_>>()));
            }
            Message::ToolResults(results) => {
                let Some((_, uses)) = rounds.last_mut() else { continue };
                for (id, used) in ids.iter().zip(uses) {
                    used.output = output(results, id);
                }
            }
        }
    }
    rounds
}

fn output(results: &[ToolResult], id: &str) -> String {
    let found = results.iter().find(|result| result.id.as_str() == id);
    found.map(|result| result.content.clone()).unwrap_or_default()
}

fn title(text: &str) -> String {
    match text.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn a_title_is_fifty_characters() {
        let rows = [
            ("Hello", "Hello".to_owned(), "a short one is whole"),
            (&"ü".repeat(50), "ü".repeat(50), "50 characters fit"),
            (&"ü".repeat(51), format!("{}...", "ü".repeat(50)), "characters are counted, not bytes"),
            ("", String::new(), "nothing has no title"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(title(text), expected, "{reason}");
        }
    }
}
