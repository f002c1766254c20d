//! The files of `config/`, built into the binary; a folder given at start replaces them one by one.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "config/"]
struct BuiltIn;

/// Reads configuration files by their path below `config/`, with forward slashes.
#[derive(Debug, Clone)]
pub struct Assets {
    dir: Option<PathBuf>,
}

impl Assets {
    /// The files of `dir` over the built-in ones.
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir }
    }

    /// The text of the file at `path`; `None` when there is none or it cannot be read. The built-in file never stands in
    /// for one of the folder that cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let Some(dir) = &self.dir else { return built_in(path) };
        match std::fs::read_to_string(dir.join(path)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => built_in(path),
            Err(_) => None,
        }
    }

    /// The paths of the files directly in `folder` that end in `suffix`, sorted.
    pub fn list(&self, folder: &str, suffix: &str) -> Vec<String> {
        let prefix = format!("{folder}/");
        let mut paths: BTreeSet<String> = BuiltIn::iter().map(|path| path.to_string()).collect();
        paths.retain(|path| path.strip_prefix(&prefix).is_some_and(|name| !name.contains('/')));
        let entries = self.dir.as_ref().and_then(|dir| std::fs::read_dir(dir.join(folder)).ok());
        for entry in entries.into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str() {
                paths.insert(format!("{prefix}{name}"));
            }
        }
        paths.into_iter().filter(|path| path.ends_with(suffix)).collect()
    }
}

/// The text of a built-in file.
pub(super) fn built_in(path: &str) -> Option<String> {
    let file = BuiltIn::get(path)?;
    String::from_utf8(file.data.into_owned()).ok()
}
