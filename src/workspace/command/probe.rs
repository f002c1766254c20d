//! Finding out what holds commands in on this machine, by running a harmless one.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::request::CommandRequest;
use super::spawner::Spawner;
use super::tree::Dying;
use super::{CommandSettings, Commands, Kind, Shared, Wanted};

/// What the trial command says.
const SAID: &str = "ready";

/// Tries what `wanted` names, in that order, with a command that only says a word. `root` is where commands work,
/// `state` the absolute path of the state folder, which has to be there. What comes back runs commands, or refuses
/// each with the reason: see [`Commands::kind`].
pub async fn probe(wanted: Wanted, root: &Path, state: &Path, settings: CommandSettings) -> Commands {
    let (bubblewrap, none) = (Kind::Bubblewrap, Kind::None);
    let (full, bare) = (Kind::Landlock { namespaces: true }, Kind::Landlock { namespaces: false });
    let kinds = match wanted {
        Wanted::Bubblewrap => vec![bubblewrap],
        Wanted::Landlock => vec![full, bare],
        Wanted::Auto => vec![bubblewrap, full, bare],
        Wanted::None => vec![none],
    };
    first_of(kinds, root, state, settings).await
}

/// Tries just this kind, such as for a report of what a machine can do.
pub async fn only(kind: Kind, root: &Path, state: &Path, settings: CommandSettings) -> Commands {
    first_of(vec![kind], root, state, settings).await
}

/// The first of some kinds that works here.
async fn first_of(kinds: Vec<Kind>, root: &Path, state: &Path, settings: CommandSettings) -> Commands {
    let mut why = Vec::new();
    let is_inside = |program: &Path| Some(program.canonicalize().ok()?.starts_with(root.canonicalize().ok()?));
    if kinds != [Kind::None] && is_inside(&settings.program) == Some(true) {
        // A command could write it, and it runs outside of any sandbox.
        return refusing("the server's own program is in the workspace", root, state, settings);
    }
    for kind in kinds {
        let name = kind.words();
        let name = name.split(':').next().unwrap_or_default();
        match open(kind, root, state, &settings) {
            Ok(commands) => match attempt(&commands).await {
                Ok(()) => return commands,
                Err(words) => why.push(format!("{name}: {words}")),
            },
            Err(error) => why.push(format!("{name}: {error}")),
        }
    }
    refusing(&why.join("; "), root, state, settings)
}

/// Commands of a kind, not yet tried.
fn open(kind: Kind, root: &Path, state: &Path, settings: &CommandSettings) -> io::Result<Commands> {
    let (root, state) = (root.canonicalize()?, state.canonicalize()?);
    let shared = Shared {
        kind,
        root,
        state,
        settings: settings.clone(),
        spawner: Some(Spawner::start()?),
        dying: Arc::new(Dying::new()),
    };
    Ok(Commands { shared: Arc::new(shared) })
}

/// Commands that are all refused.
fn refusing(why: &str, root: &Path, state: &Path, settings: CommandSettings) -> Commands {
    let shared = Shared {
        kind: Kind::Unavailable { why: why.to_owned() },
        root: root.to_owned(),
        state: state.to_owned(),
        settings,
        spawner: None,
        dying: Arc::new(Dying::new()),
    };
    Commands { shared: Arc::new(shared) }
}

/// Whether the trial command does what it should; else what went wrong.
async fn attempt(commands: &Commands) -> Result<(), String> {
    let trial = CommandRequest { timeout: Duration::from_secs(10), ..CommandRequest::new(format!("echo {SAID}")) };
    let result = commands.run(trial, None).await.map_err(|error| error.to_string())?;
    if result.exit_code == 0 && result.stdout.trim() == SAID {
        Ok(())
    } else {
        Err(format!("a trial ended with {}: {}", result.exit_code, result.stderr.trim()))
    }
}
