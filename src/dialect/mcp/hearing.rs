//! A run as a call hears of it: its last words, what waits for a person, and how it ended.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::results::ContentBody;
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallFate;
use crate::chat::ids::FileId;
use crate::chat::run::RunState;
use crate::dialect::{failures, waiting};

/// The longest text that tells how far a call has come, in characters.
const STEP_CHARS: usize = 200;

/// What a run has said so far.
#[derive(Default)]
pub(super) struct Hearing {
    /// What its last turn said.
    pub(super) text: String,
    /// Sentences about what waits for a person.
    pub(super) notes: Vec<String>,
    /// Calls that wait for a person.
    pub(super) held: Vec<Held>,
    /// The result of its last call, and whether that is an error.
    pub(super) result: Option<(Arc<str>, bool)>,
    /// Files that its calls have made.
    pub(super) files: Vec<MadeFile>,
    /// Whether a call was turned down.
    pub(super) is_turned_down: bool,
}

/// A call that waits for a person.
pub(super) struct Held {
    pub(super) approval: String,
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) digest: String,
    /// Whether a user with some role has to let it through.
    pub(super) needs_role: bool,
}

/// A file that a call has made, and that is kept.
#[derive(Debug, Clone)]
pub struct MadeFile {
    id: FileId,
    path: String,
    name: String,
    media_type: Option<String>,
    bytes: Option<u64>,
}

/// What an event comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing to tell.
    Nothing,
    /// It has come further.
    Step(String),
    /// The run has ended so; in these words, where it has failed.
    End(RunState, Option<String>),
}

impl Hearing {
    /// Of a run behind others, which have made these files.
    pub(super) fn behind(files: Vec<MadeFile>) -> Self {
        let mut hearing = Self::default();
        files.into_iter().for_each(|file| hearing.keep(file));
        hearing
    }

    pub(super) fn hear(&mut self, event: &AgentEvent, public_url: &str) -> Heard {
        match event {
            AgentEvent::TurnStarted { turn } => {
                self.text.clear();
                return Heard::Step(format!("Turn {}", u64::from(*turn) + 1));
            }
            AgentEvent::TextDelta { text } => self.text.push_str(text),
            // Its turn may not be the last, whose text is the answer.
            AgentEvent::Notice(notice) => self.notes.push(notice.message.clone()),
            AgentEvent::ToolCallReady { name, .. } => return Heard::Step(step(&format!("Calls {name}"))),
            AgentEvent::ToolProgress { progress, .. } => return Heard::Step(step(&progress.message)),
            AgentEvent::Within(within) => {
                if let AgentEvent::Artifact(artifact) = &within.event {
                    self.hear_file(artifact);
                }
                if let AgentEvent::ToolCallReady { name, .. } = &within.event {
                    return Heard::Step(step(&format!("Calls {name}")));
                }
            }
            AgentEvent::CallDecided { runs_as, .. } => self.is_turned_down |= runs_as.is_none(),
            AgentEvent::ToolCallFinished { result, fate, .. } => {
                if *fate != CallFate::AwaitsApproval {
                    self.result = Some((result.clone(), fate.is_error()));
                }
            }
            AgentEvent::Artifact(artifact) => {
                self.hear_file(artifact);
                self.notes.extend(waiting::waits(artifact, public_url));
                if *artifact.kind == *APPROVAL_REQUEST {
                    self.held.extend(Held::read(&artifact.payload));
                }
            }
            AgentEvent::Finished { .. } | AgentEvent::AwaitingClient { .. } => {
                return Heard::End(RunState::Completed, None);
            }
            AgentEvent::AwaitingApproval { .. } => return Heard::End(RunState::AwaitingApproval, None),
            AgentEvent::Failed(failure) => {
                return Heard::End(RunState::Failed, Some(failures::friendly(failure).into_owned()));
            }
            AgentEvent::Cancelled => {
                return Heard::End(RunState::Cancelled, Some("The run was cancelled".to_owned()));
            }
            AgentEvent::Interrupted => {
                return Heard::End(RunState::Interrupted, Some(failures::interrupted().message));
            }
            AgentEvent::PlaceChanged { .. }
            | AgentEvent::State(_)
            | AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::ThinkingDelta { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::Directive(_)
            | AgentEvent::Operation(_)
            | AgentEvent::Payload(_)
            | AgentEvent::Plan(_)
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
        }
        Heard::Nothing
    }
}

impl Hearing {
    fn hear_file(&mut self, artifact: &Artifact) {
        if let Some(file) = MadeFile::read(artifact) {
            self.keep(file);
        }
    }

    /// Each file once, however often it was made.
    fn keep(&mut self, file: MadeFile) {
        if self.files.iter().all(|other| other.id != file.id) {
            self.files.push(file);
        }
    }
}

impl MadeFile {
    /// The file that an artifact is, if it is one.
    pub fn read(artifact: &Artifact) -> Option<Self> {
        let id = artifact.file()?;
        let text = |name: &str| artifact.payload.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            id,
            path: text("url").filter(|path| path.starts_with('/'))?,
            name: text("name").unwrap_or_else(|| "file".to_owned()),
            media_type: text("media_type"),
            bytes: artifact.payload.get("bytes").and_then(Value::as_u64),
        })
    }

    /// Where clients of the server at `base` find it; in words for those that know no `links`.
    pub(super) fn link(&self, base: &str, links: bool) -> ContentBody<'_> {
        let Self { path, name, media_type, bytes, .. } = self;
        let uri = format!("{}{path}", base.trim_end_matches('/'));
        if !links {
            return ContentBody::text(format!("{name}: {uri}"));
        }
        ContentBody::ResourceLink { uri, name, mime_type: media_type.as_deref(), size: *bytes }
    }
}

impl Held {
    fn read(payload: &Value) -> Option<Self> {
        let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
        let arguments = payload.get("arguments").and_then(Value::as_object);
        Some(Self {
            approval: text("approval_id")?,
            tool: text("tool")?,
            arguments: arguments.cloned().unwrap_or_default(),
            digest: text("digest")?,
            needs_role: payload.get("role").is_some(),
        })
    }
}

/// A step, short and on one line: others may have written it.
fn step(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(STEP_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::artifact::FILE;

    #[test]
    fn files_are_links_and_each_is_told_once() {
        let id = FileId::fresh();
        let payload =
            json!({"id": id.to_string(), "name": "a.png", "media_type": "image/png", "bytes": 5, "url": "/v1/f"});
        let made = AgentEvent::Artifact(Box::new(Artifact { kind: FILE.into(), payload }));
        let elsewhere = json!({"id": id.to_string(), "url": "https://elsewhere"});
        let foreign = AgentEvent::Artifact(Box::new(Artifact { kind: FILE.into(), payload: elsewhere }));
        let mut hearing = Hearing::default();
        for event in [&foreign, &made, &made] {
            assert_eq!(hearing.hear(event, ""), Heard::Nothing);
        }
        let links: Vec<_> = hearing.files.iter().map(|file| json!(file.link("https://s/", true))).collect();
        let expected = json!({"type": "resource_link", "uri": "https://s/v1/f", "name": "a.png", "mimeType": "image/png", "size": 5});
        assert_eq!(links, [expected]);
        let words = json!({"type": "text", "text": "a.png: https://s/v1/f"});
        assert_eq!(json!(hearing.files[0].link("https://s/", false)), words, "where links are not known");
    }
}
