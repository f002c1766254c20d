//! How a run begins: its message is committed, then its task drives it. A conversation has one running run; what
//! happens to a second one is its request's choice.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tracing::Span;

use super::live::Live;
use super::log::ring::{Reader, Sees};
use super::reading::{Attached, Hold, Of};
use super::request::Request;
use super::starts::Rate;
use super::task::{OwnedQuestion, RequestedRun, Task};
use super::{Runs, StartError};
use crate::agent::offer::client;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::clock::ms;
use crate::agent::ports::models::ChosenModel;
use crate::agent::ports::store::{BeginError, MostRuns, RequestKey};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::HistoryBound;
use crate::agent::turn::stop::StopReason;
use crate::chat::caller::{Caller, Owner};
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::{OnBusy, RunInput, RunOptions, Screen};
use crate::chat::model::ModelChoice;
use crate::chat::run::{CancelledBy, RunRecord};
use crate::observe::ambient;
use crate::observe::within::outermost;

/// How long a request waits for a run that is about to end.
const MAKING_WAY: Duration = Duration::from_secs(5);

/// How long a request waits for a run whose client may just be leaving: a user who stops an answer and asks the next
/// thing at once must not get an error for it.
const LEAVING: Duration = Duration::from_millis(500);

/// The pause between two looks at a run that another task ends.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Runs {
    /// Starts a run and attaches to it, or attaches to the one that the same request began before. The user's message
    /// is committed when this returns. Dropping this future cancels a run that has begun, like any reader that goes
    /// away: it is settled, not forgotten.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, caller: Caller, input: RunInput, request: Request) -> Result<Attached, StartError> {
        let RunInput { ask, screen, conversation, parent, earlier, unlisted, options } = input;
        let screen = match (screen, &conversation) {
            (Screen::OfConversation, Some(id)) => self.screen_of(&caller.owner, id).await?,
            (screen, _) => screen,
        };
        let (profile, model) = self.answering(&caller, &screen, &options)?;
        let (is_first, conversation) = (conversation.is_none(), conversation.unwrap_or_else(ConversationId::fresh));
        let earlier = client::believed(earlier, &options.client_tools, &profile, &*self.agent.tools);
        let question = OwnedQuestion::Ask { ask, parent, earlier, unlisted };
        self.begin(caller, RequestedRun { conversation, is_first, question, options, profile, model, request }).await
    }

    /// Where a conversation is already.
    async fn screen_of(&self, owner: &Owner, id: &ConversationId) -> Result<Screen, StartError> {
        let head = self.places.head(owner, id).await.map_err(BeginError::from)?;
        Ok(head.map_or(Screen::OfConversation, |head| Screen::Type(head.context_type)))
    }

    /// The `context_type` of the profile that answers `caller` there.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn context_type_at(&self, caller: &Caller, screen: &Screen) -> Result<String, StartError> {
        let (profile, _) = self.answering(caller, screen, &RunOptions::default())?;
        Ok(profile.context_type.clone())
    }

    /// Whether a request of the owner's with one of these keys has begun a run, which it would find again.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn knows_request(&self, owner: &Owner, keys: &[String]) -> Result<bool, StoreError> {
        self.store.knows_request(owner, keys).await
    }

    /// Goes on with a run that was interrupted, cancelled or failed, in a new one.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn go_on(
        &self,
        caller: Caller,
        run: RunId,
        options: RunOptions,
        request: Request,
    ) -> Result<Attached, StartError> {
        let found = self.store.find_run(&caller.owner, run).await.map_err(BeginError::from)?;
        let RunRecord { conversation, context_type, .. } = found.ok_or(StartError::NoSuchRun)?;
        let (profile, model) = self.answering(&caller, &Screen::Type(context_type), &options)?;
        let (question, is_first) = (OwnedQuestion::Continue(run), false);
        self.begin(caller, RequestedRun { conversation, is_first, question, options, profile, model, request }).await
    }

    pub(super) fn answering(
        &self,
        caller: &Caller,
        screen: &Screen,
        options: &RunOptions,
    ) -> Result<(Arc<Profile>, ModelChoice), StartError> {
        let unknown = || StartError::UnknownContextType(self.agent.profiles.context_types().join(", "));
        let profile = self.agent.profiles.select(screen).ok_or_else(unknown)?;
        if !profile.lets(caller) {
            return Err(StartError::Forbidden);
        }
        let model = profile.models.choose(&options.model).map_err(StartError::NotOffered)?;
        Ok((profile, model))
    }

    /// The model that its user has chosen, unless the request names one of the profile's.
    async fn choose_model(&self, owner: &Owner, requested: &mut RequestedRun) {
        let wish = &requested.options.model;
        let Some(models) = self.chosen.as_ref().filter(|_| wish.name.is_none()) else { return };
        let chosen = models.chosen(owner, &requested.profile.context_type, wish.workload.as_deref()).await;
        let Some(ChosenModel { origin, temperature, max_tokens }) = chosen else { return };
        let choice = &mut requested.model;
        // The profile's own has fallbacks.
        if choice.models.first() != Some(&origin) {
            choice.models = vec![origin];
        }
        choice.temperature = temperature.or(choice.temperature);
        choice.max_tokens = max_tokens.or(choice.max_tokens);
    }

    pub(super) async fn begin(&self, caller: Caller, mut requested: RequestedRun) -> Result<Attached, StartError> {
        // Counted before the check, so that the drain waits for a run that was let in just before it.
        let _admitted = self.tasks.token();
        let owner = caller.owner.clone();
        if self.draining.is_cancelled() {
            return Err(StartError::Draining);
        }
        let Request { key, may_repeat, .. } = &requested.request;
        if let Some((key, digest)) = key {
            let found = self.store.find_request(&owner, RequestKey { key, digest, or_lately: *may_repeat }).await?;
            let found = match found {
                Some(record) if *may_repeat => Some(self.after_ending(&owner, record).await.map_err(BeginError::from)?),
                found => found,
            };
            match found {
                // What its client heard no end of is not done again, but gone on with.
                Some(record) if *may_repeat && record.state.broke_off() => {
                    requested.question = OwnedQuestion::Continue(record.id);
                    (requested.conversation, requested.is_first) = (record.conversation, false);
                    requested.request.may_repeat = false;
                }
                // It begins nothing, so it takes nothing: no log, no permit, no transaction.
                Some(record) => return self.join(record).await,
                None => {}
            }
        }
        let rate = self.let_in(&owner, &requested).await?;
        if requested.options.in_session {
            self.enter_session(&caller, &mut requested).await?;
        }
        self.choose_model(&owner, &mut requested).await;
        let on_busy = requested.options.on_busy.unwrap_or(self.settings.on_busy);
        let stops_unread = requested.options.stops_unread && on_busy == OnBusy::Reject;
        let requested = Arc::new(requested);
        let mut patience = None;
        loop {
            if self.draining.is_cancelled() {
                return Err(StartError::Draining);
            }
            match self.try_begin(caller.clone(), &requested, on_busy).await {
                Err(StartError::Begin(BeginError::Busy { running })) => {
                    let on_busy = match on_busy {
                        OnBusy::Reject if stops_unread && self.is_left(&owner, running).await => OnBusy::Interrupt,
                        on_busy => on_busy,
                    };
                    let until = match patience {
                        Some(until) => until,
                        None => Instant::now() + self.patience(on_busy, &owner, running).await,
                    };
                    patience = Some(until);
                    if on_busy == OnBusy::Interrupt {
                        self.cancel_by(&owner, running, CancelledBy::NextMessage).await.map_err(BeginError::from)?;
                    }
                    if !self.ends_before(&owner, running, until).await {
                        return Err(BeginError::Busy { running }.into());
                    }
                }
                begun => {
                    let mut attached = begun?;
                    attached.rate = rate;
                    return Ok(attached);
                }
            }
        }
    }

    /// Whether one more run may be begun, as far as that is known before anything is written; and its user's rate of
    /// starts, where it is counted. That comes last of what is known before anything is written, so that what is refused
    /// here for another reason uses up no start.
    async fn let_in(&self, owner: &Owner, requested: &RequestedRun) -> Result<Option<Rate>, StartError> {
        if self.live.is_full(self.settings.bounds.per_replica) {
            return Err(StartError::Full);
        }
        if let Some(over) = self.agent.budgets.check(owner).await.map_err(BeginError::from)? {
            return Err(StartError::OverBudget { retry_after_s: over.retry_after_s });
        }
        self.store
            .check_pending_limit(owner, &requested.conversation, self.most(), &self.settings.bounds.quotas)
            .await?;
        match requested.question.is_start() {
            true => self.starts.take(owner).await.map_err(StartError::TooFast),
            false => Ok(None),
        }
    }

    fn most(&self) -> MostRuns {
        MostRuns { per_user: self.settings.bounds.per_user, per_tenant: self.settings.bounds.per_tenant }
    }

    /// A run that is about to end, as it is then; any other as it is.
    async fn after_ending(&self, owner: &Owner, record: RunRecord) -> Result<RunRecord, StoreError> {
        let is_ending = self.live.get(record.id).is_some_and(|live| live.stop.reason().is_some());
        if !is_ending || !self.ends_before(owner, record.id, Instant::now() + MAKING_WAY).await {
            return Ok(record);
        }
        Ok(self.store.find_run(owner, record.id).await?.unwrap_or(record))
    }

    /// Attaches to the run that the same request began before.
    async fn join(&self, record: RunRecord) -> Result<Attached, StartError> {
        let run = record.id;
        let attached = self.attach_to(record, None).await;
        attached.map_err(|why| StartError::Joined { run, why })
    }

    /// How long a request waits for the run that is there already.
    async fn patience(&self, on_busy: OnBusy, owner: &Owner, running: RunId) -> Duration {
        let is_ending = self.live.get(running).is_some_and(|live| live.stop.reason().is_some());
        if on_busy == OnBusy::Interrupt {
            // Its process may be dead, and only its lease can tell.
            return self.settings.lease + MAKING_WAY;
        }
        if is_ending {
            return MAKING_WAY;
        }
        match self.store.find_run(owner, running).await {
            Ok(Some(record)) if record.background => Duration::ZERO,
            Ok(_) | Err(_) => LEAVING,
        }
    }

    /// Whether a run in the background of this process has no reader, now or soon: the connection of one who went away may just be
    /// ending.
    async fn is_left(&self, owner: &Owner, running: RunId) -> bool {
        match self.store.find_run(owner, running).await {
            Ok(Some(record)) if record.background => {}
            Ok(_) | Err(_) => return false,
        }
        // Of one that lives elsewhere nobody here knows who reads it.
        let Some(live) = self.live.get(running) else { return false };
        let until = Instant::now() + LEAVING;
        while live.interest.is_read(std::time::Instant::now(), self.settings.lease) {
            if Instant::now() >= until {
                return false;
            }
            sleep(LOOK_AGAIN).await;
        }
        true
    }

    /// Whether the run ends before `until`.
    pub(super) async fn ends_before(&self, owner: &Owner, run: RunId, until: Instant) -> bool {
        loop {
            if let Some(live) = self.live.get(run) {
                let left = until.saturating_duration_since(Instant::now());
                if timeout(left, live.settled.cancelled()).await.is_err() {
                    return false;
                }
            }
            match self.store.find_run(owner, run).await {
                Ok(Some(record)) if record.state.is_live() => {}
                Ok(_) => return true,
                Err(error) => {
                    tracing::debug!(error = %Causes(&error), run.id = %run, "a run that is waited for was not read");
                }
            }
            if Instant::now() >= until {
                return false;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn try_begin(
        &self,
        caller: Caller,
        requested: &Arc<RequestedRun>,
        on_busy: OnBusy,
    ) -> Result<Attached, StartError> {
        let id = RunId::fresh();
        let background = requested.options.background.unwrap_or(requested.profile.background);
        let seat = self.seats.take(id).ok_or(StartError::Failed)?;
        let writer = self.log.open(id).await?;
        let live = Live::new(id, background, writer, &self.settings);
        let hold = Hold::new(live.clone());
        let (begun, has_begun) = oneshot::channel();
        let task = Task {
            agent: self.agent.clone(),
            store: self.store.clone(),
            log: self.log.clone(),
            live: live.clone(),
            caller,
            requested: requested.clone(),
            replica: self.replica.clone(),
            lease_ms: ms(self.settings.lease),
            queue: (on_busy == OnBusy::Enqueue).then_some(self.settings.queue),
            history: HistoryBound {
                bytes: self.settings.history_bytes,
                by_summary: requested.profile.context.is_some(),
            },
            most: self.most(),
            admission: self.admission.clone(),
            summaries: self.summaries.clone(),
            titles: self.titles.clone(),
        };
        let Some(permit) = self.live.enter(live.clone(), self.settings.bounds.per_replica) else {
            self.log.forget(&[id]).await;
            return Err(StartError::Full);
        };
        // Checked after the run has entered: a drain is either seen here, or sees the run.
        if self.draining.is_cancelled() {
            self.log.forget(&[id]).await;
            return Err(StartError::Draining);
        }
        // Of nine kilobytes, which are moved a dozen times before a task has them; so only their address is.
        let running = Box::pin(async move {
            task.run(begun).await;
            drop(permit);
        });
        self.tasks.spawn(ambient::inherited(ambient::current(), outermost(Span::current(), running)));
        if self.interrupting.is_cancelled() {
            live.stop.stop(StopReason::Interrupted);
        }
        let joined = match has_begun.await {
            Ok(Ok(None)) => None,
            Ok(Ok(Some(record))) => Some(record),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(StartError::Failed),
        };
        let Some(record) = joined else {
            let of = Of {
                run: id,
                conversation: requested.conversation.clone(),
                request_id: requested.request.id.clone(),
                background,
            };
            let sees = if background { Sees::Kept } else { Sees::Everything };
            return Ok(Attached::new(of, Reader::new(live.log().ring().clone(), 0, sees), (seat, Some(hold)), false));
        };
        drop((seat, hold));
        self.join(*record).await
    }
}
