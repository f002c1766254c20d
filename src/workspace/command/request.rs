//! What is asked for, what comes of it, and what can be wrong with it.

use std::collections::BTreeMap;
use std::time::Duration;

/// One command.
#[derive(Debug, Clone)]
pub struct CommandRequest {
    /// What `/bin/sh -c` is given.
    pub command: String,
    /// Where it starts: relative to the root, or absolute inside it. `None`: the root.
    pub cwd: Option<String>,
    /// How long it may take; clamped to 0.1 to 600 seconds.
    pub timeout: Duration,
    /// Variables beside the usual ones, or in their place.
    pub env: BTreeMap<String, String>,
    /// How many bytes of each output are kept.
    pub max_output_bytes: usize,
}

impl CommandRequest {
    /// `command` in the root, with the usual bounds: 60 seconds, 400,000 bytes of each output.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            cwd: None,
            timeout: Duration::from_secs(60),
            env: BTreeMap::new(),
            max_output_bytes: 400_000,
        }
    }

    /// The timeout that holds.
    pub(super) fn clamped(&self) -> Duration {
        self.timeout.clamp(Duration::from_millis(100), Duration::from_secs(600))
    }

    /// Refuses what no process can be started with.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let bad = |why: &str| Err(CommandError::BadParams { why: why.to_owned() });
        if self.command.contains('\0') {
            return bad("the command has a NUL in it");
        }
        if self.command.len() >= MAX_STRING {
            return bad("the command is longer than 128 KiB; write it to a file first");
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return bad("a variable's name is empty or has = or NUL in it");
            }
            if value.contains('\0') {
                return bad("a variable's value has a NUL in it");
            }
            if name.len() + value.len() + 1 >= MAX_STRING {
                return bad("a variable is longer than 128 KiB");
            }
        }
        if self.env.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_ENV {
            return bad("the variables are larger than 1 MiB");
        }
        Ok(())
    }
}

/// The kernel takes no longer string when a program is started, its NUL included.
const MAX_STRING: usize = 131_072;

/// Bytes of all variables: the kernel's own bound for them and the arguments is a quarter of the stack, 2 MiB.
const MAX_ENV: usize = 1 << 20;

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// The command as it was asked for.
    pub command: String,
    /// Where it started, absolute.
    pub cwd: String,
    /// Its exit code; 128 and the signal's number where one ended it, 124 where the time did.
    pub exit_code: i32,
    /// The head of its standard output, U+FFFD where it is not UTF-8.
    pub stdout: String,
    /// The head of its standard error, likewise.
    pub stderr: String,
    /// Whether there was more of the standard output.
    pub stdout_truncated: bool,
    /// Whether there was more of the standard error.
    pub stderr_truncated: bool,
    /// How many bytes of the standard output were thrown away.
    pub stdout_truncated_bytes: u64,
    /// How many bytes of the standard error were thrown away.
    pub stderr_truncated_bytes: u64,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// Milliseconds that it ran.
    pub duration_ms: u64,
}

/// Which output a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line of output while the command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it comes from.
    pub stream: Stream,
    /// The line without its end; at most 4,096 bytes of it.
    pub text: String,
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The folder to start in is none of the root's.
    #[error("the folder {cwd} is not inside the workspace: {why}")]
    InvalidCwd {
        /// As it was asked for.
        cwd: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing holds commands in here.
    #[error("no command runs here: {why}")]
    SandboxUnavailable {
        /// What failed.
        why: String,
    },
    /// No process can be started with this.
    #[error("{why}")]
    BadParams {
        /// What is wrong.
        why: String,
    },
    /// The sandbox works here, but not this time.
    #[error("the command could not be started: {why}")]
    Spawn {
        /// What failed.
        why: String,
    },
}

impl CommandError {
    /// The failure's code for models and clients.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidCwd { .. } => "invalid_cwd",
            Self::SandboxUnavailable { .. } => "sandbox_unavailable",
            Self::BadParams { .. } => "bad_params",
            Self::Spawn { .. } => "spawn_failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_process_can_be_started_with_is_refused() {
        let with = |name: &str, value: &str| CommandRequest {
            env: BTreeMap::from([(name.to_owned(), value.to_owned())]),
            ..CommandRequest::new("true")
        };
        let table = [
            ("a NUL in the command", CommandRequest::new("a\0b"), false),
            ("too long", CommandRequest::new("x".repeat(131_072)), false),
            ("just not too long", CommandRequest::new("x".repeat(131_071)), true),
            ("no name", with("", "1"), false),
            ("a name with =", with("A=B", "1"), false),
            ("a name with NUL", with("A\0", "1"), false),
            ("a value with NUL", with("A", "\0"), false),
            ("a long value", with("A", &"x".repeat(131_072)), false),
            ("a usual one", with("A", "b=c\nd"), true),
        ];
        for (reason, request, fine) in table {
            let found = request.check();
            assert_eq!(found.is_ok(), fine, "{reason}");
            assert!(found.is_ok_and(|()| true) || !fine, "{reason}");
        }
    }

    #[test]
    fn timeouts_are_clamped() {
        let clamped = |timeout| CommandRequest { timeout, ..CommandRequest::new("true") }.clamped();
        assert_eq!(clamped(Duration::ZERO), Duration::from_millis(100));
        assert_eq!(clamped(Duration::from_secs(9)), Duration::from_secs(9));
        assert_eq!(clamped(Duration::MAX), Duration::from_secs(600));
    }
}
