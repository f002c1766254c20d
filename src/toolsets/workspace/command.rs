//! `run_command`: a command of a shell, in a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{failed, off, policy};
use crate::agent::ports::tools::ToolContext;
use crate::agent::ports::workspace::{Command, CommandResult};
use crate::chat::tool::{Effect, Policy, ToolOutput};
use crate::tools::worded::{Wording, told};
use crate::tools::{Tool, ToolError, Workplace};

const RUN: Wording = Wording { name: "run_command", kind: "run_command_error" };

/// A minute, AgentSmithy protocol.
const TIMEOUT_S: f64 = 60.0;

/// What may be asked for, AgentSmithy protocol.
const TIMEOUTS_S: std::ops::RangeInclusive<f64> = 0.1..=600.0;

/// Bytes that are kept of each output, AgentSmithy protocol.
const OUTPUT_BYTES: usize = 400_000;

/// `run_command`.
pub(super) struct Run(pub(super) Option<Workplace>);

#[derive(Deserialize)]
struct Args {
    command: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    #[serde(default)]
    max_output_bytes: Option<usize>,
}

impl From<Args> for Command {
    fn from(Args { command, cwd, timeout, env, max_output_bytes }: Args) -> Self {
        let seconds = timeout.unwrap_or(TIMEOUT_S);
        // What is no number at all is the shortest time.
        let seconds = seconds.max(*TIMEOUTS_S.start()).min(*TIMEOUTS_S.end());
        Self {
            command,
            cwd: cwd.filter(|cwd| !cwd.is_empty()),
            timeout: Duration::from_secs_f64(seconds),
            env: env.unwrap_or_default(),
            max_output_bytes: max_output_bytes.map_or(OUTPUT_BYTES, |bytes| bytes.min(OUTPUT_BYTES)),
        }
    }
}

#[async_trait]
impl Tool for Run {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = RUN.args(args)?;
        let place = self.0.as_ref().filter(|place| place.commands.is_some()).ok_or_else(off)?;
        let workspace = place.workspaces.of(&cx.caller.owner).await.map_err(failed(RUN))?;
        let result = workspace.run(args.into(), cx.progress).await.map_err(failed(RUN))?;
        if result.timed_out {
            let words = format!("the command did not end within {:.1} s", seconds(&result));
            return Err(RUN.timeout("run_command_timeout", &words, body(&result)));
        }
        let mut told_as = body(&result);
        told_as["type"] = json!("run_command_result");
        Ok(told(&told_as))
    }

    fn wording(&self) -> Option<Wording> {
        Some(RUN)
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        RUN.args::<Args>(args).map(drop)
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn policy(&self) -> Policy {
        let consent = self.0.as_ref().and_then(|place| place.commands.clone()).unwrap_or_default();
        Policy { consent, ..policy(self.0.as_ref()) }
    }

    fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|place| place.commands.is_some())
    }

    fn in_workspace(&self) -> bool {
        true
    }
}

fn seconds(result: &CommandResult) -> f64 {
    Duration::from_millis(result.duration_ms).as_secs_f64()
}

fn body(result: &CommandResult) -> Value {
    json!({
        "command": result.command,
        "cwd": result.cwd,
        "exit_code": result.exit_code,
        "stdout": result.stdout.text,
        "stderr": result.stderr.text,
        "stdout_truncated": result.stdout.cut_bytes > 0,
        "stderr_truncated": result.stderr.cut_bytes > 0,
        "stdout_truncated_bytes": result.stdout.cut_bytes,
        "stderr_truncated_bytes": result.stderr.cut_bytes,
        "timed_out": result.timed_out,
        "duration_ms": result.duration_ms,
    })
}
