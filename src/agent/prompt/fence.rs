//! The mark around texts of others in a prompt: the same for all prompts of a conversation, so that vendors can go on
//! caching them, and one that cannot be known outside beforehand.
//!
//! The fences hold without it: what stands in them is JSON or single lines that have no backticks. The mark is for the model,
//! which follows words more than grammar; words that were written before the conversation cannot close a fence that they
//! cannot spell, and where a value has the mark all the same, it is taken out (`chat/template/`).

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use uuid::Uuid;

use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// 8 bytes of mark: 16 hex digits, a few tokens.
const MARK_BYTES: usize = 8;

/// Makes the marks of a process.
///
/// Each process has a key of its own, since nothing secret is the same in all of them: a conversation that another replica
/// goes on with has another mark there, which costs its vendor's cache once.
pub struct Fences(Key);

impl Fences {
    /// Marks that were never used before.
    pub fn fresh() -> Self {
        // 244 random bits.
        let secret = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self(Key::new(HMAC_SHA256, &secret))
    }

    /// The mark of a conversation, in hex.
    pub fn mark(&self, owner: &Owner, conversation: &ConversationId) -> String {
        self.mark_of(&serde_json::json!([owner.tenant, owner.user, conversation.as_str()]))
    }

    /// The mark of a user in all of their conversations, for what their client sends with each of them: there a mark of
    /// each conversation would cost the vendor's cache every time.
    pub fn mark_of_user(&self, owner: &Owner) -> String {
        self.mark_of(&serde_json::json!([owner.tenant, owner.user]))
    }

    fn mark_of(&self, of: &serde_json::Value) -> String {
        let of = of.to_string();
        let tag = sign(&self.0, of.as_bytes());
        tag.as_ref().iter().take(MARK_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_belongs_to_a_conversation_of_a_user_in_one_process() {
        let owner = |tenant: &str, user: &str| Owner { tenant: tenant.to_owned(), user: user.to_owned() };
        let id = |text: &str| ConversationId::parse(text).unwrap();
        let fences = Fences::fresh();
        let mark = fences.mark(&owner("", "ada"), &id("c1"));
        assert_eq!(mark, fences.mark(&owner("", "ada"), &id("c1")), "the same in every prompt");
        assert_eq!(mark.len(), 16);
        let others = [
            (fences.mark(&owner("", "ada"), &id("c2")), "another conversation"),
            (fences.mark(&owner("", "bob"), &id("c1")), "another user's of the same name"),
            (fences.mark(&owner("t", "ada"), &id("c1")), "another tenant's"),
            (Fences::fresh().mark(&owner("", "ada"), &id("c1")), "another process"),
            (fences.mark_of_user(&owner("", "ada")), "that of all their conversations"),
        ];
        for (other, reason) in others {
            assert_ne!(mark, other, "{reason}");
        }
    }
}
