//! The files that runs have made before a decision: the run behind it tells of its own alone.

use std::ops::ControlFlow;

use super::Asker;
use crate::agent::ports::conversations::MessageView;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::{RunRecord, RunState};
use crate::dialect::mcp::MadeFile;
use crate::http::earlier::walk;
use crate::http::problem::Problem;

/// 100 runs of a chain, as many as the store tells of.
const RUNS: usize = 100;

/// The files of a run that waits, and of those that have waited before it for the same call.
pub(super) async fn up_to((services, caller): Asker<'_>, waits: &RunRecord) -> Result<Vec<MadeFile>, Problem> {
    let (mut runs, mut before) = (vec![waits.id], waits.continues);
    while let Some(id) = before.filter(|_| runs.len() < RUNS) {
        before = match services.runs.find(&caller.owner, id).await? {
            Some(run) if run.state == RunState::AwaitingApproval => {
                runs.push(run.id);
                run.continues
            }
            Some(_) | None => None,
        };
    }
    runs.reverse();
    of((services, caller), &waits.conversation, &runs).await
}

/// The files of these runs, the oldest first.
pub(super) async fn of(
    (services, caller): Asker<'_>,
    conversation: &ConversationId,
    runs: &[RunId],
) -> Result<Vec<MadeFile>, Problem> {
    let Some(first) = runs.first() else { return Ok(Vec::new()) };
    let mut parts: Vec<Vec<MadeFile>> = Vec::new();
    walk(services, &caller.owner, conversation, |messages| {
        let of_runs = messages.iter().filter(|message| runs.contains(&message.id.run));
        parts.push(of_runs.flat_map(files).collect());
        // A run is in one part.
        match messages.iter().any(|message| message.id.run == *first) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
    .await?;
    Ok(parts.into_iter().rev().flatten().collect())
}

/// Those of a message, without what its client has told of its own calls.
fn files(message: &MessageView) -> impl Iterator<Item = MadeFile> {
    let calls = message.calls.iter().filter(|call| !call.of_client);
    calls.flat_map(|call| &call.artifacts).filter_map(|made| MadeFile::read(&made.artifact))
}
