//! Signals in SQL: written with what they tell of, numbered within their tenant, and handed to those who hear of them.
//!
//! **Invariant:** a number is given out while its tenant's row is held, so `seq` is the order of commit. A delivery is
//! queued with its signal, once for each subscriber.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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

/// Before the keys of clients: none of them is one that the server makes, such as that of a directive's end.
const OF_CLIENT: &str = "client:";

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
        let source = SignalSource::parse(&self.source).ok_or(RecordError::Directive)?;
        let of_client = |key: String| key.strip_prefix(OF_CLIENT).map(str::to_owned).unwrap_or(key);
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
                dedupe_key: self
                    .dedupe_key
                    .map(plain)
                    .map(|key| if source == SignalSource::Api { of_client(key) } else { key }),
                source,
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
        let mut signals = NewSignals::hold(&mut transaction, [scope]).await?;
        if let Some(key) = kept_key(&fact) {
            let known: Option<SignalRow> = query(concat!(
                "SELECT ",
                signal_columns!(),
                // The second is how versions before this one have kept it.
                " FROM signals s WHERE s.tenant = $1 AND (s.dedupe_key = $2 OR s.dedupe_key = $3 AND s.source = 'api')"
            ))
            .bind((scope.tenant(), key, fact.dedupe_key.as_deref().map(storable)))
            .fetch_optional(&mut transaction)
            .await?;
            if let Some(known) = known {
                return Ok((known.into_signal()?, false));
            }
        }
        let mut batch = Batch::default();
        let id = signals.tell(&self.subscriptions, scope, &fact)?;
        signals.keep(&mut batch)?;
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

/// The key of a fact as it is kept.
fn kept_key(fact: &SignalFact) -> Option<String> {
    let of = if fact.source == SignalSource::Api { OF_CLIENT } else { "" };
    fact.dedupe_key.as_ref().map(|key| storable(&format!("{of}{key}")).into_owned())
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

/// The signals that a transaction writes, and the numbers of the tenants that it holds for them: who else writes one there waits
/// until it ends.
pub(super) struct NewSignals {
    /// The database's time, since when they are held.
    pub(super) now_ms: i64,
    numbers: BTreeMap<String, i64>,
    signals: Vec<NewRow>,
    deliveries: Vec<NewDelivery>,
}

/// A new signal, as `@signals` reads it.
#[derive(Serialize)]
struct NewRow {
    id: String,
    tenant: String,
    seq: i64,
    name: String,
    dedupe_key: Option<String>,
    actor: Option<String>,
    subject_type: Option<String>,
    subject_id: Option<String>,
    correlation: Option<String>,
    causation: Option<String>,
    source: &'static str,
    occurred_at: Option<i64>,
    /// As it is kept: JSON in a text.
    body: String,
}

/// A new delivery, as `@hearers` reads it.
#[derive(Serialize)]
struct NewDelivery {
    id: String,
    tenant: String,
    signal: String,
    subscriber: String,
}

impl NewSignals {
    /// Holds the numbers of these tenants, in one order by all who need several. A tenant has one from its first signal on.
    ///
    /// # Errors
    /// Of the database.
    pub(super) async fn hold(
        connection: &mut dyn Connection,
        scopes: impl IntoIterator<Item = &Scope>,
    ) -> Result<Self, sqlx::Error> {
        let tenants: BTreeSet<&str> = scopes.into_iter().map(Scope::tenant).collect();
        let mut held = held(connection, &tenants).await?;
        if held.len() < tenants.len() {
            let first: Value = tenants.iter().map(|tenant| json!({"tenant": tenant, "seq": 0})).collect();
            query(
                "INSERT INTO signal_numbers (tenant, seq) SELECT n.tenant, n.seq FROM @numbers($1) WHERE TRUE
                 ORDER BY n.tenant ON CONFLICT (tenant) DO NOTHING",
            )
            .bind(first.to_string())
            .execute(connection)
            .await?;
            held = self::held(connection, &tenants).await?;
        }
        let now_ms = held.first().map_or(0, |(_, _, now_ms)| *now_ms);
        let numbers = held.into_iter().map(|(tenant, seq, _)| (tenant, seq)).collect();
        Ok(Self { now_ms, numbers, signals: Vec::new(), deliveries: Vec::new() })
    }

    /// Adds a signal of the owner's tenant, whose numbers are held, and its deliveries; none where there is one of the same key.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(super) fn tell(
        &mut self,
        subscriptions: &Subscriptions,
        scope: &Scope,
        fact: &SignalFact,
    ) -> Result<SignalId, RecordError> {
        let id = SignalId::fresh();
        let body = Body { payload: fact.payload.clone(), metadata: fact.metadata.clone() };
        let kept = |text: &String| storable(text).into_owned();
        let subject = fact.subject.as_ref();
        let seq = self.numbers.get_mut(scope.tenant()).ok_or(RecordError::Numbers)?;
        *seq += 1;
        self.signals.push(NewRow {
            id: id.to_string(),
            tenant: scope.tenant().to_owned(),
            seq: *seq,
            name: fact.name.clone(),
            dedupe_key: kept_key(fact),
            actor: fact.actor.as_ref().map(kept),
            subject_type: subject.map(|subject| kept(&subject.kind)),
            subject_id: subject.map(|subject| kept(&subject.id)),
            correlation: fact.correlation.as_ref().map(kept),
            causation: fact.causation.as_ref().map(kept),
            source: fact.source.name(),
            occurred_at: fact.occurred_at_ms,
            body: serde_json::to_string(&body).map_err(RecordError::json("signal"))?,
        });
        let owner = scope.owner();
        for subscriber in subscriptions.hearing(owner.tenant_name().unwrap_or_default(), &fact.name) {
            self.deliveries.push(NewDelivery {
                id: DeliveryId::fresh().to_string(),
                tenant: scope.tenant().to_owned(),
                signal: id.to_string(),
                subscriber: subscriber.to_owned(),
            });
        }
        Ok(id)
    }

    /// Adds all of them to `batch`: one statement for the signals, one for the numbers, and one for the deliveries.
    ///
    /// # Errors
    /// When they cannot be written as JSON.
    pub(super) fn keep(self, batch: &mut Batch) -> Result<(), RecordError> {
        let Self { now_ms: _, numbers, signals, deliveries } = self;
        if !signals.is_empty() {
            let signals = serde_json::to_string(&signals).map_err(RecordError::json("signals"))?;
            let insert = batch.change(
                "signals",
                "INSERT INTO signals (id, tenant, seq, name, dedupe_key, actor, subject_type, subject_id, correlation,
                     causation, source, occurred_at, inserted_at, body)
                 SELECT n.id, n.tenant, n.seq, n.name, n.dedupe_key, n.actor, n.subject_type, n.subject_id, n.correlation,
                     n.causation, n.source, COALESCE(n.occurred_at, @now), @now, n.body
                 FROM @signals($1) WHERE TRUE
                 ON CONFLICT (tenant, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING",
            );
            insert.bind(signals);
            let numbers: Value = numbers.iter().map(|(tenant, seq)| json!({"tenant": tenant, "seq": seq})).collect();
            let update = batch.change(
                "signal_numbers",
                "UPDATE signal_numbers SET seq = n.seq FROM @numbers($1)
                 WHERE signal_numbers.tenant = n.tenant AND signal_numbers.seq < n.seq",
            );
            update.bind(numbers.to_string());
        }
        if !deliveries.is_empty() {
            let deliveries = serde_json::to_string(&deliveries).map_err(RecordError::json("deliveries"))?;
            let insert = batch.say(
                "INSERT INTO deliveries (id, tenant, signal_id, subscriber, status, due_at, created_at)
                 SELECT n.id, s.tenant, s.id, n.subscriber, 'pending', @now, @now
                 FROM @hearers($1) JOIN signals s ON s.id = n.signal AND s.tenant = n.tenant",
            );
            insert.bind(deliveries);
        }
        Ok(())
    }
}

/// The numbers of these tenants, held until the transaction ends, each with the time.
async fn held(
    connection: &mut dyn Connection,
    tenants: &BTreeSet<&str>,
) -> Result<Vec<(String, i64, i64)>, sqlx::Error> {
    query("SELECT tenant, seq, @now FROM signal_numbers WHERE tenant @one_of($1) ORDER BY tenant @for_update")
        .bind(tenants.iter().copied().collect::<Value>().to_string())
        .fetch_all(connection)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::signal::Subscription;

    #[test]
    fn signals_of_one_transaction_are_written_together() {
        let owner = Owner { tenant: "t".to_owned(), user: "u".to_owned() };
        let scope = Scope::from(&owner);
        let all =
            |name: &str| Subscription { name: name.to_owned(), events: vec![NamePattern::All], tenants: Vec::new() };
        let subscriptions = Subscriptions(vec![all("a"), all("b")]);
        let fact = SignalFact {
            name: "a.b".to_owned(),
            payload: Map::new(),
            metadata: Map::new(),
            occurred_at_ms: None,
            correlation: None,
            causation: None,
            actor: None,
            subject: None,
            source: SignalSource::Runs,
            dedupe_key: None,
        };
        let numbers = BTreeMap::from([(scope.tenant().to_owned(), 7)]);
        let mut signals = NewSignals { now_ms: 0, numbers, signals: Vec::new(), deliveries: Vec::new() };
        for _ in 0..100 {
            signals.tell(&subscriptions, &scope, &fact).unwrap();
        }
        assert_eq!((signals.signals.len(), signals.deliveries.len()), (100, 200));
        assert_eq!((signals.signals[0].seq, signals.signals[99].seq), (8, 107));
        let mut batch = Batch::default();
        signals.keep(&mut batch).unwrap();
        assert_eq!(batch.0.len(), 3, "the signals, the numbers, and their deliveries");
    }
}
