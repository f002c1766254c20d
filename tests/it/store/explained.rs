//! Every statement that a story of the contract says to a database is explained by that database: it finds its rows by
//! an index, however many there are.
//!
//! SQLite says how it looks for rows without asking how many there are. PostgreSQL is told that each table has a million
//! (`grown.sql`), and that it may keep its plan for all values of the parameters: of a few rows it would read all, and without
//! sequential scans it would read an index from end to end where none is of use. What it believes of a user or a conversation is
//! a two hundredth of the table, 5,000 rows, since it has no statistics; so a plan that is good here is good for a table that has
//! just grown, too.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::fmt::Write;
use std::sync::{Arc, LazyLock, Mutex};

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber;
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::contract::{Database, ManualClock};
use super::sqlite::SqliteFile;
use super::{conversations, postgres};

/// What a plan may cost. To read the table costs 12,500, what is kept of a user in two tables some 1,300.
const MOST: f64 = 5_000.0;

/// Statements that read more, by how they begin, and why they may.
const EXCEPTIONS: [(&str, &str); 9] = [
    (
        "SELECT c.chain, COALESCE(k.seq, 0), COALESCE(k.digest, '')",
        "an operator verifies the audit record on the command line",
    ),
    ("SELECT chain, sent FROM audit_chains", "one row for each tenant"),
    ("DELETE FROM drafts WHERE id IS NULL", "nothing is read: the column is never NULL"),
    (
        "SELECT CAST(COALESCE(SUM(CASE WHEN user_id = $2 THEN bytes",
        "an upload, and a tenant keeps so many bytes of files",
    ),
    ("SELECT CAST(COALESCE(SUM(exports), 0)", "one row for each user, where exports of a tenant are counted"),
    ("SELECT CAST(COALESCE(SUM(bytes), 0)", "one row for each user, where what a tenant keeps is counted"),
    (
        "SELECT l.number, l.tenant",
        "an administrator's list, whose protocol has numbers of pages and the newest answer first",
    ),
    ("UPDATE approvals SET state = CASE WHEN decided_by IS NULL", "a run was begun by one decision, not by 5,000"),
    (
        "UPDATE approvals SET state = CASE WHEN state = 'rejected'",
        "a run takes a decision on each call of one turn, not 5,000",
    ),
];

/// A database that tells how it carries out a statement.
#[async_trait]
pub trait Explains {
    /// Databases of one kind make the same plans.
    const KIND: &'static str;

    /// Those of the statements that read more than they should, each with how.
    async fn refused(&self, said: Vec<String>) -> Vec<String>;
}

/// Goes through a story, and has explained what was said in it for the first time.
pub async fn watch<D: Explains>(database: &D, story: impl Future<Output = ()>) {
    static EXPLAINED: LazyLock<Mutex<BTreeSet<(&str, String)>>> = LazyLock::new(Mutex::default);
    let mut said = said_in(story).await;
    said.retain(|text| EXPLAINED.lock().unwrap().insert((D::KIND, text.clone())));
    said.retain(|text| !EXCEPTIONS.iter().any(|(start, _)| text.starts_with(start)));
    if said.is_empty() {
        return;
    }
    let refused = database.refused(said.into_iter().collect()).await;
    assert!(refused.is_empty(), "these read more than they find:\n\n{}", refused.join("\n\n"));
}

/// What is said in a story, each with single blanks.
async fn said_in(story: impl Future<Output = ()>) -> BTreeSet<String> {
    LazyLock::force(&ANOTHER);
    let heard = Heard::default();
    story.with_subscriber(tracing_subscriber::registry().with(heard.clone())).await;
    std::mem::take(&mut *heard.0.lock().unwrap())
}

/// Where there is one subscriber, and somebody without it is the first to say a statement, it is taken for one that nobody hears.
static ANOTHER: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::registry().with(Heard::default())));

/// Texts of statements.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<BTreeSet<String>>>);

impl<S: Subscriber> Layer<S> for Heard {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("switchboard::store::statement")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "db.query.text" {
            let text = format!("{value:?}").split_whitespace().collect::<Vec<_>>().join(" ");
            self.0.lock().unwrap().insert(text);
        }
    }
}

/// What SQLite reads from end to end: a table, or an index that has all of its rows.
pub async fn refused_by_sqlite(mut connection: SqliteConnection, said: Vec<String>) -> Vec<String> {
    let parts = sqlx::query(
        "SELECT name, type = 'index' AND COALESCE(sql, '') LIKE '% WHERE %' FROM sqlite_schema WHERE type IN ('table', 'index')",
    );
    let parts: HashMap<String, bool> =
        parts.fetch_all(&mut connection).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut refused = Vec::new();
    // What changes a row and then reads it is one text here.
    for text in said.iter().flat_map(|text| text.split(';')).filter(|text| !text.trim().is_empty()) {
        let called = names_of_tables(text, &parts);
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
        let plan =
            sqlx::raw_sql(explain).fetch_all(&mut connection).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        let plan: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
        let is_whole = |step: &&String| {
            let words: Vec<&str> = step.split(' ').collect();
            let index = words.iter().position(|word| *word == "INDEX").and_then(|at| words.get(at + 1));
            let is_partial = index.is_some_and(|index| parts.get(*index) == Some(&true));
            words[0] == "SCAN" && called.contains(words[1]) && !step.contains("VIRTUAL") && !is_partial
        };
        refused.extend(plan.iter().find(is_whole).map(|step| format!("{step}: {text}")));
    }
    refused
}

/// The names by which a statement calls the tables that it reads.
fn names_of_tables<'t>(text: &'t str, tables: &HashMap<String, bool>) -> BTreeSet<&'t str> {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let mut names = BTreeSet::new();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| tables.contains_key(**word)) {
        let behind = words[at + 1..].iter().find(|word| **word != "AS");
        names.extend([Some(*word), behind.copied()].into_iter().flatten());
    }
    names
}

/// What costs PostgreSQL more than [`MOST`] in grown tables, or reads one of them from end to end.
pub async fn refused_by_postgres(mut connection: PgConnection, said: Vec<String>) -> Vec<String> {
    let mut transaction = connection.begin().await.unwrap();
    sqlx::raw_sql(include_str!("grown.sql")).execute(&mut *transaction).await.unwrap();
    let mut refused = Vec::new();
    for text in &said {
        let explain = AssertSqlSafe(explanation(text));
        let plan =
            sqlx::raw_sql(explain).fetch_all(&mut *transaction).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let cost = plan[0].split_once("..").and_then(|(_, rest)| rest.split(' ').next()).unwrap();
        if cost.parse::<f64>().unwrap() > MOST || plan.iter().any(|step| step.contains("Seq Scan on ")) {
            refused.push(format!("{text}\n{}", plan.join("\n")));
        }
    }
    transaction.rollback().await.unwrap();
    refused
}

/// The statements that have PostgreSQL explain `text` for any values. It knows the types of parameters by what is done with them;
/// some are bound and stand in no part of the text. How many rows are wanted at most stands there as a number: of a parameter
/// it would believe that a tenth of the table is.
fn explanation(text: &str) -> String {
    let number = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let mut most = 0;
    let mut shown = String::new();
    for (nth, part) in text.split('$').enumerate() {
        match (nth, shown.ends_with(" LIMIT ") || shown.ends_with(" OFFSET ")) {
            (0, _) => shown.push_str(part),
            (_, is_count) => {
                let number = number(part);
                most = most.max(number.parse::<usize>().unwrap());
                match is_count {
                    true => write!(shown, "100{}", &part[number.len()..]).unwrap(),
                    false => write!(shown, "${part}").unwrap(),
                }
            }
        }
    }
    let is_there = |nth: &usize| shown.split('$').skip(1).any(|part| number(part) == nth.to_string());
    let types: Vec<&str> = (1..=most).map(|nth| if is_there(&nth) { "unknown" } else { "text" }).collect();
    let in_brackets = |list: Vec<&str>| if list.is_empty() { String::new() } else { format!("({})", list.join(", ")) };
    let nulls = in_brackets(vec!["NULL"; most]);
    format!("DEALLOCATE ALL; PREPARE said{} AS {shown}; EXPLAIN EXECUTE said{nulls}", in_brackets(types))
}

/// Deleting a row looks for those that refer to it, which no plan tells.
const KEYS_OF_SQLITE: &str = r#"
    WITH keys AS (SELECT m.name AS t, f.id AS k, COUNT(*) AS n FROM sqlite_schema m, pragma_foreign_key_list(m.name) f GROUP BY 1, 2)
    SELECT t || ' ' || k FROM keys WHERE NOT EXISTS (SELECT 1 FROM pragma_index_list(t) i WHERE i.partial = 0 AND n =
        (SELECT COUNT(*) FROM pragma_index_info(i.name) c JOIN pragma_foreign_key_list(t) f ON f."from" = c.name AND f.id = k
         WHERE c.seqno < n))"#;

const KEYS_OF_POSTGRES: &str = "
    SELECT conname::text FROM pg_constraint WHERE contype = 'f' AND NOT EXISTS (
        SELECT 1 FROM pg_index WHERE indrelid = conrelid AND indpred IS NULL
            AND conkey <@ (indkey::smallint[])[0:cardinality(conkey) - 1])";

#[tokio::test]
async fn what_refers_to_a_row_is_found_by_an_index() {
    let sqlite = SqliteFile::new();
    sqlite.sqlite().await.close().await;
    assert_eq!(sqlite.ask(KEYS_OF_SQLITE).await, [""; 0]);
    let Some(postgres) = postgres::new_database().await else { return };
    postgres.open(ManualClock::new()).await.close().await;
    assert_eq!(postgres.ask(KEYS_OF_POSTGRES).await, [""; 0]);
}

#[tokio::test]
async fn what_reads_a_table_from_end_to_end_is_refused() {
    let (by_index, by_none) =
        ("SELECT conversation FROM runs WHERE id = $1", "SELECT id FROM runs WHERE request_id = $1");
    let all = || [by_index, by_none].map(str::to_owned).to_vec();
    let sqlite = SqliteFile::new();
    sqlite.sqlite().await.close().await;
    assert_eq!(sqlite.refused(all()).await, [format!("SCAN runs: {by_none}")]);
    let Some(postgres) = postgres::new_database().await else { return };
    postgres.open(ManualClock::new()).await.close().await;
    let [refused] = &postgres.refused(all()).await[..] else { panic!("one of the two is refused") };
    assert!(refused.contains("Seq Scan on runs"), "{refused}");
}

#[tokio::test]
async fn what_a_story_says_is_heard() {
    let sqlite = SqliteFile::new();
    let said = said_in(conversations::the_next_run_sees_what_was_said_and_called(&sqlite)).await;
    assert!(said.len() > 20, "{said:#?}");
}
