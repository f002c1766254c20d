//! Writes of a run whose outcome is unknown. When one is made again, its backend gets the key of its first try, and can
//! tell that both are the same write.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;

/// The key of a write: its tool and its completed arguments.
pub(super) struct Write(String);

impl Write {
    /// The write of `tool` with `arguments`.
    pub(super) fn from_tool(tool: &str, arguments: &Map<String, Value>) -> Self {
        Self(json!([tool, arguments]).to_string())
    }
}

/// The writes of a run that are not known to have taken effect, each with the call that tried it first.
#[derive(Debug, Default)]
pub(super) struct Tries(HashMap<String, ToolCallId>);

impl Tries {
    /// The call that tried `write` first, where its outcome is unknown.
    pub(super) fn first(&self, write: &Write) -> Option<ToolCallId> {
        self.0.get(&write.0).cloned()
    }

    /// Notes what came of a try.
    pub(super) fn note(&mut self, write: Write, call: &ToolCallId, fate: CallFate) {
        match fate {
            CallFate::Unknown => {
                self.0.entry(write.0).or_insert_with(|| call.clone());
            }
            // The next one that is equal is meant to be a second one.
            CallFate::Done => {
                self.0.remove(&write.0);
            }
            // The first try is as unknown as before.
            CallFate::Failed | CallFate::NotRun | CallFate::AwaitsApproval | CallFate::AwaitsClient => {}
        }
    }
}
