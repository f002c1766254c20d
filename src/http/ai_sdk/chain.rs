//! Decisions on calls that wait. A client sends all of an answer's decisions at once, and a conversation has one run at a
//! time: each is taken when the run of the one before it has ended well, and all of it is one stream.
//!
//! What was not reached, since a run broke off or the client went away, still waits.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use futures::{StreamExt, stream};

use super::{Shown, headers_of};
use crate::agent::ports::store::BeginError;
use crate::chat::caller::Caller;
use crate::chat::event::AgentEvent;
use crate::chat::ids::ConversationId;
use crate::chat::input::Manner;
use crate::dialect::Encoder;
use crate::dialect::ai_sdk::{Answer, Deciding, Spent, broken_off};
use crate::http::Services;
use crate::http::chat::of;
use crate::http::problem::Problem;
use crate::http::sse::{self, View};
use crate::runs::{Attached, Decided, Request, StartError};

/// What is said when a later decision cannot be taken: the answer to the earlier ones has begun.
const NOT_TAKEN: &str = "The next decision was not taken; please reload the conversation";

/// Who decides, where, and how it is shown.
struct Chain {
    services: Services,
    caller: Caller,
    conversation: ConversationId,
    left: VecDeque<Deciding>,
    manner: Manner,
    request: Request,
    shown: Shown,
    /// What the runs before have used.
    spent: Spent,
}

/// Takes the decisions, in order.
///
/// # Errors
/// When the first of them cannot be taken.
pub(super) async fn decide(
    services: Services,
    caller: Caller,
    conversation: ConversationId,
    decisions: Vec<Deciding>,
    manner: Manner,
    request: Request,
    shown: Shown,
) -> Result<Response, Problem> {
    let spent = Spent::default();
    let mut chain = Chain { services, caller, conversation, left: decisions.into(), manner, request, shown, spent };
    let attached = chain.next().await.ok_or_else(Problem::internal)??;
    let headers = headers_of(&attached);
    Ok((sse::HEADERS, headers, chain.body(attached)).into_response())
}

impl Chain {
    /// Takes the next decision that can be taken; `None` where none is left. One that comes too late is passed over while
    /// others are left: a client tells all that it has, and not all of it is new.
    async fn next(&mut self) -> Option<Result<Attached, StartError>> {
        loop {
            let next = self.left.pop_front()?;
            let taken = self.take(next).await;
            let is_late =
                matches!(taken, Err(StartError::Begin(BeginError::AlreadyDecided | BeginError::ApprovalExpired)));
            if !is_late || self.left.is_empty() {
                return Some(taken);
            }
        }
    }

    /// Decides a call of this caller's conversation. One of another conversation is none, whoever says so.
    async fn take(&self, Deciding { approval, decision }: Deciding) -> Result<Attached, StartError> {
        let found = self.services.runs.approval(&self.caller, approval).await.map_err(BeginError::from)?;
        let is_of_chat = found
            .is_some_and(|view| view.owner == self.caller.owner && view.approval.conversation == self.conversation);
        if !is_of_chat {
            return Err(BeginError::NoSuchApproval.into());
        }
        // Each run of this request has a name of its own, by which the same request finds it again.
        let key = self.request.key.as_ref().map(|(key, digest)| (format!("{key} {approval}"), digest.clone()));
        let request = Request { id: self.request.id.clone(), key };
        let (caller, manner) = (self.caller.clone(), self.manner.clone());
        match self.services.runs.decide(caller, approval, decision, manner, request).await? {
            Decided::GoesOn(attached) => Ok(attached),
            Decided::Kept(_) => Err(BeginError::NoSuchApproval.into()),
        }
    }

    fn body(self, first: Attached) -> Body {
        let run = self.run(first);
        Body::from_stream(stream::unfold((self, Some(run)), |(mut chain, run)| async move {
            let mut run = run?;
            loop {
                if let Some(piece) = run.pieces.next().await {
                    // Our bodies never fail.
                    return Some((Ok::<_, Infallible>(piece.unwrap_or_default()), (chain, Some(run))));
                }
                let Seen { has_ended_well, spent } = *seen(&run.seen);
                if !has_ended_well {
                    return None;
                }
                chain.spent = spent;
                match chain.next().await? {
                    Ok(attached) => run = chain.run(attached),
                    Err(error) => {
                        tracing::warn!(%error, "a later decision was not taken");
                        let end: Bytes = broken_off(NOT_TAKEN, &chain.request.id);
                        return Some((Ok(end), (chain, None)));
                    }
                }
            }
        }))
    }

    /// What is shown of a run, and what it comes to.
    fn run(&self, attached: Attached) -> Run {
        let Shown { version, continues, client_tools } = self.shown.clone();
        let more_follows = !self.left.is_empty();
        let answer = Answer { of: of(&attached), version, continues, client_tools, more_follows, spent: self.spent };
        let seen = Arc::new(Mutex::new(Seen { has_ended_well: false, spent: self.spent }));
        let encoder = self.services.ai_sdk.encoder(answer);
        let view = View {
            encoder: Box::new(Watching { encoder, seen: seen.clone() }),
            numbered: false,
            keep_alive: self.services.keep_alive,
            draining: self.services.runs.draining().clone(),
        };
        Run { pieces: sse::body(attached, view).into_data_stream(), seen }
    }
}

/// A run of the chain.
struct Run {
    pieces: BodyDataStream,
    seen: Arc<Mutex<Seen>>,
}

/// What is seen of a run while it is shown.
#[derive(Clone, Copy)]
struct Seen {
    has_ended_well: bool,
    /// What it and the runs before it have used.
    spent: Spent,
}

/// Nobody panics with it in hand, and it is whole at any time.
fn seen(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An encoder that is looked over the shoulder.
struct Watching {
    encoder: Box<dyn Encoder>,
    seen: Arc<Mutex<Seen>>,
}

impl Encoder for Watching {
    fn opened(&mut self, out: &mut BytesMut) {
        self.encoder.opened(out);
    }

    fn encode(&mut self, id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        self.encoder.encode(id, event, out);
        if let AgentEvent::TurnEnded { cost: Some(cost), .. } = event {
            *seen(&self.seen).spent.cost.get_or_insert_default() += *cost;
        }
        if let AgentEvent::Finished { usage } | AgentEvent::AwaitingApproval { usage } = event {
            let mut seen = seen(&self.seen);
            seen.spent.usage += *usage;
            seen.has_ended_well = true;
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.encoder.lost(out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        self.encoder.keep_alive(out);
    }

    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        self.encoder.draining(come_back_ms, out);
    }
}
