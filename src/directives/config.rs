//! `[directives]`.

use std::time::Duration;

use serde::Deserialize;

use crate::agent::ports::directives::{DirectiveRoles, LiveLimits};

/// `[directives]`: who sees and operates them, how many there may be, and when they are tried again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectivesConfig {
    /// Roles that see all directives of their tenant.
    pub reader_roles: Vec<String>,
    /// Roles that cancel them and have them run again, too.
    pub operator_roles: Vec<String>,
    /// The longest arguments, as JSON, in bytes; 0 means no limit.
    pub payload_bytes: usize,
    /// Directives of a user that are not over; 0 means no limit.
    pub max_live_per_user: u32,
    /// The same of a tenant.
    pub max_live_per_tenant: u32,
    /// How many this process carries out at once.
    pub workers: u32,
    /// Milliseconds between two looks for what is due.
    pub poll_ms: u64,
    /// Milliseconds before the second attempt; they double with each.
    pub retry_base_ms: u64,
    /// Seconds between two attempts at most.
    pub retry_max_s: u64,
    /// Seconds that a directive waits for a person.
    pub approval_s: u64,
    /// How many days ahead a directive may be scheduled.
    pub max_ahead_days: u32,
    /// Days that directives are kept when they are over; 0 means for ever.
    pub retention_days: u32,
}

impl DirectivesConfig {
    /// The roles.
    pub fn roles(&self) -> DirectiveRoles {
        DirectiveRoles { readers: self.reader_roles.clone(), operators: self.operator_roles.clone() }
    }

    /// What the runner goes by; `lease` is that of runs.
    pub fn settings(&self, lease: Duration) -> Settings {
        Settings {
            roles: self.roles(),
            payload_bytes: self.payload_bytes,
            limits: LiveLimits { per_user: self.max_live_per_user, per_tenant: self.max_live_per_tenant },
            workers: self.workers,
            poll: Duration::from_millis(self.poll_ms),
            retry: Retry {
                base: Duration::from_millis(self.retry_base_ms),
                most: Duration::from_secs(self.retry_max_s),
            },
            approval: Duration::from_secs(self.approval_s),
            max_ahead: days(self.max_ahead_days),
            retention: Some(days(self.retention_days)).filter(|kept| !kept.is_zero()),
            lease,
        }
    }
}

/// What directives go by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who sees and operates them.
    pub roles: DirectiveRoles,
    /// The longest arguments; 0 means no limit.
    pub payload_bytes: usize,
    /// How many may be live.
    pub limits: LiveLimits,
    /// How many are carried out at once.
    pub workers: u32,
    /// Between two looks for what is due.
    pub poll: Duration,
    /// Between two attempts.
    pub retry: Retry,
    /// How long one waits for a person.
    pub approval: Duration,
    /// How far ahead one may be scheduled.
    pub max_ahead: Duration,
    /// How long they are kept when they are over.
    pub retention: Option<Duration>,
    /// How long a claim lasts.
    pub lease: Duration,
}

/// The pauses between attempts.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Before the second attempt.
    pub base: Duration,
    /// At most.
    pub most: Duration,
}

fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 3600)
}
