//! A workspace of its own for each test, and the sandboxes that this machine has.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard::workspace::command::probe::only;
use switchboard::workspace::command::request::{CommandRequest, CommandResult};
use switchboard::workspace::command::{CommandSettings, Commands, Kind};
use tempfile::TempDir;

use crate::support::environment::skip_here;

/// A folder with a workspace, what lies beside it, and commands that run in it.
pub struct Place {
    pub base: TempDir,
    pub root: PathBuf,
    pub commands: Commands,
}

pub fn settings() -> CommandSettings {
    CommandSettings { temporary: 8 << 20, ..CommandSettings::new(PathBuf::from(env!("CARGO_BIN_EXE_switchboard"))) }
}

/// The files of a workspace: `ws` with `.git` and `.state`, beside it `outside` and `sibling`.
fn files(base: &Path) -> (PathBuf, PathBuf) {
    let root = base.join("ws");
    for folder in
        ["ws/.git/hooks", "ws/.git/objects", "ws/.git/refs", "ws/.state", "ws/sub/deep", "outside", "ws-sibling"]
    {
        fs::create_dir_all(base.join(folder)).unwrap();
    }
    for (file, text) in [
        ("ws/.git/config", "[core]\n"),
        ("ws/.git/HEAD", "ref: refs/heads/main\n"),
        ("ws/.git/hooks/pre-commit", "old"),
        ("ws/.state/secret", "sesame"),
        ("ws/file", "mine"),
        ("outside/secret", "sesame"),
        ("ws-sibling/secret", "sesame"),
    ] {
        fs::write(base.join(file), text).unwrap();
    }
    (root, base.join("ws/.state"))
}

/// The sandboxes.
pub const WALLS: [Kind; 3] =
    [Kind::Bubblewrap, Kind::Landlock { namespaces: true }, Kind::Landlock { namespaces: false }];

pub async fn place_with(kind: Kind, settings: CommandSettings) -> Place {
    let base = tempfile::tempdir().unwrap();
    let (root, state) = files(&base.path().canonicalize().unwrap());
    let commands = only(kind, &root, &state, settings).await;
    Place { base, root, commands }
}

/// Does `test` in each sandbox that works here.
pub fn each<F: Future<Output = ()>>(settings: &CommandSettings, test: impl Fn(Place) -> F) {
    for kind in WALLS {
        one(kind, settings, &test);
    }
}

/// Does `test` in each sandbox, and without one.
pub fn all<F: Future<Output = ()>>(settings: &CommandSettings, test: impl Fn(Place) -> F) {
    each(settings, &test);
    one(Kind::None, settings, &test);
}

/// Does `test` in one of them.
pub fn one<F: Future<Output = ()>>(kind: Kind, settings: &CommandSettings, test: impl Fn(Place) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let place = place_with(kind.clone(), settings.clone()).await;
        if let Kind::Unavailable { why } = place.commands.kind() {
            skip_here(&format!("{kind:?}: {why}"));
            return;
        }
        test(place).await;
    });
}

impl Place {
    pub async fn run(&self, command: &str) -> CommandResult {
        self.ask(CommandRequest { timeout: Duration::from_secs(20), ..CommandRequest::new(command) }).await
    }

    pub async fn ask(&self, request: CommandRequest) -> CommandResult {
        self.commands.run(request, None).await.unwrap()
    }
}

/// How many processes of the machine have `mark` among their arguments.
pub fn alive(mark: &str) -> usize {
    let mut count = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if let Ok(line) = fs::read(entry.path().join("cmdline"))
            && String::from_utf8_lossy(&line).contains(mark)
            && fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
        {
            count += 1;
        }
    }
    count
}

/// A number that no other test sleeps for.
pub fn mark(number: u32) -> String {
    format!("{}.{number:03}", 100_000 + std::process::id())
}
