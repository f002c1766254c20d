//! A conversation for a client that shows it again: its protocol has one place for a call, whatever became of it in later runs.

use super::Services;
use super::problem::Problem;
use crate::agent::ports::conversations::{BranchRef, CallView, MessageView, Page, Role};
use crate::bounded::memory::{Kind, Reservation};
use crate::chat::approval::Approval;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::dialect::shown::{Shown, ShownCall, ShownState};

/// A part of a conversation, to be shown again.
#[derive(Default)]
pub(super) struct Restored {
    /// Its messages, oldest first.
    pub(super) messages: Vec<Shown>,
    /// The calls that wait for a person in all of it, where they were requested.
    pub(super) waiting: Vec<Approval>,
    /// Where the messages before these are; `None` when there are none.
    pub(super) earlier: Option<String>,
    /// The memory of the messages.
    pub(super) held: Option<Reservation>,
}

/// A part of the owner's conversation; `None` where there is none. What the run `live` says comes with its events.
///
/// # Errors
/// When it cannot be read, or there is no memory for it.
pub(super) async fn of(
    services: &Services,
    owner: &Owner,
    conversation: &ConversationId,
    page: Page,
    live: Option<RunId>,
) -> Result<Option<Restored>, Problem> {
    let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
    let found = services.conversations.conversation(owner, BranchRef::newest(conversation), page, &mut held).await?;
    let Some(view) = found else { return Ok(None) };
    let waiting = services.runs.approvals_in(owner, conversation).await?;
    let mut waiting: Vec<Approval> = waiting.into_iter().map(|view| view.approval).collect();
    let messages = each_call_once(view.messages, &mut waiting);
    let messages = messages.into_iter().filter_map(|message| shown(message, live, &waiting)).collect();
    Ok(Some(Restored { messages, waiting, earlier: view.earlier, held: Some(held) }))
}

fn shown(message: MessageView, live: Option<RunId>, waiting: &[Approval]) -> Option<Shown> {
    let MessageView { id, role, text, files: _, notices, calls, created_at_ms: _ } = message;
    match role {
        Role::User => return Some(Shown::User { id, text }),
        Role::Assistant if live == Some(id.run) || text.trim().is_empty() && calls.is_empty() => return None,
        Role::Assistant => {}
    }
    let calls = calls.into_iter().map(|CallView { id: call, name, fate, artifacts, .. }| {
        let held = waiting.iter().find(|held| held.run == id.run && held.call.as_ref() == Some(&call));
        let state = held.map_or(ShownState::Ended(fate), |held| ShownState::Waits(Box::new(held.clone())));
        ShownCall { id: call, name, state, made: artifacts.into_iter().map(|made| made.artifact).collect() }
    });
    Some(Shown::Assistant { id, text, notices, calls: calls.collect() })
}

/// The messages with each call where it was requested: what a later run has made of it, or its client has told of it, is its
/// fate. One that waits again does so where it was requested, too. A call that was requested before the first of the messages
/// stays where it was made.
fn each_call_once(messages: Vec<MessageView>, waiting: &mut [Approval]) -> Vec<MessageView> {
    let mut shown: Vec<MessageView> = Vec::with_capacity(messages.len());
    // Where calls are found that stood for others themselves.
    let mut moved: Vec<((RunId, String), (RunId, String))> = Vec::new();
    for mut message in messages {
        let had_calls = !message.calls.is_empty();
        let run = message.id.run;
        message.calls.retain_mut(|call| {
            let Some(wanted) = call.stands_for.take() else { return true };
            let place = moved.iter().find(|(from, _)| *from == wanted).map_or(wanted, |(_, to)| to.clone());
            let Some(requested) = find(&mut shown, &place) else { return true };
            requested.fate = call.fate;
            requested.artifacts.append(&mut call.artifacts);
            let (of_run, id) = &place;
            for held in waiting.iter_mut().filter(|held| held.run == run && held.call.as_ref() == Some(&call.id)) {
                (held.run, held.call) = (*of_run, Some(id.clone()));
            }
            moved.push(((run, std::mem::take(&mut call.id)), place));
            false
        });
        let is_used_up = had_calls && message.calls.is_empty() && message.text.trim().is_empty();
        if !is_used_up {
            shown.push(message);
        }
    }
    shown
}

fn find<'a>(messages: &'a mut [MessageView], (run, id): &(RunId, String)) -> Option<&'a mut CallView> {
    let of_run = messages.iter_mut().rev().filter(|message| message.id.run == *run);
    of_run.flat_map(|message| &mut message.calls).find(|call| call.id == *id)
}

#[cfg(test)]
mod tests {
    use super::each_call_once;
    use crate::agent::ports::conversations::{CallView, MessageView, Role};
    use crate::chat::fate::CallFate;
    use crate::chat::ids::{MessageId, RunId};

    fn call(id: &str, fate: CallFate, stands_for: Option<(RunId, &str)>) -> CallView {
        let stands_for = stands_for.map(|(run, id)| (run, id.to_owned()));
        let (id, name, artifacts) = (id.to_owned(), "t".to_owned(), Vec::new());
        CallView { id, name, fate, approval: None, artifacts, stands_for, of_client: false }
    }

    fn answer(run: RunId, text: &str, calls: Vec<CallView>) -> MessageView {
        let id = MessageId { run, seq: 1 };
        let (text, files, notices) = (text.to_owned(), Vec::new(), Vec::new());
        MessageView { id, role: Role::Assistant, text, files, notices, calls, created_at_ms: 0 }
    }

    #[test]
    fn a_call_is_where_it_was_requested_whatever_run_has_made_it() {
        let [a, b, c] = [RunId::fresh(), RunId::fresh(), RunId::fresh()];
        let shown = each_call_once(
            vec![
                answer(a, "", vec![call("x", CallFate::AwaitsApproval, None), call("y", CallFate::Done, None)]),
                // It had changed, and waited again.
                answer(b, "", vec![call("x1", CallFate::AwaitsApproval, Some((a, "x")))]),
                answer(
                    c,
                    "Done.",
                    vec![call("x2", CallFate::Done, Some((b, "x1"))), call("z", CallFate::Failed, None)],
                ),
            ],
            &mut [],
        );
        let fates = |message: &MessageView| -> Vec<_> {
            message.calls.iter().map(|call| (call.id.clone(), call.fate)).collect()
        };
        let of = |id: &str, fate| (id.to_owned(), fate);
        assert_eq!(fates(&shown[0]), [of("x", CallFate::Done), of("y", CallFate::Done)]);
        assert_eq!((shown.len(), fates(&shown[1])), (2, vec![of("z", CallFate::Failed)]));
    }

    #[test]
    fn a_call_of_before_stays_where_it_was_made() {
        let [a, b] = [RunId::fresh(), RunId::fresh()];
        let shown = each_call_once(vec![answer(b, "", vec![call("x1", CallFate::Done, Some((a, "x")))])], &mut []);
        assert_eq!((shown.len(), shown[0].calls.len()), (1, 1));
    }
}
