//! Conversations in SQL as their owners see them: lists, branches, exports, the trail; and summaries of their older
//! parts.
//!
//! The runs of a conversation form a tree. A *branch* is the way from the root to one of them; each run on it but the
//! last is there up to the message that the next one goes on from. The answer of one call is read in one transaction,
//! so that all of it is true at once.

/// The runs on the branch that ends with the run `$tip` of the conversation `$3`, as the common table `path`:
/// `run_seq`, its `parent`, and up to which message it counts (`upto`, `NULL` for all). `$1` is the tenant and `$2` the
/// user. With `$from`, only as far back as to the run of that number: those before it need not be looked up.
macro_rules! with_path {
    ($tip:expr) => {
        with_path!($tip, "", "")
    };
    ($tip:expr, $from:expr) => {
        with_path!($tip, " AND r.run_seq >= ", $from)
    };
    ($tip:expr, $and:expr, $from:expr) => {
        concat!(
            "WITH RECURSIVE path (run_seq, parent, parent_seq, upto) AS (
                 SELECT r.run_seq, ",
            $crate::store::record::run_parent!(),
            ", r.parent_seq, CAST(NULL AS BIGINT) FROM runs r
                 WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = ",
            $tip,
            "
                 UNION ALL
                 SELECT r.run_seq, ",
            $crate::store::record::run_parent!(),
            ", r.parent_seq, p.parent_seq FROM path p JOIN runs r
                     ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.parent",
            $and,
            $from,
            ") "
        )
    };
}

/// The messages `m` of the runs `r` on `path p`, to be followed by `AND …`.
macro_rules! from_path {
    () => {
        "FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN messages m ON m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = p.run_seq
         WHERE (p.upto IS NULL OR m.seq <= p.upto) "
    };
}

mod branch;
mod calls;
mod chat;
mod chats;
mod delete;
mod export;
mod heads;
mod said;
mod sessions;
mod summaries;
mod trail;
mod used;

pub(super) use heads::find_head;
pub(super) use said::{TIMES, said, sizes};

use async_trait::async_trait;

use super::SqlStore;
use super::approvals::approvals_behind;
use super::artifacts;
use super::client_history::client_history_of;
use super::feedback;
use super::payloads::{KeptRow, kept};
use super::seen::{count_seen, is_seen};
use super::usage::SumRow;
use crate::agent::ports::chats::{ChatHead, ChatStore, ChatView, Chats};
use crate::agent::ports::conversations::{
    BranchRef, BranchStore, ConversationHead, ConversationStore, ConversationView, Listed, Page, PageError, Paged,
    RunNode, TrailItem,
};
use crate::agent::ports::store_error::StoreError;
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, MessageId, RunId};
use crate::store::fault::attempt;
use crate::store::scope::Scope;
use crate::store::view::{HeadCursor, number};

#[async_trait]
impl BranchStore for SqlStore {
    async fn tree(&self, owner: &Owner, id: &ConversationId) -> Result<Vec<RunNode>, StoreError> {
        attempt("read the branches of a conversation", self.try_tree(&owner.into(), id)).await
    }

    async fn message_known_as(
        &self,
        owner: &Owner,
        id: &ConversationId,
        name: &str,
    ) -> Result<Option<MessageId>, StoreError> {
        attempt("find a message", self.try_message_known_as(&owner.into(), id, name)).await
    }
}

#[async_trait]
impl ConversationStore for SqlStore {
    async fn conversations(
        &self,
        owner: &Owner,
        listed: Listed,
        page: Page,
    ) -> Result<Paged<ConversationHead>, PageError> {
        let after = match &page.cursor {
            None => HeadCursor::start(),
            Some(text) => HeadCursor::parse(text).ok_or(PageError::BadCursor)?,
        };
        attempt("list conversations", self.try_conversations(&owner.into(), listed, after, page.limit)).await
    }

    async fn conversation(
        &self,
        owner: &Owner,
        branch: BranchRef<'_>,
        page: Page,
        held: &mut Reservation,
    ) -> Result<Option<ConversationView>, PageError> {
        let before = match &page.cursor {
            None => i64::MAX,
            Some(text) => number(text).ok_or(PageError::BadCursor)?,
        };
        let part = (before, page.limit);
        attempt("read a conversation", self.try_conversation(&owner.into(), branch, part, held)).await
    }

    async fn delete(&self, owner: &Owner, id: &ConversationId) -> Result<Option<Vec<RunId>>, StoreError> {
        let scope = Scope::from(owner);
        while attempt::<_, _, StoreError>("take a conversation out of the index", self.try_unindex(&scope, id)).await? {
        }
        attempt("delete a conversation", self.try_delete(&scope, id)).await
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
        attempt("read a trail", self.try_trail(&owner.into(), id, after, page.limit)).await
    }
}

#[async_trait]
impl ChatStore for SqlStore {
    async fn number(
        &self,
        owner: &Owner,
        known_as: Option<&str>,
        conversation: &ConversationId,
        app: &str,
    ) -> Result<i64, StoreError> {
        attempt("number a conversation", self.try_number(&owner.into(), known_as, conversation, app)).await
    }

    async fn numbered(&self, owner: &Owner, number: i64) -> Result<Option<ConversationId>, StoreError> {
        attempt("find a conversation by number", self.try_numbered(&owner.into(), number)).await
    }

    async fn chats(&self, of: Chats<'_>, limit: u32, offset: u32) -> Result<(Vec<ChatHead>, u64), StoreError> {
        attempt("list chats", self.try_chats(of, limit, offset)).await
    }

    async fn chat(&self, of: Chats<'_>, number: i64) -> Result<Option<ChatView>, StoreError> {
        attempt("read a chat", self.try_chat(of, number)).await
    }
}
