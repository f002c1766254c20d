//! A request, whichever protocol it has: enough for one handler to carry it out.

use super::reply::Reply;
use crate::chat::approval::{Deciding, DecisionRule};
use crate::chat::ids::{ConversationId, MessageId};
use crate::chat::input::{Ask, ClientMessage, Parent, RunOptions, Screen};

/// A decoded request.
pub struct Asked {
    /// The task.
    pub what: What,
    /// Which of the calls that wait it may decide.
    pub rule: DecisionRule,
    /// In which conversation.
    pub conversation: ConversationRef,
    /// How its runs are carried out.
    pub options: RunOptions,
    /// Tells it from requests with the same body: the parts of the request outside of the body that change its meaning.
    pub mark: String,
    /// As what it is answered.
    pub shape: Shape,
    /// How it is answered.
    pub reply: Box<dyn Reply>,
}

/// The task.
pub enum What {
    /// An answer.
    Answer(Question),
    /// That calls which wait are decided, one after the other; then maybe an answer.
    Decide(Vec<Deciding>, Option<Question>),
}

/// A question, and the profile that answers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The question.
    pub ask: Ask,
    /// Where the user is, which selects the profile that answers.
    pub screen: Screen,
    /// Where it stands in the conversation.
    pub branch: BranchPoint,
    /// Earlier messages, where the client keeps its conversations to itself.
    pub earlier: Vec<ClientMessage>,
    /// Whether a conversation that begins is left out of its user's list.
    pub unlisted: bool,
}

impl Question {
    /// A question behind the newest message, of a client that leaves its conversations to the server.
    pub fn new(ask: Ask, screen: Screen) -> Self {
        Self { ask, screen, branch: BranchPoint::Newest, earlier: Vec::new(), unlisted: false }
    }
}

/// Where a question stands in its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchPoint {
    /// After the newest message.
    Newest,
    /// There.
    At(Parent),
    /// It is that earlier message of the user's, which is answered again.
    Again(Edited),
    /// It replaces an earlier message of the user's.
    Edited(Edited),
    /// It replaces that message of the user's; with the same words it is answered again.
    Message(MessageId),
}

/// Which message is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edited {
    /// The first.
    First,
    /// This one.
    Message(MessageId),
    /// The user's next one after this answer.
    After(MessageId),
}

/// How a request names its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// By its id; `None` begins a new one.
    Id(Option<ConversationId>),
    /// Not at all: it is the user's current one, else one that begins and is the current one then.
    Current,
    /// By its id as the client sent it; it has to be there.
    Existing(String),
    /// By its number among those of one application; `None` begins a new one.
    Number(Option<i64>, Screen),
}

/// As what a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Events as they happen.
    Stream,
    /// One document of the protocol, when the run has ended.
    Document,
    /// One document of ours, when the run has ended; of one in the background at once.
    Record,
}

/// The profiles that a caller may ask.
pub trait Assistants {
    /// The names of those that the caller may ask.
    fn offered(&self) -> Vec<&str>;

    /// Whether there is one of that name, whoever may ask it.
    fn has(&self, name: &str) -> bool;

    /// The options of its model that requests to one may choose; `None` where the caller may not ask it.
    fn choices(&self, name: &str) -> Option<Choices>;
}

/// The options of a model that requests may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// The temperature.
    pub temperature: bool,
    /// How much it thinks.
    pub effort: bool,
    /// How long its answers may get.
    pub max_tokens: bool,
    /// The longest that they get, in tokens.
    pub most_tokens: u32,
}
