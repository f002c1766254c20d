//! Directives in SQL: kept ([`request`]), decided and changed ([`change`]), taken and ended ([`queue`]).
//!
//! **Invariant:** a transition changes the row by what it was, and tells of it in the same transaction: its signal with
//! the deliveries, and the audit record where something is sent or decided. Locks come in one order: rows of directives,
//! then the numbers of their tenants' signals, tenant by tenant, and then what their users keep, which triggers count.

mod change;
mod queue;
mod request;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::SqlStore;
use super::pages::page;
use super::signals::NewSignals;
use crate::agent::ports::directives::{DirectiveFilter, DirectiveRecords};
use crate::agent::ports::pages::{Cursor, Page};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Caller;
use crate::chat::directive::{Directive, DirectiveStatus};
use crate::chat::ids::DirectiveId;
use crate::chat::signal::{SignalFact, SignalSource, Subscriptions};
use crate::chat::trail::TrailEvent;
use crate::store::directive::{DirectiveRow, directive_columns};
use crate::store::fault::{Fault, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, Statement, query};
use crate::store::trail::encode_entry;

#[async_trait]
impl DirectiveRecords for SqlStore {
    async fn directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        of_tenant: bool,
    ) -> Result<Option<Directive>, StoreError> {
        attempt("read a directive", self.try_directive(caller, id, of_tenant)).await
    }

    async fn directives(&self, caller: &Caller, filter: &DirectiveFilter) -> Result<Page<Directive>, StoreError> {
        attempt("list directives", self.try_directives(caller, filter)).await
    }
}

impl SqlStore {
    async fn try_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        of_tenant: bool,
    ) -> Result<Option<Directive>, Fault> {
        let scope = Scope::from(&caller.owner);
        let row: Option<DirectiveRow> = query(concat!(
            "SELECT ",
            directive_columns!(),
            " FROM directives WHERE tenant = $1 AND id = $2 AND ($3 <> 0 OR user_id = $4 OR role @one_of($5))",
        ))
        .bind((scope.tenant(), id.to_string(), i64::from(of_tenant), scope.user(), roles(caller)?))
        .fetch_optional(&mut self.database.reading(Reach::Tenant(&scope)).await?)
        .await?;
        Ok(row.map(DirectiveRow::into_directive).transpose()?)
    }

    async fn try_directives(&self, caller: &Caller, filter: &DirectiveFilter) -> Result<Page<Directive>, Fault> {
        let scope = Scope::from(&caller.owner);
        let DirectiveFilter { of_tenant, limit, .. } = filter;
        let statement = match of_tenant {
            true => {
                listed(query(concat!("SELECT ", directive_columns!(), " FROM directives WHERE tenant = $1")), filter)
            }
            // Each half is read in its own order, from an index of its own.
            false => {
                let own = query(concat!(
                    "SELECT ",
                    directive_columns!(),
                    " FROM directives WHERE id IN (
                         SELECT id FROM (SELECT id FROM directives WHERE tenant = $1 AND user_id = $2",
                ));
                let asked = listed(own, filter).part(
                    true,
                    ") AS own UNION
                         SELECT id FROM (SELECT id FROM directives
                             WHERE tenant = $1 AND role @one_of($3) AND status = 'pending_approval'",
                );
                ordered(listed(asked, filter).part(true, ") AS asked)"), filter)
            }
        };
        let start = if filter.ascending { 0 } else { i64::MAX };
        let after = filter.after.clone().unwrap_or(Cursor { at_ms: start, id: String::new() });
        let text = |text: &Option<String>| text.as_deref().map(|text| storable(text).into_owned());
        let rows: Vec<DirectiveRow> = statement
            .bind((&scope, roles(caller)?, filter.status.map(DirectiveStatus::name), text(&filter.name)))
            .bind((text(&filter.subject_kind), text(&filter.subject_id), text(&filter.correlation)))
            .bind((after.at_ms, after.id, i64::from(*limit) + 1))
            .fetch_all(&mut self.database.reading(Reach::Tenant(&scope)).await?)
            .await?;
        page(rows, *limit, |row| Ok(row.into_directive()?))
    }
}

/// What `filter` asks for behind the conditions of `statement`, as a page of it is read.
fn listed(statement: Statement, filter: &DirectiveFilter) -> Statement {
    let narrowed = statement
        .part(filter.status.is_some(), " AND status = $4")
        .part(filter.name.is_some(), " AND name = $5")
        .part(filter.subject_kind.is_some(), " AND subject_type = $6")
        .part(filter.subject_id.is_some(), " AND subject_id = $7")
        .part(filter.correlation.is_some(), " AND correlation = $8")
        .part(!filter.ascending, " AND (created_at, id) < ($9, $10)")
        .part(filter.ascending, " AND (created_at, id) > ($9, $10)");
    ordered(narrowed, filter)
}

fn ordered(statement: Statement, filter: &DirectiveFilter) -> Statement {
    statement
        .part(!filter.ascending, " ORDER BY created_at DESC, id DESC LIMIT $11")
        .part(filter.ascending, " ORDER BY created_at, id LIMIT $11")
}

/// The caller's roles as a JSON list, as the column holds them.
fn roles(caller: &Caller) -> Result<String, RecordError> {
    let roles: Vec<_> = caller.roles.iter().map(|role| storable(role)).collect();
    serde_json::to_string(&roles).map_err(RecordError::json("list"))
}

/// What a transition is called, and what else is known of it.
struct Told<'a> {
    /// The last word of the signal's name.
    what: &'a str,
    /// The `sub` of who did it.
    by: &'a str,
    /// What belongs to it besides.
    more: Map<String, Value>,
}

impl<'a> Told<'a> {
    fn new(what: &'a str, by: &'a str) -> Self {
        Self { what, by, more: Map::new() }
    }
}

/// Adds the signal of a transition, after which the directive is this one, and its entry in the trail of the conversation.
fn tell(
    batch: &mut Batch,
    (subscriptions, signals): (&Subscriptions, &mut NewSignals),
    scope: &Scope,
    directive: &Directive,
    Told { what, by, more }: Told<'_>,
) -> Result<(), RecordError> {
    if let Some(conversation) = &directive.conversation {
        let entry = TrailEvent::Directive(directive.notice());
        batch
            .say(
                "INSERT INTO trail (tenant, user_id, conversation, at, kind, body)
                 SELECT tenant, user_id, id, @now, $4, $5 FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
            )
            .bind((scope, conversation.as_str(), entry.kind(), encode_entry(&entry)?));
    }
    let name = format!("directive.{what}");
    let Value::Object(mut payload) = json!({
        "directive_id": directive.id.to_string(),
        "directive_name": directive.name.as_str(),
        "status": directive.status.name(),
        "attempt": directive.attempt,
    }) else {
        return Ok(());
    };
    payload.extend(more);
    let dedupe_key = format!("{name}:{}:{}:{}", scope.tenant(), directive.id, directive.attempt);
    let fact = SignalFact {
        name,
        payload,
        metadata: Map::new(),
        occurred_at_ms: None,
        correlation: Some(directive.correlation.clone()),
        causation: Some(directive.id.to_string()),
        actor: Some(by.to_owned()),
        subject: directive.subject.clone(),
        source: SignalSource::Directives,
        dedupe_key: Some(dedupe_key),
    };
    signals.tell(subscriptions, scope, &fact).map(drop)
}
