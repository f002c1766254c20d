//! Decisions on calls that wait. A client sends all of an answer's decisions at once; each is a run, and all of them are one
//! stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;

use super::{Shown, headers_of};
use crate::chat::event::AgentEvent;
use crate::dialect::ai_sdk::{Answer, Deciding, Spent, broken_off};
use crate::dialect::{Encoder, RunIds};
use crate::http::Services;
use crate::http::chain::{self, Shows};
use crate::http::problem::Problem;
use crate::http::sse::{self, View};
use crate::runs::StartError;
use crate::runs::chain::{Chain, Context, Link};

/// What is said when a later decision cannot be taken: the answer to the earlier ones has begun.
const NOT_TAKEN: &str = "The next decision was not taken; please reload the conversation";

/// Takes the decisions, in order.
///
/// # Errors
/// When the first of them cannot be taken.
pub(super) async fn decide(
    services: Services,
    context: Context,
    decisions: Vec<Deciding>,
    shown: Shown,
) -> Result<Response, Problem> {
    let request_id = context.request.id.clone();
    let links = decisions.into_iter().map(|deciding| Link::Decide(deciding.approval, deciding.decision));
    let mut chain = Chain::new(services.runs.clone(), context, links).passing_over_late();
    let first = chain.next().await.ok_or_else(Problem::internal)??;
    let headers = headers_of(&first);
    let answers = Answers { services, shown, request_id, seen: Arc::default() };
    Ok((sse::HEADERS, headers, chain::body(first, chain, answers)).into_response())
}

/// The runs' answers, which the client sees as one message.
struct Answers {
    services: Services,
    shown: Shown,
    request_id: String,
    seen: Arc<Mutex<Seen>>,
}

/// What is seen of the runs while they are shown.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Whether the newest of them has ended well.
    has_ended_well: bool,
    /// What all of them have used.
    spent: Spent,
}

impl Shows for Answers {
    fn view(&mut self, of: RunIds, _is_first: bool, is_last: bool) -> View {
        let Shown { version, continues, client_tools } = self.shown.clone();
        let spent = {
            let mut seen = seen(&self.seen);
            seen.has_ended_well = false;
            seen.spent
        };
        let answer = Answer { of, version, continues, client_tools, more_follows: !is_last, spent };
        let encoder = self.services.ai_sdk.encoder(answer);
        View {
            encoder: Box::new(Watching { encoder, seen: self.seen.clone() }),
            numbered: false,
            keep_alive: self.services.keep_alive,
            draining: self.services.runs.draining().clone(),
        }
    }

    fn goes_on(&self) -> bool {
        seen(&self.seen).has_ended_well
    }

    fn broken_off(&self, _error: &StartError) -> Bytes {
        broken_off(NOT_TAKEN, &self.request_id)
    }
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
