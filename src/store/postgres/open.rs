//! Opening a PostgreSQL database: its connections, and its schema.

use std::str::FromStr;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;
use url::Url;

use super::PostgresDatabase;
use crate::store::schema::{Step, step};
use crate::store::{OpenError, RowSecurity, StoreConfig};

/// The schema's versions; a released file is never edited, since its checksum is in every database.
static MIGRATOR: Migrator = sqlx::migrate!("src/store/postgres/migrations");

/// Connections of the leases' own: one for the beat, one for whoever else looks after runs.
const LEASE_CONNECTIONS: u32 = 2;

/// How long a call waits for a connection, and how long the first one may take.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long a connection that comes back gets to answer; one that does not is given up, so that a server that is gone
/// does not keep the pool's slots.
const RETURN_WAIT: Duration = Duration::from_secs(5);

/// A connection that was in use so lately is not asked whether it still works before it is used again: it was asked when it
/// came back, and one question more would be a trip for each statement of a busy process. No server goes away and comes back
/// in this time, so behind a restart every connection is asked.
const TRUSTED_FOR: Duration = Duration::from_millis(100);

/// The settings of every session: no statement takes longer than ten seconds, and a transaction whose process has
/// stopped does not hold its rows for ever.
const SESSION: &str = "SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '30s'";

/// A migration takes as long as it takes. It waits for other processes that migrate, and for locks on tables, a minute. What it
/// changes is everybody's.
const MIGRATION_SESSION: &str =
    "SET statement_timeout = 0; SET lock_timeout = '60s'; SET app.tenant = '*'; SET app.\"user\" = '*'";

/// The parameters of a URL, besides `options[…]`. sqlx would log an unknown one with its value.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

impl PostgresDatabase {
    /// The database that `config` names, its schema brought up to date.
    pub(in crate::store) async fn open(config: &StoreConfig) -> Result<Self, OpenError> {
        let options = options(&config.url)?;
        // Not through the pool, which would try a server that is not there again and again, and then only say that it
        // took long.
        let first = timeout(CONNECT_WAIT, PgConnection::connect_with(&options)).await;
        let first = first.unwrap_or_else(|_| Err(no_answer())).map_err(OpenError::database)?;
        let standing = prepare(first).await?;
        let says_whose = standing.holds || config.row_security == RowSecurity::On;
        tell(standing, config.row_security);

        let leases = pool(LEASE_CONNECTIONS, &options).connect_lazy_with(options.clone());
        let pool = pool(config.max_connections, &options).connect_lazy_with(options);
        Ok(Self { pool, leases, says_whose })
    }

    /// A database that is there, only to be read.
    pub(in crate::store) fn open_to_read(config: &StoreConfig) -> Result<Self, OpenError> {
        let options = options(&config.url)?.options([("default_transaction_read_only", "on")]);
        let pool = pool(1, &options).connect_lazy_with(options);
        Ok(Self { leases: pool.clone(), pool, says_whose: true })
    }
}

/// So many connections. Our own limits report how long statements and turns take; sqlx would log kilobytes for each.
fn pool(connections: u32, options: &PgConnectOptions) -> PgPoolOptions {
    let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(CONNECT_WAIT);
    let pool = pool.acquire_slow_threshold(CONNECT_WAIT * 2);
    let port = options.get_port();
    let pool = pool.after_connect(move |connection, _| {
        Box::pin(async move {
            send_at_once(port).await;
            sqlx::raw_sql(SESSION).execute(connection).await.map(drop)
        })
    });
    let pool = pool.test_before_acquire(false).before_acquire(|connection, known| {
        Box::pin(async move {
            if known.idle_for >= TRUSTED_FOR {
                connection.ping().await?;
            }
            Ok(true)
        })
    });
    pool.after_release(|connection, _| {
        Box::pin(async move {
            let answered = timeout(RETURN_WAIT, connection.ping()).await;
            answered.unwrap_or_else(|_| Err(no_answer())).map(|()| true)
        })
    })
}

/// Lets the new connection, one of those to this port, send what it has at once. One that cannot is slower, and works.
async fn send_at_once(port: u16) {
    #[cfg(target_os = "linux")]
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || super::no_delay::send_at_once(port)).await {
        tracing::debug!(%error, "the database's socket keeps TCP_NODELAY off");
    }
}

/// A server that let the time pass.
fn no_answer() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())
}

/// Looks whether `url` can be understood.
///
/// # Errors
/// When it cannot.
pub(in crate::store) fn understand(url: &str) -> Result<(), OpenError> {
    options(url).map(drop)
}

/// How to connect. What the URL leaves open comes from the usual variables (`PGPASSWORD`, `PGSSLMODE` …) and
/// `~/.pgpass`.
fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    let not_understood = |error| OpenError::url(sqlx::Error::Configuration(Box::new(error)));
    let parsed = Url::parse(url).map_err(not_understood)?;
    let is_known = |key: &str| PARAMETERS.contains(&key) || (key.starts_with("options[") && key.ends_with(']'));
    if !parsed.query_pairs().all(|(key, _)| is_known(&key)) {
        return Err(OpenError::Parameter);
    }
    let options = PgConnectOptions::from_str(url).map_err(OpenError::url)?;
    let options = options.disable_statement_logging();
    Ok(match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("switchboard"),
    })
}

/// Brings the schema up to date; processes that start at once wait for each other. A schema that is up to date is not
/// written to, so a server that only reads for now does not keep this one from starting.
async fn prepare(mut connection: PgConnection) -> Result<Standing, OpenError> {
    sqlx::raw_sql(MIGRATION_SESSION).execute(&mut connection).await.map_err(OpenError::database)?;
    let known = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or_default();
    let found = schema_version(&mut connection).await.map_err(OpenError::database)?;
    let done = match step(found, known)? {
        Step::Migrate => MIGRATOR.run_direct(None, &mut connection, false).await,
        Step::Keep => compare(&mut connection).await,
        Step::Leave => Ok(()),
    };
    let standing = sqlx::query_as(STANDING).fetch_one(&mut connection).await;
    // Whatever is still held, such as the migrations' lock after a failure, goes with the connection.
    drop(connection);
    match done {
        Ok(()) => standing.map_err(OpenError::database),
        Err(MigrateError::VersionMissing(found)) => Err(OpenError::NewerSchema { found, known }),
        Err(error) => Err(OpenError::migration(error)),
    }
}

/// How the database stands to row-level security.
#[derive(Clone, Copy, sqlx::FromRow)]
struct Standing {
    /// It holds transactions to the owner that they have named.
    holds: bool,
    /// We are a role that it does not hold to anything.
    is_above: bool,
}

/// A [`Standing`].
const STANDING: &str = "SELECT COALESCE((SELECT relrowsecurity AND relforcerowsecurity FROM pg_class
         WHERE oid = to_regclass('runs')), FALSE) AS holds,
     (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS is_above";

/// Logs the state of row-level security, for the operator.
fn tell(standing: Standing, wanted: RowSecurity) {
    let is_wanted = standing.holds || wanted == RowSecurity::On;
    if is_wanted && standing.is_above {
        tracing::warn!(
            "row-level security does not hold for this role of PostgreSQL, which is a superuser or has BYPASSRLS"
        );
    }
    match (standing.holds, wanted) {
        (false, RowSecurity::On) => tracing::warn!(
            "store.row_security is on, and the database does not hold transactions to it yet: when all replicas have it on, \
             SELECT switchboard_row_security(TRUE)"
        ),
        (true, RowSecurity::Off) => tracing::warn!(
            "the database holds transactions to row-level security, so it is used; store.row_security should be on"
        ),
        (true, RowSecurity::On) | (false, RowSecurity::Off) => {}
    }
}

/// The newest migration that the database has had, 0 for a new one.
async fn schema_version(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let has_table: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut *connection).await?;
    if !has_table {
        return Ok(0);
    }
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    Ok(newest.unwrap_or_default())
}

/// Whether what the database has had is what our files say.
async fn compare(connection: &mut PgConnection) -> Result<(), MigrateError> {
    for applied in connection.list_applied_migrations(&MIGRATOR.table_name).await? {
        let ours = MIGRATOR.iter().find(|migration| migration.version == applied.version);
        let ours = ours.ok_or(MigrateError::VersionMissing(applied.version))?;
        if ours.checksum != applied.checksum {
            return Err(MigrateError::VersionMismatch(applied.version));
        }
    }
    Ok(())
}
