//! A rule as it is, for whoever changes it: all of it in the shape of a body.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::kept;
use crate::chat::caller::Caller;
use crate::chat::digest::sorted;
use crate::chat::preview::Change;
use crate::tools::backend::{Backend, BackendError, Request};
use crate::tools::keys::text;
use crate::tools::pages::all_rows;
use crate::tools::previews::{Found, Now, Reader};

/// The reader's name, as previews have it.
pub const NAME: &str = "workflow_rule";

/// Finds rules.
pub struct RuleReader(pub Arc<Backend>);

/// The lists of a body whose order says nothing: edges have an order of their own, and say which action comes when.
const UNORDERED: [&str; 2] = ["actions", "edges"];

#[async_trait]
impl Reader for RuleReader {
    async fn now(&self, caller: &Caller, change: &Change) -> Result<Option<Now>, BackendError> {
        let Some(id) = &change.existing_id else { return Ok(None) };
        match whole(&self.0, caller, id).await {
            Ok(now) => Ok(Some(now)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A name is not a rule's alone, so that one of it may be another one: its user has to look.
    async fn of_that_name(&self, caller: &Caller, change: &Change) -> Result<Option<Found>, BackendError> {
        let rules = all_rows(&self.0, caller, &["v1", "workflow", "rules"]).await?.items;
        let Some(rule) = rules.iter().find(|rule| text(rule, "name") == Some(change.name.as_str())) else {
            return Ok(None);
        };
        let Some(id) = text(rule, "id") else {
            return Ok(Some(Found { id: None, state: kept::as_body(rule, &Value::Null) }));
        };
        let state = whole(&self.0, caller, id).await?.state;
        Ok(Some(Found { id: Some(id.to_owned()), state }))
    }

    fn essence(&self, state: &Value) -> Value {
        let mut state = sorted(state);
        for key in UNORDERED {
            if let Some(list) = state.get_mut(key).and_then(Value::as_array_mut) {
                list.sort_by_cached_key(Value::to_string);
            }
        }
        state
    }
}

/// The rule of this id with its actions and edges, in the shape of a body.
async fn whole(backend: &Backend, caller: &Caller, id: &str) -> Result<Now, BackendError> {
    let ((saved, etag), edges) = futures::try_join!(with_actions(backend, caller, id), edges(backend, caller, id))?;
    Ok(Now { state: kept::as_body(&saved, &edges), etag })
}

/// The rule as it is, with its actions, and what is compared with, which it can do without.
///
/// # Errors
/// See [`BackendError`].
pub async fn to_be_changed(
    backend: &Backend,
    caller: &Caller,
    id: &str,
) -> Result<(Value, Option<Value>), BackendError> {
    let (saved, edges) = futures::join!(with_actions(backend, caller, id), edges(backend, caller, id));
    let (saved, _) = saved?;
    let state = edges.ok().map(|edges| kept::as_body(&saved, &edges));
    Ok((saved, state))
}

/// The rule with its actions, and its `ETag`: a save replaces all of it, so what an update does not mention has to be in it.
async fn with_actions(backend: &Backend, caller: &Caller, id: &str) -> Result<(Value, Option<String>), BackendError> {
    let own = backend.call_tagged(caller, Request::get(["v1", "workflow", "rules", id]));
    let actions = backend.call(caller, Request::get(["v1", "workflow", "rules", id, "actions"]));
    let ((mut saved, etag), actions) = futures::try_join!(own, actions)?;
    let Some(fields) = saved.as_object_mut() else {
        return Err(BackendError::Shape("not a rule".to_owned()));
    };
    if !matches!(actions, Value::Array(_) | Value::Null) {
        return Err(BackendError::Shape("actions are not a list".to_owned()));
    }
    fields.insert("actions".to_owned(), actions);
    Ok((saved, etag))
}

async fn edges(backend: &Backend, caller: &Caller, id: &str) -> Result<Value, BackendError> {
    backend.call(caller, Request::get(["v1", "workflow", "rules", id, "edges"])).await
}
