//! The ids of calls that a run leaves to its client. A client that names no conversation sends nothing back but these
//! ids, so they carry it: the prefix that such ids have in their protocol, 22 characters that are the conversation, `_`, and what
//! tells the call from the others of its turn. Clients keep 40 characters (`call_…`, RooCodeInc/Roo-Code#10763). They are no
//! credentials: the conversation is looked up among the caller's own, and its newest run must have left them that call.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::chat::ids::{ConversationId, ToolCallId};
use crate::dialect::given::ClientResult;

/// The prefixes of such ids: of OpenAI's protocols, and of Anthropic's.
const PREFIXES: [&str; 2] = ["call_", "toolu_"];

/// The characters of a conversation: its 16 bytes in base64.
const CONVERSATION_CHARS: usize = 22;

/// The id of a call for a client that names no conversation.
pub(super) fn with_conversation(conversation: &ConversationId, id: &ToolCallId) -> String {
    let [prefix, _] = PREFIXES;
    written(prefix, conversation, id)
}

/// The same in Anthropic's protocol.
pub(super) fn tool_use(conversation: &ConversationId, id: &ToolCallId) -> String {
    let [_, prefix] = PREFIXES;
    written(prefix, conversation, id)
}

fn written(prefix: &str, conversation: &ConversationId, id: &ToolCallId) -> String {
    let id = id.short();
    match Uuid::try_parse(conversation.as_str()) {
        Ok(uuid) => format!("{prefix}{}_{id}", BASE64_URL_SAFE_NO_PAD.encode(uuid)),
        // One that a client has named.
        Err(_) => format!("{prefix}{conversation}_{id}"),
    }
}

/// The conversation, and the call's own id or what is short for it; `None` where it is no such id.
pub(super) fn read(id: &str) -> Option<(ConversationId, &str)> {
    let rest = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix))?;
    let short = rest.split_at_checked(CONVERSATION_CHARS).and_then(|(conversation, id)| {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(conversation).ok()?;
        Some((Uuid::from_slice(&bytes).ok()?.to_string(), id.strip_prefix('_')?))
    });
    let (conversation, id) = match short {
        Some(found) => found,
        // Written by an earlier version, or of a conversation that a client has named.
        None => rest.split_once('_').map(|(conversation, id)| (conversation.to_owned(), id))?,
    };
    Some((ConversationId::parse(&conversation).ok()?, id)).filter(|(_, id)| !id.is_empty())
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
    use crate::chat::ids::{ConversationId, ToolCallId};

    #[test]
    fn an_id_brings_its_conversation_back_whatever_the_model_called_it() {
        let conversation = ConversationId::fresh();
        for id in ["w1", "_", "a-b_c-d_e-f_", "toolu_01HyrFcPYpCeCYrGeMFzDqxZ", "functions.find:0", "x y", ""] {
            let id = ToolCallId::from_model(id);
            let written = with_conversation(&conversation, &id);
            assert!(written.len() <= 40, "{written}");
            for written in [written, tool_use(&conversation, &id)] {
                assert!(written.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')), "{written}");
                assert_eq!(read(&written), Some((conversation.clone(), &*id.short())).filter(|(_, id)| !id.is_empty()));
            }
        }
        let before = format!("call_{conversation}_toolu_01");
        assert_eq!(read(&before), Some((conversation, "toolu_01")), "of an earlier version");
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
