//! All of a conversation, put together from the parts that a store gives.

use switchboard::agent::ports::conversations::{
    BranchRef, ConversationHead, ConversationStore, ConversationView, ExportAt, ExportItem, ExportStore, MessageExport,
    Page, RunExport, TrailItem,
};
use switchboard::bounded::memory::{Kind, Memory, Reservation};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::ConversationId;

/// Room for whatever is read.
pub fn room() -> Reservation {
    Memory::new(0).reserve(Kind::Export, 0).unwrap()
}

/// The conversation with all messages of its newest branch.
pub async fn seen<S: ConversationStore + ?Sized>(
    store: &S,
    owner: &Owner,
    id: &ConversationId,
) -> Option<ConversationView> {
    let mut all: Option<ConversationView> = None;
    let mut cursor = None;
    loop {
        let page = Page { limit: 7, cursor };
        let mut part = store.conversation(owner, BranchRef::newest(id), page, &mut room()).await.unwrap()?;
        cursor = part.earlier.take();
        part.messages.extend(all.into_iter().flat_map(|later| later.messages));
        if cursor.is_none() {
            return Some(part);
        }
        all = Some(part);
    }
}

/// An export.
#[derive(Debug)]
pub struct Exported {
    pub head: ConversationHead,
    pub runs: Vec<(RunExport, Vec<MessageExport>)>,
    pub trail: Vec<TrailItem>,
}

/// All of the conversation.
pub async fn exported<S: ExportStore + ?Sized>(store: &S, owner: &Owner, id: &ConversationId) -> Option<Exported> {
    let (mut head, mut runs, mut trail) = (None, Vec::new(), Vec::new());
    let mut at = ExportAt::Start;
    loop {
        let part = store.export(owner, id, at, &mut room()).await.unwrap()?;
        for item in part.items {
            match item {
                ExportItem::Head(of) => head = Some(of),
                ExportItem::Run(run) => runs.push((*run, Vec::new())),
                ExportItem::Message(message) => runs.last_mut().unwrap().1.push(message),
                ExportItem::Payload(_) | ExportItem::Artifact(_) | ExportItem::Approval(_) => {}
                ExportItem::Trail(entry) => trail.push(entry),
            }
        }
        match part.next {
            Some(next) => at = next,
            None => return Some(Exported { head: head.unwrap(), runs, trail }),
        }
    }
}
