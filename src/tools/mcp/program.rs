//! A server that is a program of ours: what it says is looked at line by line before values are made of it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CommandWrapper};
use rmcp::transport::TokioChildProcess;
use secrecy::ExposeSecret;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::McpConfig;
use super::look::{instead, unreadable};
use crate::bounded::intake::Intake;
use crate::bounded::json;
use crate::bounded::lines::{self, LINE_BYTES, Line};

/// 1,000 bytes of a line of a program's log, and 1,000 lines of it, reach ours.
const LOG_LINE_BYTES: u64 = 1000;
const LOG_LINES: usize = 1000;

/// Starts the program of the server called `name`. `tasks` read what it says and its log.
///
/// # Errors
/// When it cannot be started.
pub(super) fn start(
    name: &str,
    config: &McpConfig,
    intake: &Intake,
    (tasks, stop): (&TaskTracker, &CancellationToken),
) -> io::Result<TokioChildProcess> {
    let mut command = Command::new(&config.command);
    command.args(&config.args).env_clear().envs(&config.inherited);
    command.envs(config.env.iter().map(|(name, value)| (name, value.0.expose_secret())));
    // Ctrl-C is for us: runs that still need it get their time to end.
    command.process_group(0).kill_on_drop(true);
    let mut command = CommandWrap::from(command);
    command.wrap(Looking { intake: intake.clone(), tasks: tasks.clone() });
    let (program, log) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
    if let Some(log) = log {
        let (name, stop) = (name.to_owned(), stop.clone());
        tasks.spawn(async move { stop.run_until_cancelled(repeat(&name, log)).await });
    }
    Ok(program)
}

/// Puts a look at each line between a program and the library, which reads what is left of it.
#[derive(Debug)]
struct Looking {
    intake: Intake,
    tasks: TaskTracker,
}

impl CommandWrapper for Looking {
    fn wrap_child(&mut self, mut child: Box<dyn ChildWrapper>, _: &CommandWrap) -> io::Result<Box<dyn ChildWrapper>> {
        if let Some(said) = child.stdout().take() {
            let (rest, passed) = io::pipe()?;
            *child.stdout() = Some(ChildStdout::from_std(OwnedFd::from(rest).into())?);
            let passed = pipe::Sender::from_owned_fd(passed.into())?;
            // It ends with the program, or with whoever reads what is passed.
            self.tasks.spawn(pass(said, passed, self.intake.clone()));
        }
        Ok(child)
    }
}

/// Passes lines on. One that is too long is left out: of the call that it answers it becomes the error.
async fn pass(said: ChildStdout, mut passed: pipe::Sender, intake: Intake) -> io::Result<()> {
    let mut said = BufReader::new(said);
    while let Some(line) = lines::next(&mut said).await? {
        let line = match line {
            Line::Whole(line) => intake.work(line.len(), move || looked_at_line(line)).await,
            Line::TooLong(id) => {
                tracing::warn!("a line of a server of tools has more than {LINE_BYTES} bytes and is left out");
                let Some(id) = id.and_then(|id| json::value(&id).ok()) else { continue };
                (unreadable(&id, &format_args!("it has more than {LINE_BYTES} bytes")) + "\n").into_bytes()
            }
        };
        passed.write_all(&line).await?;
    }
    Ok(())
}

fn looked_at_line(line: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&line).ok().and_then(instead) {
        Some(instead) => (instead + "\n").into_bytes(),
        None => line,
    }
}

/// Repeats what a program logs.
async fn repeat(server: &str, log: ChildStderr) {
    let mut log = BufReader::new(log);
    for lines in 0.. {
        let mut line = Vec::new();
        match (&mut log).take(LOG_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) if lines < LOG_LINES => {
                let line = String::from_utf8_lossy(&line);
                tracing::info!(mcp.server = server, "{}", short(&line.trim_end()));
            }
            // It is still read: a program whose log is full stands still.
            Ok(_) if lines == LOG_LINES => {
                tracing::warn!(mcp.server = server, "the program's log is left out from here on")
            }
            Ok(_) => {}
        }
    }
}

/// A text of a server's, on one line and short.
pub(super) fn short(error: &dyn std::fmt::Display) -> String {
    error.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
