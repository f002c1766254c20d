//! Which model takes a turn: the first of the request's list that begins to answer. Each is called again as its policy
//! says, then the next one gets the same history; once a token is there, the answer stands or falls with its model.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::time::{Instant, sleep};
use tower::retry::budget::{Budget, TpsBudget};

use super::breaker::{self, Behind, Breaker, Permit};
use super::config::{self, LlmConfig};
use super::connect_with;
use super::http::{ConnectError, Net, Patience};
use super::retry::Policy;
use super::watch::{self, Watched};
use crate::agent::ports::llm::{
    ChatRequest, EventStream, LlmProvider, ProviderError, ProviderErrorKind, SentFiles, Takes,
};
use crate::chat::causes::Causes;
use crate::chat::message::ModelOrigin;
use crate::observe::metrics::{self, BreakerState, ModelCall, Outcome};

/// All models that may be called.
pub struct Router {
    net: Net,
    policy: Policy,
    retry: config::Retry,
    breaker: config::Breaker,
    models: ArcSwap<HashMap<ModelOrigin, Arc<Model>>>,
}

/// Models that take the place of those of a [`Router`].
pub struct Models(HashMap<ModelOrigin, Arc<Model>>);

impl Models {
    /// The providers that cannot be asked, each with the reason in words that begin with its place.
    pub(super) fn unusable(&self) -> BTreeMap<String, String> {
        let models = self.0.values();
        models.filter_map(|model| Some((model.origin.provider.clone(), model.unusable.clone()?))).collect()
    }
}

/// Stands for a model whose provider cannot be set up.
struct Unusable(String);

#[async_trait]
impl LlmProvider for Unusable {
    async fn stream_chat(&self, _: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        Err(ProviderError::new(ProviderErrorKind::ModelNotFound, self.0.clone()))
    }
}

/// One model, with its record of the last calls.
struct Model {
    /// Whether it stays, whatever an editor does: profiles or helpers name it.
    stays: bool,
    origin: Arc<ModelOrigin>,
    provider: Arc<dyn LlmProvider>,
    /// What it can be given.
    takes: Takes,
    /// Why its provider cannot be asked, where that is so.
    unusable: Option<String>,
    breaker: Arc<Breaker>,
    /// How many calls may be repetitions: when everything fails, repetitions only make it worse.
    budget: TpsBudget,
}

/// The time over which calls and repetitions are counted.
const BUDGET_WINDOW: Duration = Duration::from_secs(10);

/// 1 repetition a second is always allowed, so that a lone user gets one.
const BUDGET_PER_SECOND: u32 = 1;

impl Router {
    /// The models `origins` of the configuration. Nothing is sent before the first request.
    ///
    /// # Errors
    /// When one of them cannot be set up.
    pub fn connect<'a>(
        config: &LlmConfig,
        origins: impl IntoIterator<Item = &'a ModelOrigin>,
    ) -> Result<Self, ConnectError> {
        let mut router = Self {
            net: Net::new(config.patience())?,
            policy: Policy::new(config.retry),
            retry: config.retry,
            breaker: config.breaker,
            models: ArcSwap::default(),
        };
        for origin in origins {
            if !router.models.load().contains_key(origin) {
                let provider = connect_with(origin, config, &router.net)?;
                router = router.with_taking(origin.clone(), provider, config.takes(origin));
            }
        }
        Ok(router)
    }

    /// Whether the providers of all models have what they need of this machine, such as credentials. No model is asked.
    ///
    /// # Errors
    /// For the first one that has not.
    pub async fn ready(&self, config: &LlmConfig) -> Result<(), ConnectError> {
        let providers: BTreeSet<String> = self.models.load().keys().map(|origin| origin.provider.clone()).collect();
        for name in providers {
            if let Some(section) = config.section(&name) {
                section.ready(&LlmConfig::section_path(&name)).await?;
            }
        }
        Ok(())
    }

    /// The models as `config` has them: those of `changed` providers are new ones, and so are those of `chosen` that are
    /// not there yet; the others stay, with their record, as long as somebody names them. Nothing changes by it. Models of
    /// providers that are `wrong`, or cannot be set up, say so when they are asked ([`Models::unusable`]).
    pub(super) fn renewed(
        &self,
        config: &LlmConfig,
        chosen: &HashSet<ModelOrigin>,
        changed: &BTreeSet<String>,
        wrong: &BTreeMap<String, String>,
    ) -> Models {
        let models = self.models.load();
        let staying = models.values().filter(|model| model.stays).map(|model| &*model.origin);
        let mut next = HashMap::new();
        for origin in staying.chain(chosen) {
            let before = models.get(origin);
            let model = match before.filter(|_| !changed.contains(&origin.provider)) {
                Some(model) => model.clone(),
                None => {
                    let connected = match wrong.get(&origin.provider) {
                        Some(reason) => Err(reason.clone()),
                        None => connect_with(origin, config, &self.net)
                            .map_err(|error| format!("providers.{}: {}", origin.provider, Causes(&error))),
                    };
                    let (provider, unusable): (Arc<dyn LlmProvider>, _) = match connected {
                        Ok(provider) => (provider, None),
                        Err(reason) => (Arc::new(Unusable(reason.clone())), Some(reason)),
                    };
                    let model = self.model(origin.clone(), provider, before.is_some_and(|model| model.stays));
                    Arc::new(Model { unusable, takes: config.takes(origin), ..model })
                }
            };
            next.insert(origin.clone(), model);
        }
        Models(next)
    }

    /// Puts `models` in the place of those that are there: from the next call on.
    pub(super) fn put(&self, Models(models): Models) {
        self.models.store(Arc::new(models));
    }

    /// With one more model, which is not one of the vendors' and reads nothing but texts.
    pub fn with(self, origin: ModelOrigin, provider: Arc<dyn LlmProvider>) -> Self {
        self.with_taking(origin, provider, Takes::default())
    }

    fn with_taking(self, origin: ModelOrigin, provider: Arc<dyn LlmProvider>, takes: Takes) -> Self {
        let model = Arc::new(Model { takes, ..self.model(origin.clone(), provider, true) });
        let mut models = HashMap::clone(&self.models.load());
        models.insert(origin, model);
        self.models.store(Arc::new(models));
        self
    }

    fn model(&self, origin: ModelOrigin, provider: Arc<dyn LlmProvider>, stays: bool) -> Model {
        let percent = f32::from(u8::try_from(self.retry.budget_percent).unwrap_or(MAX_PERCENT).min(MAX_PERCENT));
        let named = Arc::new(origin);
        Model {
            stays,
            breaker: Breaker::new(Arc::clone(&named), self.breaker),
            origin: named,
            provider,
            takes: Takes::default(),
            unusable: None,
            budget: TpsBudget::new(BUDGET_WINDOW, BUDGET_PER_SECOND, percent / 100.0),
        }
    }

    /// The providers whose models are left alone at the moment, or are just being tried again, each with the worst state
    /// of its models, by name.
    pub fn failing(&self) -> BTreeMap<String, BreakerState> {
        let mut failing = BTreeMap::new();
        for model in self.models.load().values() {
            let state = model.breaker.state_now();
            if state != BreakerState::Closed {
                let worst = failing.entry(model.origin.provider.clone()).or_insert(state);
                if state == BreakerState::Open {
                    *worst = state;
                }
            }
        }
        failing
    }

    /// The answer of one model, begun: its first token is there.
    async fn ask(&self, model: &Model, behind: Behind, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        model.budget.deposit();
        let mut failure = None;
        for attempt in 1.. {
            // Where this turn's own failures were the last straw, they say more than the breaker does.
            let permit = match model.breaker.admit(Instant::now(), behind) {
                Ok(permit) => permit,
                Err(open) => return Err(failure.unwrap_or_else(|| left_alone(model, open))),
            };
            let error = match open(model, permit, request, self.net.patience).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let left = request.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let wait = self.policy.wait(&error, attempt, fastrand::f64(), left);
            let Some(wait) = wait.filter(|_| model.budget.withdraw()) else { return Err(error) };
            log(&error, "model call failed; asking again", attempt, Some(wait));
            metrics::model_retried(&model.origin.provider, &model.origin.model);
            sleep(wait).await;
            failure = Some(error);
        }
        Err(no_provider())
    }
}

/// 100 per cent: every call once more.
const MAX_PERCENT: u8 = 100;

#[async_trait]
impl LlmProvider for Router {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let mut failure: Option<ProviderError> = None;
        let mut before: Option<&Model> = None;
        let models = self.models.load_full();
        let asked: Vec<&Arc<Model>> = request.model.models.iter().filter_map(|origin| models.get(origin)).collect();
        for (nth, model) in (1..).zip(&asked) {
            let behind = if nth < asked.len() { Behind::Another } else { Behind::Nobody };
            if let Some(Model { origin, .. }) = before.replace(model) {
                metrics::model_fell_back(&origin.provider, &origin.model);
            }
            let error = match self.ask(model, behind, request).await {
                Ok(answer) => return Ok(answer),
                // What one vendor refuses on safety grounds is not taken to another.
                Err(error) if error.kind == ProviderErrorKind::ContentFiltered => return Err(error),
                Err(error) => error,
            };
            // Returned in the end: a retryable one, if there is any, since then the whole request may succeed later.
            let (kept, other) = match failure {
                Some(before) if before.retryable && !error.retryable => (before, Some(error)),
                before => (error, before),
            };
            failure = Some(kept);
            if let Some(other) = other {
                log(&other, "model call failed; another model was asked", 0, None);
            }
        }
        Err(failure.unwrap_or_else(no_provider))
    }

    fn takes(&self, model: &ModelOrigin) -> Takes {
        self.models.load().get(model).map(|model| model.takes).unwrap_or_default()
    }
}

/// One call of one model, up to its first token.
async fn open(
    model: &Model,
    permit: Permit,
    request: ChatRequest<'_>,
    patience: Patience,
) -> Result<EventStream, ProviderError> {
    let mut call = ModelCall::begin(&model.origin.provider, &model.origin.model);
    let request = ChatRequest { files: SentFiles { takes: model.takes, ..request.files }, ..request };
    let answer = match model.provider.stream_chat(request).await {
        Ok(answer) => answer,
        Err(error) => {
            call.ended(Outcome::failed(error.kind.code().name()));
            watch::settle(permit, error.kind);
            return Err(ProviderError { origin: Some(Arc::clone(&model.origin)), ..error });
        }
    };
    let mut watched = Watched::new(answer, (permit, call), patience);
    watched.first_token().await?;
    Ok(watched.into_stream())
}

/// The failure that opened the breaker, returned again without a call.
fn left_alone(model: &Model, open: breaker::Open) -> ProviderError {
    let (kind, left) = (open.kind, open.left.as_secs_f64().ceil());
    let detail =
        format!("not asked: its last calls failed with {}; next try in {left:.0} s at most", kind.code().name());
    ProviderError { origin: Some(Arc::clone(&model.origin)), ..ProviderError::new(kind, detail) }
}

fn no_provider() -> ProviderError {
    ProviderError::new(ProviderErrorKind::ModelNotFound, "no model is configured for this request")
}

fn log(error: &ProviderError, message: &'static str, attempt: u32, wait: Option<Duration>) {
    tracing::warn!(
        error.code = error.kind.code().name(),
        gen_ai.provider.name = error.origin.as_ref().map(|origin| &*origin.provider),
        gen_ai.request.model = error.origin.as_ref().map(|origin| &*origin.model),
        llm.request_id = error.request_id,
        attempt = (attempt > 0).then_some(attempt),
        wait_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        error = %Causes(&*error.detail),
        "{message}"
    );
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("models", &self.models.load().keys()).finish_non_exhaustive()
    }
}
