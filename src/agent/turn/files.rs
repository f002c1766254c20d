//! The files that a model is sent: the newest that the messages name. Older ones are said to it in a sentence.

use std::collections::HashMap;

use bytes::Bytes;

use super::context::Turns;
use super::messages::Messages;
use crate::agent::ports::files::FileError;
use crate::chat::causes::Causes;
use crate::chat::file::FileRef;
use crate::chat::ids::FileId;
use crate::chat::message::Message;

/// The bytes of files, as far as they are kept.
type Loaded = HashMap<FileId, Option<Bytes>>;

/// So many are sent with each request, and so many bytes of them, 20 MiB: in base64 the smallest limit of a vendor holds them
/// beside a history (Claude: 32 MB a request).
const SENT: usize = 20;
const SENT_BYTES: u64 = 20 << 20;

impl Turns<'_> {
    /// Reads what the messages name, for one request: a run that waits for tools holds none of it.
    ///
    /// # Errors
    /// When they cannot be read now.
    pub(super) async fn load_files(&self, messages: &Messages) -> Result<Loaded, FileError> {
        let mut loaded = Loaded::new();
        for id in newest(messages) {
            loaded.insert(id, self.agent.files.read(&self.cx.caller.owner, id).await?);
        }
        Ok(loaded)
    }
}

/// The newest files that messages name, each once, as far as they may be sent.
fn newest(messages: &Messages) -> Vec<FileId> {
    let (mut wanted, mut left) = (Vec::new(), SENT_BYTES);
    let files = messages.all().iter().rev().flat_map(|message| files(message).rev());
    for file in files {
        if wanted.len() == SENT {
            break;
        }
        if wanted.contains(&file.id) || !file.is_sent() {
            continue;
        }
        if let Some(rest) = left.checked_sub(file.bytes) {
            left = rest;
            wanted.push(file.id);
        }
    }
    wanted
}

fn files(message: &Message) -> Box<dyn DoubleEndedIterator<Item = &FileRef> + Send + '_> {
    match message {
        Message::User(user) => Box::new(user.files.iter()),
        Message::Assistant(_) => Box::new(std::iter::empty()),
        Message::ToolResults(results) => Box::new(results.iter().flat_map(|result| &result.files)),
    }
}

/// Tells the log why files were not read.
pub(super) fn log_unread(error: &FileError) {
    tracing::warn!(error = %Causes(error), "files were not read for a model");
}
