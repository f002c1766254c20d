//! Conversations in SQL as their owners see them: lists, branches, exports, the trail; and summaries of their older parts.
//!
//! The runs of a conversation form a tree. A *branch* is the way from the root to one of them; each run on it but the last is
//! there up to the message that the next one goes on from. What one call tells is read in one transaction, so that all
//! of it is true at once.

/// The runs on branches, as the common table `path`: `run_seq`, its `parent`, and up to which message it counts (`upto`, `NULL`
/// for all). `$tips` selects conversation and `run_seq` of the runs that end the branches; `$1` is the tenant and `$2` the user.
macro_rules! with_path {
    ($tips:expr) => {
        concat!(
            "WITH RECURSIVE tips (conversation, run_seq) AS (",
            $tips,
            "), path (conversation, run_seq, parent, parent_seq, upto) AS (
                 SELECT r.conversation, r.run_seq,
                     ",
            $crate::store::record::run_parent!(),
            ", r.parent_seq, CAST(NULL AS BIGINT)
                 FROM tips t JOIN runs r ON r.conversation = t.conversation AND r.run_seq = t.run_seq
                 WHERE r.tenant = $1 AND r.user_id = $2
                 UNION ALL
                 SELECT r.conversation, r.run_seq,
                     ",
            $crate::store::record::run_parent!(),
            ", r.parent_seq, p.parent_seq
                 FROM path p JOIN runs r ON r.conversation = p.conversation AND r.run_seq = p.parent
                 WHERE r.tenant = $1 AND r.user_id = $2
             ) "
        )
    };
}

/// The messages `m` of the runs `r` on `path p`, to be followed by `AND …`.
macro_rules! from_path {
    () => {
        "FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = p.conversation AND r.run_seq = p.run_seq
         JOIN messages m ON m.tenant = $1 AND m.user_id = $2 AND m.conversation = p.conversation AND m.run_seq = p.run_seq
         WHERE (p.upto IS NULL OR m.seq <= p.upto) "
    };
}

/// Whether a user sees the message `m`: the question that begins a run, unless the server asked it in the user's place, to go on with
/// another run, and every answer but one that the loop itself has refused, after which it asks again in the user's place. The
/// parameter is [`asked_by_server`].
macro_rules! is_seen {
    ($by_server:literal) => {
        concat!(
            "(m.kind = 'user' AND m.seq = 0 AND NOT (
                 r.continues IS NOT NULL AND substr(m.body, 1, length(CAST(",
            $by_server,
            " AS TEXT))) = CAST(",
            $by_server,
            " AS TEXT))
              OR m.kind = 'assistant' AND NOT EXISTS (
                 SELECT 1 FROM messages n WHERE n.tenant = $1 AND n.user_id = $2 AND n.conversation = p.conversation
                     AND n.run_seq = m.run_seq AND n.seq = m.seq + 1 AND n.kind = 'user'))"
        )
    };
}

mod branch;
mod delete;
mod export;
mod heads;
mod summaries;
mod trail;

use async_trait::async_trait;

use super::{Connection, SqlStore};
use crate::agent::ports::conversations::{
    ConversationExport, ConversationHead, ConversationStore, ConversationView, Page, PageError, Paged, TrailItem,
};
use crate::agent::ports::store::{CONTINUE_REQUEST, StoreError};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::UserMessage;
use crate::store::fault::attempt;
use crate::store::transcript::{self, RecordError};
use crate::store::view::{HeadCursor, number};

#[async_trait]
impl ConversationStore for SqlStore {
    async fn conversations(&self, owner: &Owner, page: Page) -> Result<Paged<ConversationHead>, PageError> {
        let after = match &page.cursor {
            None => HeadCursor::start(),
            Some(text) => HeadCursor::parse(text).ok_or(PageError::BadCursor)?,
        };
        Ok(attempt("list conversations", self.try_conversations(&owner.into(), after, page.limit)).await?)
    }

    async fn conversation(&self, owner: &Owner, id: &ConversationId) -> Result<Option<ConversationView>, StoreError> {
        attempt("read a conversation", self.try_conversation(&owner.into(), id)).await
    }

    async fn rename(
        &self,
        owner: &Owner,
        id: &ConversationId,
        title: &str,
    ) -> Result<Option<ConversationHead>, StoreError> {
        attempt("rename a conversation", self.try_rename(&owner.into(), id, title)).await
    }

    async fn delete(&self, owner: &Owner, id: &ConversationId) -> Result<Option<Vec<RunId>>, StoreError> {
        attempt("delete a conversation", self.try_delete(&owner.into(), id)).await
    }

    async fn export(&self, owner: &Owner, id: &ConversationId) -> Result<Option<ConversationExport>, StoreError> {
        attempt("export a conversation", self.try_export(&owner.into(), id)).await
    }

    async fn trail(
        &self,
        owner: &Owner,
        id: &ConversationId,
        page: Page,
    ) -> Result<Option<Paged<TrailItem>>, PageError> {
        let after = match &page.cursor {
            None => 0,
            Some(text) => number(text).ok_or(PageError::BadCursor)?,
        };
        Ok(attempt("read a trail", self.try_trail(&owner.into(), id, after, page.limit)).await?)
    }
}

/// What the stored messages begin with that the server writes to have an answer continued; decisions may follow.
fn asked_by_server() -> Result<String, RecordError> {
    let mut body = transcript::encode_user(&UserMessage::new(CONTINUE_REQUEST))?.body;
    body.pop();
    Ok(body)
}
