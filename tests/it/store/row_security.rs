//! The second wall: PostgreSQL itself holds each transaction to the tenant and the user that it has named. The whole contract
//! is passed behind it, by a role that it holds for; and statements that name no owner find nothing of anybody else.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use switchboard::agent::ports::chats::Chats;
use switchboard::agent::ports::conversations::Page;
use switchboard::agent::ports::quotas::Whose;
use switchboard::agent::ports::store::{BeginError, Begun};
use switchboard::agent::ports::store::{Commit, MostRuns, NewRun, Question};
use switchboard::bounded::json::JsonText;
use switchboard::chat::feedback::{Feedback, Score};
use switchboard::chat::ids::PayloadId;
use switchboard::chat::input::Ask;
use switchboard::chat::payload::{Payload, PayloadSource};
use switchboard::store::{RowSecurity, Store, StoreConfig, open};
use url::Url;

use super::contract::{Database, ManualClock, Room, answer, complete, contract, said};
use super::explained::Explains;
use crate::support::postgres::{TestDatabase, TestPostgres};

mod guarded {
    super::contract!(crate::store::row_security::new_database);
}

/// The role of the program. It owns the tables and is no superuser.
const ROLE: &str = "switchboard_guarded";

/// Switches it on.
const ON: &str = "SELECT switchboard_row_security(TRUE)";

/// A database of the role, in which row-level security holds.
pub struct Guarded {
    database: TestDatabase,
    /// As the role.
    pub url: String,
}

pub async fn new_database() -> Option<Guarded> {
    let make_ready = async |database: &TestDatabase| {
        let guarded = Guarded::of(TestDatabase::at(database.url.clone())).await;
        guarded.try_open(ManualClock::new()).await.close().await;
        guarded.database.execute(ON).await;
    };
    Some(Guarded::of(TestPostgres::shared()?.database_like("guarded", make_ready).await).await)
}

impl Guarded {
    /// The database, which belongs to the role from here on.
    async fn of(database: TestDatabase) -> Self {
        let role = format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}'");
        let is_there = "duplicate_object OR unique_violation";
        database.execute(&format!("DO $$ BEGIN {role}; EXCEPTION WHEN {is_there} THEN NULL; END $$")).await;
        let name = database.name();
        database.execute(&format!("ALTER DATABASE {name} OWNER TO {ROLE}; ALTER SCHEMA public OWNER TO {ROLE}")).await;
        let mut url = Url::parse(&database.url).unwrap();
        url.set_username(ROLE).unwrap();
        url.set_password(Some(ROLE)).unwrap();
        Self { database, url: url.into() }
    }

    async fn try_open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let config = StoreConfig { url: self.url.clone(), row_security: RowSecurity::On, ..StoreConfig::default() };
        open(&config, clock, Arc::default()).await.unwrap()
    }

    /// A connection of the program's role.
    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }
}

#[async_trait]
impl Explains for Guarded {
    const KIND: &'static str = "guarded";

    // The statements are the same. What a policy lets through depends on settings, of which a plan for all values knows nothing.
    async fn refused(&self, _said: Vec<String>) -> Vec<String> {
        Vec::new()
    }
}

#[async_trait]
impl Database for Guarded {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        self.try_open(clock).await
    }

    async fn ask(&self, sql: &str) -> Vec<String> {
        self.database.ask(sql).await
    }
}

/// The four owners of the story; the last has names that are empty.
const OWNERS: [&str; 4] = ["acme/ann/c1", "acme/bob/c1", "umbrella/ann/c1", "//c1"];

/// Something in every table, of everybody.
async fn speak(store: &dyn Store) {
    for path in OWNERS {
        let room = Room::at(path);
        let payload = Arc::new(Payload {
            id: PayloadId::fresh(),
            kind: "note".into(),
            data: JsonText::of(&json!(1)),
            summary: "note".into(),
            source: PayloadSource::Tool,
        });
        let (run, _) = room.say(store, "hello").await;
        store.append(run, Commit { payloads: &[payload], ..said(1, &[answer("hi")]) }).await.unwrap();
        complete(store, run).await;
        room.preview(store, "a").await;
        store.create_draft(&room.owner, &room.conversation, &json!(1)).await.unwrap();
        store.number(&room.owner, None, &room.conversation, "app").await.unwrap();
        let feedback = Feedback { score: Score::Good, comment: None, tags: Vec::new() };
        store.give(&room.owner, run, &feedback).await.unwrap().unwrap();
        let all = Page { limit: 9, cursor: None };
        let found = store.search(&room.owner, "hello", all, &mut crate::support::whole::room()).await.unwrap();
        assert_eq!(found.page.items.len(), 1, "and in the index");
    }
}

/// The owners of the rows of a table, once each, as somebody sees them who has set `tenant` and `user`, or nothing.
async fn seen(connection: &mut PgConnection, table: &str, set: Option<(&str, &str)>) -> Vec<(String, String)> {
    let mut transaction = connection.begin().await.unwrap();
    if let Some((tenant, user)) = set {
        sqlx::query("SELECT set_config('app.tenant', $1, true), set_config('app.user', $2, true)")
            .bind(tenant)
            .bind(user)
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
    let all = format!("SELECT DISTINCT tenant, user_id FROM {table} ORDER BY 1, 2");
    let owners = sqlx::query_as(AssertSqlSafe(all)).fetch_all(&mut *transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    owners
}

fn owned(names: &[(&str, &str)]) -> Vec<(String, String)> {
    names.iter().map(|(tenant, user)| ((*tenant).to_owned(), (*user).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_without_where_finds_its_owners_rows_alone() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    speak(&*store).await;
    let mut connection = database.connect().await;
    let everybody = owned(&[("", ""), ("acme", "ann"), ("acme", "bob"), ("umbrella", "ann")]);
    for table in [
        "conversations",
        "runs",
        "messages",
        "trail",
        "previews",
        "drafts",
        "payloads",
        "chats",
        "stored_usage",
        "feedback",
        "search_texts",
    ] {
        let rows = [
            (None, vec![], "who has set nothing"),
            (Some(("=acme", "=ann")), owned(&[("acme", "ann")]), "a user"),
            (Some(("=acme", "*")), owned(&[("acme", "ann"), ("acme", "bob")]), "a tenant's administrator"),
            (Some(("=", "=")), owned(&[("", "")]), "a user without names"),
            (Some(("", "")), vec![], "what is left when a transaction has ended"),
            (Some(("=acme", "")), vec![], "a tenant without a user"),
            (Some(("=acme' OR TRUE --", "=ann")), vec![], "a name that is no SQL"),
            (Some(("*", "*")), everybody.clone(), "leases and sweeps"),
        ];
        for (set, expected, reason) in rows {
            assert_eq!(seen(&mut connection, table, set).await, expected, "{table}: {reason}");
        }
    }
    // The session has had names set in it before, and has none now.
    for table in ["run_details", "dispatches", "partials", "messages", "runs"] {
        let all = format!("SELECT COUNT(*) FROM {table}");
        let found: i64 = sqlx::query_scalar(AssertSqlSafe(all)).fetch_one(&mut connection).await.unwrap();
        assert_eq!(found, 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_without_where_reaches_its_owners_rows_alone() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    speak(&*store).await;
    let mut connection = database.connect().await;
    let mut transaction = connection.begin().await.unwrap();
    let set = "SELECT set_config('app.tenant', '=acme', true), set_config('app.user', '=ann', true)";
    sqlx::query(set).execute(&mut *transaction).await.unwrap();
    sqlx::query("UPDATE messages SET body = '\"changed\"'").execute(&mut *transaction).await.unwrap();
    sqlx::query("DELETE FROM drafts").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    let changed = "SELECT DISTINCT tenant || '/' || user_id FROM messages WHERE body = '\"changed\"'";
    assert_eq!(database.ask(changed).await, ["acme/ann"]);
    assert_eq!(database.ask("SELECT CAST(COUNT(*) AS TEXT) FROM drafts").await, ["3"]);

    let mut transaction = connection.begin().await.unwrap();
    sqlx::query(set).execute(&mut *transaction).await.unwrap();
    let foreign = "UPDATE conversations SET user_id = 'bob', id = 'c9'";
    let refused = sqlx::query(foreign).execute(&mut *transaction).await.unwrap_err();
    assert!(refused.to_string().contains("row-level security"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_holds_for_every_table_and_is_switched_off_again() {
    let Some(database) = new_database().await else { return };
    let open_tables = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
         AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY relname";
    assert_eq!(
        database.ask(open_tables).await,
        ["_sqlx_migrations", "file_removals", "schedules", "tool_pins"],
        "tables of nobody"
    );
    // A process whose setting is off finds out at its start.
    let config = StoreConfig { url: database.url.clone(), ..StoreConfig::default() };
    let store = open(&config, ManualClock::new(), Arc::default()).await.unwrap();
    speak(&*store).await;
    assert_eq!(database.ask("SELECT CAST(COUNT(*) AS TEXT) FROM conversations").await, ["4"]);
    database.ask("SELECT CAST(switchboard_row_security(FALSE) AS TEXT)").await;
    let mut connection = database.connect().await;
    assert_eq!(seen(&mut connection, "runs", None).await.len(), 4);
    speak(&*store).await;
}

#[tokio::test]
async fn a_table_that_a_newer_schema_adds_is_held_to_it_too() {
    let Some(shared) = TestPostgres::shared() else { return };
    for (holds, unguarded) in [(true, "0"), (false, "1")] {
        let database = shared.new_database().await;
        let earlier = super::schema_of(6, "src/store/postgres/migrations").await;
        earlier.run(&mut database.beside().await).await.unwrap();
        database.execute(&format!("SELECT switchboard_row_security({holds})")).await;
        let config = StoreConfig { url: database.url.clone(), ..StoreConfig::default() };
        open(&config, ManualClock::new(), Arc::default()).await.unwrap().close().await;
        let mut beside = database.beside().await;
        let added = "SELECT CAST(COUNT(*) AS TEXT) FROM pg_class WHERE relname = 'conversation_state'
             AND NOT (relrowsecurity AND relforcerowsecurity)";
        let found: String = sqlx::query_scalar(added).fetch_one(&mut beside).await.unwrap();
        assert_eq!(found, unguarded, "row-level security: {holds}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reaches_beyond_a_user_does_so_within_its_tenant() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    speak(&*store).await;
    let (chats, total) = store.chats(Chats::Tenant { tenant: "acme", user: None }, 10, 0).await.unwrap();
    assert_eq!((chats.len(), total), (2, 2));
    // The runs of the whole tenant are counted, and the run begins as its user's.
    let most = MostRuns { per_user: 0, per_tenant: 1 };
    let ask = Ask::message("go");
    let [ann, bob] = ["acme/ann/c2", "acme/bob/c2"].map(Room::at);
    let begin = async |room: &Room| {
        let new = NewRun { most, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
        store.begin_run(new).await
    };
    assert!(matches!(begin(&ann).await, Ok(Begun::Running(_))));
    let refused = begin(&bob).await;
    assert!(matches!(refused, Err(BeginError::TooMany(Whose::Tenant))), "{refused:?}");
    assert!(matches!(begin(&Room::at("umbrella/ann/c2")).await, Ok(Begun::Running(_))));
}
