//! A stored configuration as it is, for whoever changes it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::stored::stored;
use crate::chat::caller::Caller;
use crate::chat::preview::Change;
use crate::tools::backend::{Backend, BackendError, Request};
use crate::tools::keys::text;
use crate::tools::previews::{Found, Now, Reader};

/// The reader's name, as previews have it.
pub const NAME: &str = "table_config";

/// Finds stored configurations.
pub struct ConfigReader(pub Arc<Backend>);

#[async_trait]
impl Reader for ConfigReader {
    async fn now(&self, caller: &Caller, change: &Change) -> Result<Option<Now>, BackendError> {
        let Some(id) = &change.existing_id else { return Ok(None) };
        match self.0.call_tagged(caller, Request::get(["v1", "data", "id", id])).await {
            Ok((answer, etag)) => Ok(Some(Now { state: as_body(&stored(answer)?, &change.body), etag })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn of_that_name(&self, caller: &Caller, change: &Change) -> Result<Option<Found>, BackendError> {
        let answer = match self.0.call(caller, Request::get(["v1", "data", "name", &change.name])).await {
            Ok(answer) => answer,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let id = text(&answer, "id").map(str::to_owned);
        Ok(Some(Found { id, state: as_body(&stored(answer)?, &change.body) }))
    }
}

/// The stored object in the shape of `body`: what a body without a description leaves as it is cannot differ.
pub fn as_body(stored: &Map<String, Value>, body: &Value) -> Value {
    let kept = |key: &String| Some((key.clone(), stored.get(key)?.clone()));
    Value::Object(body.as_object().into_iter().flatten().filter_map(|(key, _)| kept(key)).collect())
}
