//! Where conversations, drafts and previews are kept: one database behind the three ports of [`crate::agent::ports`].
//!
//! **Invariant:** every statement that reads or changes somebody's data names the owner's tenant and user; a run, which the
//! ports name by its id alone, is looked up together with its owner first. Only the removal of expired drafts names none.
//! **Invariant:** a caller's token is never stored.

mod change;
mod history;
pub mod sqlite;
mod transcript;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use crate::agent::ports::clock::Clock;
use sqlite::SqliteStore;

/// The `[store]` section.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `sqlite://FILE`, made with its folder when missing, or `sqlite::memory:` for a store that ends with the process.
    pub url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { url: "sqlite://data/switchboard.db".to_owned() }
    }
}

/// The store that `config` names, its schema brought up to date.
///
/// # Errors
/// See [`OpenError`]; the texts are for the operator.
pub async fn open(config: &Config, clock: Arc<dyn Clock>) -> Result<Arc<SqliteStore>, OpenError> {
    // The URL may hold a password, so no error repeats it.
    match config.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => SqliteStore::open(&config.url, clock).await.map(Arc::new),
        Some("postgres" | "postgresql") => Err(OpenError::PostgresNotYet),
        Some(_) | None => Err(OpenError::Scheme),
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names PostgreSQL.
    #[error("store.url names postgresql, which comes later; use sqlite://FILE")]
    PostgresNotYet,
    /// The URL names no database we know.
    #[error("store.url must begin with sqlite:")]
    Scheme,
    /// The URL's path or parameters make no sense.
    #[error("store.url is not understood")]
    Url(#[source] sqlx::Error),
    /// The file's folder could not be made.
    #[error("the store's folder {} cannot be made", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a database, is locked, or may not be written.
    #[error("the store's database cannot be opened")]
    Database(#[source] sqlx::Error),
    /// A newer version of this program has used the database.
    #[error(
        "the store's schema has version {found} and this program knows versions up to {known}: use a newer program"
    )]
    NewerSchema {
        /// The database's version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The schema could not be brought up to date.
    #[error("the store's schema cannot be brought up to date")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// The SQLite library is one that can damage a database in WAL mode.
    #[error("sqlite {0} is linked, and versions before 3.51.3 can damage a database in wal mode")]
    OldSqlite(String),
}
