//! Sentences of a run's answer about what its tools have made, for protocols that have nothing but text for it.

use std::sync::Arc;

use serde_json::Value;

use super::waiting::waits;
use crate::chat::artifact::Artifact;
use crate::chat::ids::FileId;

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Sentences {
    /// Where people reach this server; empty where that is not known.
    public_url: Arc<str>,
    /// Whether the answer has a form, in which no file is told of.
    in_form: bool,
    files: Vec<FileId>,
}

impl Sentences {
    /// Of a run that begins.
    pub(super) fn new(public_url: Arc<str>, in_form: bool) -> Self {
        Self { public_url, in_form, files: Vec::new() }
    }

    /// The sentence about what waits for a person, or about a file, each once; `None` of other artifacts.
    pub(super) fn of(&mut self, artifact: &Artifact) -> Option<String> {
        waits(artifact, &self.public_url).or_else(|| self.of_file(artifact))
    }

    fn of_file(&mut self, artifact: &Artifact) -> Option<String> {
        let id = artifact.file().filter(|id| !self.in_form && !self.files.contains(id))?;
        let text = |name: &str| artifact.payload.get(name).and_then(Value::as_str);
        let path = text("url").filter(|path| path.starts_with('/'))?;
        self.files.push(id);
        // Nothing stands behind the address: where people click on it, a full stop would become a part of it.
        Some(format!("The file {} is at {}{path}", text("name").unwrap_or("of a tool"), self.public_url))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::artifact::FILE;

    #[test]
    fn a_file_is_told_of_once_and_only_where_it_is_kept_here() {
        let id = FileId::fresh();
        let made = |url: &str| {
            let payload = json!({"id": id.to_string(), "name": "a.png", "url": url});
            Artifact { kind: FILE.into(), payload }
        };
        let mut sentences = Sentences::new("https://here".into(), false);
        assert_eq!(sentences.of(&made("https://elsewhere/f")), None, "its address is another's");
        let told = sentences.of(&made("/v1/f"));
        assert_eq!(told.as_deref(), Some("The file a.png is at https://here/v1/f"));
        assert_eq!(sentences.of(&made("/v1/f")), None, "told already");
        assert_eq!(Sentences::new("".into(), true).of(&made("/v1/f")), None, "nothing else stands in a form");
    }
}
