//! Names to ids for declared tools: an argument that may be a name is looked up in a list of the backend's own.
//!
//! **Invariant:** what one user sees never answers another: lists are fetched with the caller's own token, cached by tenant,
//! user and roles, one fetch at a time, and no lock is held while it runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::future::Cache;
use serde_json::{Map, Value};

use super::path::PathTemplate;
use super::projection::Projection;
use crate::bounded::json::{NodeBudget, Wanted};
use crate::chat::caller::{Audience, Caller};
use crate::tools::ToolError;
use crate::tools::backend::{Backend, BackendError, Request};
use crate::tools::names::{Found, Named, as_uuid, find, listed, near};

/// 200,000 names in all lists together, some 60 MB.
const MAX_NAMES: u64 = 200_000;

/// 20,000 names of one list; what is behind them is not found by name.
const MAX_ROWS: usize = 20_000;

/// 100 names in one argument: far more than a model says, and few enough to be compared with every row of a list.
const MAX_WANTED: usize = 100;

/// How many candidates an error lists.
const CANDIDATES: usize = 10;

/// The source of an argument's names.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// The argument.
    pub argument: String,
    /// The list.
    pub path: PathTemplate,
    /// Its rows in the answer.
    pub items: Projection,
    /// The field of a row that is its id.
    pub id: String,
    /// The field of a row that is its name.
    pub name: String,
    /// How long a list is kept.
    pub ttl: Duration,
}

/// All lists that were looked up lately.
pub struct Lists {
    cache: Cache<(Audience, String), Arc<Listing>>,
}

/// Where a lookup's list is: a backend, and its name among the further ones.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// The backend.
    pub backend: &'a Backend,
    /// Its name; `None`: `[backend]`.
    pub name: Option<&'a str>,
}

#[derive(Debug)]
struct Listing {
    /// The ids are JSON texts, since they may be numbers.
    names: Vec<Named>,
    /// The ids themselves, by their JSON texts and, where they are texts, by these too.
    ids: HashMap<String, Value>,
    ttl: Duration,
}

impl Listing {
    /// The list of these names with their ids.
    fn new(rows: impl Iterator<Item = (String, Value)>, ttl: Duration) -> Self {
        let (mut names, mut ids) = (Vec::new(), HashMap::new());
        for (name, id) in rows {
            let text = id.to_string();
            if let Some(plain) = id.as_str() {
                ids.entry(plain.to_owned()).or_insert_with(|| id.clone());
            }
            ids.entry(text.clone()).or_insert(id);
            names.push(Named { name, id: text });
        }
        Self { names, ids, ttl }
    }

    fn id_of(&self, named: &Named) -> Value {
        self.ids.get(&named.id).cloned().unwrap_or(Value::Null)
    }
}

struct ByTtl;

impl Expiry<(Audience, String), Arc<Listing>> for ByTtl {
    fn expire_after_create(&self, _: &(Audience, String), listing: &Arc<Listing>, _: Instant) -> Option<Duration> {
        Some(listing.ttl)
    }
}

impl Lists {
    /// No lists yet.
    pub fn empty() -> Self {
        let weight = |listing: &Listing| u32::try_from(listing.names.len()).unwrap_or(u32::MAX).max(1);
        let cache = Cache::builder()
            .max_capacity(MAX_NAMES)
            .weigher(move |_, listing: &Arc<Listing>| weight(listing))
            .expire_after(ByTtl)
            .build();
        Self { cache }
    }

    /// `args` with the argument of `lookup` as an id, or a list of ids. Numbers and UUIDs are ids already.
    ///
    /// # Errors
    /// [`ToolError::Refused`] with near names when there is none, or with the candidates when there are several;
    /// [`ToolError::BadParams`] when there are too many to look up; the errors of the backend.
    pub async fn resolve(
        &self,
        lookup: &Lookup,
        origin: Origin<'_>,
        args: &mut Map<String, Value>,
        caller: &Caller,
    ) -> Result<(), ToolError> {
        let Some(value) = args.get(&lookup.argument) else { return Ok(()) };
        let wanted: Vec<Value> = match value {
            Value::Array(items) => items.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                vec![value.clone()]
            }
        };
        let is_list = value.is_array();
        let is_name = |value: &&Value| value.as_str().is_some_and(|text| as_uuid(text.trim()).is_none());
        let count = wanted.iter().filter(is_name).count();
        if count > MAX_WANTED {
            let argument = &lookup.argument;
            return Err(ToolError::BadParams(format!("{argument}: {count} names, and at most {MAX_WANTED} in a call")));
        }
        let segments = lookup.path.fill(args)?;
        let mut ids = Vec::with_capacity(wanted.len());
        for value in wanted {
            ids.push(match value.as_str().map(str::trim) {
                Some(name) if as_uuid(name).is_none() => self.id(lookup, origin, &segments, name, caller).await?,
                Some(_) | None => value,
            });
        }
        let found = if is_list { Some(Value::Array(ids)) } else { ids.pop() };
        if let Some(found) = found {
            args.insert(lookup.argument.clone(), found);
        }
        Ok(())
    }

    /// The id of what is called `wanted`. A cached list that does not have it may be old, so it is fetched again, once.
    async fn id(
        &self,
        lookup: &Lookup,
        origin: Origin<'_>,
        segments: &[String],
        wanted: &str,
        caller: &Caller,
    ) -> Result<Value, ToolError> {
        // Whatever decides what is in the list and how long it is kept: two tools may read one answer in two ways.
        let source = (origin.name, segments, lookup.items.text(), &lookup.id, &lookup.name, lookup.ttl.as_millis());
        let source = serde_json::json!(source).to_string();
        let key = (caller.audience(), source);
        let mut is_second = false;
        loop {
            let fetch = fetch(lookup, origin.backend, segments, caller);
            let entry = self.cache.entry_by_ref(&key).or_try_insert_with(fetch).await;
            let failed = |source| ToolError::Lookup { what: lookup.argument.clone().into(), source };
            let entry = entry.map_err(failed)?;
            let is_fresh = entry.is_fresh() || is_second;
            let listing = entry.into_value();
            if let Some(id) = listing.ids.get(wanted) {
                return Ok(id.clone());
            }
            match find(&listing.names, wanted) {
                Found::One(named) => return Ok(listing.id_of(named)),
                Found::Several(several) => return Err(ambiguous(&lookup.argument, wanted, &several)),
                Found::Nothing if is_fresh => return Err(unknown(&lookup.argument, wanted, &listing)),
                Found::Nothing => {}
            }
            self.cache.invalidate(&key).await;
            is_second = true;
        }
    }
}

async fn fetch(
    lookup: &Lookup,
    backend: &Backend,
    segments: &[String],
    caller: &Caller,
) -> Result<Arc<Listing>, BackendError> {
    let request = Request::get(segments.iter().map(String::as_str));
    let of_row = Wanted::field(&lookup.id, Wanted::All).and(Wanted::field(&lookup.name, Wanted::All));
    let wanted = lookup.items.wanted(of_row);
    let lookup = lookup.clone();
    backend.read(caller, request, wanted, move |answer, budget| listing(&lookup, answer, budget)).await
}

/// The list in a backend's answer.
fn listing(lookup: &Lookup, answer: Value, budget: &mut NodeBudget) -> Result<Arc<Listing>, BackendError> {
    let rows = match lookup.items.apply(Cow::Owned(answer), budget)? {
        Value::Array(rows) => rows,
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(BackendError::Shape("not a list".to_owned()));
        }
    };
    let named = |row: &Value| {
        let id = row.get(&lookup.id).filter(|id| id.is_string() || id.is_number())?;
        Some((row.get(&lookup.name)?.as_str()?.to_owned(), id.clone()))
    };
    Ok(Arc::new(Listing::new(rows.iter().filter_map(named).take(MAX_ROWS), lookup.ttl)))
}

fn unknown(argument: &str, wanted: &str, listing: &Listing) -> ToolError {
    let wanted: String = wanted.chars().take(100).collect();
    let names = listed(near(listing.names.iter().map(|named| named.name.as_str()), &wanted));
    ToolError::Refused(format!("{argument} {wanted:?} not found; the nearest are: {names}"))
}

fn ambiguous(argument: &str, wanted: &str, several: &[&Named]) -> ToolError {
    let choices = several.iter().take(CANDIDATES).map(|named| format!("{} ({})", named.name, named.id));
    let choices: Vec<String> = choices.collect();
    ToolError::Refused(format!("{argument} {wanted:?} fits several: {}; pass the id", choices.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_known_by_its_json_and_by_its_text() {
        let rows = [("Ada", json!(7)), ("Bob", json!("7")), ("Cy", json!("c-1"))];
        let rows = rows.into_iter().map(|(name, id)| (name.to_owned(), id));
        let listing = Listing::new(rows, Duration::ZERO);
        let known = [("7", json!(7)), ("\"7\"", json!("7")), ("c-1", json!("c-1"))];
        for (wanted, expected) in known {
            assert_eq!(listing.ids.get(wanted), Some(&expected), "{wanted}");
        }
        let ids: Vec<Value> = listing.names.iter().map(|named| listing.id_of(named)).collect();
        assert_eq!(ids, [json!(7), json!("7"), json!("c-1")]);
    }
}
