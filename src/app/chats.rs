//! Chats in memory, until the store has them.

use std::sync::Mutex;

use async_trait::async_trait;

use crate::agent::ports::chats::{ChatHead, ChatStore, ChatView, Chats};
use crate::agent::ports::store::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

#[derive(Default)]
pub(super) struct InMemory(Mutex<Vec<(Owner, ConversationId)>>);

#[async_trait]
impl ChatStore for InMemory {
    async fn number(&self, owner: &Owner, conversation: &ConversationId, _app: &str) -> Result<i64, StoreError> {
        let mut known = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let at = known.iter().position(|(o, c)| o == owner && c == conversation);
        let at = at.unwrap_or_else(|| {
            known.push((owner.clone(), conversation.clone()));
            known.len() - 1
        });
        Ok(i64::try_from(at).unwrap_or(0) + 1)
    }

    async fn numbered(&self, owner: &Owner, number: i64) -> Result<Option<ConversationId>, StoreError> {
        let known = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let at = usize::try_from(number - 1).ok();
        Ok(at.and_then(|at| known.get(at)).filter(|(o, _)| o == owner).map(|(_, c)| c.clone()))
    }

    async fn chats(&self, _of: Chats<'_>, _limit: u32, _offset: u32) -> Result<(Vec<ChatHead>, u64), StoreError> {
        Ok((Vec::new(), 0))
    }

    async fn chat(&self, _of: Chats<'_>, _number: i64) -> Result<Option<ChatView>, StoreError> {
        Ok(None)
    }
}
