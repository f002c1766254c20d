//! The outcome of a tool call.

use serde::{Deserialize, Serialize};

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFate {
    /// It ran and succeeded.
    Done,
    /// It ran or was refused, and the model got an error.
    Failed,
    /// It was not made, and may be made again.
    NotRun,
    /// It has not been made: it needs an approval first.
    AwaitsApproval,
    /// It was left to the client, which has sent no result.
    AwaitsClient,
    /// It was sent, and whether it took effect is unknown.
    Unknown,
}

impl CallFate {
    /// Its name on the wire. A call that waits is `not_run`: other events announce what it waits for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::NotRun | Self::AwaitsApproval | Self::AwaitsClient => "not_run",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the model reads it as an error.
    pub fn is_error(self) -> bool {
        match self {
            Self::Done | Self::AwaitsApproval | Self::AwaitsClient => false,
            Self::Failed | Self::NotRun | Self::Unknown => true,
        }
    }

    /// Its own name, where it is kept beside [`Self::is_error`]; `None` where that says it all.
    pub fn kept(self) -> Option<&'static str> {
        match self {
            Self::Done | Self::Failed => None,
            Self::NotRun => Some("not_run"),
            Self::AwaitsApproval => Some("awaits_approval"),
            Self::AwaitsClient => Some("awaits_client"),
            Self::Unknown => Some("unknown"),
        }
    }

    /// The fate that was kept so. One that only a later version knows is as good as `is_error` tells.
    pub fn of_kept(name: Option<&str>, is_error: bool) -> Self {
        let own = [Self::NotRun, Self::AwaitsApproval, Self::AwaitsClient, Self::Unknown];
        match own.into_iter().find(|fate| name.is_some() && fate.kept() == name) {
            Some(fate) => fate,
            None if is_error => Self::Failed,
            None => Self::Done,
        }
    }
}

/// Why a call has no result that is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallError {
    /// No such tool is offered here, or not yet.
    NotOffered,
    /// The arguments cannot be used.
    BadArguments,
    /// It took too long.
    TimedOut,
    /// Whatever else: the tool or its backend failed or refused, or the call was not made.
    #[serde(other)]
    Failed,
}

impl CallError {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NotOffered, Self::BadArguments, Self::TimedOut, Self::Failed];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotOffered => "not_offered",
            Self::BadArguments => "bad_arguments",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
        }
    }

    /// The error of that name; one that only a later version knows is a failure.
    pub fn of_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|error| error.name() == name).unwrap_or(Self::Failed)
    }
}
