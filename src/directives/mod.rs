//! Directives at work: commands that outlive their request.
//!
//! ```text
//! a model's call, a client's POST ──▶ Directives ──▶ store: kept, with its signal
//!                                        │ woken
//!                                     runner ──▶ store: taken under a lease ──▶ noted as sent ──▶ Commands ──▶ backend
//!                                                store: ended, or due again ◀── outcome: a table ◀──┘
//! ```
//!
//! **Invariant:** the row is the queue, and the database's clock decides. What a process knows besides only spares time: a
//! wake-up, and who waits for which directive.
//! **Invariant:** a caller's token is held in memory alone, by the one task that sends with it.

mod attempt;
pub mod config;
mod outcome;
mod runner;
pub mod schedule;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::ports::clock::Clock;
use crate::agent::ports::clock::ms;
use crate::agent::ports::directive_queue::DirectiveQueue;
use crate::agent::ports::directives::{
    AskError, Asked, Change, ChangeError, Commands, Decided, DirectiveDesk, DirectiveStore, NewDirective, RequestError,
    RequestKey, Requested, Wanted,
};
use crate::agent::ports::schedules::ScheduleStore;
use crate::agent::ports::signals::Bell;
use crate::agent::ports::store_error::StoreError;
use crate::chat::approval::Consent;
use crate::chat::caller::Caller;
use crate::chat::digest::sha256_hex;
use crate::chat::directive::{Directive, DirectiveNotice, DirectiveStatus, RunsAs};
use crate::chat::ids::DirectiveId;
use crate::observe::metrics;
use config::Settings;
use schedule::Schedule;

/// Notices that one who waits may fall behind by; then it reads.
const NOTICES: usize = 256;

/// Between two looks at a directive that another process may have changed.
const LOOK: Duration = Duration::from_millis(500);

/// Keeps directives, carries them out, and tells who waits.
pub struct Directives {
    store: Arc<dyn DirectiveStore>,
    queue: Arc<dyn DirectiveQueue>,
    commands: Arc<dyn Commands>,
    settings: Settings,
    /// The name of this process in claims.
    process: String,
    clock: Arc<dyn Clock>,
    /// Rings for those who deliver signals.
    bell: Bell,
    changes: broadcast::Sender<DirectiveNotice>,
    wake: Notify,
    /// Nothing more is taken.
    stopping: CancellationToken,
    /// Nothing is under way any more.
    idle: CancellationToken,
    attempts: TaskTracker,
    /// The claims that are held here.
    in_hand: Mutex<HashSet<DirectiveId>>,
    /// The one that takes what is due.
    runner: TaskTracker,
    /// Those that keep claims and end what is late.
    tasks: TaskTracker,
}

impl Directives {
    /// Directives of `commands`, kept in a store; nothing is carried out before [`Self::start`].
    pub fn new(
        (store, queue): (Arc<dyn DirectiveStore>, Arc<dyn DirectiveQueue>),
        commands: Arc<dyn Commands>,
        settings: Settings,
        process: String,
        clock: Arc<dyn Clock>,
        bell: Bell,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            queue,
            commands,
            settings,
            process,
            clock,
            bell,
            changes: broadcast::channel(NOTICES).0,
            wake: Notify::new(),
            stopping: CancellationToken::new(),
            idle: CancellationToken::new(),
            attempts: TaskTracker::new(),
            in_hand: Mutex::default(),
            runner: TaskTracker::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Begins to carry out what is due, and to request what `schedules` say.
    pub fn start(self: &Arc<Self>, schedules: Vec<Schedule>, store: &Arc<dyn ScheduleStore>) {
        for schedule in schedules {
            self.tasks.spawn(schedule::run(Desk(self.clone()), store.clone(), Arc::new(schedule)));
        }
        // Without commands nothing is looked for.
        if !self.commands.names().is_empty() {
            self.runner.spawn(runner::run(self.clone()));
        }
        self.tasks.spawn(runner::keep(self.clone()));
        self.tasks.spawn(runner::tidy(self.clone()));
    }

    /// Takes nothing more, and waits until the attempts that are under way have ended.
    pub async fn stop(&self) {
        self.stopping.cancel();
        // Whatever it has taken just now is an attempt, too.
        self.runner.close();
        self.runner.wait().await;
        self.attempts.close();
        self.attempts.wait().await;
        self.idle.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The claims that are held here.
    fn in_hand(&self) -> MutexGuard<'_, HashSet<DirectiveId>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells who waits in this process of a transition.
    fn tell(&self, directive: &Directive) {
        self.bell.ring();
        let name = directive.name.as_str();
        let known = self.commands.rule(name).map_or("unknown", |_| name);
        metrics::directive(known, directive.status.name());
        // Nobody waits, which is no error.
        let _ = self.changes.send(directive.notice());
    }

    /// Has a directive carried out that may be: at once where its caller's token is needed.
    fn set_off(self: &Arc<Self>, directive: &Directive, caller: &Caller) {
        match (directive.status, directive.runs_as) {
            (DirectiveStatus::Requested, RunsAs::Caller) => {
                self.attempts.spawn(attempt::for_caller(self.clone(), directive.id, caller.clone()));
            }
            (DirectiveStatus::Requested, RunsAs::Service) => self.wake.notify_one(),
            (_, _) => {}
        }
    }

    /// Checks when it is wanted; the time in a request of which that may be said.
    fn check_time(&self, wanted: &Wanted<'_>, runs_as: RunsAs) -> Result<(), RequestError> {
        let Some(at_ms) = wanted.scheduled_at_ms else { return Ok(()) };
        if runs_as == RunsAs::Caller {
            let words = "scheduled_at: this runs with its caller's token, and so cannot run later";
            return Err(RequestError::BadTime(words.to_owned()));
        }
        let latest = self.clock.now_ms().saturating_add(ms(self.settings.max_ahead));
        if at_ms > latest {
            let days = self.settings.max_ahead.as_secs() / (24 * 3600);
            return Err(RequestError::BadTime(format!("scheduled_at: must be at most {days} days ahead")));
        }
        Ok(())
    }

    async fn keep(self: &Arc<Self>, wanted: Wanted<'_>, caller: &Caller) -> Result<Requested, AskError> {
        let rule = self.commands.rule(wanted.name).ok_or(AskError::NoCommand)?;
        self.check_time(&wanted, rule.runs_as)?;
        let most = self.settings.payload_bytes;
        let bytes = serde_json::to_vec(&wanted.prepared.payload).map_or(usize::MAX, |json| json.len());
        if most != 0 && bytes > most {
            return Err(RequestError::TooLarge(most).into());
        }
        let (approval_ms, limits) = (ms(self.settings.approval), self.settings.limits);
        let requested = self.store.keep_directive(NewDirective { caller, wanted, rule, approval_ms, limits }).await?;
        if requested.created {
            self.tell(&requested.directive);
            self.set_off(&requested.directive, caller);
        }
        Ok(requested)
    }
}

/// The desk of a process: what it keeps it also carries out.
pub struct Desk(pub Arc<Directives>);

#[async_trait]
impl DirectiveDesk for Desk {
    async fn request(&self, wanted: Wanted<'_>, caller: &Caller) -> Result<Requested, AskError> {
        self.0.keep(wanted, caller).await
    }

    async fn outcome(
        &self,
        caller: &Caller,
        id: DirectiveId,
        patience: Duration,
        told: &(dyn Fn(DirectiveNotice) + Send + Sync),
    ) -> Result<Option<Directive>, StoreError> {
        let deadline = Instant::now() + patience;
        let mut changes = self.0.changes.subscribe();
        let mut last = None;
        loop {
            // Others of the same intent may have requested it.
            let directive = self.0.store.directive(caller, id, true).await?;
            let Some(directive) = directive else { return Ok(None) };
            if last.replace(directive.status) != Some(directive.status) {
                told(directive.notice());
            }
            let waits_for_someone = directive.status == DirectiveStatus::PendingApproval;
            // Both by the database's clock: this machine's own may be wrong by more than anybody is patient.
            let is_later = directive.due_at_ms > directive.updated_at_ms.saturating_add(ms(patience));
            if directive.status.is_over() || waits_for_someone || is_later || Instant::now() >= deadline {
                return Ok(Some(directive));
            }
            let look = sleep_until(deadline.min(Instant::now() + LOOK));
            tokio::pin!(look);
            loop {
                tokio::select! {
                    () = &mut look => break,
                    change = changes.recv() => match change {
                        Ok(notice) if notice.id != id => {}
                        // Whoever fell behind reads.
                        Ok(_) | Err(_) => break,
                    },
                }
            }
        }
    }

    async fn ask(&self, asked: Asked<'_>, caller: &Caller) -> Result<Requested, AskError> {
        let Asked { name, payload, correlation, key, scheduled_at_ms } = asked;
        let rule = self.0.commands.rule(name).ok_or(AskError::NoCommand)?;
        if !rule.roles.is_empty() && !rule.roles.iter().any(|role| caller.has_role(role)) {
            return Err(AskError::RoleRequired);
        }
        if rule.runs_as == RunsAs::Caller && matches!(rule.consent, Consent::Role { .. }) {
            return Err(AskError::ForAnother);
        }
        let prepared = self.0.commands.prepare(name, payload, caller).await.map_err(AskError::BadPayload)?;
        // What was asked, not what it was completed to: a default may be another one by the time it is asked again.
        let asked = sha256_hex(json!([name, payload, scheduled_at_ms]).to_string().as_bytes());
        let key = key.map(|key| RequestKey::Client { key, asked });
        let wanted = Wanted { name, prepared, correlation, call: None, is_approved: false, key, scheduled_at_ms };
        self.0.keep(wanted, caller).await
    }

    async fn decide(&self, caller: &Caller, id: DirectiveId, decision: Decided) -> Result<Directive, ChangeError> {
        let access = self.0.settings.roles.access(caller);
        let directive = self.0.store.decide_directive(caller, id, access, &decision).await?;
        self.0.tell(&directive);
        self.0.set_off(&directive, caller);
        Ok(directive)
    }

    async fn change(&self, caller: &Caller, id: DirectiveId, change: Change) -> Result<Directive, ChangeError> {
        let access = self.0.settings.roles.access(caller);
        let directive = self.0.store.change_directive(caller, id, access, change).await?;
        self.0.tell(&directive);
        self.0.set_off(&directive, caller);
        Ok(directive)
    }
}
