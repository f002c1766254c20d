//! Opening a SQLite database: its file, its connections, its schema.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::SqliteDatabase;
use super::files::{self, Lock};
use super::writer::Writer;
use crate::store::OpenError;
use crate::store::schema::{Step, step};

/// The schema's versions; a released file is never edited, since its checksum is in every database.
static MIGRATOR: Migrator = sqlx::migrate!("src/store/sqlite/migrations");

/// How long a writer waits for another process, and again for its turn in this one.
const WRITE_WAIT: Duration = Duration::from_secs(5);

/// The pause between two tries to turn a new file to WAL mode.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Statements that each connection keeps prepared; there are some two hundred, and batches of them.
const PREPARED: usize = 400;

/// Reading connections; reads are short, so a few serve many runs.
const READERS: u32 = 4;

/// The first version without the WAL reset defect.
const OLDEST_SQLITE: [u32; 3] = [3, 51, 3];

impl SqliteDatabase {
    /// The database that `url` names, its schema brought up to date. Our own limits and measures report how long
    /// statements and turns take; sqlx would log kilobytes for each.
    pub(in crate::store) async fn open(url: &str) -> Result<Self, OpenError> {
        let options: SqliteConnectOptions = url.parse().map_err(OpenError::url)?;
        let (path, parameters) = url.split_once('?').unwrap_or((url, ""));
        let has = |parameter| parameters.split('&').any(|given| given == parameter);
        let in_memory = matches!(path, "sqlite::memory:" | "sqlite://:memory:") || has("mode=memory");
        let is_read_only = has("mode=ro");
        let file = options.get_filename().to_owned();
        if !in_memory && !is_read_only {
            files::make(&file).await?;
        }

        // What a statement or a turn may have to undo is kept in memory: otherwise SQLite makes a file for it each time.
        let options = options.create_if_missing(!is_read_only).foreign_keys(true).busy_timeout(WRITE_WAIT);
        let options = options
            .pragma("mmap_size", "0")
            .pragma("temp_store", "MEMORY")
            // What is deleted is overwritten, here and, by `forget_deleted`, in the log.
            .pragma("secure_delete", "ON")
            // For a list of values in a `CHECK` SQLite makes a table in memory with each row that is written.
            // Such columns are written from enums alone, and PostgreSQL holds them to the lists.
            .pragma("ignore_check_constraints", "ON")
            .statement_cache_capacity(PREPARED)
            .disable_statement_logging();
        let writing = options.clone().journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        if in_memory {
            // A second connection to a shared memory database would meet table locks that no timeout waits for. The only
            // one lives as long as the store: the database ends with it.
            let only = pool(1).idle_timeout(None).max_lifetime(None);
            let only = only.connect_with(writing).await.map_err(OpenError::database)?;
            prepare(&mut *only.acquire().await.map_err(OpenError::database)?).await?;
            let writer = Writer::Memory(only.clone());
            return Ok(Self { writer, readers: only, lock: Mutex::new(None) });
        }
        let lock = if is_read_only { None } else { Lock::take(&file).await };
        let mut writer = connect(&writing).await.map_err(OpenError::database)?;
        files::tell_shared(&file);
        prepare(&mut writer).await?;
        let readers = pool(READERS).connect_lazy_with(options.create_if_missing(false).pragma("query_only", "ON"));
        let writer = Writer::to_file(writer, writing, WRITE_WAIT);
        Ok(Self { writer, readers, lock: Mutex::new(lock) })
    }

    /// A database that is there, only to be read.
    pub(in crate::store) async fn open_to_read(url: &str) -> Result<Self, OpenError> {
        let options: SqliteConnectOptions = url.parse().map_err(OpenError::url)?;
        let options = options.create_if_missing(false).busy_timeout(WRITE_WAIT).disable_statement_logging();
        let readers = pool(1).connect_with(options.pragma("mmap_size", "0").pragma("query_only", "ON"));
        let readers = readers.await.map_err(OpenError::database)?;
        Ok(Self { writer: Writer::Memory(readers.clone()), readers, lock: Mutex::new(None) })
    }
}

/// A pool of `connections`. None is pinged before use: it is in this process.
fn pool(connections: u32) -> SqlitePoolOptions {
    let pool = SqlitePoolOptions::new().max_connections(connections).test_before_acquire(false);
    pool.acquire_timeout(WRITE_WAIT).acquire_slow_threshold(WRITE_WAIT * 2)
}

/// Connects the writer. Turning a new file to WAL mode is the one step for which SQLite itself does not wait until
/// another process is done with it.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let deadline = Instant::now() + WRITE_WAIT;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => tokio::time::sleep(BUSY_PAUSE).await,
            connected => return connected,
        }
    }
}

/// Whether another connection holds the lock (`SQLITE_BUSY`, the low byte of its extended codes).
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 5)
}

/// Checks the library, then brings the schema up to date, all or nothing. A schema that is up to date is not written
/// to, so a locked or read-only file does not keep the server from starting.
async fn prepare(connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let version: String =
        sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *connection).await.map_err(OpenError::database)?;
    if is_older(&version, OLDEST_SQLITE) {
        return Err(OpenError::OldSqlite(version));
    }

    let known = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or_default();
    let found = schema_version(connection).await.map_err(OpenError::database)?;
    let begin = match step(found, known)? {
        // As the writer from the start, so that two processes starting at once do not both migrate.
        Step::Migrate => "BEGIN IMMEDIATE",
        Step::Keep => "BEGIN",
        Step::Leave => return Ok(()),
    };
    let mut transaction = connection.begin_with(begin).await.map_err(OpenError::database)?;
    match MIGRATOR.run_direct(None, &mut *transaction, false).await {
        Ok(()) => transaction.commit().await.map_err(OpenError::database),
        Err(MigrateError::VersionMissing(found)) => Err(OpenError::NewerSchema { found, known }),
        Err(error) => Err(OpenError::migration(error)),
    }
}

/// The newest migration that the database has had, 0 for a new one.
async fn schema_version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let tables: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(0);
    }
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    Ok(newest.unwrap_or_default())
}

/// Whether `version` (`3.51.3`) is before `oldest`; one that cannot be read is.
fn is_older(version: &str, oldest: [u32; 3]) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let found: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or_default());
    found < oldest
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_compare_as_numbers() {
        let rows = [
            ("3.51.3", false, "the oldest allowed"),
            ("3.51.2", true, "one before"),
            ("3.51.10", false, "ten is more than three"),
            ("3.9.99", true, "nine is less than fifty-one"),
            ("4.0", false, "a missing number is 0"),
            ("unknown", true, "unreadable"),
        ];
        for (version, expected, reason) in rows {
            assert_eq!(is_older(version, [3, 51, 3]), expected, "{reason}");
        }
    }
}
