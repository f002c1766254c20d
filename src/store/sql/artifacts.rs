//! Artifacts in SQL: kept with the commits of runs, read with their conversation.

use serde_json::Value;

use crate::bounded::json;
use crate::chat::artifact::{Artifact, CallArtifact};
use crate::chat::ids::{RunId, ToolCallId};
use crate::store::record_error::RecordError;
use crate::store::scope::{Scope, original, storable};
use crate::store::statement::Batch;

/// 1 MiB: a larger artifact is shown and not kept.
const MOST_BYTES: usize = 1 << 20;

/// An artifact as it is kept: its run, call, kind and body.
pub(super) type KeptRow = (String, String, String, String);

/// The artifact of its row, with its run.
///
/// # Errors
/// When it is not what we write.
pub(super) fn kept((run, call, kind, body): KeptRow) -> Result<(RunId, CallArtifact), RecordError> {
    let artifact = Artifact {
        kind: original(&kind).into_owned().into(),
        // What takes more memory than may be is not shown any more.
        payload: json::value(&body).unwrap_or_default(),
    };
    Ok((RunId::parse(&run)?, CallArtifact { call: ToolCallId::from_model(original(&call)), artifact }))
}

/// An artifact to be kept: call, kind, body.
pub(super) struct ArtifactRow([String; 3]);

impl ArtifactRow {
    /// The row of `kept`; `None` where it is too large, or nested so deeply that it could not be read again.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(super) fn from_artifact(CallArtifact { call, artifact }: &CallArtifact) -> Result<Option<Self>, RecordError> {
        let body = serde_json::to_string(&artifact.payload).map_err(RecordError::json("artifact"))?;
        let is_kept = body.len() <= MOST_BYTES && json::fits(&body, 1).is_ok() && artifact.payload != Value::Null;
        let (call, kind) = (storable(call.as_str()).into_owned(), storable(&artifact.kind).into_owned());
        Ok(is_kept.then_some(Self([call, kind, body])))
    }
}

/// Writes what tools have made, numbered within their run. What has its number already stays as it is.
pub(super) fn insert_artifacts(
    batch: &mut Batch,
    (scope, conversation): (&Scope, &str),
    run: RunId,
    (first, rows): (u32, Vec<Option<ArtifactRow>>),
    now: i64,
) {
    for (seq, row) in (i64::from(first)..).zip(rows) {
        let Some(ArtifactRow([call, kind, body])) = row else { continue };
        let insert = batch.say(
            "INSERT INTO artifacts (tenant, user_id, conversation, run_id, seq, call, kind, body, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (run_id, seq) DO NOTHING",
        );
        insert.bind((scope, conversation, run.to_string(), seq)).bind((call, kind, body, now));
    }
}
