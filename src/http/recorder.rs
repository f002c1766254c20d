//! What keeps the audit record up to date: it chains the lines that others have written, writes those of refused tokens,
//! added up, and sends what is chained to a collector, where there is one.
//!
//! **Invariant:** whoever brings bad tokens fills nothing: their reasons are a short list, and each is a line at once and then one
//! in `LINE_INTERVAL` with how many there were, whoever brought them.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::ports::audit::{AuditSink, AuditStore, NotTaken};
use crate::agent::ports::store_error::StoreError;
use crate::chat::audit::{Act, AuditLine, Fact, TOKENS};
use crate::chat::causes::Causes;

/// Between two looks.
const BEAT: Duration = Duration::from_secs(1);

/// The longest time between two looks while there is nothing: a line is chained within so long.
const LONGEST_BEAT: Duration = Duration::from_secs(8);

/// Between two lines of one reason: five minutes.
const LINE_INTERVAL: Duration = Duration::from_secs(300);

/// How often one look goes on chaining while there is more.
const SEALED_AT_ONCE: usize = 20;

/// Lines in one request to the collector at most.
const SENT_AT_ONCE: u32 = 500;

/// The longest pause while the collector takes nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Lines of one chain that are gone past at a time, each with a request of its own.
const MOST_REFUSED: usize = 100;

/// Between two lines of the log that tell of it.
const SAID_AGAIN: Duration = Duration::from_secs(3600);

/// Keeps the audit record up to date, from [`Self::start`] on.
pub struct Recorder {
    audit: Arc<dyn AuditStore>,
    sink: Option<Arc<dyn AuditSink>>,
    refused: Mutex<BTreeMap<&'static str, Refused>>,
    /// Held by whoever chains, so that of a process only one waits for a chain, with one connection.
    sealing: tokio::sync::Mutex<()>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Tokens that were refused for one reason.
#[derive(Clone, Copy, Default)]
struct Refused {
    /// Those that no line tells of yet.
    count: u64,
    /// When the last line was written.
    last_line: Option<Instant>,
}

/// What a look has chained.
pub(super) enum Found {
    Nothing,
    Lines,
}

impl Recorder {
    /// One that writes to `audit`, and sends its lines to `sink`.
    pub fn new(audit: Arc<dyn AuditStore>, sink: Option<Arc<dyn AuditSink>>) -> Arc<Self> {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { audit, sink, refused: Mutex::default(), sealing: tokio::sync::Mutex::default(), tasks, stop })
    }

    /// Begins.
    pub fn start(self: &Arc<Self>) {
        let recorder = self.clone();
        self.tasks.spawn(async move {
            let (mut is_failing, mut beat) = (false, BEAT);
            while recorder.stop.run_until_cancelled(tokio::time::sleep(beat)).await.is_some() {
                let looked = recorder.look(LINE_INTERVAL).await;
                beat = match looked {
                    Ok(Found::Nothing) => (beat * 2).min(LONGEST_BEAT),
                    Ok(Found::Lines) | Err(_) => BEAT,
                };
                let failed = looked.err();
                match (&failed, is_failing) {
                    (Some(error), false) => tracing::error!(error = %Causes(error), "the audit record is not chained"),
                    (None, true) => tracing::info!("the audit record is chained again"),
                    (Some(_), true) | (None, false) => {}
                }
                is_failing = failed.is_some();
            }
        });
        if let Some(sink) = self.sink.clone() {
            let recorder = self.clone();
            self.tasks.spawn(async move { recorder.stop.run_until_cancelled(recorder.send_to(&*sink)).await });
        }
    }

    /// Sends lines away, for as long as this is polled. What was sent is noted in the database: no outage and no restart loses a
    /// line, and one whose answer was lost, or that another replica sends just now, comes twice.
    async fn send_to(&self, sink: &dyn AuditSink) {
        let mut pause = BEAT;
        let mut said: Option<Instant> = None;
        loop {
            tokio::time::sleep(pause).await;
            match self.send_unsent(sink).await {
                Ok(()) => {
                    pause = BEAT;
                    if said.take().is_some() {
                        tracing::info!("the collector takes the audit record again");
                    }
                }
                Err(error) => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    if said.is_none_or(|at| at.elapsed() >= SAID_AGAIN) {
                        tracing::error!(error = %Causes(&*error), "the audit record is not sent; it is tried again");
                        said = Some(Instant::now());
                    }
                }
            }
        }
    }

    /// Sends what was not sent. A chain of which nothing is taken holds up no other.
    async fn send_unsent(&self, sink: &dyn AuditSink) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut sent = Ok(());
        for (chain, after) in self.audit.unsent().await? {
            sent = sent.and(self.send_chain(sink, &chain, after).await);
        }
        sent
    }

    /// Sends the lines of a chain behind number `sent`. Where some are refused for good, fewer are sent at once, until it is one
    /// alone that is refused: it is gone past where the newest is taken then. After [`MOST_REFUSED`] of them it is the turn of others.
    async fn send_chain(
        &self,
        sink: &dyn AuditSink,
        chain: &str,
        mut sent: u64,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (mut most, mut refused, mut is_newest_taken) = (SENT_AT_ONCE, Vec::new(), false);
        let ended = loop {
            let lines = self.audit.lines(chain, sent, most).await?;
            let (Some(last), count) = (lines.last().map(|line| line.seq), lines.len()) else { break Ok(()) };
            match sink.send(lines).await {
                Ok(()) => (most, is_newest_taken) = (most.saturating_mul(2).min(SENT_AT_ONCE), false),
                Err(NotTaken::Refused(_)) if count > 1 => {
                    most = u32::try_from(count / 2).unwrap_or(SENT_AT_ONCE);
                    continue;
                }
                Err(error @ NotTaken::Refused(_)) => {
                    if !is_newest_taken {
                        // Where the newest line is refused too, it is not this one that is wrong.
                        let newest = self.newest(chain).await?.filter(|line| line.seq > last);
                        let Some(newest) = newest else { break Err(error.into()) };
                        if let Err(error) = sink.send(vec![newest]).await {
                            break Err(error.into());
                        }
                        is_newest_taken = true;
                    }
                    refused.push(last);
                }
                Err(error @ NotTaken::Yet(_)) => break Err(error.into()),
            }
            sent = last;
            self.audit.note_sent(chain, sent).await?;
            if refused.len() == MOST_REFUSED {
                break Ok(());
            }
        };
        if let (Some(first), Some(last)) = (refused.first(), refused.last()) {
            let lines = refused.len();
            tracing::error!(
                chain,
                first,
                last,
                lines,
                "lines of the audit record are refused; they are in the database"
            );
        }
        ended
    }

    /// The last line of a chain.
    async fn newest(&self, chain: &str) -> Result<Option<AuditLine>, StoreError> {
        let chains = self.audit.chains().await?;
        let Some(end) = chains.into_iter().find(|one| one.name == chain) else { return Ok(None) };
        Ok(self.audit.lines(chain, end.seq.saturating_sub(1), 1).await?.pop())
    }

    /// Ends, with what is left to tell.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if let Err(error) = self.look(Duration::ZERO).await {
            tracing::warn!(error = %Causes(&error), "the last of the audit record is not chained yet");
        }
    }

    /// Counts a token that was refused.
    pub(super) fn token_refused(&self, reason: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let of_reason = refused.entry(reason).or_default();
        of_reason.count = of_reason.count.saturating_add(1);
    }

    async fn look(&self, interval: Duration) -> Result<Found, StoreError> {
        let mut due = self.due(interval).into_iter();
        while let Some((reason, count)) = due.next() {
            let fact = Fact { reason: Some(reason.to_owned()), count, ..Fact::new(Act::TokenRefused, "", "") };
            if let Err(error) = self.audit.note(TOKENS, fact).await {
                std::iter::once((reason, count)).chain(due).for_each(|(reason, count)| self.count_again(reason, count));
                return Err(error);
            }
        }
        self.seal().await
    }

    /// Chains what was committed before.
    ///
    /// # Errors
    /// When it could not be done.
    pub(super) async fn seal(&self) -> Result<Found, StoreError> {
        let _sealing = self.sealing.lock().await;
        let mut found = Found::Nothing;
        for _ in 0..SEALED_AT_ONCE {
            if self.audit.seal().await?.is_empty() {
                break;
            }
            found = Found::Lines;
        }
        Ok(found)
    }

    /// The reasons that are due for a line, with how many tokens it tells of.
    fn due(&self, interval: Duration) -> Vec<(&'static str, u64)> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let due = refused
            .iter_mut()
            .filter(|(_, refused)| refused.count > 0 && refused.last_line.is_none_or(|at| at.elapsed() >= interval));
        due.map(|(reason, refused)| {
            refused.last_line = Some(Instant::now());
            (*reason, std::mem::take(&mut refused.count))
        })
        .collect()
    }

    /// Counts them again: no line tells of them.
    fn count_again(&self, reason: &'static str, count: u64) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let of_reason = refused.entry(reason).or_default();
        *of_reason = Refused { count: of_reason.count.saturating_add(count), last_line: None };
    }
}
