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

/// The setting of a session that only reads.
const READ_ONLY: &str = "SET default_transaction_read_only = on";

/// A migration takes as long as it takes. It waits for other processes that migrate, and for locks on tables, a minute. What it
/// changes is everybody's.
const MIGRATION_SESSION: &str =
    "SET statement_timeout = 0; SET lock_timeout = '60s'; SET app.tenant = '*'; SET app.\"user\" = '*'";

/// The name of a parameter that is not known is told where it has at most 40 characters.
const PARAMETER_CHARS: usize = 40;

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
        tell_pooler(&options);
        let standing = prepare(first).await?;
        let says_whose = standing.holds || config.row_security == RowSecurity::On;
        tell(standing, config.row_security);

        let leases = pool(LEASE_CONNECTIONS, &options, Use::Writing).connect_lazy_with(options.clone());
        let pool = pool(config.max_connections, &options, Use::Writing).connect_lazy_with(options);
        Ok(Self { pool, leases, says_whose })
    }

    /// A database that is there, only to be read.
    pub(in crate::store) fn open_to_read(config: &StoreConfig) -> Result<Self, OpenError> {
        let options = options(&config.url)?;
        let pool = pool(1, &options, Use::Reading).connect_lazy_with(options);
        Ok(Self { leases: pool.clone(), pool, says_whose: true })
    }
}

/// What connections are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Writing,
    Reading,
}

/// So many connections. Our own limits report how long statements and turns take; sqlx would log kilobytes for each.
fn pool(connections: u32, options: &PgConnectOptions, used_for: Use) -> PgPoolOptions {
    let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(CONNECT_WAIT);
    let pool = pool.acquire_slow_threshold(CONNECT_WAIT * 2);
    let port = options.get_port();
    let pool = pool.after_connect(move |connection, _| {
        Box::pin(async move {
            send_at_once(port).await;
            sqlx::raw_sql(SESSION).execute(&mut *connection).await?;
            match used_for {
                Use::Writing => Ok(()),
                // Not in the handshake: poolers refuse options there.
                Use::Reading => sqlx::raw_sql(READ_ONLY).execute(connection).await.map(drop),
            }
        })
    });
    let pool = pool.test_before_acquire(false).before_acquire(move |connection, known| {
        Box::pin(async move {
            match known.idle_for >= TRUSTED_FOR {
                true => is_usable(connection, used_for).await,
                false => Ok(true),
            }
        })
    });
    pool.after_release(move |connection, _| {
        Box::pin(async move {
            let answered = timeout(RETURN_WAIT, is_usable(connection, used_for)).await;
            answered.unwrap_or_else(|_| Err(no_answer()))
        })
    })
}

/// Whether the server still answers, and takes writes where they are wanted: behind a failover the one that was the first may go on
/// as a second one, with its connections.
async fn is_usable(connection: &mut PgConnection, used_for: Use) -> Result<bool, sqlx::Error> {
    let reads_only: String = sqlx::query_scalar("SHOW transaction_read_only").fetch_one(connection).await?;
    Ok(used_for == Use::Reading || reads_only != "on")
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
    let parsed = Url::parse(url).map_err(OpenError::Address)?;
    let is_known = |key: &str| PARAMETERS.contains(&key) || (key.starts_with("options[") && key.ends_with(']'));
    let mut plain = parsed.clone();
    plain.set_query(None);
    // As libpq has it: the usual certificates, and nothing less than all of the check. The web's are known here.
    let is_system = parsed.query_pairs().any(|(key, value)| key == "sslrootcert" && value == "system");
    for (key, value) in parsed.query_pairs() {
        match (&*key, &*value) {
            ("channel_binding", "prefer" | "disable") => {}
            ("sslrootcert" | "ssl-root-cert" | "ssl-ca" | "sslmode" | "ssl-mode", _) if is_system => {}
            ("channel_binding", _) => return Err(OpenError::ChannelBinding),
            (known, _) if is_known(known) => drop(plain.query_pairs_mut().append_pair(known, &value)),
            (unknown, _) => return Err(OpenError::Parameter(shown(unknown))),
        }
    }
    if is_system {
        plain.query_pairs_mut().append_pair("sslmode", "verify-full");
    }
    let options = PgConnectOptions::from_str(plain.as_str()).map_err(OpenError::url)?;
    let options = options.disable_statement_logging();
    Ok(match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("switchboard"),
    })
}

/// The name of a parameter, unless it may be a part of a password that is not encoded.
fn shown(name: &str) -> String {
    let is_name =
        name.len() <= PARAMETER_CHARS && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if is_name { name.to_owned() } else { "[not shown]".to_owned() }
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

/// Warns of an address where poolers usually are: PgBouncer's own port, Supabase's, and Neon's names.
fn tell_pooler(options: &PgConnectOptions) {
    let (host, port) = (options.get_host(), options.get_port());
    if matches!(port, 6432 | 6543) || host.contains("-pooler.") {
        tracing::warn!(
            host,
            port,
            "store.url looks like the address of a pooler: those that change connections between transactions are not supported"
        );
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

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgSslMode;

    use super::options;

    #[test]
    fn the_system_s_certificates_are_asked_for_with_all_of_the_check() {
        for url in ["postgres://h/db?sslrootcert=system", "postgres://h/db?sslmode=require&sslrootcert=system"] {
            assert!(matches!(options(url).unwrap().get_ssl_mode(), PgSslMode::VerifyFull), "{url}");
        }
    }
}
