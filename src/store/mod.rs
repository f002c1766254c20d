//! Where runs, drafts and previews are kept: one database behind the ports of [`crate::agent::ports`].
//!
//! `sql/` has their statements, written once for SQLite and PostgreSQL: a `Statement` (`statement/`), in which a token
//! stands where the two write different words, is run on a `Connection` of either (`database.rs`). Opening, migrating,
//! locks and beginning a transaction are each database's own (`sqlite/`, `postgres/`).
//!
//! **Invariant:** every statement that reads or changes a user's data names the owner's tenant and user; a run, which
//! the ports name by its id alone, is looked up together with its owner first. A statement about nothing but times and
//! processes names none: leases, and the removal of expired rows; nor does one about rows of no user: pins.
//! **Invariant:** a caller's token is never stored.

mod answer;
mod approval;
mod calling;
mod change;
mod client;
mod client_history;
mod database;
mod directive;
mod fates;
mod fault;
mod history;
mod place;
mod postgres;
mod record;
mod record_error;
mod redact;
mod schema;
mod scope;
mod settle;
mod snippet;
mod sql;
mod sqlite;
mod statement;
mod stuck;
mod summary;
mod trail;
mod transcript;
mod view;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use url::Url;

use crate::agent::ports::approvals::ApprovalStore;
use crate::agent::ports::audit::{AuditRecord, AuditStore};
use crate::agent::ports::calls::CallStore;
use crate::agent::ports::chats::ChatStore;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::conversations::{BranchStore, ConversationStore, ExportStore};
use crate::agent::ports::data::DataChanges;
use crate::agent::ports::decisions::Decisions;
use crate::agent::ports::directive_queue::DirectiveQueue;
use crate::agent::ports::directives::DirectiveStore;
use crate::agent::ports::drafts::DraftStore;
use crate::agent::ports::feedback::FeedbackStore;
use crate::agent::ports::files::FileRows;
use crate::agent::ports::leases::Leases;
use crate::agent::ports::names::NameStore;
use crate::agent::ports::payloads::PayloadStore;
use crate::agent::ports::pins::PinStore;
use crate::agent::ports::places::PlaceStore;
use crate::agent::ports::plans::{PlanCommits, PlanRecords};
use crate::agent::ports::previews::{PreviewClaims, PreviewStore};
use crate::agent::ports::schedules::ScheduleStore;
use crate::agent::ports::search::SearchStore;
use crate::agent::ports::sessions::SessionStore;
use crate::agent::ports::signals::{DeliveryStore, SignalStore};
use crate::agent::ports::store::RunStore;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::SummaryStore;
use crate::agent::ports::titles::TitleStore;
use crate::agent::ports::usage::UsageStore;
use crate::agent::ports::users::UserStore;
use crate::chat::signal::Subscriptions;
pub use redact::names_a_secret;

use database::Database;
use fault::SqlxError;
use postgres::PostgresDatabase;
use sql::SqlStore;
use sqlite::SqliteDatabase;

/// The `[store]` section.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `sqlite://FILE`, made with its folder when missing, `sqlite::memory:` for a store that ends with the process, or
    /// `postgres://USER:PASSWORD@HOST/DATABASE`.
    pub url: String,
    /// Connections to PostgreSQL, at least 1; calls beyond wait for their turn. Two more are the leases' own. SQLite
    /// has its own number.
    pub max_connections: u32,
    /// Whether each transaction names to PostgreSQL the owner whose rows it may touch. The check itself is switched on
    /// in the database, by `switchboard_row_security`. Without effect on SQLite.
    pub row_security: RowSecurity,
}

/// Whether transactions say whose rows they may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowSecurity {
    /// Only where the database holds them to it already.
    Off,
    /// Always.
    On,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { url: "sqlite://data/switchboard.db".to_owned(), max_connections: 10, row_security: RowSecurity::Off }
    }
}

impl StoreConfig {
    /// Where the database is, without the words that open it.
    pub fn display_url(&self) -> String {
        if self.url.starts_with("sqlite:") {
            return self.url.clone();
        }
        let Ok(mut url) = Url::parse(&self.url) else { return "postgres".to_owned() };
        url.set_query(None);
        // A URL without a host takes neither, and has none.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.into()
    }
}

/// An open database behind all of its ports.
#[async_trait]
pub trait Store:
    RunStore
    + Leases
    + BranchStore
    + ConversationStore
    + PlaceStore
    + PlanCommits
    + PlanRecords
    + SessionStore
    + ExportStore
    + SearchStore
    + FeedbackStore
    + FileRows
    + ChatStore
    + SummaryStore
    + CallStore
    + TitleStore
    + DraftStore
    + PreviewStore
    + PreviewClaims
    + ApprovalStore
    + Decisions
    + PayloadStore
    + NameStore
    + DataChanges
    + PinStore
    + UsageStore
    + UserStore
    + AuditStore
    + DirectiveStore
    + DirectiveQueue
    + ScheduleStore
    + SignalStore
    + DeliveryStore
{
    /// Whether a run could begin now.
    ///
    /// # Errors
    /// When nothing can be written, or the database has not answered for three seconds.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Its pools of connections, with how many are in use and how many idle.
    fn connections(&self) -> Vec<(&'static str, usize, usize)>;

    /// Closes the database when everything begun has ended; afterwards every call fails.
    async fn close(&self);
}

/// The store that `config` names, its schema brought up to date. What it keeps is told to those of `subscriptions`.
///
/// # Errors
/// See [`OpenError`]; the texts are for the operator.
pub async fn open(
    config: &StoreConfig,
    clock: Arc<dyn Clock>,
    subscriptions: Arc<Subscriptions>,
) -> Result<Arc<dyn Store>, OpenError> {
    // The URL may hold a password, so no error repeats it.
    let database = match config.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => Database::Sqlite(SqliteDatabase::open(&config.url).await?),
        Some("postgres" | "postgresql") => Database::Postgres(PostgresDatabase::open(config).await?),
        Some(_) | None => return Err(OpenError::Scheme),
    };
    let store = SqlStore::new(database, clock, subscriptions);
    store.begin_alone().await;
    Ok(Arc::new(store))
}

/// Looks whether the URL that `config` names can be understood.
///
/// # Errors
/// When it cannot; it is not repeated.
pub fn understand(config: &StoreConfig) -> Result<(), OpenError> {
    match config.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => postgres::open::understand(&config.url),
        // What else it may be is looked at where settings are.
        Some(_) | None => Ok(()),
    }
}

/// The audit record of the store that `config` names, to be read alone: nothing is made, changed or held, so that a server
/// may go on beside it.
///
/// # Errors
/// See [`OpenError`]; the texts are for the operator.
pub async fn open_audit(config: &StoreConfig, clock: Arc<dyn Clock>) -> Result<Arc<dyn AuditRecord>, OpenError> {
    let database = match config.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => Database::Sqlite(SqliteDatabase::open_to_read(&config.url).await?),
        Some("postgres" | "postgresql") => Database::Postgres(PostgresDatabase::open_to_read(config)?),
        Some(_) | None => return Err(OpenError::Scheme),
    };
    Ok(Arc::new(SqlStore::new(database, clock, Arc::default())))
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names no database we know.
    #[error("store.url must begin with sqlite: or postgres:")]
    Scheme,
    /// The URL's path or parameters make no sense.
    #[error("store.url is not understood")]
    Url(#[source] SqlxError<sqlx::Error>),
    /// The URL is none.
    #[error("store.url is not understood; in a password / ? # and @ are percent-encoded, or it is given as PGPASSWORD")]
    Address(#[source] url::ParseError),
    /// The URL has a parameter that would do nothing.
    #[error("store.url has a parameter that is not known, {0:?}; sslmode and sslrootcert are such as are")]
    Parameter(String),
    /// The URL wants what cannot be done.
    #[error(
        "store.url asks for channel_binding, which is not known here: leave it out; sslmode=verify-full checks the server"
    )]
    ChannelBinding,
    /// The file's folder could not be made.
    #[error("the store's folder {} cannot be made", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The file system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a database, is locked, or may not be written; the server is not there or does not let us in.
    #[error("the store's database cannot be opened")]
    Database(#[source] SqlxError<sqlx::Error>),
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
    Migration(#[source] SqlxError<sqlx::migrate::MigrateError>),
    /// The SQLite library is one that can damage a database in WAL mode.
    #[error("sqlite {0} is linked, and versions before 3.51.3 can damage a database in wal mode")]
    OldSqlite(String),
}

impl OpenError {
    fn url(error: sqlx::Error) -> Self {
        Self::Url(SqlxError(error))
    }

    fn database(error: sqlx::Error) -> Self {
        Self::Database(SqlxError(error))
    }

    fn migration(error: sqlx::migrate::MigrateError) -> Self {
        Self::Migration(SqlxError(error))
    }
}
