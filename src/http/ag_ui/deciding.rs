//! What a person says to the calls of a thread that wait: all of them at once, or nothing is decided. They are carried
//! out one after the other, each in a run of ours, and the client sees them as one run.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::{Turn, view, whole};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::store::BeginError;
use crate::chat::approval::{Approval, ApprovalState, Consent};
use crate::chat::input::Ask;
use crate::dialect::RunIds;
use crate::dialect::ag_ui::{Answered, Entry, Stream};
use crate::http::Services;
use crate::http::chain::{self, Shows};
use crate::http::problem::Problem;
use crate::http::sse::{self, View};
use crate::http::views::headers_of;
use crate::runs::StartError;
use crate::runs::chain::{Chain, Context, Link};

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
    links.extend(ask.map(|ask| Link::Ask(Box::new(turn.input(ask, None)))));
    let Turn { services, caller, agent: _, thread: conversation, manner, request, stream } = turn;
    let mut chain = Chain::new(services.runs.clone(), Context { caller, conversation, manner, request }, links);
    let attached = match chain.next().await {
        None => return Ok(whole(stream.nothing())),
        Some(Ok(attached)) => attached,
        Some(Err(error)) => match about_interrupts(&error) {
            Some(code) => return Ok(whole(stream.refusal(code, &error.to_string()))),
            None => return Err(error.into()),
        },
    };
    let ids = headers_of(&attached);
    Ok((sse::HEADERS, ids, chain::body(attached, chain, OneRun { services, stream })).into_response())
}

/// The decisions, in the order in which they were asked for.
async fn decisions(
    turn: &Turn,
    mut open: Vec<ApprovalView>,
    resume: Vec<Answered>,
    is_again: bool,
) -> Result<Result<Vec<Link>, Refusal>, Problem> {
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

/// Our runs as the one that the client sees.
struct OneRun {
    services: Services,
    stream: Stream,
}

impl Shows for OneRun {
    fn view(&mut self, of: RunIds, is_first: bool, is_last: bool) -> View {
        view(&self.services, &self.stream, &of, is_first, is_last)
    }

    fn goes_on(&self) -> bool {
        self.stream.goes_on()
    }

    fn broken_off(&self, error: &StartError) -> Bytes {
        let code = about_interrupts(error).unwrap_or("not_begun");
        self.stream.failure(code, &format!("Not everything was carried out: {error}"))
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
