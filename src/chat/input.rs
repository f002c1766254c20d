//! A request, after a dialect has read it and before its run begins.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer_format::AnswerFormat;
use super::file::FileRef;
use super::ids::{ConversationId, MessageId, RunId};
use super::model::ModelWish;
use super::place::PlaceUpdate;
use super::screen::ScreenState;
use super::state::Recap;
use super::tool::{ToolChoice, ToolDef};

/// One chat turn as the client requested it, already validated. Its files are `F`: as they were given while the request is
/// read, and kept ones when it begins a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInput<F = FileRef> {
    /// The question.
    pub ask: Ask<F>,
    /// Where the user is, which selects the profile that answers.
    pub screen: Screen,
    /// The conversation to continue; `None` begins a new one.
    pub conversation: Option<ConversationId>,
    /// The message to go on from, where that is not the newest one.
    pub parent: Option<Parent>,
    /// Earlier messages, as the client sends them, for clients that keep their conversations to themselves. Only of a
    /// conversation that begins: the server's own history is never replaced by it.
    pub earlier: Vec<ClientMessage<F>>,
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
pub enum Ask<F = FileRef> {
    /// A new message.
    Message {
        /// The user's words; empty only where there is a note or a file.
        text: String,
        /// Other acts of the user, in words of ours for the model.
        note: Option<String>,
        /// Files that belong to it.
        files: Vec<F>,
    },
    /// The last user message, or the one that is named as parent, again.
    Again,
    /// The results of the calls that the newest run left to its client.
    Results(Vec<ClientResult<F>>),
}

impl<F> Ask<F> {
    /// A new message of nothing but words.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message { text: text.into(), note: None, files: Vec::new() }
    }

    /// The same with what `with` makes of each file.
    pub fn with_files<G>(self, with: &mut impl FnMut(F) -> G) -> Ask<G> {
        match self {
            Self::Message { text, note, files } => {
                Ask::Message { text, note, files: files.into_iter().map(with).collect() }
            }
            Self::Again => Ask::Again,
            Self::Results(results) => {
                let result = |ClientResult { call, content, files, is_error, said }| {
                    let files = files.into_iter().map(&mut *with).collect();
                    ClientResult { call, content, files, is_error, said }
                };
                Ask::Results(results.into_iter().map(result).collect())
            }
        }
    }
}

/// A client's result of a call that was left to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResult<F = FileRef> {
    /// The call's id.
    pub call: String,
    /// The text for the model.
    pub content: String,
    /// Files that the model sees beside it.
    pub files: Vec<F>,
    /// Whether the call failed.
    pub is_error: bool,
    /// What the user says beside it, which the model reads in the same turn.
    pub said: Option<String>,
}

/// A message of a conversation that the client keeps; untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage<F = FileRef> {
    /// The user's text, and the files that belong to it.
    User(String, Vec<F>),
    /// The model's answer, as the client sends it.
    Assistant(String),
    /// Calls that a model made in one turn, of tools that the client runs itself.
    Calls(Vec<ToldCall<F>>),
}

impl<F> ClientMessage<F> {
    /// The size of its texts.
    pub fn bytes(&self) -> usize {
        match self {
            Self::User(text, _) | Self::Assistant(text) => text.len(),
            Self::Calls(calls) => calls.iter().map(ToldCall::bytes).sum(),
        }
    }

    /// The same with what `with` makes of each file.
    pub fn with_files<G>(self, with: &mut impl FnMut(F) -> G) -> ClientMessage<G> {
        match self {
            Self::User(text, files) => ClientMessage::User(text, files.into_iter().map(with).collect()),
            Self::Assistant(text) => ClientMessage::Assistant(text),
            Self::Calls(calls) => {
                let call = |ToldCall { tool, arguments, result, files, is_error }| {
                    let files = files.into_iter().map(&mut *with).collect();
                    ToldCall { tool, arguments, result, files, is_error }
                };
                ClientMessage::Calls(calls.into_iter().map(call).collect())
            }
        }
    }

    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &F> {
        let (words, calls) = match self {
            Self::User(_, files) => (files.as_slice(), &[][..]),
            Self::Assistant(_) => (&[][..], &[][..]),
            Self::Calls(calls) => (&[][..], calls.as_slice()),
        };
        words.iter().chain(calls.iter().flat_map(|call| &call.files))
    }
}

/// A call of a tool that the client runs itself, and its result, as the client tells of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldCall<F = FileRef> {
    /// The tool's name, as the model knows it.
    pub tool: String,
    /// The arguments as JSON text.
    pub arguments: String,
    /// The text for the model.
    pub result: String,
    /// Files that the model sees beside it.
    pub files: Vec<F>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl<F> ToldCall<F> {
    /// The size of its texts.
    pub fn bytes(&self) -> usize {
        self.tool.len() + self.arguments.len() + self.result.len()
    }
}

/// Where a branch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// Before the first message.
    Root,
    /// After that message.
    Message(MessageId),
    /// After all of that run.
    Run(RunId),
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
    /// The client's own id of its message, by which it may ask it again.
    pub asked_as: Option<String>,
    /// Whether its client reads what runs in its conversation, so that it has stopped a run in the background that nobody
    /// reads: that one is cancelled, where the other one would be refused.
    pub stops_unread: bool,
    /// Whether its reader may see arguments and results of tools.
    pub details: bool,
    /// Tools that the client runs itself, offered beside the profile's. One with the name of a profile's tool does not
    /// count.
    pub client_tools: Vec<Arc<ToolDef>>,
    /// Whether one of those has to be called.
    pub tool_choice: ToolChoice,
    /// The form of the answer, where it is not free text.
    pub answer_format: Option<AnswerFormat>,
    /// Whether the answers of runs that go on behind decisions on its calls have that form too: its client cannot say it again.
    pub keeps_form: bool,
    /// Instructions of the client's own for the model, which count where the profile lets them; untrusted.
    pub instructions: Option<Arc<str>>,
    /// Whether a plan may wait for a person in the middle: its client is told so, and goes on when they have decided. Otherwise
    /// the step fails.
    pub may_pause: bool,
    /// What it does instead of asking a model; `None`: it asks one.
    pub direct: Option<Box<Direct>>,
    /// Whether its client keeps a session: a first message goes on in the one that waits for it, and nothing begins
    /// without the data that the profile requires.
    pub in_session: bool,
}

/// What a run does that asks no model: its client has one of its own.
#[derive(Debug, Clone, PartialEq)]
pub enum Direct {
    /// It makes this call.
    Call {
        /// The tool.
        name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// It carries out what was decided of such a call.
    Decided,
    /// It ends as cancelled: the call was turned down, and nobody wants to hear of what it was for.
    CalledOff,
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
