//! The ids of calls that a run leaves to its client. A client that names no conversation sends nothing back but these
//! ids, so they carry it: `call_<conversation>_<id>`, with the prefix that such ids have in their protocol. They are no
//! credentials: the conversation is looked up among the caller's own, and its newest run must have left them that call.

use std::collections::BTreeSet;

use crate::chat::ids::ConversationId;
use crate::dialect::given::ClientResult;

/// The prefixes of such ids: of OpenAI's protocols, and of Anthropic's.
const PREFIXES: [&str; 2] = ["call_", "toolu_"];

/// The id of a call for a client that names no conversation.
pub(super) fn with_conversation(conversation: &ConversationId, id: &str) -> String {
    let [prefix, _] = PREFIXES;
    format!("{prefix}{conversation}_{id}")
}

/// The same in Anthropic's protocol.
pub(super) fn tool_use(conversation: &ConversationId, id: &str) -> String {
    let [_, prefix] = PREFIXES;
    format!("{prefix}{conversation}_{id}")
}

/// The conversation and the call's own id; `None` where it is no such id. Conversations of such clients are ours, and
/// their ids have no underscore.
pub(super) fn read(id: &str) -> Option<(ConversationId, &str)> {
    let rest = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix))?;
    let (conversation, id) = rest.split_once('_')?;
    Some((ConversationId::parse(conversation).ok()?, id)).filter(|(_, id)| !id.is_empty())
}

/// What came of calls, as clients tell it, in the calls' own ids; and the conversation that waits for it: the one that is `named`,
/// else the one in the ids.
///
/// # Errors
/// What the results must do.
pub(super) fn answered(
    sent: Vec<ClientResult>,
    named: Option<ConversationId>,
) -> Result<(Vec<ClientResult>, ConversationId), String> {
    let is_named = named.is_some();
    let mut of = named;
    let mut results = Vec::with_capacity(sent.len());
    let mut seen = BTreeSet::new();
    for result in sent {
        let call = match is_named {
            true => result.call.clone(),
            false => {
                let id = &result.call;
                let (conversation, call) =
                    read(id).ok_or_else(|| format!("must answer calls of this server, not {id}"))?;
                if of.get_or_insert_with(|| conversation.clone()) != &conversation {
                    return Err("must answer calls of one answer".to_owned());
                }
                call.to_owned()
            }
        };
        if !seen.insert(call.clone()) {
            return Err(format!("must answer {} once", result.call));
        }
        results.push(ClientResult { call, ..result });
    }
    Ok((results, of.ok_or("must answer a call")?))
}

#[cfg(test)]
mod tests {
    use super::{read, tool_use, with_conversation};
    use crate::chat::ids::ConversationId;

    #[test]
    fn an_id_brings_its_conversation_back_whatever_the_model_called_it() {
        let conversation = ConversationId::fresh();
        for id in ["toolu_01_a", "call_7", "x y", "_"] {
            assert_eq!(read(&with_conversation(&conversation, id)), Some((conversation.clone(), id)), "{id}");
            assert_eq!(read(&tool_use(&conversation, id)), Some((conversation.clone(), id)), "{id}");
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
