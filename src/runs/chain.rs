//! Runs that one request asks for: decisions on calls that wait, each of which is a run of its own, and maybe a question behind
//! them. A conversation has one run at a time, so each begins when the one before it has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Attached, Decided, Request, Runs, StartError};
use crate::agent::ports::store::BeginError;
use crate::chat::approval::Decision;
use crate::chat::caller::Caller;
use crate::chat::ids::{ApprovalId, ConversationId};
use crate::chat::input::{Manner, RunInput};

/// What one run of a chain does.
pub enum Link {
    /// It goes on with a call that was decided.
    Decide(ApprovalId, Decision),
    /// It answers.
    Ask(Box<RunInput>),
}

/// Whose runs they are, and where.
pub struct Context {
    /// Whose.
    pub caller: Caller,
    /// In which conversation.
    pub conversation: ConversationId,
    /// How decided calls are gone on with.
    pub manner: Manner,
    /// The request that asks for all of them.
    pub request: Request,
}

/// The runs of one request, in order. What was not reached, since a run broke off or the client went away, still waits.
pub struct Chain {
    runs: Arc<Runs>,
    context: Context,
    left: VecDeque<Link>,
    passes_over_late: bool,
}

impl Chain {
    /// Runs that do this, in order. Nothing begins yet.
    pub fn new(runs: Arc<Runs>, context: Context, links: impl IntoIterator<Item = Link>) -> Self {
        Self { runs, context, left: links.into_iter().collect(), passes_over_late: false }
    }

    /// From now on a decision that comes too late is passed over while others are left, for clients that tell all that they
    /// have, of which not all is new.
    pub fn passing_over_late(self) -> Self {
        Self { passes_over_late: true, ..self }
    }

    /// Whether no run is left to begin.
    pub fn is_at_its_end(&self) -> bool {
        self.left.is_empty()
    }

    /// Begins the next run; `None` where none is left. It is to be called when the run before has ended.
    pub async fn next(&mut self) -> Option<Result<Attached, StartError>> {
        loop {
            let link = self.left.pop_front()?;
            let begun = self.begin(link).await;
            let is_late =
                matches!(begun, Err(StartError::Begin(BeginError::AlreadyDecided | BeginError::ApprovalExpired)));
            if !(is_late && self.passes_over_late) || self.left.is_empty() {
                return Some(begun);
            }
        }
    }

    async fn begin(&self, link: Link) -> Result<Attached, StartError> {
        let Context { caller, conversation, manner, request } = &self.context;
        let (approval, decision) = match link {
            Link::Ask(input) => return self.runs.start(caller.clone(), *input, request.clone()).await,
            Link::Decide(approval, decision) => (approval, decision),
        };
        // A call of another conversation is none here, whoever says so.
        let found = self.runs.approval(caller, approval).await.map_err(BeginError::from)?;
        if !found.is_some_and(|view| view.owner == caller.owner && view.approval.conversation == *conversation) {
            return Err(BeginError::NoSuchApproval.into());
        }
        let key = request.key.as_ref().map(|(key, digest)| (key_of(key, approval), digest.clone()));
        let request = Request { id: request.id.clone(), key };
        match self.runs.decide(caller.clone(), approval, decision, manner.clone(), request).await? {
            Decided::GoesOn(attached) => Ok(attached),
            // Only calls of others are kept.
            Decided::Kept(_) => Err(BeginError::NoSuchApproval.into()),
        }
    }
}

/// The key of the run that goes on with a decision of a request with this key. Each run has a key of its own, by which the same
/// request finds it again.
pub fn key_of(key: &str, approval: ApprovalId) -> String {
    format!("{key} {approval}")
}
