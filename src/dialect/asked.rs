//! A request, whichever protocol it has: enough for one handler to carry it out.

use super::reply::Reply;
use crate::chat::approval::{Deciding, DecisionRule};
use crate::chat::ids::{ConversationId, MessageId, RunId};
use crate::chat::input::{Parent, RunOptions, Screen};
use crate::chat::model::ModelWish;
use crate::dialect::given::{Ask, ClientMessage};

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
    /// Two answers, one after the other: behind the results of the client's tools, and then to its user, which alone is shown.
    Both(Box<Question>, Box<Question>),
    /// That calls which wait are decided, one after the other; then maybe an answer.
    Decide(Vec<Deciding>, Option<Question>),
}

impl What {
    /// The same where the conversation is gone that it goes on from, and its client has told all that was said; else `None`.
    pub fn told_anew(self) -> Option<Self> {
        match self {
            Self::Answer(question) if !question.earlier.is_empty() => {
                Some(Self::Answer(Question { branch: BranchPoint::Newest, ..question }))
            }
            Self::Answer(_) | Self::Both(..) | Self::Decide(..) => None,
        }
    }
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
    /// Earlier messages, as the client tells them: those of a conversation that is kept here do not count.
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
    /// It is the message of the user's to which the client gave this id, where that has the same words, and is answered again;
    /// else it comes after the newest message.
    KnownAs(String),
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
    /// By a run of it. Where that is not kept, a question whose client tells what was said begins a new one.
    OfRun(RunId),
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

    /// What requests to one may choose of how its model is asked; `None` where the caller may not ask it.
    fn choices(&self, name: &str) -> Option<Choices>;
}

/// What requests may choose of how a model is asked.
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
    /// Whether the client may give the model instructions of its own.
    pub instructions: bool,
}

impl Choices {
    /// Leaves of `wish` what a request may choose.
    pub fn bound(self, wish: &mut ModelWish) {
        wish.temperature = wish.temperature.filter(|_| self.temperature);
        wish.effort = wish.effort.filter(|_| self.effort);
        let wished = wish.max_tokens.filter(|_| self.max_tokens);
        wish.max_tokens = wished.map(|wished| wished.min(self.most_tokens));
    }
}
