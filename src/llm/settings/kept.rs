//! What is kept of the settings of models: only what an editor has made different from the configuration, so that whatever
//! the operator sets later still counts.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bounded::json;

/// The file: what is null was taken away.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(default)]
    pub(super) providers: BTreeMap<String, Option<Provider>>,
    #[serde(default)]
    pub(super) workloads: BTreeMap<String, Option<Workload>>,
}

/// A provider with its key: never printed, and in no answer.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Provider {
    pub(super) kind: String,
    pub(super) base_url: String,
    #[serde(default)]
    pub(super) key: Key,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

/// Where its key is.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Key {
    /// It has none.
    #[default]
    None,
    /// In the configuration, with the provider of this name, whose other settings count too.
    Configured(String),
    /// Here.
    Own(String),
}

/// A model under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Workload {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) is_for_embeddings: bool,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

impl Kept {
    /// What is in the file at `path`; nothing where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is none of ours.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => json::parse_bytes(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Puts it into the file at `path`, which only its owner reads; the file is replaced as a whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("json.new");
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    }

    /// What `now` has that `configured` has not, or has otherwise.
    pub(super) fn difference<T: Clone + PartialEq>(
        configured: &BTreeMap<String, T>,
        now: &BTreeMap<String, T>,
    ) -> BTreeMap<String, Option<T>> {
        let gone = configured.keys().filter(|name| !now.contains_key(*name)).map(|name| (name.clone(), None));
        let others = now.iter().filter(|(name, entry)| configured.get(*name) != Some(entry));
        gone.chain(others.map(|(name, entry)| (name.clone(), Some(entry.clone())))).collect()
    }

    /// `configured` with the difference.
    pub(super) fn applied<T>(
        mut configured: BTreeMap<String, T>,
        difference: BTreeMap<String, Option<T>>,
    ) -> BTreeMap<String, T> {
        for (name, entry) in difference {
            match entry {
                Some(entry) => configured.insert(name, entry),
                None => configured.remove(&name),
            };
        }
        configured
    }
}
