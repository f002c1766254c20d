//! How a request is answered in its protocol.

use std::time::Duration;

use bytes::Bytes;

use super::{DecodeError, Encoder, RunIds};
use crate::chat::approval::Approval;
use crate::chat::event::AgentEvent;
use crate::chat::failure::Failure;
use crate::chat::ids::{ApprovalId, MessageId};
use crate::chat::session::Session;

/// The answer to one request, in the version and options of that request. It may be answered with several runs, one
/// after the other, which its client sees as one stream.
pub trait Reply: Send {
    /// The options of all of its streams.
    fn options(&self) -> StreamOptions {
        StreamOptions::default()
    }

    /// Headers of the answer besides.
    fn headers(&self, _of: &RunIds) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// A fresh encoder for the next run.
    fn encoder(&mut self, of: RunIds, at: Position) -> Box<dyn Encoder>;

    /// The maker of the run's whole answer; `None` in protocols that know streams alone.
    fn document(&mut self, _of: RunIds) -> Option<Box<dyn Document>> {
        None
    }

    /// The answer, while its run goes on in the background; `None` in protocols that have none.
    fn begun(&mut self, _of: &RunIds) -> Option<Vec<u8>> {
        None
    }

    /// Whether of several runs only the last is shown, when the others have ended. Of [`What::Both`] it always is.
    ///
    /// [`What::Both`]: super::asked::What::Both
    fn shows_last_only(&self) -> bool {
        false
    }

    /// Whether the last run has ended so that the next one may begin.
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether its streams tell of their session.
    fn wants_session(&self) -> bool {
        false
    }

    /// Takes the session as the first run begins.
    fn learn(&mut self, _session: Session) {}

    /// Notes calls that wait for a person whatever the next run does.
    fn waits_besides(&mut self, _calls: &[Approval]) {}

    /// The answer where nothing was begun.
    fn refused(&mut self, _refusal: &Refusal<'_>) -> RefusalResponse {
        RefusalResponse::AsUsual
    }

    /// The end of a stream behind whose last run another one was to come, which has nothing to do.
    fn finished(&mut self) -> Bytes {
        Bytes::new()
    }

    /// The end of a stream whose next run did not begin.
    fn broken_off(&mut self, _refusal: &Refusal<'_>) -> Bytes {
        Bytes::new()
    }
}

/// The options of all streams of a protocol.
#[derive(Debug, Clone, Copy)]
pub struct StreamOptions {
    /// Its media type.
    pub media_type: &'static str,
    /// Which frames have numbers, by which a reader comes back.
    pub numbered: Numbered,
    /// The longest silence before a comment is sent, where clients of the protocol are promised one.
    pub silence: Option<Duration>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { media_type: "text/event-stream", numbered: Numbered::Never, silence: None }
    }
}

/// Which frames have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbered {
    /// None: no client comes back to these streams.
    Never,
    /// Those of runs in the background.
    Background,
    /// All.
    Always,
}

/// The code of an error where a later run of a stream did not begin.
pub(super) const NOT_BEGUN: &str = "not_begun";

/// Where a run stands among those of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Whether it begins the stream.
    pub is_first: bool,
    /// Whether it ends it.
    pub is_last: bool,
}

impl Position {
    /// The only one.
    pub const ALONE: Self = Self { is_first: true, is_last: true };
}

/// Takes in a run, event by event, for an answer in one piece.
pub trait Document: Send {
    /// Takes an event in; the outcome once there is one, after which nothing is to come.
    fn hear(&mut self, event: &AgentEvent) -> Option<Outcome>;

    /// The outcome where the rest of the run is missing here.
    fn lost(&mut self) -> Outcome;
}

/// How a run ended, as a document tells it.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// With an answer.
    Whole(Vec<u8>),
    /// Without one: why, and the document that says so.
    Failed(Failure, Vec<u8>),
}

impl Outcome {
    /// The document.
    pub fn into_body(self) -> Vec<u8> {
        match self {
            Self::Whole(document) | Self::Failed(_, document) => document,
        }
    }
}

/// Why nothing was begun.
#[derive(Debug)]
pub struct Refusal<'a> {
    /// Why.
    pub why: RefusalReason<'a>,
    /// The call that was to be decided, where it is about one.
    pub call: Option<ApprovalId>,
    /// Why, in words for its sender.
    pub message: String,
    /// The request's id.
    pub request: &'a str,
}

/// Why nothing was begun, as far as protocols tell reasons apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RefusalReason<'a> {
    /// Calls wait for a person, and have to be decided first.
    Waiting(&'a [Approval]),
    /// All that was to be decided had been decided so before.
    NothingLeft,
    /// The decision is kept for the requester, who goes on with it.
    Kept,
    /// There is no conversation of that id.
    NoSuchConversation,
    /// There is no run of that id.
    NoSuchRun,
    /// What its place is about is not the caller's, or not there.
    DataDenied,
    /// What its place is about could not be loaded.
    DataUnavailable,
    /// The assistant is for others.
    Forbidden,
    /// There is no assistant.
    NoSuchAssistant,
    /// There is no such call, or the caller may not decide it.
    NoSuchApproval,
    /// The call is not the one that its user saw.
    OtherCall,
    /// The call was decided before.
    AlreadyDecided,
    /// It is too late to decide the call.
    Expired,
    /// A user with another role has to let the call through.
    RoleRequired,
    /// Another user than the requester has to let the call through.
    OwnRequest,
    /// The question replaces a message that is not there; `None` where it has no id of ours.
    NotOnBranch(Option<MessageId>),
    /// There is no message to go on from.
    NoSuchMessage,
    /// There is no question to be answered again.
    NothingToRepeat,
    /// Whatever concerns no protocol.
    Other,
}

/// The answer where nothing was begun.
#[derive(Debug, PartialEq)]
pub enum RefusalResponse {
    /// The answer of any protocol.
    AsUsual,
    /// A whole stream.
    Stream(Bytes),
    /// The answer to a mistake in the request.
    Mistake(DecodeError),
}
