//! A PostgreSQL server of our own: a new cluster in a folder of its own, reached through a socket there, which ends
//! with this process however that ends. A database of its own for each test, and a server that can be stopped and
//! paused.
//!
//! The server at `SWITCHBOARD_TEST_POSTGRES_URL` is used where any will do. Where there is none and none is installed
//! the tests say so and pass, unless `SWITCHBOARD_REQUIRE_SERVICES` is 1.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use url::Url;
use uuid::Uuid;

/// The server that tests share, or why there is none.
static SHARED: OnceLock<Result<TestPostgres, String>> = OnceLock::new();

/// PostgreSQL refuses to run as root; then its own user runs all of it.
const AS_SOMEBODY: &str =
    r#"if [ "$(id -u)" = 0 ]; then exec runuser -u postgres -- sh -c "$0"; else exec sh -c "$0"; fi"#;

/// Attends to one cluster: does what the lines of its standard input say and answers each, until there are no more.
/// A server that is paused takes no signal but the one that lets it go on.
const ATTEND: &str = r#"
for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
command -v initdb >/dev/null && command -v pg_ctl >/dev/null || { echo PostgreSQL is not installed; exit; }
dir=$(mktemp -d /tmp/switchboard-postgres.XXXXXX) && cd "$dir" || exit
all() { pid=$(head -n 1 data/postmaster.pid) && echo "$pid" $(ps -o pid= --ppid "$pid"); }
start() { pg_ctl -D data -l server.log -w -t 60 start >>attend.log 2>&1; }
stop() { kill -CONT $(all); pg_ctl -D data -m immediate -w stop >>attend.log 2>&1; }
trap exit INT TERM HUP
trap 'stop 2>/dev/null; cd /; rm -rf "$dir"' EXIT
initdb -D data -U postgres --auth=trust -E UTF8 --no-locale --no-sync >>attend.log 2>&1 || { tail -n 1 attend.log; exit; }
cat >>data/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$dir'
port = 5432
fsync = off
max_connections = 200
END
sed -i '1i local all locked scram-sha-256' data/pg_hba.conf
start || { tail -n 1 server.log; exit; }
echo "at $dir"
while read -r word; do
    case $word in
        start) start ;;
        stop) stop ;;
        # First the one that makes the others: nobody is added to those that are told.
        pause) kill -STOP $(head -n 1 data/postmaster.pid) && kill -STOP $(all) ;;
        # First those that it made: one that ends meanwhile is there until it goes on itself.
        resume) kill -CONT $(all | tr ' ' '\n' | tac) ;;
    esac && echo done || echo failed
done
"#;

/// A running server.
pub struct TestPostgres {
    /// Its maintenance database.
    url: Url,
    /// None for a server that is not ours.
    attendant: Option<Mutex<Attendant>>,
    /// The databases that others are copies of, by what they are like.
    templates: tokio::sync::Mutex<BTreeMap<&'static str, String>>,
}

struct Attendant {
    /// Ends when its standard input does.
    _process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A new, empty database.
pub struct TestDatabase {
    /// Where it is.
    pub url: String,
    /// Whom to ask to remove it; a server of our own goes with all it has.
    remove_at: Option<(Url, String)>,
}

impl TestPostgres {
    /// The server that all tests share; `None` when the tests go without one.
    pub fn shared() -> Option<&'static Self> {
        let found = SHARED.get_or_init(|| match std::env::var("SWITCHBOARD_TEST_POSTGRES_URL") {
            Ok(url) => Ok(Self { url: Url::parse(&url).unwrap(), attendant: None, templates: Default::default() }),
            Err(_) => Self::begin(),
        });
        found.as_ref().map_err(|reason| skip(reason)).ok()
    }

    /// A server for one test, which may do to it what it likes; it ends when it is dropped.
    pub fn private() -> Option<Self> {
        Self::begin().map_err(|reason| skip(&reason)).ok()
    }

    fn begin() -> Result<Self, String> {
        let mut process = Command::new("sh")
            .args(["-c", AS_SOMEBODY, ATTEND])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut attendant = Attendant { _process: process, orders, answers };
        let answer = attendant.answer();
        let dir = answer.strip_prefix("at ").ok_or(format!("no PostgreSQL could be started: {answer}"))?;
        // With the port, or a variable might name another.
        let url = Url::parse(&format!("postgres://postgres@localhost:5432/postgres?host={dir}")).unwrap();
        Ok(Self { url, attendant: Some(Mutex::new(attendant)), templates: Default::default() })
    }

    /// A new, empty database.
    pub async fn new_database(&self) -> TestDatabase {
        self.copy_of("template1").await
    }

    /// A new database that is as `make_ready` makes one. It does so once for all that are `like` it, which are copies: that is
    /// sooner done than all migrations. On a server that is not ours, where nobody would remove it, each is made ready.
    pub async fn database_like(&self, like: &'static str, make_ready: impl AsyncFnOnce(&TestDatabase)) -> TestDatabase {
        if self.attendant.is_none() {
            let database = self.new_database().await;
            make_ready(&database).await;
            return database;
        }
        let mut templates = self.templates.lock().await;
        let template = match templates.get(like) {
            Some(template) => template.clone(),
            None => {
                let database = self.new_database().await;
                make_ready(&database).await;
                templates.entry(like).or_insert(database.name()).clone()
            }
        };
        drop(templates);
        self.copy_of(&template).await
    }

    async fn copy_of(&self, template: &str) -> TestDatabase {
        let name = format!("switchboard_test_{}", Uuid::new_v4().simple());
        execute(&self.url, format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        let mut url = self.url.clone();
        url.set_path(&name);
        let remove_at = self.attendant.is_none().then(|| (self.url.clone(), name));
        TestDatabase { url: url.into(), remove_at }
    }

    /// Ends the server at once, as a crash does.
    pub fn stop_immediate(&self) {
        self.order("stop");
    }

    /// Starts the server again after [`Self::stop_immediate`]; it takes connections.
    pub fn start(&self) {
        self.order("start");
    }

    /// Keeps all of the server from running; connections to it stay open.
    pub fn pause(&self) {
        self.order("pause");
    }

    /// Lets the server go on after [`Self::pause`].
    pub fn resume(&self) {
        self.order("resume");
    }

    fn order(&self, word: &str) {
        let mut attendant = self.attendant.as_ref().expect("a server of our own").lock().unwrap();
        writeln!(attendant.orders, "{word}").unwrap();
        assert_eq!(attendant.answer(), "done", "{word}");
    }
}

impl Attendant {
    /// The next line it says, or what has become of it.
    fn answer(&mut self) -> String {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => line.trim().to_owned(),
            Ok(0) => "it ended without a word".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

impl TestDatabase {
    /// A database at this URL, which somebody else removes.
    pub fn at(url: String) -> Self {
        Self { url, remove_at: None }
    }

    /// Its name.
    pub fn name(&self) -> String {
        Url::parse(&self.url).unwrap().path().trim_start_matches('/').to_owned()
    }

    /// A connection beside the product's.
    pub async fn beside(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Does what `sql` says, as somebody else.
    pub async fn execute(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.beside().await).await.unwrap();
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some((url, name)) = self.remove_at.take() else { return };
        // A thread of its own, since the test's runtime is busy with the test.
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(execute(&url, format!("DROP DATABASE {name} WITH (FORCE)")));
        });
        drop(removal.join());
    }
}

async fn execute(url: &Url, sql: String) {
    let mut connection = PgConnection::connect(url.as_str()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

fn skip(reason: &str) {
    assert!(std::env::var("SWITCHBOARD_REQUIRE_SERVICES").as_deref() != Ok("1"), "{reason}");
    // Not `println!`, which a test that passes keeps to itself.
    writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
}
