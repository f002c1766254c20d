//! What conversations have apart from their runs, in SQL.

use async_trait::async_trait;

use super::SqlStore;
use super::names::keep_names;
use super::views::find_head;
use crate::agent::ports::conversations::ConversationHead;
use crate::agent::ports::places::{Changes, Opening, PlaceStore};
use crate::agent::ports::store::{Left, StateLeft};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::clarification::Clarification;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::place::{Place, PlaceUpdate};
use crate::chat::state::Recap;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::place::{decode_place, decode_state, encode_place, encode_state};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, query};

/// A hundred conversations without a run of one user, the newest.
const MAX_UNUSED: i64 = 100;

/// How long one without a run is kept, in milliseconds: a day.
const UNUSED_MS: i64 = 24 * 60 * 60 * 1000;

/// How long one waits for a first message to find it, in milliseconds: a minute.
const AHEAD_MS: i64 = 60 * 1000;

#[async_trait]
impl PlaceStore for SqlStore {
    async fn open(
        &self,
        owner: &Owner,
        id: &ConversationId,
        place: &Place,
        opening: Opening<'_>,
    ) -> Result<ConversationHead, StoreError> {
        attempt("open a conversation", self.try_open(&owner.into(), id, place, opening)).await
    }

    async fn head(&self, owner: &Owner, id: &ConversationId) -> Result<Option<ConversationHead>, StoreError> {
        attempt("find a conversation", self.try_head(&owner.into(), id)).await
    }

    async fn change(
        &self,
        owner: &Owner,
        id: &ConversationId,
        changes: &Changes,
    ) -> Result<Option<ConversationHead>, StoreError> {
        attempt("change a conversation", self.try_change(&owner.into(), id, changes)).await
    }

    async fn ahead(&self, owner: &Owner, place: &Place) -> Result<Option<ConversationId>, StoreError> {
        attempt("find a conversation", self.try_ahead(&owner.into(), place)).await
    }

    async fn take_ahead(&self, owner: &Owner, id: &ConversationId) -> Result<bool, StoreError> {
        attempt("take a conversation", self.try_take_ahead(&owner.into(), id)).await
    }
}

impl SqlStore {
    async fn try_open(
        &self,
        scope: &Scope,
        id: &ConversationId,
        place: &Place,
        opening: Opening<'_>,
    ) -> Result<ConversationHead, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let (title, is_ahead) = match opening {
            Opening::Named { title } => (title, false),
            Opening::Ahead => (None, true),
        };
        query(
            "INSERT INTO conversation_state (tenant, user_id, conversation, opened_at, unused, title, place, ahead)
             VALUES ($1, $2, $3, $4, 1, $5, $6, $7)",
        )
        .bind((scope, id.as_str(), self.clock.now_ms(), title.map(storable), encode_place(place)?, i64::from(is_ahead)))
        .execute(&mut transaction)
        .await?;
        query(
            "DELETE FROM conversation_state WHERE tenant = $1 AND user_id = $2 AND unused = 1 AND conversation IN (
                 SELECT conversation FROM conversation_state WHERE tenant = $1 AND user_id = $2 AND unused = 1
                 ORDER BY opened_at DESC, conversation DESC LIMIT 1000 OFFSET $3)",
        )
        .bind((scope, MAX_UNUSED))
        .execute(&mut transaction)
        .await?;
        let head = find_head(&mut transaction, scope, id).await?.ok_or(RecordError::Kind)?;
        transaction.commit().await?;
        Ok(head)
    }

    async fn try_ahead(&self, scope: &Scope, place: &Place) -> Result<Option<ConversationId>, Fault> {
        let rows: Vec<(String, Option<String>)> = query(
            "SELECT conversation, place FROM conversation_state
             WHERE tenant = $1 AND user_id = $2 AND unused = 1 AND ahead = 1 AND opened_at > $3
             ORDER BY opened_at DESC, conversation DESC",
        )
        .bind((scope, self.clock.now_ms().saturating_sub(AHEAD_MS)))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let entity = |place: &Place| place.entity.as_ref().map(|entity| entity.id.clone());
        for (id, of) in rows {
            let of = of.as_deref().map(decode_place).transpose()?;
            if of.is_some_and(|of| (&of.context_type, entity(&of)) == (&place.context_type, entity(place))) {
                return Ok(Some(ConversationId::parse(&id).map_err(RecordError::from)?));
            }
        }
        Ok(None)
    }

    async fn try_take_ahead(&self, scope: &Scope, id: &ConversationId) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let taken = query(
            "UPDATE conversation_state SET ahead = 0
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND ahead = 1 AND unused = 1",
        );
        let taken = taken.bind((scope, id.as_str())).execute(&mut transaction).await?;
        transaction.commit().await?;
        Ok(taken == 1)
    }

    async fn try_head(&self, scope: &Scope, id: &ConversationId) -> Result<Option<ConversationHead>, Fault> {
        find_head(&mut self.database.read(Reach::User(scope)).await?, scope, id).await
    }

    async fn try_change(
        &self,
        scope: &Scope,
        id: &ConversationId,
        changes: &Changes,
    ) -> Result<Option<ConversationHead>, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        if let Some(title) = &changes.title {
            let of_used = query(
                "UPDATE conversations SET title = $1, title_indexed = 0, updated_at = @greatest(updated_at, $2)
                 WHERE tenant = $3 AND user_id = $4 AND id = $5",
            );
            let of_used = of_used.bind((storable(title), self.clock.now_ms(), scope, id.as_str()));
            if of_used.execute(&mut transaction).await? == 0 {
                query(
                    "UPDATE conversation_state SET title = $1
                     WHERE tenant = $2 AND user_id = $3 AND conversation = $4",
                )
                .bind((storable(title), scope, id.as_str()))
                .execute(&mut transaction)
                .await?;
            }
        }
        if changes.pinned.is_some() || changes.archived.is_some() {
            // Not a change by which it goes up in its list.
            query(
                "UPDATE conversations SET pinned = COALESCE($1, pinned), archived = COALESCE($2, archived)
                 WHERE tenant = $3 AND user_id = $4 AND id = $5",
            )
            .bind((changes.pinned.map(i64::from), changes.archived.map(i64::from), scope, id.as_str()))
            .execute(&mut transaction)
            .await?;
        }
        if changes.context_type.is_some() || !changes.place.is_empty() {
            // What was said and asked is of the place that is left.
            let is_left = changes.context_type.as_ref().is_some_and(|to| *to != head.context_type);
            let context_type = changes.context_type.clone().unwrap_or(head.context_type);
            let place = changes.place.apply(head.place.as_ref(), &context_type);
            let place = place.unwrap_or(Place { context_type, entity: None, focus: None });
            query(
                "INSERT INTO conversation_state (tenant, user_id, conversation, opened_at, unused, place)
                 VALUES ($1, $2, $3, $4, 0, $5)
                 ON CONFLICT (tenant, user_id, conversation) DO UPDATE SET place = excluded.place,
                     clarification = CASE WHEN $6 = 1 THEN NULL ELSE conversation_state.clarification END",
            )
            .bind((scope, id.as_str(), self.clock.now_ms(), encode_place(&place)?, i64::from(is_left)))
            .execute(&mut transaction)
            .await?;
        }
        let head = find_head(&mut transaction, scope, id).await?;
        transaction.commit().await?;
        Ok(head)
    }
}

/// What a run begins with of the state of its conversation.
#[derive(Default)]
pub(super) struct FoundState {
    pub(super) place: Option<Place>,
    /// What its last turn was about.
    pub(super) recap: Option<Recap>,
    /// What was said and asked before an answer.
    pub(super) clarification: Option<Clarification>,
    /// The number of the run that has left these two.
    pub(super) left_by: Option<i64>,
}

impl FoundState {
    /// The same for a run that goes on from that run, or from that message of it: without what was left on another branch.
    pub(super) fn on_branch(self, from: Option<(i64, Option<i64>)>) -> Self {
        let is_behind = |by: i64| from.is_some_and(|(run, seq)| run > by || run == by && seq.is_none());
        match self.left_by.is_none_or(is_behind) {
            true => self,
            false => Self { place: self.place, ..Self::default() },
        }
    }
}

/// Where a run begins.
pub(super) struct Arrival {
    pub(super) place: Option<Place>,
    /// Whether its request has moved the conversation there, and whether its user looks at something else then.
    pub(super) is_moved: bool,
    pub(super) is_refocused: bool,
}

impl Arrival {
    /// What `update`, of a request for `context_type`, makes of the place `was_at`.
    pub(super) fn new(was_at: Option<Place>, update: &PlaceUpdate, context_type: &str) -> Self {
        let place = update.apply(was_at.as_ref(), context_type);
        let is_moved = place != was_at;
        let focus = |place: &Option<Place>| place.as_ref().and_then(|place| place.focus.clone());
        let is_refocused = is_moved && focus(&place) != focus(&was_at);
        Self { place, is_moved, is_refocused }
    }
}

/// Its place, recap, clarification, and who left them.
type StateRow = (Option<String>, Option<String>, Option<String>, Option<i64>);

/// The state of a conversation.
pub(super) async fn find_state(connection: &mut dyn Connection, scope: &Scope, id: &str) -> Result<FoundState, Fault> {
    let row: Option<StateRow> = query(
        "SELECT place, recap, clarification, left_by FROM conversation_state
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
    )
    .bind((scope, id))
    .fetch_optional(connection)
    .await?;
    let (place, recap, clarification, left_by) = row.unwrap_or_default();
    Ok(FoundState {
        place: place.as_deref().map(decode_place).transpose()?,
        recap: decode_state(recap.as_deref())?,
        clarification: decode_state(clarification.as_deref())?,
        left_by,
    })
}

/// Keeps what the run `by` leaves of the state of its conversation.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn keep_state(
    batch: &mut Batch,
    scope: &Scope,
    id: &str,
    (by, left): (i64, StateLeft<'_>),
    now: i64,
) -> Result<(), RecordError> {
    keep_names(batch, scope, id, left.names, now);
    if (left.recap, left.context_usage, left.clarification) == (None, None, Left::Same) {
        return Ok(());
    }
    let keep = batch.say(
        "INSERT INTO conversation_state (tenant, user_id, conversation, opened_at, unused, recap, context_usage,
             clarification, left_by)
         VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $9)
         ON CONFLICT (tenant, user_id, conversation) DO UPDATE SET
             recap = COALESCE(excluded.recap, conversation_state.recap),
             context_usage = COALESCE(excluded.context_usage, conversation_state.context_usage),
             clarification = CASE WHEN $8 = 1 THEN excluded.clarification ELSE conversation_state.clarification END,
             left_by = excluded.left_by",
    );
    let (clarification, is_new) = match left.clarification {
        Left::Same => (None, 0_i64),
        Left::Nothing => (None, 1),
        Left::Is(so_far) => (Some(so_far), 1),
    };
    keep.bind((scope, id, now, encode_state(left.recap)?, encode_state(left.context_usage)?));
    keep.bind((encode_state(clarification)?, is_new, by));
    Ok(())
}

/// The run goes on at another place, and its conversation is there.
pub(super) fn move_run(
    batch: &mut Batch,
    (scope, id): (&Scope, &str),
    run: RunId,
    context_type: &str,
    (place, now): (String, i64),
) {
    batch.say("UPDATE runs SET context_type = $4 WHERE tenant = $1 AND user_id = $2 AND id = $3").bind((
        scope,
        run.to_string(),
        storable(context_type),
    ));
    batch
        .say("UPDATE conversations SET profile = $4, context_type = $4 WHERE tenant = $1 AND user_id = $2 AND id = $3")
        .bind((scope, id, storable(context_type)));
    keep_place(batch, scope, id, place, now);
}

/// Keeps the place of a conversation that has a run.
pub(super) fn keep_place(batch: &mut Batch, scope: &Scope, id: &str, place: String, now: i64) {
    let keep = batch.say(
        "INSERT INTO conversation_state (tenant, user_id, conversation, opened_at, unused, place)
         VALUES ($1, $2, $3, $4, 0, $5)
         ON CONFLICT (tenant, user_id, conversation) DO UPDATE SET place = excluded.place, unused = 0",
    );
    keep.bind((scope, id, now, place));
}

/// Deletes conversations that have waited too long for their first run, so many at most. Names no owner: it looks at
/// nothing but the time.
pub(super) async fn sweep_unused(connection: &mut dyn Connection, now: i64, most: i64) -> Result<u64, sqlx::Error> {
    query(
        "DELETE FROM conversation_state WHERE unused = 1 AND (tenant, user_id, conversation) IN (
             SELECT tenant, user_id, conversation FROM conversation_state WHERE unused = 1 AND opened_at < $1
             ORDER BY opened_at LIMIT $2 @skip_locked)",
    )
    .bind((now.saturating_sub(UNUSED_MS), most))
    .execute(connection)
    .await
}
