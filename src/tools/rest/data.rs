//! The data loaders: REST calls whose answers prompts show.
//!
//! **Invariant:** what one user sees never answers another: answers are kept by tenant, user and roles, by the exact request, for
//! as long as the loader says, one fetch at a time. Failures are not kept. A write makes stale what everybody has here, and
//! what its user has in other replicas. **Invariant:** a loader reads.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use moka::Expiry;
use moka::future::Cache;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::projection::Projection;
use super::request::{Filled, RestRequest};
use super::values;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::data::{DataChanges, DataLoader, Loaded, NotLoaded, Warm};
use crate::agent::ports::tools::ToolContext;
use crate::bounded::json::{self, NodeBudget, Wanted};
use crate::chat::caller::{Audience, Caller, Owner};
use crate::chat::causes::Causes;
use crate::chat::template::{TemplateError, ValueTemplate};
use crate::tools::ToolError;
use crate::tools::backend::{Backend, BackendError, Backends, UnknownBackend};

/// 64 MB of memory for all answers together.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// 256 KiB of JSON text: far more than a prompt should show.
const MAX_LOADED_BYTES: usize = 256 << 10;

/// What the cache needs for an answer besides its value and the text of its key, roughly.
const PER_ANSWER: usize = 256;

/// One loader, as a profile's file describes it.
#[derive(Debug, Clone)]
pub struct Loader {
    /// Its name, unique among all.
    pub name: String,
    /// It loads where this is true; `None`: always.
    pub when: Option<ValueTemplate>,
    /// The call.
    pub request: RestRequest,
    /// Its arguments. One without a value is left out.
    pub args: Vec<(String, ValueTemplate)>,
    /// What of the answer the prompt shows.
    pub projection: Projection,
    /// How long an answer is kept; zero keeps none.
    pub ttl: Duration,
    /// What writes name to make an answer stale.
    pub tags: Vec<String>,
    /// What the model reads when loading fails; `None`: what went wrong.
    pub failure: Option<String>,
}

impl Loader {
    /// The names that its templates take values from.
    fn names(&self) -> BTreeSet<&str> {
        let args = self.args.iter().map(|(_, template)| template);
        let own = self.when.iter().chain(args).flat_map(ValueTemplate::names);
        own.chain(self.request.names()).collect()
    }
}

/// All loaders by name.
pub struct Loaders {
    by_name: HashMap<String, Ready>,
    kept: Cache<Key, Arc<Kept>>,
    /// How often each tag was made stale. The counts are part of the keys, so that the answer to a request sent before
    /// is not found after, however late it comes.
    generations: Mutex<HashMap<String, u64>>,
    /// The same of each user, for all replicas.
    changes: Arc<dyn DataChanges>,
    /// Notes of changes that are being kept.
    notes: TaskTracker,
    clock: Arc<dyn Clock>,
}

/// A loader with what it works with.
struct Ready {
    loader: Loader,
    backend: Arc<Backend>,
    /// Whether some template takes the screen state.
    takes_context: bool,
}

type Key = (Audience, String);

struct Kept {
    value: Value,
    ttl: Duration,
    at_ms: i64,
}

/// Why nothing was loaded.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Call(#[from] ToolError),
    #[error("it is too large: {0} bytes, and at most {MAX_LOADED_BYTES} can be shown")]
    TooLarge(usize),
    #[error(transparent)]
    Shared(#[from] Arc<Failure>),
}

impl Failure {
    /// What that says of the caller, whose own token was sent or not.
    fn why(&self, is_callers_token: bool) -> NotLoaded {
        match self {
            Self::Call(ToolError::Backend(BackendError::Status { status, .. })) => match status.as_u16() {
                // A token of ours that is refused says nothing of anybody.
                401 if !is_callers_token => NotLoaded::Failed,
                401 | 403 => NotLoaded::Denied,
                404 => NotLoaded::NotThere,
                _ => NotLoaded::Failed,
            },
            // What a client says of its place cannot be the name of anything.
            Self::Call(ToolError::BadParams(_)) => NotLoaded::NotThere,
            Self::Shared(shared) => shared.why(is_callers_token),
            Self::Template(_) | Self::Call(_) | Self::TooLarge(_) => NotLoaded::Failed,
        }
    }

    /// What the log says of it: never a backend's words, which may be a user's data.
    fn for_log(&self) -> Option<String> {
        match self {
            Self::Call(ToolError::Backend(error)) => Some(error.for_log()),
            Self::Template(_) | Self::TooLarge(_) => Some(self.to_string()),
            Self::Shared(shared) => shared.for_log(),
            Self::Call(_) => None,
        }
    }
}

struct ByTtl;

impl Expiry<Key, Arc<Kept>> for ByTtl {
    fn expire_after_create(&self, _: &Key, kept: &Arc<Kept>, _: Instant) -> Option<Duration> {
        Some(kept.ttl)
    }
}

impl Loaders {
    /// These loaders, with nothing loaded yet.
    ///
    /// # Errors
    /// When one names a backend that is not there.
    pub fn new(
        backends: &Backends,
        loaders: impl IntoIterator<Item = Loader>,
        changes: Arc<dyn DataChanges>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, UnknownBackend> {
        let weight = |key: &Key, kept: &Kept| {
            let bytes = PER_ANSWER + key.1.len() + json::memory(&kept.value);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let kept = Cache::builder()
            .max_capacity(MAX_KEPT_BYTES)
            .weigher(move |key, kept: &Arc<Kept>| weight(key, kept))
            .expire_after(ByTtl)
            .build();
        let by_name = loaders.into_iter().map(|loader| {
            let backend = backends.get(loader.request.backend.as_deref())?.clone();
            let takes_context = values::take_context(&loader.names());
            Ok((loader.name.clone(), Ready { loader, backend, takes_context }))
        });
        let by_name = by_name.collect::<Result<_, UnknownBackend>>()?;
        Ok(Self { by_name, kept, generations: Mutex::default(), changes, notes: TaskTracker::new(), clock })
    }

    /// A write begins: what was loaded with one of `tags` is not used any more, of anybody here, and of `owner` elsewhere.
    pub async fn stale(&self, owner: &Owner, tags: &[String]) {
        if !tags.is_empty() {
            self.stale_here(tags);
            note(&*self.changes, owner, tags).await;
        }
    }

    /// The same when the write is over. Nothing waits for the note: what came of the write must not be lost meanwhile.
    pub fn stale_again(&self, owner: &Owner, tags: &[String]) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !tags.is_empty() {
            self.stale_here(tags);
            let (changes, owner, tags) = (self.changes.clone(), owner.clone(), tags.to_vec());
            self.notes.spawn_on(async move { note(&*changes, &owner, &tags).await }, &runtime);
        }
    }

    /// Returns when all that was noted is kept.
    pub async fn close(&self) {
        self.notes.close();
        self.notes.wait().await;
    }

    fn stale_here(&self, tags: &[String]) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        for tag in tags {
            *generations.entry(tag.clone()).or_default() += 1;
        }
    }

    /// A number that grows whenever one of `tags` is made stale.
    fn generation(&self, tags: &[String]) -> u64 {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        tags.iter().filter_map(|tag| generations.get(tag)).sum()
    }

    /// What a loader has at that place, and whether it was loaded just now; `None` where there is nothing to load.
    async fn try_load(
        &self,
        Ready { loader, backend, takes_context }: &Ready,
        cx: &ToolContext<'_>,
    ) -> Result<Option<(Arc<Kept>, bool)>, Failure> {
        let mut values = values::context_values(cx, *takes_context, backend.intake()).await;
        if let Some(when) = &loader.when
            && !values::holds(when, &values)?
        {
            return Ok(None);
        }
        let mut args = Map::new();
        for (name, template) in &loader.args {
            if let Some(value) = template.fill(&values)?.filter(|value| !value.is_null()) {
                args.insert(name.clone(), value);
            }
        }
        // The screen has no such thing, so there is nothing to show of it.
        if loader.request.path.names().any(|name| args.get(name).is_none_or(|value| value.as_str() == Some(""))) {
            return Ok(None);
        }
        values.insert("args", Value::Object(args.clone()));
        let filled = loader.request.fill(&args, &values)?;
        let version = match loader.ttl.is_zero() {
            true => None,
            false => self.version(&cx.caller.owner, &loader.tags).await,
        };
        let fetch = self.fetch((loader, backend), &filled, cx.caller);
        let Some(version) = version else { return Ok(Some((fetch.await?, true))) };
        let key = (cx.caller.audience(), format!("{} {version} {}", loader.name, filled.identity()));
        let entry = self.kept.entry(key).or_try_insert_with(fetch).await?;
        let is_new = entry.is_fresh();
        Ok(Some((entry.into_value(), is_new)))
    }

    /// Another text after each change of data with one of `tags`; `None` where nobody can tell, and nothing is kept.
    async fn version(&self, owner: &Owner, tags: &[String]) -> Option<String> {
        if tags.is_empty() {
            return Some(String::new());
        }
        // Before the request is sent: what changes afterwards makes its answer stale.
        let generation = self.generation(tags);
        match self.changes.data_version(owner, tags).await {
            Ok(version) => Some(format!("{generation} {version}")),
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "data for the prompt is loaded anew");
                None
            }
        }
    }

    async fn fetch(
        &self,
        (loader, backend): (&Loader, &Backend),
        filled: &Filled,
        caller: &Caller,
    ) -> Result<Arc<Kept>, Failure> {
        let (request, projection) = (filled.request(&loader.request, None), loader.projection.clone());
        let made = move |answer, budget: &mut NodeBudget| projection.apply(Cow::Owned(answer), budget);
        let value = backend.read(caller, request, loader.projection.wanted(Wanted::All), made).await;
        let value = value.map_err(ToolError::from)?;
        let bytes = value.to_string().len();
        if bytes > MAX_LOADED_BYTES {
            return Err(Failure::TooLarge(bytes));
        }
        Ok(Arc::new(Kept { value, ttl: loader.ttl, at_ms: self.clock.now_ms() }))
    }
}

async fn note(changes: &dyn DataChanges, owner: &Owner, tags: &[String]) {
    if let Err(error) = changes.data_changes(owner, tags).await {
        tracing::warn!(error = %Causes(&error), "other replicas may show for a while what a write has changed");
    }
}

#[async_trait]
impl DataLoader for Loaders {
    async fn load(&self, loader: &str, cx: &ToolContext<'_>) -> Loaded {
        let Some(found) = self.by_name.get(loader) else { return Loaded::Nothing };
        let Ready { loader, backend, .. } = found;
        match self.try_load(found, cx).await {
            Ok(Some((kept, _))) => Loaded::Value(kept.value.clone()),
            Ok(None) => Loaded::Nothing,
            Err(failure) => {
                let (why, reason) = (failure.why(backend.is_sent_the_callers_token()), failure.for_log());
                tracing::warn!(loader.name = loader.name, run.id = %cx.run, ?why, reason, "data for the prompt was not loaded");
                let words = loader.failure.clone().unwrap_or_else(|| format!("could not be loaded: {failure}"));
                Loaded::Failed { words, why }
            }
        }
    }

    async fn warm(&self, loader: &str, cx: &ToolContext<'_>) -> Warm {
        let Some(found) = self.by_name.get(loader).filter(|found| !found.loader.ttl.is_zero()) else {
            return Warm::Nothing;
        };
        match self.try_load(found, cx).await {
            Ok(Some((kept, true))) => Warm::Loaded { at_ms: kept.at_ms },
            Ok(Some((kept, false))) => Warm::Kept { at_ms: kept.at_ms },
            Ok(None) => Warm::Nothing,
            Err(failure) => {
                let (why, reason) = (failure.why(found.backend.is_sent_the_callers_token()), failure.for_log());
                tracing::debug!(loader.name = loader, ?why, reason, "data was not loaded ahead");
                Warm::Failed(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;
    use crate::agent::ports::data::NotLoaded;
    use crate::tools::ToolError;
    use crate::tools::backend::BackendError;

    #[test]
    fn a_refused_token_says_something_of_its_user_only_where_it_is_theirs() {
        let rows = [
            (401_u16, true, NotLoaded::Denied),
            (401, false, NotLoaded::Failed),
            (403, false, NotLoaded::Denied),
            (404, false, NotLoaded::NotThere),
        ];
        for (status, is_callers_token, expected) in rows {
            let error = BackendError::Status {
                status: status.try_into().unwrap(),
                text: String::new(),
                is_refusal: true,
                retry_after: None,
            };
            assert_eq!(Failure::Call(ToolError::Backend(error)).why(is_callers_token), expected, "{status}");
        }
    }
}
