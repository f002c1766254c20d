//! Webhooks: what subscribers hear of, delivered until they have taken it or it is given up.
//!
//! ```text
//! store: a signal and its deliveries, in one transaction ──▶ one task for each subscriber: taken under a lease ──▶
//!     signed and sent ──▶ 2xx: delivered · else later, with growing pauses · 410, or the last attempt: dead
//! ```
//!
//! **Invariant:** a subscriber that fails holds up no other. At least once, in no promised order. No user's token, no
//! credential of a service and no cookie is sent.

pub mod config;
mod sign;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::ports::clock::Clock;
use crate::agent::ports::clock::ms;
use crate::agent::ports::signals::{Bell, Delivered, DeliveryStore, DueDelivery, EndedDelivery};
use crate::bounded::address::{Refused, is_loopback};
use crate::bounded::client::{self, NoConnection, Reach};
use crate::bounded::retry_after::retry_after;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::day::rfc3339;
use crate::chat::signal::{Signal, Subject};
use crate::observe::metrics;
pub use config::{SignalsConfig, SubscriberConfig};
use sign::Keys;

/// Between two looks for what others have left: new signals ring before, and what is to be sent again here is remembered.
const LOOK: Duration = Duration::from_secs(15);

/// Before the next look where the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// How much later it looks than the database would have it, which told its own time before.
const SKEW: Duration = Duration::from_millis(20);

/// Attempts to one subscriber at once.
const AT_ONCE: usize = 32;

/// How much longer than an attempt a claim lasts.
const MARGIN: Duration = Duration::from_secs(15);

/// Between two removals of old signals.
const TIDYING: Duration = Duration::from_secs(600);

/// Delivers signals.
pub struct Webhooks {
    store: Arc<dyn DeliveryStore>,
    clock: Arc<dyn Clock>,
    retry: (Duration, Duration),
    retention: Option<Duration>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

/// One who is told.
struct Subscriber {
    name: String,
    url: Url,
    keys: Keys,
    http: reqwest::Client,
    timeout: Duration,
    max_attempts: u32,
}

impl Webhooks {
    /// Delivers what `store` has for the subscribers of `config`, from now on; `bell` rings when there is something new.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn start(
        config: &SignalsConfig,
        store: Arc<dyn DeliveryStore>,
        clock: Arc<dyn Clock>,
        bell: &Bell,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let subscribers = config.subscribers.iter().map(|(name, one)| Subscriber::new(name, one));
        let subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
        let webhooks = Arc::new(Self {
            store,
            clock,
            retry: (Duration::from_millis(config.retry_base_ms), Duration::from_secs(config.retry_max_s)),
            retention: config.retention(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        for subscriber in subscribers.into_iter().flatten() {
            webhooks.tasks.spawn(webhooks.clone().serve(Arc::new(subscriber), bell.listen()));
        }
        webhooks.tasks.spawn(webhooks.clone().tidy());
        Ok(webhooks)
    }

    /// Takes nothing more, and waits until what is under way has ended.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Delivers to one subscriber what is due, until the process stops and nothing is under way any more. While one
    /// transaction is under way others end: what has ended is kept together, and as much is taken together.
    async fn serve(self: Arc<Self>, subscriber: Arc<Subscriber>, mut bell: watch::Receiver<()>) {
        let lease_ms = ms(subscriber.timeout.saturating_add(MARGIN));
        let (mut sending, mut next): (JoinSet<EndedDelivery>, Option<Instant>) = (JoinSet::new(), None);
        // Whether there was as much as could be taken, so that there may be more.
        let mut is_full = false;
        loop {
            bell.mark_unchanged();
            let stops = self.stopping.is_cancelled();
            let free = if stops { 0 } else { AT_ONCE.saturating_sub(sending.len()) };
            next = next.filter(|at| *at > Instant::now());
            let mut pause = next.map_or(LOOK, |at| at.duration_since(Instant::now()).min(LOOK));
            let due = match u32::try_from(free).unwrap_or(0) {
                0 => Vec::new(),
                most => match self.store.claim_deliveries(&subscriber.name, lease_ms, most, is_full).await {
                    Ok(due) => due,
                    Err(error) => {
                        tracing::error!(error = %Causes(&error), "deliveries are not seen to");
                        pause = AFTER_FAILURE;
                        Vec::new()
                    }
                },
            };
            if free > 0 {
                is_full = due.len() == free;
            }
            for one in due {
                if one.attempts == 0 {
                    let waited_ms = self.clock.now_ms().saturating_sub(one.signal.inserted_at_ms);
                    let waited = Duration::from_millis(u64::try_from(waited_ms).unwrap_or_default());
                    metrics::delivery_waited(&subscriber.name, waited);
                }
                let (webhooks, subscriber) = (self.clone(), subscriber.clone());
                sending.spawn(async move { webhooks.deliver(&subscriber, one).await });
            }
            if stops && sending.is_empty() {
                return;
            }
            let mut ended = Vec::new();
            tokio::select! {
                Some(one) = sending.join_next() => ended.extend(one),
                // Whoever rings is there as long as the process.
                Ok(()) = bell.changed(), if free > 0 => {}
                () = sleep(pause) => {}
                () = self.stopping.cancelled(), if !stops => {}
            }
            ended.extend(std::iter::from_fn(|| sending.try_join_next()).flatten());
            if ended.is_empty() {
                continue;
            }
            if let Err(error) = self.store.settle_deliveries(&ended).await {
                // Their claims end, and they are sent once more.
                let (subscriber, deliveries) = (&subscriber.name, ended.len());
                tracing::error!(subscriber, deliveries, error = %Causes(&error), "what became of deliveries is not kept");
            }
            for EndedDelivery { outcome, .. } in &ended {
                if let Delivered::Later { in_ms, .. } = outcome {
                    let at = Instant::now() + Duration::from_millis(in_ms.unsigned_abs()) + SKEW;
                    next = Some(next.map_or(at, |next| next.min(at)));
                }
            }
        }
    }

    async fn deliver(&self, subscriber: &Subscriber, due: DueDelivery) -> EndedDelivery {
        let sent = subscriber.send(&due, self.clock.now_ms() / 1000).await;
        let attempts = due.attempts.saturating_add(1);
        let outcome = match sent {
            Ok((status, _)) if status.is_success() => Delivered::Yes(status.as_u16()),
            Ok((StatusCode::GONE, _)) => {
                Delivered::Dead { status: Some(410), error: "the subscriber is gone".to_owned() }
            }
            Ok((status, asked)) => {
                let pause = pause(attempts, self.retry, asked);
                later(attempts, subscriber, Some(status.as_u16()), format!("HTTP {}", status.as_u16()), pause)
            }
            Err(words) => later(attempts, subscriber, None, words.to_owned(), pause(attempts, self.retry, None)),
        };
        metrics::delivery(
            &subscriber.name,
            match &outcome {
                Delivered::Yes(_) => "delivered",
                Delivered::Later { .. } => "again",
                Delivered::Dead { .. } => "dead",
            },
        );
        if let Delivered::Dead { error, .. } = &outcome {
            tracing::warn!(delivery.id = %due.id, subscriber = subscriber.name, error, "delivery given up");
        }
        EndedDelivery { id: due.id, token: due.token, outcome }
    }

    /// Removes signals that are older than they are kept.
    async fn tidy(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = sleep(TIDYING) => {}
                () = self.stopping.cancelled() => return,
            }
            loop {
                match self.store.tidy_signals(self.retention.map(ms)).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::error!(error = %Causes(&error), "old signals are not removed");
                        break;
                    }
                }
            }
        }
    }
}

impl Subscriber {
    /// The subscriber of this name; `None` where its settings are wrong, which has been said before.
    fn new(name: &str, config: &SubscriberConfig) -> Result<Option<Self>, reqwest::Error> {
        let timeout = Duration::from_secs(config.timeout_s);
        let Some(url) = config::address(&config.url) else { return Ok(None) };
        let reach = if config.private || is_loopback(&url) { Reach::Private } else { Reach::Public };
        let builder = client::builder(reach).retry(reqwest::retry::never()).no_proxy().timeout(timeout);
        let secrets = [&config.secret, &config.previous_secret];
        let keys = Keys::new(secrets.into_iter().filter_map(config::key_of));
        let (name, http, max_attempts) = (name.to_owned(), builder.build()?, config.max_attempts);
        Ok(Some(Self { name, url, keys, http, timeout, max_attempts }))
    }

    /// The status of the answer, and how long it asks to wait.
    ///
    /// # Errors
    /// In our words, where none came.
    async fn send(&self, due: &DueDelivery, timestamp: i64) -> Result<(StatusCode, Option<Duration>), &'static str> {
        let (id, body) = (due.signal.id.to_string(), body(&due.signal, &due.owner).to_string());
        let request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", self.keys.signature(&id, timestamp, &body));
        // What it says is of no interest, and not read.
        match request.body(body).send().await {
            Ok(response) => {
                let is_busy =
                    matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
                let asked = is_busy.then(|| retry_after(response.headers(), Timestamp::now())).flatten();
                Ok((response.status(), asked))
            }
            Err(error) => {
                let error = error.without_url();
                let words = no_answer(&error);
                tracing::info!(delivery.id = %due.id, subscriber = self.name, error = %Causes(&error), "no answer: {words}");
                Err(words)
            }
        }
    }
}

/// The outcome of an attempt that was not taken.
fn later(attempts: u32, subscriber: &Subscriber, status: Option<u16>, error: String, pause: Duration) -> Delivered {
    match attempts >= subscriber.max_attempts {
        true => Delivered::Dead { status, error },
        false => Delivered::Later { status, error, in_ms: ms(pause) },
    }
}

/// The pause behind so many attempts: the first one doubled with each, up to the longest, and cut by half of it at most; or as
/// long as the subscriber has asked for, up to the longest too.
fn pause(attempts: u32, (base, most): (Duration, Duration), asked: Option<Duration>) -> Duration {
    let doubled = base.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(most);
    doubled.mul_f64(0.5 + fastrand::f64() / 2.0).max(asked.unwrap_or_default().min(most))
}

/// Why no answer came, in our words.
fn no_answer(error: &reqwest::Error) -> &'static str {
    match NoConnection::of(error) {
        Some(NoConnection::Refused(Refused::NotPublic)) => {
            "its name leads to a private network, which private = true allows"
        }
        Some(NoConnection::Refused(Refused::Metadata | Refused::Scheme | Refused::UserInfo)) => {
            "its name leads to a link-local or metadata address alone"
        }
        Some(NoConnection::UnknownName) => "its name is not known",
        Some(NoConnection::Certificate) => "its certificate is not trusted",
        Some(NoConnection::Closed) => "it refuses connections",
        None if error.is_timeout() => "no answer in time",
        None if error.is_connect() => "the subscriber cannot be reached",
        None => "the connection broke",
    }
}

/// What a delivery says.
fn body(signal: &Signal, owner: &Owner) -> Value {
    let fact = &signal.fact;
    let subject = fact.subject.as_ref().map(|Subject { kind, id }| json!({"type": kind, "id": id}));
    let mut body = json!({
        "type": fact.name,
        "timestamp": rfc3339(fact.occurred_at_ms.unwrap_or(signal.inserted_at_ms)),
        "data": {
            "tenant": owner.tenant_name(),
            "id": signal.id.to_string(),
            "seq": signal.seq,
            "payload": fact.payload,
            "metadata": fact.metadata,
            "correlation_id": fact.correlation,
            "causation_id": fact.causation,
            "actor": fact.actor.as_ref().map(|id| json!({"type": "user", "id": id})),
            "subject": subject,
            "source": fact.source.name(),
        },
    });
    if let Some(issuer) = owner.issuer_name() {
        body["data"]["issuer"] = issuer.into();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_a_subscriber_may_ask_for_longer_ones() {
        let (s, retry) = (Duration::from_secs, (Duration::from_secs(1), Duration::from_secs(3600)));
        let rows = [
            (1, None, s(1), "the first"),
            (4, None, s(8), "doubled with each"),
            (59, None, s(3600), "up to the longest"),
            (1, Some(s(120)), s(120), "what is asked for"),
            (1, Some(s(86400)), s(3600), "up to the longest too"),
            (12, Some(s(1)), s(2048), "less is not heard"),
        ];
        for (attempts, asked, most, reason) in rows {
            let pause = pause(attempts, retry, asked);
            let least = asked.unwrap_or_default().min(most).max(most / 2);
            assert!((least..=most).contains(&pause), "{reason}: {pause:?}");
        }
    }
}
