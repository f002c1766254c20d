//! How what a preview would change is found again, before it is saved.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::chat::caller::Caller;
use crate::chat::digest::{sha256_hex, sorted};
use crate::chat::preview::{Base, Change};
use crate::tools::backend::BackendError;

/// Finds what a change is about, as it is now. Each tool that makes previews has one.
#[async_trait]
pub trait Reader: Send + Sync {
    /// What the update would overwrite, as it is now; `None` where there is no such thing any more.
    ///
    /// # Errors
    /// See [`BackendError`].
    async fn now(&self, caller: &Caller, change: &Change) -> Result<Option<Now>, BackendError>;

    /// A thing of the name under which the new one would be saved; `None` where there is none.
    ///
    /// # Errors
    /// See [`BackendError`].
    async fn of_that_name(&self, caller: &Caller, change: &Change) -> Result<Option<Found>, BackendError>;

    /// What of `state`, in the shape of a body, says something: the same thing is the same, however it is written.
    fn essence(&self, state: &Value) -> Value {
        state.clone()
    }
}

/// The current state of a thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// In the shape of the change's body, without what the change leaves alone.
    pub state: Value,
    /// The backend's `ETag`, where it gave one that can be compared with.
    pub etag: Option<String>,
}

/// What has the name that a new thing would have.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its id.
    pub id: Option<String>,
    /// In the shape of the change's body.
    pub state: Value,
}

/// All readers, by the names that [`Base::reader`] has.
pub type Readers = HashMap<&'static str, Arc<dyn Reader>>;

/// What a change was made against, by the reader of that name.
pub fn base(name: &str, reader: &dyn Reader, state: Option<&Value>) -> Base {
    Base { reader: name.to_owned(), digest: state.map(|state| digest_of(&reader.essence(state))) }
}

/// SHA-256 of `value` as compact JSON with sorted keys, in hex.
pub fn digest_of(value: &Value) -> String {
    sha256_hex(sorted(value).to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_of_the_values_and_not_of_their_text() {
        let one = json!({"a": [1, {"x": null, "y": "z"}], "b": true});
        let same = json!({"b": true, "a": [1, {"y": "z", "x": null}]});
        assert_eq!(digest_of(&one), digest_of(&same));
        for other in
            [json!({"a": [{"x": null, "y": "z"}, 1], "b": true}), json!({"a": [1, {"y": "z"}], "b": true}), json!({})]
        {
            assert_ne!(digest_of(&one), digest_of(&other), "{other}");
        }
    }
}
