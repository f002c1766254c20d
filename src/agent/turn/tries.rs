//! Writes of a run whose outcome is unknown. When one is made again, its backend gets the key of its first try, and can
//! tell that both are the same write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The writes of a run that are not known to have taken effect, each with the call that tried it first. A run and its
/// helpers share them. One that is under way is among them: whoever makes it may be dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Tries(Arc<Mutex<HashMap<String, ToolCallId>>>);

/// A write that is under way.
pub(super) struct Try {
    write: Write,
    /// The call that tried it first, where that was an earlier one.
    pub(super) first: Option<ToolCallId>,
}

impl Tries {
    /// Notes that `call` is about to try `write`.
    pub(super) fn begin(&self, write: Write, call: &ToolCallId) -> Try {
        let mut tried = self.lock();
        let first = tried.get(&write.0).cloned();
        if first.is_none() {
            tried.insert(write.0.clone(), call.clone());
        }
        Try { write, first }
    }

    /// Notes what came of it.
    pub(super) fn end(&self, Try { write, first }: Try, fate: CallFate) {
        match fate {
            CallFate::Unknown => {}
            // The next one that is equal is meant to be a second one.
            CallFate::Done => {
                self.lock().remove(&write.0);
            }
            // An earlier try is as unknown as before.
            CallFate::Failed | CallFate::NotRun | CallFate::AwaitsApproval | CallFate::AwaitsClient => {
                if first.is_none() {
                    self.lock().remove(&write.0);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ToolCallId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
