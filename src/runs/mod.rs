//! A run's life apart from its connection: begun, read by whoever may, stopped, drained at the end; and the end of runs
//! of processes that died.
//!
//! A run belongs to the process that got its request, which alone has its user's token. It writes a numbered [`log`]
//! that readers follow, here or in another replica; its answer is in the store besides. While it lives its process
//! renews its lease; when that ends, any process ends the run (`keeper`).

mod admission;
mod begin;
mod busy;
pub mod chain;
pub mod config;
mod decided;
mod errors;
mod interest;
mod keeper;
mod labels;
mod live;
pub mod log;
mod once;
mod pulse;
mod reading;
mod request;
mod session;
pub mod starts;
mod summary;
mod task;
mod titles;
mod warm;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::agent::offer::of_profile;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::approvals::ApprovalStore;
use crate::agent::ports::leases::Leases;
use crate::agent::ports::llm::Takes;
use crate::agent::ports::models::ChosenModels;
use crate::agent::ports::places::PlaceStore;
use crate::agent::ports::plans::PlanRecords;
use crate::agent::ports::sessions::SessionStore;
use crate::agent::ports::store::RunStore;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::SummaryStore;
use crate::agent::ports::titles::TitleStore;
use crate::agent::ports::tools::OfferedTool;
use crate::agent::turn::context::Agent;
use crate::agent::turn::stop::StopReason;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::Screen;
use crate::chat::message::ModelOrigin;
use crate::chat::model::Helper;
use crate::chat::run::{CancelledBy, RunRecord, RunState};
use crate::chat::session::Session;
use crate::chat::tool::Effect;

pub use decided::Decided;
pub use errors::{AttachError, StartError};
pub use once::{AskError, OnceError};
pub use pulse::Stuck;
pub use reading::Attached;
pub use request::Request;
pub use summary::Summariser;
pub use warm::{ComingRun, WarmSlot};

use admission::Admission;
use config::Settings;
use labels::Labelling;
use live::LiveRuns;
use log::EventLog;
use log::ring::{Reader, Sees};
use pulse::Pulse;
use reading::{Hold, Of, Seats};
use starts::Starts;
use summary::Summaries;
use titles::Titles;

/// How long a reader waits for a log that lags behind the one where it got its cursor.
const LAG: Duration = Duration::from_secs(1);

/// How long a request to cancel waits for the run to settle, which another replica hears of within two seconds; then it
/// answers with the run as it is.
const SETTLING: Duration = Duration::from_millis(2500);

/// Starts runs and owns their tasks.
pub struct Runs {
    agent: Arc<Agent>,
    store: Arc<dyn RunStore>,
    approvals: Arc<dyn ApprovalStore>,
    leases: Arc<dyn Leases>,
    log: Arc<dyn EventLog>,
    places: Arc<dyn PlaceStore>,
    plans: Arc<dyn PlanRecords>,
    chosen: Option<Arc<dyn ChosenModels>>,
    settings: Settings,
    starts: Starts,
    seats: Arc<Seats>,
    summaries: Arc<Summaries>,
    labelling: Arc<Labelling>,
    titles: Arc<Titles>,
    /// This process's name among the replicas.
    replica: String,
    live: Arc<LiveRuns>,
    /// The runs' own tasks, which are waited for before the process ends.
    tasks: TaskTracker,
    /// For those that just begin.
    admission: Arc<Admission>,
    /// When the keeper last came round.
    pulse: Pulse,
    draining: CancellationToken,
    interrupting: CancellationToken,
}

/// The parts of [`Runs`].
pub struct Parts {
    /// The loop.
    pub agent: Arc<Agent>,
    /// Where runs are kept.
    pub store: Arc<dyn RunStore>,
    /// Where calls wait for a person.
    pub approvals: Arc<dyn ApprovalStore>,
    /// Which processes are alive.
    pub leases: Arc<dyn Leases>,
    /// Where their events are kept.
    pub log: Arc<dyn EventLog>,
    /// Where summaries are kept.
    pub summaries: Arc<dyn SummaryStore>,
    /// Writes them.
    pub summariser: Summariser,
    /// What labels are made of.
    pub sessions: Arc<dyn SessionStore>,
    /// Writes labels.
    pub labeller: Helper,
    /// What conversations are called.
    pub titles: Arc<dyn TitleStore>,
    /// Gives them titles where nobody has.
    pub titler: Helper,
    /// Where conversations are.
    pub places: Arc<dyn PlaceStore>,
    /// Where plans are.
    pub plans: Arc<dyn PlanRecords>,
    /// Which models users have chosen, where they may.
    pub chosen: Option<Arc<dyn ChosenModels>>,
    /// The rules.
    pub settings: Settings,
    /// How often users may begin runs.
    pub starts: Starts,
}

impl Runs {
    /// Runs of `parts`, and the task that keeps their leases, which runs until [`Self::finished`].
    pub fn new(parts: Parts, replica: String) -> Arc<Self> {
        let Parts { agent, store, approvals, leases, log, summaries, summariser, .. } = parts;
        let Parts { sessions, labeller, titles, titler, places, plans, chosen, settings, starts, .. } = parts;
        let (tasks, draining) = (TaskTracker::new(), CancellationToken::new());
        let summaries = Summaries {
            store: summaries,
            by: summariser,
            history_bytes: settings.history_bytes,
            tasks: tasks.clone(),
            draining: draining.clone(),
            busy: Arc::default(),
        };
        let labelling = Labelling {
            sessions,
            writer: labeller,
            agent: agent.clone(),
            tasks: tasks.clone(),
            draining: draining.clone(),
            busy: Arc::default(),
        };
        let labelling = Arc::new(labelling);
        let titles = Titles { store: titles, writer: titler, by: labelling.clone(), busy: Arc::default() };
        let runs = Arc::new(Self {
            agent,
            store,
            approvals,
            leases,
            log,
            places,
            plans,
            chosen,
            seats: Seats::new(settings.bounds.readers_per_run),
            settings,
            starts,
            summaries: Arc::new(summaries),
            labelling,
            titles: Arc::new(titles),
            replica,
            live: Arc::default(),
            tasks,
            admission: Arc::default(),
            pulse: Pulse::default(),
            draining,
            interrupting: CancellationToken::new(),
        });
        keeper::spawn(&runs);
        runs
    }

    /// Whether some profile lets `caller` see how runs were carried out.
    pub fn shows_diagnostics(&self, caller: &Caller) -> bool {
        self.agent.profiles.all().any(|profile| profile.lets(caller) && profile.diagnostics.shape_for(caller).is_some())
    }

    /// The profiles that `caller` may use, by their `context_type`.
    pub fn profiles_for(&self, caller: &Caller) -> Vec<&Profile> {
        let mut profiles: Vec<&Profile> =
            self.agent.profiles.all().filter(|profile| !profile.is_internal && profile.lets(caller)).collect();
        profiles.sort_unstable_by(|a, b| a.context_type.cmp(&b.context_type));
        profiles
    }

    /// What the model can be given that answers the owner there by default, and each that a request may name.
    pub async fn takes(&self, owner: &Owner, profile: &Profile) -> (Takes, Vec<(String, Takes)>) {
        let llm = &self.agent.llm;
        let first = |models: &[ModelOrigin]| models.first().map(|model| llm.takes(model)).unwrap_or_default();
        let chosen = match &self.chosen {
            Some(models) => models.chosen(owner, &profile.context_type, None).await,
            None => None,
        };
        let usual = match chosen {
            Some(chosen) => llm.takes(&chosen.origin),
            None => first(&profile.models.choice.models),
        };
        let offered = profile.models.offered.iter().map(|offer| (offer.name.clone(), first(&offer.models)));
        (usual, offered.collect())
    }

    /// The tools that clients with a model of their own may call by themselves in place of `caller`, each with the
    /// `context_type` of its profile. Tools that only some conversations have a use for are not among them.
    pub fn exposed_to(&self, caller: &Caller) -> Vec<(String, OfferedTool)> {
        let profiles = self.profiles_for(caller).into_iter().filter(|profile| !profile.exposes.is_empty());
        let exposed = profiles.flat_map(|profile| {
            let tools = of_profile(profile, &*self.agent.tools).filter(|tool| profile.exposes.contains(&tool.def.name));
            let tools = tools.filter(|tool| tool.policy.lets(caller) && tool.only_if.is_none());
            let tools = tools.filter(|tool| !(profile.read_only && tool.effect == Effect::Write));
            tools.map(|tool| (profile.context_type.clone(), tool)).collect::<Vec<_>>()
        });
        exposed.collect()
    }

    /// The application of the profile that answers there; `None` where none does.
    pub fn app_at(&self, screen: &Screen) -> Option<String> {
        self.agent.profiles.select(screen).map(|profile| profile.app.clone())
    }

    /// The owner's run of that id and those that went on behind decisions on calls of it, oldest first.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn went_on(&self, owner: &Owner, run: RunId) -> Result<Vec<RunRecord>, StoreError> {
        self.store.went_on(owner, run).await
    }

    /// The owner's run of that id.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn find(&self, owner: &Owner, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        let Some(mut record) = self.store.find_run(owner, run).await? else { return Ok(None) };
        if let Some(live) = self.live.get(run).filter(|_| record.state.is_live()) {
            record.last_event_id = live.log().ring().kept_next().checked_sub(1);
        }
        // Whoever ended it for a dead process does not know how far that one came; its log does.
        if record.state == RunState::Interrupted
            && let Ok(Some(ring)) = self.log.find(run).await
            && ring.end().is_some()
        {
            record.last_event_id = ring.next_id().checked_sub(1);
        }
        Ok(Some(record))
    }

    /// The owner's conversation's running run, or the first of those that wait: what whoever opens it wants to read.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn live_run(&self, owner: &Owner, conversation: &ConversationId) -> Result<Option<RunId>, StoreError> {
        Ok(self.store.live_runs(owner, conversation).await?.first().copied())
    }

    /// Reads a run after the event with the id `after`, or from its first event.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub async fn attach(&self, owner: &Owner, run: RunId, after: Option<u64>) -> Result<Attached, AttachError> {
        let record = self.store.find_run(owner, run).await?.ok_or(AttachError::NoSuchRun)?;
        self.attach_to(record, after).await
    }

    async fn attach_to(&self, record: RunRecord, after: Option<u64>) -> Result<Attached, AttachError> {
        let run = record.id;
        let seat = self.seats.take(run).ok_or(AttachError::TooManyReaders)?;
        // Held before its log is looked for, so that the run cannot be given up in between.
        let hold = self.live.get(run).map(Hold::new);
        let ring = self.log.find(run).await?.ok_or(AttachError::Evicted)?;
        let next = match after {
            None => 0,
            Some(id) => id.checked_add(1).ok_or(AttachError::BeyondEnd)?,
        };
        if ring.next_id() < next && ring.end().is_none() {
            let _ = tokio::time::timeout(LAG, ring.reaches(next)).await;
        }
        if ring.next_id() < next {
            // Its owner may have emitted more than it could bring to the shared log before it died.
            let was_emitted = record.last_event_id.is_some_and(|last| next <= last.saturating_add(1));
            return Err(if was_emitted { AttachError::Evicted } else { AttachError::BeyondEnd });
        }
        if next < ring.first_kept() {
            return Err(AttachError::Evicted);
        }
        let of =
            Of { run, conversation: record.conversation, request_id: record.request_id, background: record.background };
        let is_over = ring.end().is_some() && next == ring.next_id();
        Ok(Attached::new(of, Reader::new(ring, next, Sees::Kept), (seat, hold), is_over))
    }

    /// Whether anybody labels conversations.
    pub fn labels(&self) -> bool {
        self.labelling.is_on()
    }

    /// Has a conversation labelled behind the scenes; whether that will be tried.
    pub fn label(&self, owner: &Owner, session: &Session) -> bool {
        self.labelling.is_on() && self.labelling.queue(session, (owner.clone(), session.id.clone()))
    }

    /// Cancels a run wherever it runs, and returns it as it is after that; `None` when the owner has no such run. A run
    /// that has ended stays as it is.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn cancel(&self, owner: &Owner, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.cancel_by(owner, run, CancelledBy::User).await
    }

    /// The same, by anybody.
    async fn cancel_by(&self, owner: &Owner, run: RunId, by: CancelledBy) -> Result<Option<RunRecord>, StoreError> {
        let Some(record) = self.store.request_cancel(owner, run, by).await? else { return Ok(None) };
        if !record.state.is_live() {
            return Ok(Some(record));
        }
        if let Some(live) = self.live.get(run) {
            live.stop.stop(StopReason::Cancelled);
        }
        if !self.ends_before(owner, run, Instant::now() + SETTLING).await {
            tracing::warn!(run.id = %run, "a cancelled run takes long to settle");
        }
        self.find(owner, run).await
    }

    /// Stops runs that were deleted with their conversation, as far as they live here, and forgets their logs.
    pub fn deleted(&self, conversation: &ConversationId, runs: Vec<RunId>) {
        for run in &runs {
            if let Some(live) = self.live.get(*run) {
                tracing::info!(run.id = %run, conversation.id = %conversation, "run deleted while it ran");
                live.stop.stop(StopReason::Cancelled);
            }
        }
        self.forget(runs);
    }

    fn forget(&self, runs: Vec<RunId>) {
        let log = self.log.clone();
        self.tasks.spawn(async move { log.forget(&runs).await }.in_current_span());
    }

    /// Refuses new runs from now on.
    pub fn drain(&self) {
        self.draining.cancel();
        self.tasks.close();
    }

    /// Cancelled when new runs are refused.
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Returns when no run is left. Only after [`Self::drain`].
    pub async fn finished(&self) {
        self.tasks.wait().await;
    }

    /// Ends whatever still runs as interrupted: the process has no time left for it.
    pub fn interrupt_all(&self) {
        self.interrupting.cancel();
        for live in self.live.all() {
            live.stop.stop(StopReason::Interrupted);
        }
    }

    /// Tells the readers of what still runs that its end does not come here: the process goes, and the store has not said
    /// whether it has recorded it.
    pub fn leave_readers(&self) {
        for live in self.live.all() {
            live.log().ring().lose();
        }
    }
}
