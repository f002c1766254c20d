//! One command from its request to its result.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::output::{Head, read};
use super::place::place;
use super::request::{CommandError, CommandRequest, CommandResult, Line, Stream};
use super::spec::{Ground, Limits, Spec};
use super::tree::Tree;
use super::{Commands, Kind, Shared, bubblewrap, exec, git, layout};

/// How long a sandbox may take to stand.
const START: Duration = Duration::from_secs(20);

/// How long the pipes may stay open after everything has ended; longer only if something escaped.
const DRAIN: Duration = Duration::from_secs(2);

/// The exit code of a command that was killed: 128 and the signal's number.
const KILLED: i32 = 137;

/// The exit code of a command whose time was over, as `timeout(1)` has it.
const TIMED_OUT: i32 = 124;

impl Commands {
    /// Runs a command to its end or its timeout. When this returns, and soon after its future was dropped, nothing that
    /// the command started is alive. Lines go to `lines` as they come; a slow reader loses some.
    ///
    /// # Errors
    /// When nothing ran: see [`CommandError`].
    pub async fn run(
        &self,
        request: CommandRequest,
        lines: Option<Sender<Line>>,
    ) -> Result<CommandResult, CommandError> {
        let shared = &*self.shared;
        request.check()?;
        let Some(ground) = shared.ground() else {
            let why = match &shared.kind {
                Kind::Unavailable { why } => why.clone(),
                other => other.words(),
            };
            return Err(CommandError::SandboxUnavailable { why });
        };
        let cwd = place(&shared.root, &shared.state, request.cwd.as_deref())?;
        shared.in_sandbox(ground, &request, &cwd, lines).await
    }
}

impl Shared {
    /// Runs a request that is fit to run.
    async fn in_sandbox(
        &self,
        ground: Ground,
        request: &CommandRequest,
        cwd: &Path,
        lines: Option<Sender<Line>>,
    ) -> Result<CommandResult, CommandError> {
        let spec = self.spec(ground, request, cwd);
        let (tree, stdout, stderr) = Tree::start(self, self.starter(&spec)?)
            .map_err(|error| CommandError::Spawn { why: format!("no process could be started: {error}") })?;
        let limit = request.max_output_bytes.min(self.settings.max_output);
        let (mut out, mut err) = (Head::new(limit), Head::new(limit));
        let outcome = {
            let mut living = pin!(live(tree, spec.to_bytes(), request.clamped()));
            let mut reading = pin!(async {
                tokio::join!(
                    read(stdout, &mut out, Stream::Stdout, lines.clone()),
                    read(stderr, &mut err, Stream::Stderr, lines)
                )
            });
            let mut open = true;
            let outcome = loop {
                tokio::select! {
                    outcome = &mut living => break outcome,
                    _ = &mut reading, if open => open = false,
                }
            };
            if open {
                // What is in the pipes still.
                let _ = timeout(DRAIN, reading).await;
            }
            outcome
        };
        let ((stdout, out_lost), (stderr, err_lost)) = (out.into_text(), err.into_text());
        let (exit_code, duration) = outcome.map_err(|words| {
            // Before the command runs, only the sandbox itself can have written.
            let words = if words.is_empty() { stderr.trim() } else { words.as_str() };
            CommandError::Spawn { why: words.to_owned() }
        })?;
        Ok(CommandResult {
            command: request.command.clone(),
            cwd: cwd.to_string_lossy().into_owned(),
            exit_code: exit_code.unwrap_or(TIMED_OUT),
            stdout,
            stderr,
            stdout_truncated: out_lost > 0,
            stderr_truncated: err_lost > 0,
            stdout_truncated_bytes: out_lost,
            stderr_truncated_bytes: err_lost,
            timed_out: exit_code.is_none(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// The order for the first process inside.
    fn spec(&self, ground: Ground, request: &CommandRequest, cwd: &Path) -> Spec {
        let settings = &self.settings;
        let mounts = ground.own_processes();
        let path = settings.path.split(':').filter(|folder| folder.starts_with('/')).collect::<Vec<_>>().join(":");
        let usual = [("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb")];
        let usual = usual.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let own = request.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Spec {
            ground,
            root: self.root.clone(),
            state: self.state.clone(),
            cwd: cwd.to_owned(),
            home: if mounts { layout::HOME.into() } else { PathBuf::new() },
            temp: if mounts { layout::temp(&self.root) } else { PathBuf::new() },
            readable: settings.readable.clone(),
            command: request.command.clone().into(),
            env: usual.chain(own).collect(),
            network: settings.network,
            limits: Limits {
                processes: settings.processes,
                memory: settings.memory,
                file_size: settings.file_size,
                temporary: settings.temporary,
                open_files: settings.open_files,
            },
        }
    }

    /// The process to start on this machine.
    fn starter(&self, spec: &Spec) -> Result<Command, CommandError> {
        let program = &self.settings.program;
        if !self.state.is_dir() {
            // What is not there cannot be covered, and a command could make its own.
            return Err(CommandError::Spawn { why: "the state folder is missing".to_owned() });
        }
        if spec.ground != Ground::Open && git::is_link(&spec.root) {
            let why = "the project's .git is a link, which cannot be protected".to_owned();
            return Err(CommandError::SandboxUnavailable { why });
        }
        let command = match spec.ground {
            Ground::Bubblewrap => {
                let Some(bwrap) = bubblewrap::find(&self.settings.path, &spec.root) else {
                    return Err(CommandError::SandboxUnavailable { why: "bwrap is not in the path".to_owned() });
                };
                let mut command = Command::new(bwrap);
                command.args(bubblewrap::arguments(&layout::layout(spec), program, spec.network));
                // `bwrap` parts itself from the terminal only inside.
                command.args([exec::NAME, exec::INIT]).process_group(0);
                command
            }
            Ground::Namespaces => {
                let mut command = Command::new(program);
                command.args([exec::NAME, exec::NAMESPACES]).args(spec.network.then_some(exec::SHARE_NETWORK));
                command
            }
            Ground::Landlock | Ground::Open => {
                let mut command = Command::new(program);
                command.args([exec::NAME, exec::INIT]);
                command
            }
        };
        Ok(command)
    }
}

/// From the order to the end of all that it started: the exit code, `None` where the time was over, and how long the
/// command ran. Fails with words, or none where the sandbox had no time for them.
async fn live(mut tree: Tree, order: Vec<u8>, limit: Duration) -> Result<(Option<i32>, Duration), String> {
    let outcome = match timeout(START, tree.order(&order)).await {
        Ok(Ok(Ok(()))) => {
            let begun = Instant::now();
            let code = timeout(limit, tree.ended()).await;
            Ok((code, begun.elapsed()))
        }
        Ok(Ok(Err(words))) => Err(words),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the sandbox did not stand in time".to_owned()),
    };
    tree.end().await;
    match outcome? {
        // Without a word about its end it was killed from outside, by a system out of memory for one.
        (Ok(code), took) => Ok((Some(code.unwrap_or(KILLED)), took)),
        (Err(_), took) => Ok((None, took)),
    }
}
