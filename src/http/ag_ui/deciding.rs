//! What a person says to the calls of a thread that wait: all of them at once, or nothing is decided. They are carried
//! out one after the other, each in a run of ours, and the client sees them as one run.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::body::{Body, BodyDataStream};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, stream};

use super::{Turn, whole};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::store::BeginError;
use crate::chat::approval::{Approval, ApprovalState, Consent, Decision};
use crate::chat::causes::Causes;
use crate::chat::ids::ApprovalId;
use crate::chat::input::Ask;
use crate::dialect::ag_ui::{Answered, Entry};
use crate::http::chat::of;
use crate::http::problem::Problem;
use crate::http::sse;
use crate::http::views::headers_of;
use crate::runs::{Attached, Decided, Request, StartError};

/// What one of our runs does.
enum Link {
    Decide(ApprovalId, Decision),
    Answer(Ask),
}

/// Why nothing is decided: a code and words for the user.
type Refusal = (&'static str, String);

/// Decides what waits, and answers what is asked besides.
pub(super) async fn decide(
    turn: Turn,
    open: Vec<ApprovalView>,
    resume: Vec<Answered>,
    ask: Option<Ask>,
    is_again: bool,
) -> Result<Response, Problem> {
    let is_answered = |view: &ApprovalView| resume.iter().any(|answered| answered.approval == view.approval.id);
    // A request that was made before may have led to new calls that wait.
    if !is_again && !open.iter().all(is_answered) {
        let held: Vec<Approval> = open.into_iter().map(|view| view.approval).collect();
        return Ok(whole(turn.stream.decide_first(&held)));
    }
    let mut links = match decisions(&turn, open, resume, is_again).await? {
        Ok(links) => links,
        Err((code, message)) => return Ok(whole(turn.stream.refusal(code, &message))),
    };
    links.extend(ask.map(Link::Answer));
    let Some(first) = links.pop_front() else { return Ok(whole(turn.stream.nothing())) };
    let attached = match turn.begin(first).await {
        Ok(attached) => attached,
        Err(error) => match about_interrupts(&error) {
            Some(code) => return Ok(whole(turn.stream.refusal(code, &error.to_string()))),
            None => return Err(error.into()),
        },
    };
    let ids = headers_of(&attached);
    Ok((sse::HEADERS, ids, chain(turn, links, attached)).into_response())
}

/// The decisions, in the order in which they were asked for.
async fn decisions(
    turn: &Turn,
    mut open: Vec<ApprovalView>,
    resume: Vec<Answered>,
    is_again: bool,
) -> Result<Result<VecDeque<Link>, Refusal>, Problem> {
    let mut links = Vec::new();
    for Answered { approval: id, entry } in resume {
        let view = match open.iter().position(|view| view.approval.id == id) {
            Some(at) => Some(open.swap_remove(at)),
            None => {
                let found = turn.services.runs.approval(&turn.caller, id).await?;
                found.filter(|view| view.owner == turn.caller.owner && view.approval.conversation == turn.thread)
            }
        };
        let Some(view) = view else {
            return Ok(Err(("unknown_interrupt", format!("There is no interrupt {id} in this thread"))));
        };
        match link(turn, &view, &entry, is_again) {
            Ok(Some(link)) => links.push(((view.approval.created_at_ms, id.to_string()), link)),
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    links.sort_by(|(asked, _), (other, _)| asked.cmp(other));
    Ok(Ok(links.into_iter().map(|(_, link)| link).collect()))
}

/// What an answer does: to what does not wait any more, the same answer again, or a farewell to what is too late, does
/// nothing.
fn link(turn: &Turn, view: &ApprovalView, entry: &Entry, is_again: bool) -> Result<Option<Link>, Refusal> {
    let (id, decision) = (view.approval.id, entry.decision());
    let was_approved = match view.state {
        ApprovalState::Pending | ApprovalState::Granted if view.has_expired() => {
            return match entry {
                Entry::Cancelled => Ok(None),
                Entry::Resolved(_) => {
                    Err(("approval_expired", format!("It is too late to decide {id}; please ask again")))
                }
            };
        }
        ApprovalState::Pending => {
            return match &view.approval.consent {
                Consent::Role { role, not_requester: true } if decision.approve => {
                    Err(("own_request", BeginError::OwnRequest(role.clone()).to_string()))
                }
                Consent::Role { role, .. } if decision.approve && !turn.caller.has_role(role) => {
                    Err(("role_required", StartError::RoleRequired(role.clone()).to_string()))
                }
                Consent::Role { .. } | Consent::Auto | Consent::User => Ok(Some(Link::Decide(id, decision))),
            };
        }
        ApprovalState::Granted => return Ok(Some(Link::Decide(id, decision))),
        ApprovalState::Approved => true,
        ApprovalState::Rejected => false,
    };
    let is_settled = match entry {
        Entry::Cancelled => true,
        Entry::Resolved(decision) => decision.approve == was_approved,
    };
    match is_settled {
        false => Err(("already_decided", format!("{id} has been decided already"))),
        // A request that was made before finds its run by its key.
        true => Ok(is_again.then_some(Link::Decide(id, decision))),
    }
}

/// The key of the run that carries out one decision of a request with this key: each has a name of its own.
pub(super) fn key_of(key: &str, approval: ApprovalId) -> String {
    format!("{key} {approval}")
}

impl Turn {
    async fn begin(&self, link: Link) -> Result<Attached, StartError> {
        let (id, decision) = match link {
            Link::Answer(ask) => return self.start(ask, None).await,
            Link::Decide(id, decision) => (id, decision),
        };
        let key = self.request.key.as_ref().map(|(key, digest)| (key_of(key, id), digest.clone()));
        let request = Request { id: self.request.id.clone(), key };
        let (runs, caller) = (&self.services.runs, self.caller.clone());
        match runs.decide(caller, id, decision, self.manner.clone(), request).await? {
            Decided::GoesOn(attached) => Ok(attached),
            // Only the caller's own calls come here.
            Decided::Kept(_) => Err(StartError::Failed),
        }
    }
}

/// Our runs, one after the other, as one body. Dropping it lets go of the one that runs; the others never begin.
struct Chain {
    turn: Turn,
    links: VecDeque<Link>,
    now: BodyDataStream,
    is_over: bool,
}

fn chain(turn: Turn, links: VecDeque<Link>, attached: Attached) -> Body {
    let view = turn.view(&of(&attached), true, links.is_empty());
    let now = sse::body(attached, view).into_data_stream();
    let chain = Chain { turn, links, now, is_over: false };
    Body::from_stream(stream::unfold(chain, |mut chain| async move {
        let piece = chain.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), chain))
    }))
}

impl Chain {
    async fn next_piece(&mut self) -> Option<Bytes> {
        while !self.is_over {
            // Its pieces are never errors.
            if let Some(Ok(piece)) = self.now.next().await {
                return Some(piece);
            }
            let next = self.links.pop_front().filter(|_| self.turn.stream.goes_on());
            let Some(link) = next else { break };
            match self.turn.begin(link).await {
                Ok(attached) => {
                    let view = self.turn.view(&of(&attached), false, self.links.is_empty());
                    self.now = sse::body(attached, view).into_data_stream();
                }
                Err(error) => {
                    self.is_over = true;
                    tracing::warn!(error = %Causes(&error), "a decision was not carried out after another one");
                    let code = about_interrupts(&error).unwrap_or("not_begun");
                    let message = format!("Not everything was carried out: {error}");
                    return Some(self.turn.stream.failure(code, &message));
                }
            }
        }
        None
    }
}

/// The code of an error that is about what was to be decided.
fn about_interrupts(error: &StartError) -> Option<&'static str> {
    match error {
        StartError::RoleRequired(_) => Some("role_required"),
        StartError::Begin(BeginError::OwnRequest(_)) => Some("own_request"),
        StartError::Begin(BeginError::NoSuchApproval) => Some("unknown_interrupt"),
        StartError::Begin(BeginError::AlreadyDecided) => Some("already_decided"),
        StartError::Begin(BeginError::ApprovalExpired) => Some("approval_expired"),
        StartError::UnknownContextType(_)
        | StartError::Forbidden
        | StartError::NotOffered(_)
        | StartError::Draining
        | StartError::NoSuchRun
        | StartError::TooFast(_)
        | StartError::Full
        | StartError::OverBudget { .. }
        | StartError::Begin(
            BeginError::Busy { .. }
            | BeginError::QueueFull
            | BeginError::KeyMismatch
            | BeginError::NoSuchMessage
            | BeginError::NoSuchRun
            | BeginError::NoSuchCall
            | BeginError::NothingToRepeat
            | BeginError::NotContinuable(_)
            | BeginError::TooMany(_)
            | BeginError::Unconfirmed(_)
            | BeginError::OverQuota(_)
            | BeginError::Store(_),
        )
        | StartError::Log(_)
        | StartError::Joined { .. }
        | StartError::Failed => None,
    }
}
