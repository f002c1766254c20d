//! What this server keeps for itself, and that none of it is where an agent works.

use std::path::{Path, PathBuf};

use super::{Config, Problem};
use crate::http::auth::Mode;

/// An agent reads and writes what is in its workspace: nothing of this server may be there.
pub(super) fn check(config: &Config, problems: &mut Vec<Problem>) {
    if !config.workspace.is_on() {
        return;
    }
    let root = config.workspace.root.split("/{").next().unwrap_or_default();
    let real = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // The file may not be there yet.
        path.ancestors()
            .find_map(|found| Some(found.canonicalize().ok()?.join(path.strip_prefix(found).ok()?)))
            .unwrap_or(path)
    };
    let root = real(Path::new(root));
    let store = config.store.url.strip_prefix("sqlite:").map(|file| file.trim_start_matches("//"));
    let store = store.map(|file| file.split('?').next().unwrap_or(file)).filter(|file| !file.starts_with(":memory:"));
    let secret = (config.auth.mode == Mode::Dev).then_some(Path::new(&config.auth.dev_secret_file));
    for (key, file) in [("store.url", store.map(Path::new)), ("auth.dev_secret_file", secret)] {
        let file = file.filter(|file| !file.as_os_str().is_empty()).map(real);
        let is_inside =
            |file: &PathBuf| file.starts_with(&root) && !file.starts_with(root.join(&config.workspace.state));
        if file.as_ref().is_some_and(is_inside) {
            let reason =
                "is in the workspace, where an agent could read and change it: put it elsewhere, or start elsewhere";
            problems.push(Problem::new(key, reason));
        }
    }
}
