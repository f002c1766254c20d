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
use crate::chat::approval::{ApprovalState, Consent, Decision};
use crate::chat::causes::Causes;
use crate::chat::ids::ApprovalId;
use crate::chat::input::Ask;
use crate::dialect::ag_ui::{Answered, Entry};
use crate::http::chat::of;
use crate::http::problem::Problem;
use crate::http::sse;
use crate::http::views::{header_of_conversation, header_of_run};
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
) -> Result<Response, Problem> {
    let mut links = match decisions(&turn, open, resume).await? {
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
    let ids = [header_of_run(attached.run), header_of_conversation(&attached.conversation)];
    Ok((sse::HEADERS, ids, chain(turn, links, attached)).into_response())
}

/// The decisions, in the order in which they were asked for.
async fn decisions(
    turn: &Turn,
    open: Vec<ApprovalView>,
    mut resume: Vec<Answered>,
) -> Result<Result<VecDeque<Link>, Refusal>, Problem> {
    let is_answered = |view: &ApprovalView| resume.iter().any(|answered| answered.approval == view.approval.id);
    let missing: Vec<String> =
        open.iter().filter(|view| !is_answered(view)).map(|view| view.approval.id.to_string()).collect();
    if !missing.is_empty() {
        let words = "Something in this conversation waits for a decision first; answer each of these with resume";
        return Ok(Err(("interrupts_open", format!("{words}: {}", missing.join(", ")))));
    }
    let mut links = VecDeque::new();
    for view in open {
        let Some(at) = resume.iter().position(|answered| answered.approval == view.approval.id) else { continue };
        let decision = resume.swap_remove(at).entry.decision();
        if let (true, ApprovalState::Pending, Consent::Role(role)) =
            (decision.approve, view.state, &view.approval.consent)
            && !turn.caller.has_role(role)
        {
            let error = StartError::RoleRequired(role.clone());
            return Ok(Err(("role_required", error.to_string())));
        }
        links.push_back(Link::Decide(view.approval.id, decision));
    }
    for answered in resume {
        match past(turn, answered).await? {
            Ok(link) => links.extend(link),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(links))
}

/// An answer to what does not wait any more: the same answer again, or a farewell to what is too late, changes nothing.
async fn past(turn: &Turn, answered: Answered) -> Result<Result<Option<Link>, Refusal>, Problem> {
    let Answered { approval: id, entry } = answered;
    let found = turn.services.runs.approval(&turn.caller, id).await?;
    let of_thread = |view: &ApprovalView| view.owner == turn.caller.owner && view.approval.conversation == turn.thread;
    let Some(view) = found.filter(of_thread) else {
        return Ok(Err(("unknown_interrupt", format!("There is no interrupt {id} in this thread"))));
    };
    let is_settled = match (view.state, &entry) {
        (_, Entry::Cancelled) => true,
        (ApprovalState::Approved, Entry::Resolved(decision)) => decision.approve,
        (ApprovalState::Rejected, Entry::Resolved(decision)) => !decision.approve,
        (ApprovalState::Pending | ApprovalState::Granted, Entry::Resolved(_)) => false,
    };
    let is_decided = matches!(view.state, ApprovalState::Approved | ApprovalState::Rejected);
    match (is_settled, is_decided) {
        // A request that was made before finds its run by its key.
        (true, true) if turn.request.key.is_some() => Ok(Ok(Some(Link::Decide(id, entry.decision())))),
        (true, _) => Ok(Ok(None)),
        (false, true) => Ok(Err(("already_decided", format!("{id} has been decided already")))),
        (false, false) => Ok(Err(("approval_expired", format!("It is too late to decide {id}; please ask again")))),
    }
}

impl Turn {
    async fn begin(&self, link: Link) -> Result<Attached, StartError> {
        let (id, decision) = match link {
            Link::Answer(ask) => return self.start(ask).await,
            Link::Decide(id, decision) => (id, decision),
        };
        // Each run of this request has a name of its own.
        let key = self.request.key.as_ref().map(|(key, digest)| (format!("{key} {id}"), digest.clone()));
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
        StartError::Begin(BeginError::NoSuchApproval) => Some("unknown_interrupt"),
        StartError::Begin(BeginError::AlreadyDecided) => Some("already_decided"),
        StartError::Begin(BeginError::ApprovalExpired) => Some("approval_expired"),
        StartError::UnknownContextType(_)
        | StartError::Forbidden
        | StartError::NotOffered(_)
        | StartError::Draining
        | StartError::NoSuchRun
        | StartError::Begin(
            BeginError::Busy { .. }
            | BeginError::QueueFull
            | BeginError::KeyMismatch
            | BeginError::NoSuchMessage
            | BeginError::NoSuchRun
            | BeginError::NoSuchCall
            | BeginError::NothingToRepeat
            | BeginError::NotContinuable(_)
            | BeginError::Store(_),
        )
        | StartError::Log(_)
        | StartError::Joined { .. }
        | StartError::Failed => None,
    }
}
