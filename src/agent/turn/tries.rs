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
/// helpers share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tries(Arc<Mutex<HashMap<String, ToolCallId>>>);

/// A write that is under way. Where it is dropped before it has ended, its outcome is unknown.
pub(super) struct Try {
    tries: Tries,
    write: Write,
    call: ToolCallId,
    /// The call that tried it first, where that was an earlier one. An equal one that is under way is none: two steps of a plan
    /// may mean two writes.
    pub(super) first: Option<ToolCallId>,
    fate: CallFate,
}

impl Tries {
    /// `call` is about to try `write`, and stands for the earlier try that is unknown.
    pub(super) fn begin(&self, write: Write, call: &ToolCallId) -> Try {
        let first = self.lock().remove(&write.0);
        Try { tries: self.clone(), write, call: call.clone(), first, fate: CallFate::Unknown }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ToolCallId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Try {
    /// Notes what came of it.
    pub(super) fn end(mut self, fate: CallFate) {
        self.fate = fate;
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let unknown = match self.fate {
            CallFate::Unknown => self.first.as_ref().or(Some(&self.call)),
            // The next one that is equal is meant to be a second one.
            CallFate::Done => None,
            // An earlier try is as unknown as before.
            CallFate::Failed | CallFate::NotRun | CallFate::AwaitsApproval | CallFate::AwaitsClient => {
                self.first.as_ref()
            }
        };
        if let Some(call) = unknown {
            self.tries.lock().insert(std::mem::take(&mut self.write.0), call.clone());
        }
    }
}
