//! Signals in SQL: written with what they tell of, numbered within their tenant, and handed to those who hear of them.
//!
//! **Invariant:** a number is given out while its tenant's row is held, so `seq` is the order of commit. A delivery is
//! queued with its signal, once for each subscriber.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SqlStore;
use super::pages::page;
use crate::agent::ports::pages::Page;
use crate::agent::ports::signals::{EmitError, Replay, Replayed, SignalFilter, SignalStore};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{DeliveryId, SignalId};
use crate::chat::signal::{NamePattern, Signal, SignalFact, SignalSource, Subject, Subscriptions};
use crate::store::database::Connection;
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::record_error::RecordError;
use crate::store::redact::a_secret;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};

/// Signals of a replay that are queued in one transaction, so that others who write wait for no more than these.
const REPLAYED_AT_ONCE: usize = 1000;

/// The columns of a [`SignalRow`] of the signal `s`.
macro_rules! signal_columns {
    () => {
        "s.id AS signal, s.seq, s.name, s.dedupe_key, s.actor, s.subject_type, s.subject_id, s.correlation, s.causation,
             s.source, s.occurred_at, s.inserted_at, s.body"
    };
}
pub(super) use signal_columns;

/// A signal's row.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct SignalRow {
    signal: String,
    seq: i64,
    name: String,
    dedupe_key: Option<String>,
    actor: Option<String>,
    subject_type: Option<String>,
    subject_id: Option<String>,
    correlation: Option<String>,
    causation: Option<String>,
    source: String,
    occurred_at: i64,
    inserted_at: i64,
    body: String,
}

#[derive(Serialize, Deserialize)]
struct Body {
    payload: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

impl SignalRow {
    /// The signal of this row.
    ///
    /// # Errors
    /// When something in it is not what we write.
    pub(super) fn into_signal(self) -> Result<Signal, RecordError> {
        let plain = |text: String| original(&text).into_owned();
        let Body { payload, metadata } = serde_json::from_str(&self.body).map_err(RecordError::json("signal"))?;
        let subject = self.subject_type.zip(self.subject_id);
        Ok(Signal {
            id: SignalId::parse(&self.signal)?,
            seq: self.seq,
            inserted_at_ms: self.inserted_at,
            fact: SignalFact {
                name: self.name,
                payload,
                metadata,
                occurred_at_ms: Some(self.occurred_at),
                correlation: self.correlation.map(plain),
                causation: self.causation.map(plain),
                actor: self.actor.map(plain),
                subject: subject.map(|(kind, id)| Subject { kind: plain(kind), id: plain(id) }),
                source: SignalSource::parse(&self.source).ok_or(RecordError::Directive)?,
                dedupe_key: self.dedupe_key.map(plain),
            },
        })
    }
}

#[async_trait]
impl SignalStore for SqlStore {
    async fn emit(&self, owner: &Owner, fact: SignalFact) -> Result<(Signal, bool), EmitError> {
        attempt("write a signal", self.try_emit(&owner.into(), fact)).await
    }

    async fn signal(&self, caller: &Caller, id: SignalId, of_tenant: bool) -> Result<Option<Signal>, StoreError> {
        attempt("read a signal", self.try_signal(&Scope::from(&caller.owner), id, of_tenant)).await
    }

    async fn signals(&self, caller: &Caller, filter: &SignalFilter) -> Result<Page<Signal>, StoreError> {
        attempt("list signals", self.try_signals(&Scope::from(&caller.owner), filter)).await
    }

    async fn replay(&self, owner: &Owner, which: &Replay, subscriber: Option<&str>) -> Result<Replayed, StoreError> {
        attempt("replay signals", self.try_replay(&owner.into(), which, subscriber)).await
    }
}

impl SqlStore {
    async fn try_emit(&self, scope: &Scope, fact: SignalFact) -> Result<(Signal, bool), Undone<EmitError>> {
        if let Some(name) = a_secret(&fact.payload).or_else(|| a_secret(&fact.metadata)) {
            return Err(Undone::Refused(EmitError::Secret(name)));
        }
        let mut transaction = self.database.write(Reach::Tenant(scope)).await?;
        let mut numbers = Numbers::default();
        numbers.hold(&mut transaction, scope).await?;
        if let Some(key) = &fact.dedupe_key {
            let known: Option<SignalRow> = query(concat!(
                "SELECT ",
                signal_columns!(),
                " FROM signals s WHERE s.tenant = $1 AND s.dedupe_key = $2"
            ))
            .bind((scope.tenant(), storable(key)))
            .fetch_optional(&mut transaction)
            .await?;
            if let Some(known) = known {
                return Ok((known.into_signal()?, false));
            }
        }
        let mut batch = Batch::default();
        let id = tell(&mut batch, &self.subscriptions, &mut numbers, scope, &fact)?;
        numbers.keep(&mut batch);
        batch.run(&mut transaction).await?;
        let row: SignalRow =
            query(concat!("SELECT ", signal_columns!(), " FROM signals s WHERE s.tenant = $1 AND s.id = $2"))
                .bind((scope.tenant(), id.to_string()))
                .fetch_one(&mut transaction)
                .await?;
        transaction.commit().await?;
        Ok((row.into_signal()?, true))
    }

    async fn try_signal(&self, scope: &Scope, id: SignalId, of_tenant: bool) -> Result<Option<Signal>, Fault> {
        let row: Option<SignalRow> = query(concat!(
            "SELECT ",
            signal_columns!(),
            " FROM signals s WHERE s.tenant = $1 AND s.id = $2 AND ($3 <> 0 OR s.actor = $4)"
        ))
        .bind((scope.tenant(), id.to_string(), i64::from(of_tenant), scope.user()))
        .fetch_optional(&mut self.database.reading(Reach::Tenant(scope)).await?)
        .await?;
        Ok(row.map(SignalRow::into_signal).transpose()?)
    }

    async fn try_signals(&self, scope: &Scope, filter: &SignalFilter) -> Result<Page<Signal>, Fault> {
        let SignalFilter { name, subject_kind, subject_id, correlation, causation, of_tenant, ascending, limit, after } =
            filter;
        let text = |text: &Option<String>| text.as_deref().map(|text| storable(text).into_owned());
        let is_exact = matches!(name, Some(NamePattern::Exact(_)));
        let statement = query(concat!("SELECT ", signal_columns!(), " FROM signals s WHERE s.tenant = $1"))
            .part(!of_tenant, " AND s.actor = $2")
            .part(is_exact, " AND s.name = $3")
            .part(matches!(name, Some(NamePattern::Prefix(_))), " AND s.name >= $3 AND s.name < $4")
            .part(subject_kind.is_some(), " AND s.subject_type = $5")
            .part(subject_id.is_some(), " AND s.subject_id = $6")
            .part(correlation.is_some(), " AND s.correlation = $7")
            .part(causation.is_some(), " AND s.causation = $8")
            .part(*ascending, " AND s.seq > $9 ORDER BY s.seq LIMIT $10")
            .part(!ascending, " AND s.seq < $9 ORDER BY s.seq DESC LIMIT $10");
        let (from, to) = range(name.as_ref());
        let start = after.unwrap_or(if *ascending { 0 } else { i64::MAX });
        let rows: Vec<SignalRow> = statement
            .bind((scope, from, to))
            .bind((text(subject_kind), text(subject_id), text(correlation), text(causation)))
            .bind((start, i64::from(*limit) + 1))
            .fetch_all(&mut self.database.reading(Reach::Tenant(scope)).await?)
            .await?;
        page(rows, *limit, |row| Ok(row.into_signal()?))
    }

    async fn try_replay(&self, scope: &Scope, which: &Replay, subscriber: Option<&str>) -> Result<Replayed, Fault> {
        let columns = query("SELECT s.id, s.name FROM signals s WHERE s.tenant = $1");
        let statement = match which {
            Replay::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                let ids = serde_json::to_string(&ids).map_err(RecordError::json("list"))?;
                columns.part(true, " AND s.id @one_of($2) ORDER BY s.seq").bind((scope.tenant(), ids))
            }
            Replay::Name(name, limit) => {
                let (from, to) = range(Some(name));
                columns
                    .part(matches!(name, NamePattern::Exact(_)), " AND s.name = $2")
                    .part(matches!(name, NamePattern::Prefix(_)), " AND s.name >= $2 AND s.name < $3")
                    .part(true, " ORDER BY s.seq DESC LIMIT $4")
                    .bind((scope.tenant(), from, to, i64::from(*limit)))
            }
            Replay::Between(from, to, limit) => columns
                .part(true, " AND s.inserted_at >= $2 AND s.inserted_at < $3 ORDER BY s.seq LIMIT $4")
                .bind((scope.tenant(), *from, *to, i64::from(*limit))),
            Replay::Recent(limit) => {
                columns.part(true, " ORDER BY s.seq DESC LIMIT $2").bind((scope.tenant(), i64::from(*limit)))
            }
        };
        let found: Vec<(String, String)> =
            statement.fetch_all(&mut self.database.reading(Reach::Tenant(scope)).await?).await?;
        let (owner, mut queued) = (scope.owner(), 0);
        let tenant = owner.tenant_name().unwrap_or_default();
        for signals in found.chunks(REPLAYED_AT_ONCE) {
            let mut again: BTreeMap<&str, Vec<Again<'_>>> = BTreeMap::new();
            for (signal, name) in signals {
                let hearing = self.subscriptions.hearing(tenant, name);
                for subscriber in hearing.filter(|known| subscriber.is_none_or(|wanted| wanted == *known)) {
                    again
                        .entry(subscriber)
                        .or_default()
                        .push(Again { id: DeliveryId::fresh().to_string(), name: signal });
                    queued += 1;
                }
            }
            let mut batch = Batch::default();
            for (subscriber, deliveries) in &again {
                // What was removed meanwhile is told to nobody.
                batch
                    .say(
                        "INSERT INTO deliveries (id, tenant, signal_id, subscriber, status, due_at, created_at)
                         SELECT n.id, s.tenant, s.id, $2, 'pending', @now, @now
                         FROM @names($3) JOIN signals s ON s.id = n.name WHERE s.tenant = $1
                         ON CONFLICT (signal_id, subscriber) DO UPDATE SET status = 'pending', attempts = 0, due_at = @now,
                             lease_until = NULL, delivered_at = NULL, token = deliveries.token + 1",
                    )
                    .bind((scope.tenant(), *subscriber))
                    .bind(serde_json::to_string(deliveries).map_err(RecordError::json("list"))?);
            }
            batch.commit(self.database.write(Reach::Tenant(scope)).await?).await?;
        }
        Ok(Replayed { matched: found.len() as u64, queued })
    }
}

/// A new delivery of the signal that `name` is the id of, as `@names` reads it.
#[derive(Serialize)]
struct Again<'a> {
    id: String,
    name: &'a str,
}

/// The name that a pattern means, or the first of its names and the first behind them.
fn range(pattern: Option<&NamePattern>) -> (Option<String>, Option<String>) {
    match pattern {
        None | Some(NamePattern::All) => (None, None),
        Some(NamePattern::Exact(name)) => (Some(name.as_str().to_owned()), None),
        // The sign behind a dot.
        Some(NamePattern::Prefix(prefix)) => {
            let stem = prefix.strip_suffix('.').unwrap_or(prefix);
            (Some(prefix.clone()), Some(format!("{stem}/")))
        }
    }
}

/// The numbers that a transaction gives to signals, of tenants whose numbers it holds: who else writes one waits until it ends.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<String, i64>);

impl Numbers {
    /// Holds those of the tenant. Whoever needs those of several holds them in the order of their names.
    ///
    /// # Errors
    /// Of the database.
    pub(super) async fn hold(&mut self, connection: &mut dyn Connection, scope: &Scope) -> Result<(), sqlx::Error> {
        if self.0.contains_key(scope.tenant()) {
            return Ok(());
        }
        let held = async |connection: &mut dyn Connection| -> Result<Option<i64>, sqlx::Error> {
            let held = query("SELECT seq FROM signal_numbers WHERE tenant = $1 @for_update");
            held.bind(scope.tenant()).fetch_optional_value(connection).await
        };
        let seq = match held(connection).await? {
            Some(seq) => seq,
            None => {
                query("INSERT INTO signal_numbers (tenant, seq) VALUES ($1, 0) ON CONFLICT (tenant) DO NOTHING")
                    .bind(scope.tenant())
                    .execute(connection)
                    .await?;
                held(connection).await?.unwrap_or_default()
            }
        };
        self.0.insert(scope.tenant().to_owned(), seq);
        Ok(())
    }

    /// The next one of the tenant.
    fn next(&mut self, scope: &Scope) -> Result<i64, RecordError> {
        let seq = self.0.get_mut(scope.tenant()).ok_or(RecordError::Numbers)?;
        *seq += 1;
        Ok(*seq)
    }

    /// Adds that those which were given are given.
    pub(super) fn keep(self, batch: &mut Batch) {
        for (whose, seq) in self.0 {
            batch.say("UPDATE signal_numbers SET seq = $2 WHERE tenant = $1 AND seq < $2").bind((whose, seq));
        }
    }
}

/// Adds a signal of the owner's tenant, and its deliveries; none where there is one of the same key.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn tell(
    batch: &mut Batch,
    subscriptions: &Subscriptions,
    numbers: &mut Numbers,
    scope: &Scope,
    fact: &SignalFact,
) -> Result<SignalId, RecordError> {
    let id = SignalId::fresh();
    let body = Body { payload: fact.payload.clone(), metadata: fact.metadata.clone() };
    let body = serde_json::to_string(&body).map_err(RecordError::json("signal"))?;
    let text = |text: &Option<String>| text.as_deref().map(|text| storable(text).into_owned());
    let subject = fact.subject.as_ref();
    batch
        .say(
            "INSERT INTO signals (id, tenant, seq, name, dedupe_key, actor, subject_type, subject_id, correlation, causation,
                 source, occurred_at, inserted_at, body)
             SELECT $1, $2, CAST($3 AS BIGINT), $4, $5, $6, $7, $8, $9, $10, $11, COALESCE($12, @now), @now, $13
             WHERE NOT EXISTS (SELECT 1 FROM signals s WHERE s.tenant = $2 AND s.dedupe_key = $5)",
        )
        .bind((id.to_string(), scope.tenant(), numbers.next(scope)?))
        .bind((fact.name.as_str(), text(&fact.dedupe_key), text(&fact.actor)))
        .bind((subject.map(|subject| storable(&subject.kind)), subject.map(|subject| storable(&subject.id))))
        .bind((text(&fact.correlation), text(&fact.causation), fact.source.name(), fact.occurred_at_ms, body));
    let owner = scope.owner();
    for subscriber in subscriptions.hearing(owner.tenant_name().unwrap_or_default(), &fact.name) {
        batch
            .say(
                "INSERT INTO deliveries (id, tenant, signal_id, subscriber, status, due_at, created_at)
                 SELECT $1, s.tenant, s.id, $4, 'pending', @now, @now FROM signals s WHERE s.tenant = $2 AND s.id = $3",
            )
            .bind((DeliveryId::fresh().to_string(), scope.tenant(), id.to_string(), subscriber));
    }
    Ok(id)
}
