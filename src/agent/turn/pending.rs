//! The calls of a run that wait, and counts of the conversation's.

use crate::chat::approval::Approval;
use crate::chat::ids::ToolCallId;
use crate::chat::tool::ToolCall;

/// Calls that wait, and what the conversation has already of what is counted.
#[derive(Default)]
pub(super) struct Pending {
    /// Calls that wait for a decision.
    pub(super) approvals: Vec<Approval>,
    /// Their ids in the transcript.
    pub(super) held: Vec<ToolCallId>,
    /// Calls that are left to the client.
    pub(super) left: Vec<ToolCall>,
    /// Calls that earlier runs have left waiting; `None` until they are counted.
    pub(super) waiting_before: Option<usize>,
    /// Payloads of the conversation with those of this run; `None` until they are counted.
    pub(super) payloads: Option<usize>,
}
