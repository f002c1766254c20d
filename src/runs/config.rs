//! The rules of runs, as the configuration gives them.

use std::time::Duration;

use serde::Deserialize;

use crate::agent::ports::quotas::Quotas;
use crate::chat::input::OnBusy;

/// `[runs]`: the bounds of a run, and its life without readers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsConfig {
    /// Model calls; 0 means no limit.
    pub max_turns: u32,
    /// Tool calls; 0 means no limit.
    pub max_tool_calls: u32,
    /// The same call so often in a row is not made any more; 0 allows any number.
    pub repeated_calls: u32,
    /// Seconds in all; 0 means no limit.
    pub wall_s: u64,
    /// Seconds that a call waits for an approval, at least 1.
    pub approval_s: u64,
    /// Seconds that a run which goes on behind a decision waits for the next one on a call of the same turn; 0: each decision
    /// begins a run of its own.
    pub decisions_s: u64,
    /// Seconds that a preview waits for its user's decision, at least 1.
    pub preview_s: u64,
    /// Seconds that a run waits for a reader after the last one went away; 0 cancels it at once.
    pub grace_s: u64,
    /// What happens to a request whose conversation has a run already: `reject`, `enqueue` or `interrupt`.
    pub on_busy: String,
    /// Runs that may wait in one conversation.
    pub queue: u32,
    /// Seconds after which a process that says nothing counts as dead.
    pub lease_s: u64,
    /// Seconds that the events of a run are kept after its end.
    pub retention_s: u64,
    /// Days that the trail is kept; 0 means for ever.
    pub trail_days: u32,
    /// Days that a conversation which no list shows is kept after its newest run began; 0 means for ever.
    pub unlisted_days: u32,
    /// The model that summarises what no longer fits: `provider:model`, empty for the one that answered, `off` for
    /// none.
    pub summary_model: String,
    /// Seconds that a run waits for a summary of what it does not read; 0 waits for none.
    pub summary_wait_s: u64,
}

/// The same as the engine uses it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a run waits for a reader after the last one went away.
    pub grace: Duration,
    /// What happens to a request whose conversation has a run already, where it does not say.
    pub on_busy: OnBusy,
    /// Runs that may wait in one conversation.
    pub queue: u32,
    /// How long a process lives without a beat.
    pub lease: Duration,
    /// How long the trail is kept; `None` means for ever.
    pub trail: Option<Duration>,
    /// How long a conversation that no list shows is kept; `None` means for ever.
    pub unlisted: Option<Duration>,
    /// How much history a run begins with, in bytes; 0 means all.
    pub history_bytes: usize,
    /// How many runs there may be, and how long each may become.
    pub bounds: RunBounds,
}

/// How many runs there may be at once, who may read them, and how much each may tell; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunBounds {
    /// Live runs of a user, those that wait for their turn among them.
    pub per_user: u32,
    /// Live runs of a tenant.
    pub per_tenant: u32,
    /// Live runs of a process.
    pub per_replica: usize,
    /// Readers that one run has at one process.
    pub readers_per_run: u32,
    /// Events of a run, its end among them.
    pub run_events: u64,
    /// About how many bytes the events of a run may take.
    pub run_bytes: u64,
    /// How much may be kept.
    pub quotas: Quotas,
}

impl RunsConfig {
    /// The engine's settings; `history_bytes` and `bounds` are of another section.
    pub fn settings(&self, history_bytes: usize, bounds: RunBounds) -> Settings {
        Settings {
            grace: Duration::from_secs(self.grace_s),
            on_busy: OnBusy::parse(&self.on_busy).unwrap_or(OnBusy::Reject),
            queue: self.queue,
            lease: Duration::from_secs(self.lease_s),
            trail: days(self.trail_days),
            unlisted: days(self.unlisted_days),
            history_bytes,
            bounds,
        }
    }
}

/// So many days; none means for ever.
fn days(days: u32) -> Option<Duration> {
    (days != 0).then(|| Duration::from_secs(u64::from(days) * 86_400))
}

/// `[events]`: where the events of runs are kept while they may be read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// `local`: in this process. `redis://…` or `rediss://…`: for all replicas.
    pub url: String,
    /// The prefix of every key in Redis.
    pub prefix: String,
    /// Bytes of events that one run keeps, newest last; 0 means no limit.
    pub run_bytes: usize,
    /// Bytes of events that all runs of a process keep, as far as ended ones can be forgotten for it; 0 means no limit.
    pub total_bytes: usize,
}
