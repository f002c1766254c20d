//! The ids of this wire: those of ours with a prefix, so that nothing has to be kept to find what one names.

use crate::chat::ids::{ApprovalId, ConversationId, RunId};

const RESPONSE: &str = "resp_";
const CONVERSATION: &str = "conv_";
const APPROVAL: &str = "mcpr_";

/// What stands before the run's id where nobody may come back to it.
const UNSTORED: &str = "unstored_";

/// The prefixes of items whose ids name their run, as `<prefix><run>_<number>`.
pub(super) const MESSAGE: &str = "msg_";
pub(super) const REASONING: &str = "rs_";
pub(super) const FUNCTION: &str = "fc_";
pub(super) const CUSTOM: &str = "ctc_";
pub(super) const CALL: &str = "mcp_";

/// The response of a run. One that is not stored has an id that names nothing.
pub fn response_id(run: RunId, is_stored: bool) -> String {
    let unstored = if is_stored { "" } else { UNSTORED };
    format!("{RESPONSE}{unstored}{run}")
}

/// The run of a response.
pub fn run_of(response: &str) -> Option<RunId> {
    RunId::parse(response.strip_prefix(RESPONSE)?).ok()
}

/// A conversation's id on this wire.
pub fn conversation_id(conversation: &ConversationId) -> String {
    format!("{CONVERSATION}{conversation}")
}

/// The conversation of such an id.
pub fn conversation_of(id: &str) -> Option<ConversationId> {
    ConversationId::parse(id.strip_prefix(CONVERSATION)?).ok()
}

/// The user's message with which a run begins.
pub fn of_question(run: RunId) -> String {
    format!("{MESSAGE}{run}_user")
}

/// The item with that prefix and number in a run.
pub(super) fn item_id(prefix: &str, run: RunId, number: u32) -> String {
    format!("{prefix}{run}_{number}")
}

/// The run of an item; `None` of items that name none.
pub(super) fn run_of_item(id: &str) -> Option<RunId> {
    let named = [MESSAGE, REASONING, FUNCTION, CUSTOM, CALL].into_iter().find_map(|prefix| id.strip_prefix(prefix))?;
    RunId::parse(named.split_once('_')?.0).ok()
}

/// The id of a request for an approval.
pub(super) fn approval_id(approval: &str) -> String {
    format!("{APPROVAL}{approval}")
}

/// The approval of such an id.
pub(super) fn approval_of(id: &str) -> Option<ApprovalId> {
    ApprovalId::parse(id.strip_prefix(APPROVAL)?).ok()
}
