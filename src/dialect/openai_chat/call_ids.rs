//! The ids of calls that a run leaves to its client. A client that names no conversation sends nothing back but these
//! ids, so they carry it: `call_<conversation>_<id>`. They are no credentials: the conversation is looked up among the
//! caller's own, and its newest run must have left them that call.

use crate::chat::ids::ConversationId;

const PREFIX: &str = "call_";

/// The id of a call for a client that names no conversation.
pub(super) fn with_conversation(conversation: &ConversationId, id: &str) -> String {
    format!("{PREFIX}{conversation}_{id}")
}

/// The conversation and the call's own id; `None` where it is no such id. Conversations of such clients are ours, and
/// their ids have no underscore.
pub(super) fn read(id: &str) -> Option<(ConversationId, &str)> {
    let (conversation, id) = id.strip_prefix(PREFIX)?.split_once('_')?;
    Some((ConversationId::parse(conversation).ok()?, id)).filter(|(_, id)| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{read, with_conversation};
    use crate::chat::ids::ConversationId;

    #[test]
    fn an_id_brings_its_conversation_back_whatever_the_model_called_it() {
        let conversation = ConversationId::fresh();
        for id in ["toolu_01_a", "call_7", "x y", "_"] {
            assert_eq!(read(&with_conversation(&conversation, id)), Some((conversation.clone(), id)), "{id}");
        }
        for (other, reason) in [
            ("call_7", "a model's own"),
            ("toolu_1", "another vendor's"),
            ("", "none"),
            ("call__7", "no conversation"),
            ("call_a/b_7", "no id of a conversation"),
            ("call_c_", "no call"),
        ] {
            assert_eq!(read(other), None, "{reason}");
        }
    }
}
