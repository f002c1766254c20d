//! The audit record in SQL: lines written with their act, and chained afterwards.
//!
//! **Invariant:** a line is written without a number, so no writer waits for a lock; the holder of the row of a chain
//! gives numbers to the lines that are committed by then. So tenants, and the runs of one tenant, do not wait for each
//! other, no two processes give the same number, and a line that is committed is chained within a beat or two.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::SqlStore;
use crate::agent::ports::audit::{AuditRecord, AuditStore, Chain, digest_of};
use crate::agent::ports::store_error::StoreError;
use crate::chat::audit::{AuditLine, Fact, chain_of};
use crate::chat::ids::{AuditId, RunId};
use crate::store::fault::{Fault, attempt};
use crate::store::record::column;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};

/// Chains that are looked after at once.
const CHAINS_AT_ONCE: i64 = 100;

/// Lines of a chain that are chained in one transaction: a few milliseconds' work.
const SEALED_AT_ONCE: i64 = 100;

/// The most of one text in a line, in bytes: names of tools and ids of calls come from others.
const TEXT_BYTES: usize = 512;

#[async_trait]
impl AuditRecord for SqlStore {
    async fn lines(&self, chain: &str, after: u64, most: u32) -> Result<Vec<AuditLine>, StoreError> {
        attempt("read the audit record", self.try_lines(chain, after, most)).await
    }

    async fn chains(&self) -> Result<Vec<Chain>, StoreError> {
        attempt("list the chains of the audit record", self.try_chains()).await
    }
}

#[async_trait]
impl AuditStore for SqlStore {
    async fn note(&self, chain: &str, fact: Fact<'_>) -> Result<(), StoreError> {
        attempt("write to the audit record", self.try_note(chain, fact)).await
    }

    async fn seal(&self) -> Result<Vec<AuditLine>, StoreError> {
        attempt("chain the audit record", self.try_seal()).await
    }

    async fn unsent(&self) -> Result<Vec<(String, u64)>, StoreError> {
        attempt("look for what was not sent of the audit record", self.try_unsent()).await
    }

    async fn note_sent(&self, chain: &str, seq: u64) -> Result<(), StoreError> {
        attempt("note what was sent of the audit record", self.try_note_sent(chain, seq)).await
    }
}

/// A line as it is stored.
#[derive(sqlx::FromRow)]
struct LineRow {
    entry: i64,
    chain: String,
    seq: Option<i64>,
    at: i64,
    act: String,
    actor: String,
    on_behalf_of: String,
    conversation: Option<String>,
    run: Option<String>,
    call: Option<String>,
    tool: Option<String>,
    subject: Option<String>,
    arguments: Option<String>,
    outcome: Option<String>,
    reason: Option<String>,
    times: i64,
    previous: Option<String>,
    digest: Option<String>,
}

macro_rules! line_columns {
    () => {
        "entry, chain, seq, at, act, actor, on_behalf_of, conversation, run, call, tool, subject, arguments, outcome,
             reason, times, previous, digest"
    };
}

impl LineRow {
    fn into_line(self) -> AuditLine {
        let plain = |text: String| original(&text).into_owned();
        AuditLine {
            chain: plain(self.chain),
            seq: number(self.seq.unwrap_or_default()),
            at_ms: self.at,
            act: self.act,
            actor: plain(self.actor),
            user: plain(self.on_behalf_of),
            conversation: self.conversation,
            run: self.run,
            call: self.call.map(plain),
            tool: self.tool.map(plain),
            subject: self.subject.map(plain),
            arguments: self.arguments,
            outcome: self.outcome,
            reason: self.reason.map(plain),
            count: number(self.times),
            previous: self.previous.unwrap_or_default(),
            digest: self.digest.unwrap_or_default(),
        }
    }
}

fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

impl SqlStore {
    async fn try_note(&self, chain: &str, fact: Fact<'_>) -> Result<(), Fault> {
        let mut batch = Batch::default();
        write(&mut batch, vec![NewLine::new(&storable(chain), &AuditId::fresh().to_string(), fact)]);
        batch.commit(self.database.write(Reach::All).await?).await?;
        Ok(())
    }

    async fn try_unsent(&self) -> Result<Vec<(String, u64)>, Fault> {
        let chains: Vec<(String, i64)> =
            query("SELECT chain, sent FROM audit_chains WHERE sent < seq ORDER BY chain LIMIT $1")
                .bind(CHAINS_AT_ONCE)
                .fetch_all(&mut self.database.reading(Reach::All).await?)
                .await?;
        Ok(chains.into_iter().map(|(chain, sent)| (original(&chain).into_owned(), number(sent))).collect())
    }

    async fn try_note_sent(&self, chain: &str, seq: u64) -> Result<(), Fault> {
        let mut batch = Batch::default();
        let note = batch.say("UPDATE audit_chains SET sent = $2 WHERE chain = $1 AND sent < $2");
        note.bind((storable(chain), column(seq)));
        batch.commit(self.database.write(Reach::All).await?).await?;
        Ok(())
    }

    async fn try_seal(&self) -> Result<Vec<AuditLine>, Fault> {
        let chains: Vec<String> = query("SELECT DISTINCT chain FROM audit WHERE seq IS NULL ORDER BY chain LIMIT $1")
            .bind(CHAINS_AT_ONCE)
            .fetch_values(&mut self.database.reading(Reach::All).await?)
            .await?;
        let mut sealed = Vec::new();
        for chain in chains {
            sealed.extend(self.seal_chain(&chain).await?);
        }
        Ok(sealed)
    }

    async fn seal_chain(&self, chain: &str) -> Result<Vec<AuditLine>, Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        query("INSERT INTO audit_chains (chain, seq, digest) VALUES ($1, 0, '') ON CONFLICT (chain) DO NOTHING")
            .bind(chain)
            .execute(&mut transaction)
            .await?;
        // Held to the end: whoever seals too comes afterwards, and finds other lines.
        let (mut seq, mut previous): (i64, String) =
            query("SELECT seq, digest FROM audit_chains WHERE chain = $1 @for_update")
                .bind(chain)
                .fetch_one(&mut transaction)
                .await?;
        let rows: Vec<LineRow> = query(concat!(
            "SELECT ",
            line_columns!(),
            " FROM audit WHERE chain = $1 AND seq IS NULL ORDER BY entry LIMIT $2",
        ))
        .bind((chain, SEALED_AT_ONCE))
        .fetch_all(&mut transaction)
        .await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let (mut batch, mut sealed, mut seals) = (Batch::default(), Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            seq = seq.saturating_add(1);
            let entry = row.entry;
            let mut line = AuditLine { seq: number(seq), previous: previous.clone(), ..row.into_line() };
            line.digest = digest_of(&line);
            seals.push(json!({"entry": entry, "seq": seq, "previous": previous, "digest": line.digest}));
            previous = line.digest.clone();
            sealed.push(line);
        }
        let seal = batch.change(
            "audit",
            "UPDATE audit SET seq = n.seq, previous = n.previous, digest = n.digest
             FROM @sealed($1) WHERE audit.entry = n.entry AND audit.seq IS NULL",
        );
        seal.bind(Value::from(seals).to_string());
        let end = batch.change("audit_chains", "UPDATE audit_chains SET seq = $2, digest = $3 WHERE chain = $1");
        end.bind((chain, seq, previous));
        batch.commit(transaction).await?;
        Ok(sealed)
    }

    async fn try_lines(&self, chain: &str, after: u64, most: u32) -> Result<Vec<AuditLine>, Fault> {
        let rows: Vec<LineRow> = query(concat!(
            "SELECT ",
            line_columns!(),
            " FROM audit WHERE chain = $1 AND seq IS NOT NULL AND seq > $2 ORDER BY seq LIMIT $3",
        ))
        .bind((storable(chain), column(after), i64::from(most)))
        .fetch_all(&mut self.database.reading(Reach::All).await?)
        .await?;
        Ok(rows.into_iter().map(LineRow::into_line).collect())
    }

    async fn try_chains(&self) -> Result<Vec<Chain>, Fault> {
        let rows: Vec<(String, i64, String, i64)> = query(
            "SELECT c.chain, COALESCE(k.seq, 0), COALESCE(k.digest, ''), c.waiting
             FROM (SELECT chain, CAST(SUM(CASE WHEN seq IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS waiting FROM audit
                   GROUP BY chain UNION ALL
                   SELECT chain, 0 FROM audit_chains WHERE chain NOT IN (SELECT chain FROM audit)) AS c
             LEFT JOIN audit_chains k ON k.chain = c.chain ORDER BY c.chain",
        )
        .fetch_all(&mut self.database.reading(Reach::All).await?)
        .await?;
        let chain = |(name, seq, digest, waiting): (String, i64, String, i64)| Chain {
            name: original(&name).into_owned(),
            seq: number(seq),
            digest,
            waiting: number(waiting),
        };
        Ok(rows.into_iter().map(chain).collect())
    }
}

/// Adds a line to the chain of the owner's tenant.
pub(super) fn tell(batch: &mut Batch, scope: &Scope, fact: Fact<'_>) {
    write(batch, vec![line(scope, fact)]);
}

/// The outcome of a run's write; once, however often its commit is repeated.
pub(super) fn tell_ended(batch: &mut Batch, scope: &Scope, (run, call_key): (RunId, &str), fact: Fact<'_>) {
    let id = format!("ended:{run}:{call_key}");
    write(batch, vec![NewLine::new(&chain_of(scope.tenant()), &id, fact)]);
}

/// Adds lines, in their order.
pub(super) fn write(batch: &mut Batch, lines: Vec<NewLine>) {
    if lines.is_empty() {
        return;
    }
    let numbered = (0_u64..).zip(lines).map(|(nth, NewLine(mut line))| {
        line.insert("nth".to_owned(), Value::from(nth));
        Value::Object(line)
    });
    let insert = batch.change(
        "audit",
        "INSERT INTO audit (id, chain, at, act, actor, on_behalf_of, conversation, run, call, tool, subject, arguments,
             outcome, reason, times)
         SELECT n.id, n.chain, @now, n.act, n.actor, n.on_behalf_of, n.conversation, n.run, n.call, n.tool, n.subject,
             n.arguments, n.outcome, n.reason, n.times
         FROM @lines($1) WHERE TRUE ORDER BY n.nth ON CONFLICT (id) DO NOTHING",
    );
    insert.bind(numbered.collect::<Value>().to_string());
}

/// A new line, as `@lines` reads it.
pub(super) struct NewLine(Map<String, Value>);

/// The line of an act in the chain of the owner's tenant.
pub(super) fn line(scope: &Scope, fact: Fact<'_>) -> NewLine {
    NewLine::new(&chain_of(scope.tenant()), &AuditId::fresh().to_string(), fact)
}

impl NewLine {
    /// In `chain`, which is named as it is stored.
    fn new(chain: &str, id: &str, fact: Fact<'_>) -> Self {
        let Fact { act, actor, user, conversation, run, call, tool, subject, arguments, outcome, reason, count } = fact;
        let text = |text: &str| Value::from(storable(&text[..text.floor_char_boundary(TEXT_BYTES)]));
        let columns = [
            ("id", Value::from(id)),
            ("chain", Value::from(chain)),
            ("act", Value::from(act.name())),
            ("actor", text(actor)),
            ("on_behalf_of", text(user)),
            ("conversation", Value::from(conversation)),
            ("run", Value::from(run.map(|run| run.to_string()))),
            ("call", Value::from(call.map(text))),
            ("tool", Value::from(tool.map(text))),
            ("subject", Value::from(subject.as_deref().map(text))),
            ("arguments", Value::from(arguments)),
            ("outcome", Value::from(outcome)),
            ("reason", Value::from(reason.as_deref().map(text))),
            ("times", Value::from(column(count))),
        ];
        Self(columns.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}
