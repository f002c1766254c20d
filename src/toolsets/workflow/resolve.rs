//! Names to ids: entities, trigger types, rules, and the ports of action types, all from the backend's own lists.
//!
//! **Invariant:** what one user sees never answers another: lists are cached by tenant, user and roles, for a minute, one fetch at a
//! time, and no lock is held while it runs.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use moka::future::Cache;
use serde_json::Value;

use super::action_types::ActionTypes;
use crate::agent::ports::tools::ToolContext;
use crate::chat::caller::{Audience, Caller};
use crate::tools::ToolError;
use crate::tools::backend::{Backend, BackendError, Request};
use crate::tools::keys::text;
use crate::tools::names::{Found, Named, as_uuid, find, listed, near};
use crate::tools::pages::all_rows;

/// A minute: a renamed rule answers to its old name no longer than that.
const TTL: Duration = Duration::from_secs(60);

/// 200 000 names in all lists together, some 20 MB.
const MAX_NAMES: u64 = 200_000;

/// Looks names up for tools.
pub struct Resolver {
    backend: Arc<Backend>,
    lists: Cache<(Audience, List), Arc<Listing>>,
    action_types: Cache<Audience, Arc<ActionTypes>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum List {
    Entities,
    TriggerTypes,
    Rules,
}

#[derive(Debug, Default)]
struct Listing {
    names: Vec<Named>,
    /// Shorter names, tried when none of `names` fits.
    aliases: Vec<Named>,
}

/// Which rule a tool works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    /// The rule's id.
    pub id: String,
    /// For the model, when this is not the rule it named.
    pub note: Option<String>,
}

enum LookedUp {
    One(String),
    Several(Vec<Named>),
    Nothing(Arc<Listing>),
}

impl Resolver {
    /// A resolver with empty caches.
    pub fn new(backend: Arc<Backend>) -> Self {
        let weight = |names: usize| u32::try_from(names).unwrap_or(u32::MAX).max(1);
        Self {
            backend,
            lists: Cache::builder()
                .time_to_live(TTL)
                .max_capacity(MAX_NAMES)
                .weigher(move |_, listing: &Arc<Listing>| weight(listing.names.len() + listing.aliases.len()))
                .build(),
            action_types: Cache::builder()
                .time_to_live(TTL)
                .max_capacity(MAX_NAMES)
                .weigher(move |_, types: &Arc<ActionTypes>| weight(types.weight()))
                .build(),
        }
    }

    /// The id of an entity given as id, as `schema.table` or as a table's name alone.
    ///
    /// # Errors
    /// [`ToolError::Refused`] with near names when there is none; the errors of the backend.
    pub async fn entity(&self, caller: &Caller, wanted: &str) -> Result<String, ToolError> {
        self.id(caller, List::Entities, wanted).await
    }

    /// The id of a trigger type given as id or name.
    ///
    /// # Errors
    /// As [`Self::entity`].
    pub async fn trigger_type(&self, caller: &Caller, wanted: &str) -> Result<String, ToolError> {
        self.id(caller, List::TriggerTypes, wanted).await
    }

    /// The id of a rule given as id or name.
    ///
    /// # Errors
    /// As [`Self::entity`].
    pub async fn rule(&self, caller: &Caller, wanted: &str) -> Result<String, ToolError> {
        self.id(caller, List::Rules, wanted).await
    }

    /// The rule that a `workflow_id` argument means: an id is kept, a name is looked up, and what names no rule, or is missing,
    /// is the rule on the user's screen.
    ///
    /// # Errors
    /// [`ToolError::Refused`] when neither leads to a rule, or the name fits several; the errors of the backend.
    pub async fn open_rule(&self, argument: Option<&Value>, cx: &ToolContext<'_>) -> Result<RuleRef, ToolError> {
        let open = cx.context_str("workflow_id").map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        let wanted = match argument {
            None | Some(Value::Null) => "",
            Some(Value::String(wanted)) => wanted.trim(),
            Some(other) => {
                let refused = || ToolError::Refused(format!("workflow_id {other} is neither a rule's id nor its name"));
                return open.map(|id| RuleRef { id, note: None }).ok_or_else(refused);
            }
        };
        if wanted.is_empty() {
            let open = open.map(|id| RuleRef { id, note: None });
            return open.ok_or_else(|| {
                ToolError::Refused("workflow_id is required: pass a rule's id or name; no workflow is open".to_owned())
            });
        }
        if let Some(id) = as_uuid(wanted) {
            return Ok(RuleRef { id, note: None });
        }
        match (self.look_up(cx.caller, List::Rules, wanted).await?, open) {
            (LookedUp::One(id), _) => Ok(RuleRef { id, note: None }),
            (LookedUp::Several(rules), Some(open)) if rules.iter().any(|rule| rule.id == open) => {
                Ok(RuleRef { id: open, note: None })
            }
            (LookedUp::Several(rules), _) => Err(ambiguous(List::Rules, wanted, &rules)),
            (LookedUp::Nothing(_), Some(open)) => Ok(RuleRef {
                id: open,
                note: Some(format!("no rule is named {wanted:?}; this is the workflow that is open")),
            }),
            (LookedUp::Nothing(listing), None) => Err(unknown(List::Rules, wanted, &listing)),
        }
    }

    /// The action types as the backend lists them; as shipped when it does not answer.
    pub async fn action_types(&self, caller: &Caller) -> Arc<ActionTypes> {
        let fetch = async {
            let answer = self.backend.call(caller, Request::get(["v1", "workflow", "action-types"])).await?;
            let types = ActionTypes::parse(&answer);
            types.map(Arc::new).ok_or_else(|| BackendError::Shape("not a list of action types".to_owned()))
        };
        self.action_types.try_get_with(caller.audience(), fetch).await.unwrap_or_else(|error: Arc<BackendError>| {
            tracing::debug!(%error, "action types not available, the shipped ones are used");
            Arc::new(ActionTypes::shipped())
        })
    }

    async fn id(&self, caller: &Caller, list: List, wanted: &str) -> Result<String, ToolError> {
        let wanted = wanted.trim();
        if let Some(id) = as_uuid(wanted) {
            return Ok(id);
        }
        match self.look_up(caller, list, wanted).await? {
            LookedUp::One(id) => Ok(id),
            LookedUp::Several(several) => Err(ambiguous(list, wanted, &several)),
            LookedUp::Nothing(listing) => Err(unknown(list, wanted, &listing)),
        }
    }

    /// What `wanted` stands for. A cached list that does not have it may be old, so it is fetched again, once. Boxed: each tool
    /// waits for it several times, and the compiler looks into it once.
    fn look_up<'a>(
        &'a self,
        caller: &'a Caller,
        list: List,
        wanted: &'a str,
    ) -> BoxFuture<'a, Result<LookedUp, ToolError>> {
        async move {
            let key = (caller.audience(), list);
            let (mut listing, mut is_fresh) = self.listing(caller, &key).await?;
            loop {
                let found = match find(&listing.names, wanted) {
                    Found::Nothing => find(&listing.aliases, wanted),
                    found @ (Found::One(_) | Found::Several(_)) => found,
                };
                match found {
                    Found::One(named) => return Ok(LookedUp::One(named.id.clone())),
                    Found::Several(several) => return Ok(LookedUp::Several(several.into_iter().cloned().collect())),
                    Found::Nothing if is_fresh => return Ok(LookedUp::Nothing(listing)),
                    Found::Nothing => {}
                }
                self.lists.invalidate(&key).await;
                (listing, _) = self.listing(caller, &key).await?;
                is_fresh = true;
            }
        }
        .boxed()
    }

    /// The list, and whether it was fetched just now.
    async fn listing(&self, caller: &Caller, key: &(Audience, List)) -> Result<(Arc<Listing>, bool), ToolError> {
        let fetch = self.fetch(caller, key.1);
        let entry = self.lists.entry_by_ref(key).or_try_insert_with(fetch).await;
        let entry = entry.map_err(|source| ToolError::Lookup { what: key.1.what().into(), source })?;
        let is_fresh = entry.is_fresh();
        Ok((entry.into_value(), is_fresh))
    }

    async fn fetch(&self, caller: &Caller, list: List) -> Result<Arc<Listing>, BackendError> {
        let segments = ["v1", "workflow", list.segment()];
        let rows = match list {
            List::Rules => all_rows(&self.backend, caller, &segments).await?.items,
            List::Entities | List::TriggerTypes => match self.backend.call(caller, Request::get(segments)).await? {
                Value::Array(rows) => rows,
                Value::Null => Vec::new(),
                _ => return Err(BackendError::Shape("not a list".to_owned())),
            },
        };
        let mut listing = Listing::default();
        for row in &rows {
            let (Some(id), Some(name)) = (text(row, "id"), text(row, "name")) else { continue };
            let named = |name: String| Named { name, id: id.to_owned() };
            match (list, text(row, "schema_name")) {
                (List::Entities, Some(schema)) => {
                    listing.names.push(named(format!("{schema}.{name}")));
                    listing.aliases.push(named(name.to_owned()));
                }
                (List::Entities, None) | (List::TriggerTypes | List::Rules, _) => {
                    listing.names.push(named(name.to_owned()));
                }
            }
        }
        Ok(Arc::new(listing))
    }
}

impl List {
    fn segment(self) -> &'static str {
        match self {
            Self::Entities => "entities",
            Self::TriggerTypes => "trigger-types",
            Self::Rules => "rules",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Entities => "entities",
            Self::TriggerTypes => "trigger types",
            Self::Rules => "workflow rules",
        }
    }
}

fn unknown(list: List, wanted: &str, listing: &Listing) -> ToolError {
    let names = listed(near(listing.names.iter().map(|named| named.name.as_str()), wanted));
    let (what, hint) = match list {
        List::Entities => ("entity", "write it as \"schema.table\"; the nearest are"),
        List::TriggerTypes => ("trigger type", "the available ones are"),
        List::Rules => ("workflow rule", "the nearest are"),
    };
    ToolError::Refused(format!("{what} {wanted:?} not found; {hint}: {names}"))
}

fn ambiguous(list: List, wanted: &str, several: &[Named]) -> ToolError {
    let choices: Vec<String> = several.iter().take(10).map(|named| format!("{} ({})", named.name, named.id)).collect();
    ToolError::Refused(format!("{wanted:?} fits several {}: {}; pass the id", list.what(), choices.join(", ")))
}
