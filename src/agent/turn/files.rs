//! The files that a model is sent: the newest that the messages name. Older ones are said to it in a sentence.

use std::collections::HashMap;

use super::context::{Role, Turns};
use super::messages::Messages;
use super::state::Transcript;
use crate::agent::ports::files::FileError;
use crate::agent::ports::llm::{Loaded, SentFiles};
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::file::{FILES_SENT, FileKind, FileRef};
use crate::chat::ids::FileId;
use crate::chat::message::Message;
use crate::chat::notice::Notice;

/// So many bytes of them are sent with each request, 20 MiB: in base64 the smallest limit of a vendor holds them beside a history
/// (Claude: 32 MB a request).
const SENT_BYTES: u64 = 20 << 20;

/// Why a file that was read is not shown to the model.
const NOT_KEPT: &str = "it is not kept any more";
const REFUSED: &str = "the model service refused it, or another file";

impl Turns<'_> {
    /// Reads what the messages name, for one request: a run that waits for tools holds none of it.
    ///
    /// # Errors
    /// When they cannot be read now.
    pub(super) async fn load_files(&self, messages: &Messages) -> Result<HashMap<FileId, Loaded>, FileError> {
        let mut loaded = HashMap::new();
        let (mut images, mut pdfs) = (0, 0);
        for (file, mentioned) in newest(messages) {
            let bytes = self.agent.files.read(&self.cx.caller.owner, file.id).await?;
            let rank = match file.kind {
                FileKind::Pdf => &mut pdfs,
                kind if kind.is_image() => &mut images,
                _ => &mut 0,
            };
            // What is not kept any more takes no place.
            if bytes.is_some() {
                *rank += mentioned;
            }
            loaded.insert(file.id, Loaded { bytes: bytes.ok_or(NOT_KEPT), rank: *rank });
        }
        Ok(loaded)
    }

    /// Tells the user which files of this run the model that answers is not shown: each once in a run, whichever model it is.
    /// With `is_free` it may stand in the answer's text.
    pub(super) fn tell_not_shown(&self, transcript: &mut Transcript, sent: SentFiles<'_>, is_free: bool) {
        let Role::Answers = self.role else { return };
        let (mut left_out, mut ids): (Vec<(&str, Vec<&str>)>, Vec<FileId>) = (Vec::new(), Vec::new());
        for file in transcript.messages.own().iter().flat_map(Message::files) {
            let Some(why) = sent.left_out(file) else { continue };
            if transcript.not_shown.contains(&file.id) || ids.contains(&file.id) {
                continue;
            }
            ids.push(file.id);
            match left_out.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, names)) => names.push(file.name.as_str()),
                None => left_out.push((why, vec![file.name.as_str()])),
            }
        }
        if ids.is_empty() {
            return;
        }
        let which = left_out.iter().map(|(why, names)| format!("{} ({why})", names.join(", ")));
        let message = format!("Not shown to the model: {}", which.collect::<Vec<_>>().join("; "));
        let said = if is_free { format!("[{message}]\n\n") } else { String::new() };
        transcript.not_shown.extend(&ids);
        let notice = Notice { files: ids, message, said };
        transcript.speech.not_shown(notice.clone());
        self.emit(AgentEvent::Notice(Box::new(notice)));
    }
}

/// The newest files that messages name, as far as they may be sent: each once, with how often it is named. Each mention carries its
/// bytes.
fn newest(messages: &Messages) -> Vec<(&FileRef, usize)> {
    let (mut wanted, mut left): (Vec<(&FileRef, usize)>, u64) = (Vec::new(), SENT_BYTES);
    let mut mentions: HashMap<FileId, usize> = HashMap::new();
    messages
        .all()
        .iter()
        .flat_map(|message| message.files())
        .for_each(|file| *mentions.entry(file.id).or_default() += 1);
    let files = messages.all().iter().rev().flat_map(|message| message.files().rev());
    for file in files {
        if wanted.len() == FILES_SENT {
            break;
        }
        if wanted.iter().any(|(other, _)| other.id == file.id) || !file.is_sent() {
            continue;
        }
        let mentioned = mentions.get(&file.id).copied().unwrap_or(1);
        let Some(rest) = left.checked_sub(file.bytes.saturating_mul(mentioned as u64)) else { continue };
        left = rest;
        wanted.push((file, mentioned));
    }
    wanted
}

/// Takes back files of a request that was refused, those of earlier runs first and then all; whether there were any. A vendor does
/// not say which of them it was: a document with a password, or of too many pages, a picture that breaks off.
pub(super) fn take_back(files: &mut HashMap<FileId, Loaded>, transcript: &mut Transcript) -> bool {
    let of_run: Vec<FileId> = transcript.messages.own().iter().flat_map(Message::files).map(|file| file.id).collect();
    let sent: Vec<FileId> = files.iter().filter(|(_, file)| file.bytes.is_ok()).map(|(id, _)| *id).collect();
    let earlier: Vec<FileId> = sent.iter().copied().filter(|id| !of_run.contains(id)).collect();
    let refused = if earlier.is_empty() { sent } else { earlier };
    transcript.refused_files.extend(&refused);
    leave_out(files, &refused);
    !refused.is_empty()
}

/// Leaves out the files that were refused.
pub(super) fn leave_out(files: &mut HashMap<FileId, Loaded>, refused: &[FileId]) {
    for id in refused {
        if let Some(file) = files.get_mut(id) {
            file.bytes = Err(REFUSED);
        }
    }
}

/// Tells the log why files were not read.
pub(super) fn log_unread(error: &FileError) {
    tracing::warn!(error = %Causes(error), "files were not read for a model");
}
