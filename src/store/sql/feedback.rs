//! Feedback on answers, in SQL.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::SqlStore;
use crate::agent::ports::feedback::{FeedbackStore, KeptFeedback};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::feedback::{Feedback, Score};
use crate::chat::ids::RunId;
use crate::store::fault::{Fault, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::{Batch, query};

/// What is said beside the score, as it is kept.
#[derive(Serialize, Deserialize)]
struct BodyRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
}

/// Feedback as a row has it: its run, the score, the body, when it was given.
pub(super) type KeptRow = (String, i64, String, i64);

/// The feedback of its row.
///
/// # Errors
/// When it is not what we write.
pub(super) fn kept((run, score, body, at_ms): KeptRow) -> Result<KeptFeedback, RecordError> {
    let BodyRow { comment, tags } = serde_json::from_str(&body).map_err(RecordError::json("feedback"))?;
    let score = Score::of_number(score).ok_or(RecordError::Kind)?;
    Ok(KeptFeedback { run: RunId::parse(&run)?, feedback: Feedback { score, comment, tags }, at_ms })
}

#[async_trait]
impl FeedbackStore for SqlStore {
    async fn give(&self, owner: &Owner, run: RunId, feedback: &Feedback) -> Result<Option<KeptFeedback>, StoreError> {
        attempt("keep feedback", self.try_give(&owner.into(), run, feedback)).await
    }

    async fn take_back(&self, owner: &Owner, run: RunId) -> Result<bool, StoreError> {
        attempt("take feedback back", self.try_take_back(&owner.into(), run)).await
    }
}

impl SqlStore {
    async fn try_give(&self, scope: &Scope, run: RunId, feedback: &Feedback) -> Result<Option<KeptFeedback>, Fault> {
        let Feedback { score, comment, tags } = feedback.clone();
        let body = serde_json::to_string(&BodyRow { comment, tags }).map_err(RecordError::json("feedback"))?;
        let at_ms = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        // Held, so that two who give it at once do so one after the other.
        let conversation: Option<String> =
            query("SELECT conversation FROM runs WHERE tenant = $1 AND user_id = $2 AND id = $3 @for_update")
                .bind((scope, run.to_string()))
                .fetch_optional_value(&mut transaction)
                .await?;
        let Some(conversation) = conversation else { return Ok(None) };
        let mut batch = Batch::default();
        // Not changed but replaced, so that what is kept of a user is counted by the same triggers as all else.
        batch
            .say("DELETE FROM feedback WHERE tenant = $1 AND user_id = $2 AND run_id = $3")
            .bind((scope, run.to_string()));
        let insert = batch.say(
            "INSERT INTO feedback (tenant, user_id, conversation, run_id, score, body, given_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        insert.bind((scope, conversation, run.to_string(), score.number(), body, at_ms));
        batch.commit(transaction).await?;
        Ok(Some(KeptFeedback { run, feedback: feedback.clone(), at_ms }))
    }

    async fn try_take_back(&self, scope: &Scope, run: RunId) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let runs: i64 = query("SELECT COUNT(*) FROM runs WHERE tenant = $1 AND user_id = $2 AND id = $3")
            .bind((scope, run.to_string()))
            .fetch_value(&mut transaction)
            .await?;
        let mut batch = Batch::default();
        batch
            .say("DELETE FROM feedback WHERE tenant = $1 AND user_id = $2 AND run_id = $3")
            .bind((scope, run.to_string()));
        batch.commit(transaction).await?;
        Ok(runs != 0)
    }
}
