//! A request, after a dialect has read it and before its run begins.

use std::sync::Arc;

use super::ids::{ConversationId, MessageId};
use super::model::ModelWish;
use super::place::PlaceUpdate;
use super::screen::ScreenState;
use super::state::Recap;
use super::tool::ToolDef;

/// One chat turn as the client requested it, already validated.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInput {
    /// The question.
    pub ask: Ask,
    /// Where the user is, which selects the profile that answers.
    pub screen: Screen,
    /// The conversation to continue; `None` begins a new one.
    pub conversation: Option<ConversationId>,
    /// The message to go on from, where that is not the newest one.
    pub parent: Option<Parent>,
    /// Earlier messages, as the client sends them, for clients that keep their conversations to themselves. Only of a
    /// conversation that begins: the server's own history is never replaced by it.
    pub earlier: Vec<ClientMessage>,
    /// Whether a conversation that begins is left out of its user's list: its client has a list of its own.
    pub unlisted: bool,
    /// How to run it.
    pub options: RunOptions,
}

/// Where a user is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Screen {
    /// The name of a kind of screen (`context_type` of the native protocol).
    Type(String),
    /// Where its conversation is already.
    OfConversation,
    /// A page of an application, which may have tabs, and those tabs of their own.
    Page {
        /// The page; an unknown one has what all pages have.
        page: Option<String>,
        /// The tab.
        tab: Option<String>,
        /// The tab in the tab.
        subtab: Option<String>,
    },
}

/// The question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A new message.
    Message {
        /// The user's words; empty only where there is a note.
        text: String,
        /// Other acts of the user, in words of ours for the model.
        note: Option<String>,
    },
    /// The last user message, or the one that is named as parent, again.
    Again,
    /// The results of the calls that the newest run left to its client.
    Results(Vec<ClientResult>),
}

impl Ask {
    /// A new message of nothing but words.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message { text: text.into(), note: None }
    }
}

/// A client's result of a call that was left to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResult {
    /// The call's id.
    pub call: String,
    /// The text for the model.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A message of a conversation that the client keeps; untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// The user's text.
    User(String),
    /// The model's answer, as the client sends it.
    Assistant(String),
}

/// Where a branch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// Before the first message.
    Root,
    /// After that message.
    Message(MessageId),
}

/// How a run is to be carried out, whatever it answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunOptions {
    /// The state of the user's screen; untrusted.
    pub context: Option<ScreenState>,
    /// What it changes of the conversation's place.
    pub place: PlaceUpdate,
    /// What the turn before was about, as the client says it; untrusted.
    pub recap: Option<Recap>,
    /// The client's choice of the model and its options, where it does not leave them to the profile.
    pub model: ModelWish,
    /// Whether it goes on when its client goes away; the profile says where the request does not.
    pub background: Option<bool>,
    /// What happens when the conversation has a run already; the configuration says where the request does not.
    pub on_busy: Option<OnBusy>,
    /// Whether its reader may see arguments and results of tools.
    pub details: bool,
    /// Tools that the client runs itself, offered beside the profile's. One with the name of a profile's tool does not
    /// count.
    pub client_tools: Vec<Arc<ToolDef>>,
    /// Whether a plan may wait for a person in the middle: its client is told so, and goes on when they have decided. Otherwise
    /// the step fails.
    pub may_pause: bool,
    /// Whether its client keeps a session: a first message goes on in the one that waits for it, and nothing begins
    /// without the data that the profile requires.
    pub in_session: bool,
}

/// What happens to a request whose conversation has a run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBusy {
    /// It is refused.
    Reject,
    /// It waits for its turn.
    Enqueue,
    /// The other one is cancelled first.
    Interrupt,
}

impl OnBusy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Reject, Self::Enqueue, Self::Interrupt];

    /// Its name in requests and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Enqueue => "enqueue",
            Self::Interrupt => "interrupt",
        }
    }

    /// The policy of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}
