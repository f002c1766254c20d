//! The files of `config/`, built into the binary; a folder given at start replaces them one by one.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "config/"]
#[cfg_attr(not(feature = "demo"), exclude = "demo/*", exclude = "samples/*")]
#[cfg_attr(not(feature = "dialog"), exclude = "tools/dialog.json")]
#[cfg_attr(
    not(feature = "tables"),
    exclude = "prompts/tables/*",
    exclude = "profiles/tables.toml",
    exclude = "tools/tables.json"
)]
#[cfg_attr(not(feature = "web"), exclude = "tools/web.json")]
#[cfg_attr(not(feature = "workspace"), exclude = "coding/*", exclude = "tools/workspace.json")]
#[cfg_attr(
    not(feature = "workflow"),
    exclude = "prompts/workflow/*",
    exclude = "profiles/workflow.toml",
    exclude = "tools/workflow.json"
)]
struct BuiltIn;

/// Reads configuration files by their path below `config/`, with forward slashes.
#[derive(Debug, Clone)]
pub struct Assets {
    dir: Option<PathBuf>,
    /// Folders of more files, in folders like those beside them; each ends with a slash.
    more: Vec<&'static str>,
}

/// The files of the demo's sample screens.
const SAMPLES: &str = "samples/";

/// The profile of an agent that works on files.
const CODING: &str = "coding/";

/// The profile where there is no other one, since no family of tools is built in.
const PLAIN: &str = "plain/";

impl Assets {
    /// The files of `dir` over the built-in ones.
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, more: Vec::new() }
    }

    /// The same files and those of the sample screens, unless the folder has profiles of its own: then it has its own
    /// screens too.
    pub fn with_samples(&self) -> Self {
        let built_in: BTreeSet<String> = built_in_in("profiles").collect();
        let is_own = self.list("profiles", ".toml").iter().any(|path| !built_in.contains(path));
        if is_own { self.clone() } else { self.with(SAMPLES) }
    }

    /// The same files and those of the agent that works on files, but for what the folder has by their names.
    pub fn with_coding(&self) -> Self {
        self.with(CODING)
    }

    fn with(&self, folder: &'static str) -> Self {
        let mut assets = self.clone();
        assets.more.push(folder);
        assets
    }

    /// The same files, and a profile without tools where there is none at all.
    pub fn with_some_profile(&self) -> Self {
        match self.list("profiles", ".toml").is_empty() {
            true => self.with(PLAIN),
            false => self.clone(),
        }
    }

    /// The text of the file at `path`; `None` when there is none or it cannot be read. The built-in file never stands in
    /// for one of the folder that cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let folders = std::iter::once("").chain(self.more.iter().copied());
        folders.map(|folder| format!("{folder}{path}")).find_map(|path| self.found(&path)).flatten()
    }

    /// The text of that very file; `None` when there is none, and `Some(None)` when it cannot be read.
    fn found(&self, path: &str) -> Option<Option<String>> {
        match self.dir.as_ref().map(|dir| std::fs::read_to_string(dir.join(path))) {
            Some(Ok(text)) => Some(Some(text)),
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Some(None),
            Some(Err(_)) | None => built_in(path).map(Some),
        }
    }

    /// The paths of the files directly in `folder` that end in `suffix`, sorted; then those of the folders of more, but
    /// for what has the name of one before.
    pub fn list(&self, folder: &str, suffix: &str) -> Vec<String> {
        let mut names = BTreeSet::new();
        let mut paths = Vec::new();
        for more in std::iter::once("").chain(self.more.iter().copied()) {
            let found = self.in_folder(&format!("{more}{folder}")).into_iter().filter(|path| path.ends_with(suffix));
            paths.extend(found.filter(|path| names.insert(path.strip_prefix(more).unwrap_or(path).to_owned())));
        }
        paths
    }

    fn in_folder(&self, folder: &str) -> BTreeSet<String> {
        let mut paths: BTreeSet<String> = built_in_in(folder).collect();
        let entries = self.dir.as_ref().and_then(|dir| std::fs::read_dir(dir.join(folder)).ok());
        for entry in entries.into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str() {
                paths.insert(format!("{folder}/{name}"));
            }
        }
        paths
    }
}

/// The paths of the built-in files directly in `folder`.
fn built_in_in(folder: &str) -> impl Iterator<Item = String> {
    let prefix = format!("{folder}/");
    let is_in = move |path: &String| path.strip_prefix(&prefix).is_some_and(|name| !name.contains('/'));
    BuiltIn::iter().map(|path| path.to_string()).filter(is_in)
}

/// The text of a built-in file.
pub(super) fn built_in(path: &str) -> Option<String> {
    let file = BuiltIn::get(path)?;
    String::from_utf8(file.data.into_owned()).ok()
}
