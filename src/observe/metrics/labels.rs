//! What labels may say: closed sets, so that no client, model or tool can make a new series.

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With an answer.
    Completed,
    /// With calls that its client makes.
    AwaitingClient,
    /// With a call that a person has to let through.
    AwaitingApproval,
    /// With an error.
    Failed,
    /// The client went away or cancelled.
    Cancelled,
    /// The server stopped, or the lease was over.
    Interrupted,
    /// Its task ended without a word, which is a mistake of ours.
    Lost,
}

impl Ending {
    /// Its value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::AwaitingClient => "awaiting_client",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
        }
    }
}

/// The outcome of a call, of a model or a tool: `ok`, `cancelled`, or a code out of a closed set of errors, such as
/// `provider_timeout` or `bad_params`. Made of words in the program alone, never of text that comes from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome(&'static str);

impl Outcome {
    /// It succeeded.
    pub const OK: Self = Self("ok");
    /// Its caller did not wait for its end.
    pub const CANCELLED: Self = Self("cancelled");

    /// It failed with this code.
    pub fn failed(code: &'static str) -> Self {
        Self(code)
    }

    /// Its value.
    pub fn label(self) -> &'static str {
        self.0
    }
}

/// A state of a breaker, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed = 0,
    /// One call finds out.
    Probing = 1,
    /// None goes through.
    Open = 2,
}

/// What a connection to the database is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To renew leases, and to see to those of others.
    Lease,
}

impl Access {
    /// Its value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Lease => "lease",
        }
    }
}

/// How the database failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// Another connection had it locked for too long; SQLite alone says so.
    Busy,
    /// It refused, or was not there.
    Database,
    /// It did not answer in time.
    Silent,
    /// Its data cannot be used.
    Damaged,
}

impl StoreFault {
    /// Its value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Database => "database",
            Self::Silent => "silent",
            Self::Damaged => "damaged",
        }
    }
}

/// Which bound a request met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// Connections of this server.
    Connections,
    /// A request's head: its size or its time.
    Head,
    /// A request's body: its size, its time or its depth.
    Body,
    /// Requests of a user at once, and their bytes.
    Requests,
    /// Memory of this server.
    Memory,
    /// Starts of runs in a minute.
    Rate,
    /// Live runs of a user or a tenant.
    Runs,
    /// Live runs of this server.
    ReplicaRuns,
    /// Readers of a run.
    Readers,
    /// Tokens or money.
    Quota,
    /// The server is about to stop.
    Draining,
}

impl Rejection {
    /// Its value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Head => "head",
            Self::Body => "body",
            Self::Requests => "requests",
            Self::Memory => "memory",
            Self::Rate => "rate",
            Self::Runs => "runs",
            Self::ReplicaRuns => "replica_runs",
            Self::Readers => "readers",
            Self::Quota => "quota",
            Self::Draining => "draining",
        }
    }
}

/// The method of a request, where it is a standard one; others can be made up.
pub fn known_method(name: &str) -> Option<&'static str> {
    ["GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "HEAD"].into_iter().find(|known| *known == name)
}

/// The method of a request; those that can be made up are one.
pub(super) fn method(name: &str) -> &'static str {
    known_method(name).unwrap_or("other")
}

/// The class of a status.
pub(super) fn class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
