//! Starting as an editor does: `--workdir ROOT` is `serve` in a project's folder, with what a developer's own machine needs
//! where nothing else is set.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Problem;
use super::fitting::lookup;

/// Where the first free port is looked for.
const BIND: &str = "127.0.0.1:8765+";

/// The local user's name.
const USER: &str = "local";

/// Editors kill a server that has not ended five seconds after they have asked it to.
const DRAIN_S: i64 = 3;

/// What the command line says of such a start.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The project's folder.
    pub workdir: PathBuf,
    /// The editor's name; empty where it does not say.
    pub editor: String,
    /// Whether the log has colours on a terminal.
    pub colors: bool,
}

impl Launch {
    /// What stands below all files and variables. `state` is the name of the state folder: nothing is written to the
    /// folder that the editor starts this server in.
    pub(super) fn defaults(&self, state: &str) -> Table {
        let of_state = |name: &str| self.root().join(state).join(name).display().to_string();
        let text = |text: &str| Value::String(text.to_owned());
        let sections = [
            ("server", [("bind", text(BIND)), ("drain_s", Value::Integer(DRAIN_S))].to_vec()),
            ("store", [("url", text(&format!("sqlite://{}", of_state("switchboard.db"))))].to_vec()),
            ("auth", [("dev_secret_file", text(&of_state("dev-secret")))].to_vec()),
            ("workspace", [("user", text(USER)), ("config", text("edit")), ("commands", text("sandboxed"))].to_vec()),
            ("log", [("colors", Value::Boolean(self.colors))].to_vec()),
        ];
        let tables = sections.into_iter().map(|(section, keys)| {
            let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
            (section.to_owned(), Value::Table(keys.collect()))
        });
        tables.collect()
    }

    /// What stands above them.
    pub(super) fn demands(&self) -> Table {
        let root = Value::String(self.root().display().to_string());
        let workspace = Table::from_iter([("root".to_owned(), root)]);
        Table::from_iter([("workspace".to_owned(), Value::Table(workspace))])
    }

    fn root(&self) -> PathBuf {
        std::path::absolute(&self.workdir).unwrap_or_else(|_| self.workdir.clone())
    }

    /// What is wrong with it.
    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        let is_text = |path: &Path| path.to_str().is_some_and(|path| !path.contains(['{', '?', '#']));
        if !is_text(&self.root()) {
            problems.push(Problem::new("--workdir", "must be UTF-8 without { ? #"));
        }
    }
}

/// The name of the state folder that the file `layer` or else `defaults` have, where no variable has another.
pub(super) fn state(layer: &Table, defaults: &Table, variable: Option<&String>) -> String {
    let keys = ["workspace", "state"];
    let of_table = |table: &Table| lookup(table, &keys).and_then(Value::as_str).map(str::to_owned);
    variable.cloned().or_else(|| of_table(layer)).or_else(|| of_table(defaults)).unwrap_or_default()
}
