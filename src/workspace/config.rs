//! `[workspace]`: the folder that an agent works on, and what it may do there.

#[cfg(feature = "workspace")]
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;

#[cfg(feature = "workspace")]
use super::template::RootTemplate;

/// `[workspace]`; by default there is no workspace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// An existing folder, absolute, and not `/`; with `{tenant}` or `{user}` below it each of them has a folder of their
    /// own. Empty: there is no workspace.
    pub root: String,
    /// The name of the folder inside it that keeps its state.
    pub state: String,
    /// The file that tells whether this server runs, and at which port; where it is relative, it is in the folder of the
    /// state. Only where all share one workspace.
    pub status_file: PathBuf,
    /// The name of the local user, who needs no token; empty: there is none.
    pub user: String,
    /// The role that its tools need; empty: none.
    pub role: String,
    /// The `context_type` of the profile that answers editors.
    pub profile: String,
    /// What editors may change of the models.
    pub config: ModelEditing,
    /// Whether commands run.
    pub commands: Commands,
    /// What they run in.
    pub sandbox: Sandbox,
    /// Whether they may use the network.
    pub network: bool,
    /// Bytes that one workspace may hold, with its state; 0: no limit.
    pub quota_bytes: u64,
    /// Folders outside of it that they may read besides those of the system.
    pub readable: Vec<PathBuf>,
    /// The program that starts commands in their sandbox. Empty: this one.
    pub program: PathBuf,
}

/// Whether an agent's commands run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Commands {
    /// No.
    Off,
    /// Each when its user has let it through.
    #[default]
    Ask,
    /// Yes where a sandbox works, else as with `ask`.
    Sandboxed,
    /// Yes.
    Auto,
}

/// What editors may change of the models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelEditing {
    /// Each user the choice of their own model.
    #[default]
    Read,
    /// Providers, their keys and addresses too, for all.
    Edit,
}

/// What keeps commands inside the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// The first of those below that works here.
    #[default]
    Auto,
    /// The program `bwrap`, in the server's `PATH`.
    Bubblewrap,
    /// The kernel's own, through this program.
    Landlock,
    /// Nothing, as the operator's choice.
    None,
}

impl WorkspaceConfig {
    /// Whether there is a workspace.
    pub fn is_on(&self) -> bool {
        !self.root.is_empty()
    }

    /// What is wrong with it: key and reason.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: &str| mistakes.push((key.to_owned(), reason.to_owned()));
        if !self.is_on() {
            return mistakes;
        }
        if !cfg!(feature = "workspace") {
            wrong("root", "needs the feature workspace, without which this server is built");
        }
        #[cfg(feature = "workspace")]
        match RootTemplate::parse(&self.root) {
            Err(error) => wrong("root", &error.to_string()),
            Ok(template) if !Path::new(template.base()).is_dir() => wrong("root", "is no folder that exists"),
            Ok(template) if self.config == ModelEditing::Edit && !template.is_shared() => {
                wrong("config", "\"edit\" is for all, and needs a root without {tenant} and {user}");
            }
            Ok(_) => {}
        }
        if !self.readable.iter().all(|folder| folder.is_absolute()) {
            wrong("readable", "must be absolute paths of folders");
        }
        let is_name = !matches!(self.state.as_str(), "" | "." | ".." | ".git") && !self.state.contains(['/', '\0']);
        if !is_name {
            wrong("state", "must be the name of a folder");
        }
        if self.user.len() > 256 || self.user.chars().any(char::is_control) {
            wrong("user", "must be at most 256 bytes without control characters");
        }
        mistakes
    }
}

#[cfg(all(test, feature = "workspace"))]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once() {
        let config = |root: &str, state: &str| WorkspaceConfig {
            root: root.to_owned(),
            state: state.to_owned(),
            ..WorkspaceConfig::default()
        };
        let keys = |config: WorkspaceConfig| config.mistakes().into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        for (root, state, expected) in [
            ("", "/", &[] as &[&str]),
            (folder, ".agentsmithy", &[]),
            (&format!("{folder}/{{tenant}}/{{user}}"), ".state", &[]),
            ("/", ".state", &["root"]),
            ("relative", "a/b", &["root", "state"]),
            ("/no/such/folder", "..", &["root", "state"]),
            (&format!("{folder}/{{role}}"), "", &["root", "state"]),
        ] {
            assert_eq!(keys(config(root, state)), expected, "{root} {state}");
        }
        for (root, expected) in [(folder, &[] as &[&str]), (&format!("{folder}/{{user}}"), &["config"])] {
            let edit = WorkspaceConfig { config: ModelEditing::Edit, ..config(root, ".state") };
            assert_eq!(keys(edit), expected, "{root}");
        }
    }
}
