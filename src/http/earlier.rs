//! The earlier messages, for protocols that look for a message in a conversation without naming a page: read page by
//! page, and each page is dropped after the search.

use std::ops::ControlFlow;

use super::Services;
use super::problem::Problem;
use crate::agent::ports::conversations::{BranchRef, MessageView, Page};
use crate::bounded::memory::Kind;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, MessageId};

/// Messages of a part, but for those of its first run.
const PART: u32 = 500;

/// Shows `see` the newest branch, the newest part first, each with its messages in order, until it has seen enough; whether
/// there is such a conversation.
///
/// # Errors
/// When it cannot be read, or there is no memory for it.
pub(super) async fn walk(
    services: &Services,
    owner: &Owner,
    id: &ConversationId,
    mut see: impl FnMut(Vec<MessageView>) -> ControlFlow<()>,
) -> Result<bool, Problem> {
    let mut cursor = None;
    loop {
        let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
        let page = Page { limit: PART, cursor };
        let view = services.conversations.conversation(owner, BranchRef::newest(id), page, &mut held).await?;
        let Some(view) = view else { return Ok(false) };
        cursor = view.earlier;
        if see(view.messages).is_break() || cursor.is_none() {
            return Ok(true);
        }
    }
}

/// The messages of the newest branch, oldest first, without their words and calls but for those of `whole`; `None` when there
/// is no such conversation.
///
/// # Errors
/// When it cannot be read, or there is no memory for it.
pub(super) async fn outline(
    services: &Services,
    owner: &Owner,
    id: &ConversationId,
    whole: Option<MessageId>,
) -> Result<Option<Vec<MessageView>>, Problem> {
    let mut parts: Vec<Vec<MessageView>> = Vec::new();
    let there = walk(services, owner, id, |mut messages| {
        for message in messages.iter_mut().filter(|message| Some(message.id) != whole) {
            (message.text, message.calls) = (String::new(), Vec::new());
        }
        parts.push(messages);
        ControlFlow::Continue(())
    });
    let there = there.await?;
    Ok(there.then(|| parts.into_iter().rev().flatten().collect()))
}
