//! The outcome of a tool call.

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
