//! Runs that follow each other, since one request asks for all of them: several decisions on calls that wait, each of
//! which goes on in a run of its own, and the question after them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Attached, Decided, Request, Runs, StartError};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::store::BeginError;
use crate::agent::ports::store_error::StoreError;
use crate::chat::approval::{Approval, ApprovalState, Consent, Deciding, DecisionRule, Seen};
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ApprovalId, ConversationId, MessageId, RunId};
use crate::chat::input::{RunInput, RunOptions};

/// The task of the next run.
pub enum Link {
    /// It goes on with a call that waits.
    Decide(Deciding),
    /// It answers this.
    Ask(Box<RunInput>),
}

/// The owner of the runs, their conversation and options.
pub struct Context {
    /// The caller.
    pub caller: Caller,
    /// In which conversation; `None` begins a new one, or is that of the call that is decided.
    pub conversation: Option<ConversationId>,
    /// Which calls may be decided.
    pub rule: DecisionRule,
    /// How decided calls are gone on with.
    pub options: RunOptions,
    /// The request that begins all of them.
    pub request: Request,
}

/// The calls that wait in a conversation when a request comes.
#[derive(Default)]
pub struct Pending {
    /// The calls, in the order in which they were requested.
    pub approvals: Vec<ApprovalView>,
    /// Whether the same request, by its key, has begun runs before. It finds them again, whatever waits by now.
    pub is_again: bool,
}

impl Pending {
    /// The calls.
    pub fn held(&self) -> Vec<Approval> {
        self.approvals.iter().map(|view| view.approval.clone()).collect()
    }
}

/// Why the next run did not begin.
#[derive(Debug)]
pub struct ChainError {
    /// Why.
    pub cause: Cause,
    /// The call that was to be decided, where it is about one.
    pub call: Option<ApprovalId>,
}

/// See [`ChainError`].
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// It could not be started.
    #[error(transparent)]
    Start(StartError),
    /// There is no conversation of that id.
    #[error("there is no such conversation")]
    NoSuchConversation,
    /// Calls wait for a person, and have to be decided first.
    #[error("calls of this conversation wait for a decision first")]
    Waiting(Vec<Approval>),
    /// All that was to be decided had been decided so before.
    #[error("this has been decided before")]
    NothingLeft,
    /// The call is not the one that its user saw.
    #[error("the digest is not that of the waiting call")]
    OtherCall,
    /// The decision is kept for the requester, who goes on with it.
    #[error("the decision is kept, and whoever asked can go on")]
    Kept,
    /// The question replaces a message that is not there; `None` where it has no id of ours.
    #[error("the message is not on the newest branch of its conversation")]
    NotOnBranch(Option<MessageId>),
}

impl From<StartError> for ChainError {
    fn from(error: StartError) -> Self {
        Cause::Start(error).into()
    }
}

impl From<BeginError> for ChainError {
    fn from(error: BeginError) -> Self {
        StartError::from(error).into()
    }
}

impl ChainError {
    /// Whether results were refused, since nobody waits for them.
    pub fn is_unawaited(&self) -> bool {
        matches!(self.cause, Cause::Start(StartError::Begin(BeginError::NoSuchCall)))
    }

    fn about(self, call: ApprovalId) -> Self {
        Self { call: Some(call), ..self }
    }
}

impl From<Cause> for ChainError {
    fn from(cause: Cause) -> Self {
        Self { cause, call: None }
    }
}

/// The runs of one request, in order. What was not reached, since a run broke off or the client went away, still waits.
pub struct Chain {
    runs: Arc<Runs>,
    context: Context,
    left: VecDeque<Link>,
    /// Whether a run of it has begun.
    has_begun: bool,
}

impl Chain {
    /// Runs that do this, in order. Nothing begins yet.
    pub fn new(runs: Arc<Runs>, context: Context, links: impl IntoIterator<Item = Link>) -> Self {
        Self { runs, context, left: links.into_iter().collect(), has_begun: false }
    }

    /// Whether no run is left to begin.
    pub fn is_at_its_end(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether the next of them carries out a decision.
    pub fn decides_next(&self) -> bool {
        matches!(self.left.front(), Some(Link::Decide(_)))
    }

    /// None of those that are left begins: what they were for still waits.
    pub fn stop(&mut self) {
        self.left.clear();
    }

    /// The request that begins all of them.
    pub fn request_id(&self) -> &str {
        &self.context.request.id
    }

    /// Begins the next run; `None` where none is left, or what was left has been decided by what the runs before have done. It is to
    /// be called when the run before has ended.
    pub async fn next(&mut self) -> Option<Result<Attached, ChainError>> {
        loop {
            let link = self.left.pop_front()?;
            let is_alone = self.left.is_empty() && !self.has_begun;
            let begun = match link {
                Link::Ask(mut input) => {
                    let Context { caller, conversation, request, .. } = &self.context;
                    // What follows on a decision goes on where that has led.
                    input.conversation = input.conversation.or_else(|| conversation.clone());
                    let request = match self.left.is_empty() {
                        true => request.clone(),
                        false => part_of(request, "first"),
                    };
                    let begun = self.runs.start(caller.clone(), *input, request).await;
                    begun.map(Some).map_err(ChainError::from)
                }
                Link::Decide(deciding) => {
                    let call = deciding.approval;
                    self.decide(deciding, is_alone).await.map_err(|not| not.about(call))
                }
            };
            let passes_over_late = self.context.rule == DecisionRule::Conversation && !self.left.is_empty();
            match begun {
                Ok(None) => {}
                Err(error) if passes_over_late && error.is_late() => {}
                Ok(Some(attached)) => {
                    self.has_begun = true;
                    self.context.conversation.get_or_insert_with(|| attached.conversation.clone());
                    self.hand_over_to(attached.run).await;
                    return Some(Ok(attached));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether a call is one of the caller's, in the conversation of the request: one of another is none here, whoever says so.
    fn is_here(&self, view: &ApprovalView) -> bool {
        let Context { caller, conversation, .. } = &self.context;
        view.owner == caller.owner && Some(&view.approval.conversation) == conversation.as_ref()
    }

    /// Has the next decisions taken for the run `begun`, as far as they are on calls of the turn behind which that one goes on:
    /// it reads them all. The others are left.
    async fn hand_over_to(&mut self, begun: RunId) {
        let Context { caller, rule, request, .. } = &self.context;
        while let Some(Link::Decide(Deciding { approval, decision, is_farewell: _, seen })) = self.left.front() {
            let Ok(Some(view)) = self.runs.approval(caller, *approval).await else { return };
            let is_meant = *rule == DecisionRule::Any || self.is_here(&view);
            let is_seen =
                !matches!(seen, Seen::Digest(seen) if seen.as_ref().is_none_or(|seen| *seen != view.approval.digest));
            if !is_meant || !is_seen || view.owner != caller.owner {
                return;
            }
            match self.runs.hand_over(caller, &view, decision, request.key.is_some()).await {
                Ok(Some(run)) if run == begun => {
                    self.left.pop_front();
                }
                // Whatever is wrong with it is told when its turn comes.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Begins the run behind a decision; `None` where there is nothing left to decide.
    async fn decide(&self, deciding: Deciding, is_alone: bool) -> Result<Option<Attached>, ChainError> {
        let Context { caller, rule, options, request, .. } = &self.context;
        let Deciding { approval, decision, is_farewell: _, seen } = deciding;
        let found = self.runs.approval(caller, approval).await.map_err(BeginError::from)?;
        let of_call = || part_of(request, &approval.to_string());
        let request = match rule {
            DecisionRule::Any if is_alone => request.clone(),
            DecisionRule::Any => of_call(),
            DecisionRule::Conversation | DecisionRule::All => {
                if !found.as_ref().is_some_and(|view| self.is_here(view)) {
                    return Err(BeginError::NoSuchApproval.into());
                }
                of_call()
            }
        };
        let is_of_plan =
            found.as_ref().and_then(|view| view.approval.origin).is_some_and(|origin| origin.plan.is_some());
        if let (Seen::Digest(seen), Some(view)) = (seen, found)
            && seen.is_none_or(|seen| seen != view.approval.digest)
        {
            return Err(Cause::OtherCall.into());
        }
        match self.runs.decide(caller.clone(), approval, decision, options.clone(), request).await {
            Ok(Decided::GoesOn(attached)) => Ok(Some(attached)),
            Ok(Decided::Kept(_)) => Err(Cause::Kept.into()),
            Err(error) => match ChainError::from(error) {
                // What was decided before has ended its plan.
                late if late.is_late() && is_of_plan && self.has_begun => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl ChainError {
    fn is_late(&self) -> bool {
        matches!(self.cause, Cause::Start(StartError::Begin(BeginError::AlreadyDecided | BeginError::ApprovalExpired)))
    }
}

impl Runs {
    /// The calls that wait in a conversation of the owner's when `request` comes with these decisions.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn pending(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        request: &Request,
        decisions: &[Deciding],
    ) -> Result<Pending, StoreError> {
        let approvals = self.approvals_in(owner, conversation).await?;
        let Some((key, _)) = &request.key else { return Ok(Pending { approvals, is_again: false }) };
        let mut keys = vec![key.clone()];
        keys.extend(decisions.iter().map(|deciding| key_of(key, deciding.approval)));
        let is_again = self.knows_request(owner, &keys).await?;
        Ok(Pending { approvals, is_again })
    }

    /// The runs for these decisions, which are all of their user's on calls that wait in the conversation: in the order
    /// in which the calls were requested, or none.
    ///
    /// # Errors
    /// When one of them cannot be taken, or a call that waits has none.
    pub async fn settle(
        &self,
        context: &Context,
        pending: Pending,
        decisions: Vec<Deciding>,
    ) -> Result<Vec<Link>, ChainError> {
        let held = pending.held();
        let Pending { approvals: mut open, is_again } = pending;
        let is_decided = |view: &ApprovalView| decisions.iter().any(|it| it.approval == view.approval.id);
        // A request that was made before may have led to new calls that wait.
        if !is_again && !open.iter().all(is_decided) {
            return Err(Cause::Waiting(held).into());
        }
        let mut links = Vec::new();
        for deciding in decisions {
            let id = deciding.approval;
            let view = match open.iter().position(|view| view.approval.id == id) {
                Some(at) => Some(open.swap_remove(at)),
                None => {
                    let found = self.approval(&context.caller, id).await.map_err(BeginError::from)?;
                    found.filter(|view| {
                        view.owner == context.caller.owner
                            && Some(&view.approval.conversation) == context.conversation.as_ref()
                    })
                }
            };
            let view = view.ok_or_else(|| ChainError::from(BeginError::NoSuchApproval).about(id))?;
            let at = (view.approval.created_at_ms, id.to_string());
            match may_be(&context.caller, &view, &deciding, is_again) {
                Ok(true) => links.push((at, Link::Decide(deciding))),
                Ok(false) => {}
                Err(error) => return Err(ChainError::from(error).about(id)),
            }
        }
        links.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(links.into_iter().map(|(_, link)| link).collect())
    }
}

/// Whether there is something to do for a decision. To what does not wait any more, the same decision again, or a farewell
/// to what is too late, does nothing.
fn may_be(caller: &Caller, view: &ApprovalView, deciding: &Deciding, is_again: bool) -> Result<bool, StartError> {
    let Deciding { approval: _, decision, is_farewell, seen: _ } = deciding;
    let was_approved = match view.standing.state {
        ApprovalState::Pending | ApprovalState::Granted if view.standing.has_expired() => {
            return if *is_farewell { Ok(false) } else { Err(BeginError::ApprovalExpired.into()) };
        }
        ApprovalState::Pending => {
            return match &view.approval.consent {
                Consent::Role { role, not_requester: true } if decision.approve => {
                    Err(BeginError::OwnRequest(role.clone()).into())
                }
                Consent::Role { role, .. } if decision.approve && !caller.has_role(role) => {
                    Err(StartError::RoleRequired(role.clone()))
                }
                Consent::Role { .. } | Consent::Auto | Consent::User => Ok(true),
            };
        }
        ApprovalState::Granted => return Ok(true),
        ApprovalState::Approved => true,
        ApprovalState::Rejected => false,
    };
    match *is_farewell || decision.approve == was_approved {
        false => Err(BeginError::AlreadyDecided.into()),
        // A request that was made before finds its run by its key.
        true => Ok(is_again),
    }
}

/// A part of a request, by whose own key and digest the same part of the same request finds its run again.
fn part_of(request: &Request, part: &str) -> Request {
    let key = request.key.as_ref().map(|(key, digest)| {
        let digest = digest.iter().copied().chain(part.bytes()).collect();
        (key_of(key, part), digest)
    });
    Request { key, ..request.clone() }
}

/// The key of the run that carries out a part of a request with this key: what follows on one decision, or comes first. Each
/// run has a key of its own, by which the same request finds it again.
fn key_of(key: &str, part: impl std::fmt::Display) -> String {
    format!("{key} {part}")
}
