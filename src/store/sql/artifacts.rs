//! Artifacts in SQL: kept with the commits of runs, read with their conversation.

use serde_json::Value;

use super::files::note_uses;
use crate::bounded::json;
use crate::chat::artifact::{Artifact, CallArtifact, HelperOf};
use crate::chat::ids::{ExecutionId, FileId, PlanId, RunId, ToolCallId};
use crate::chat::origin::CallOrigin;
use crate::store::record_error::RecordError;
use crate::store::scope::{Scope, original, storable};
use crate::store::statement::Batch;

/// 1 MiB: a larger artifact is shown and not kept.
const MOST_BYTES: usize = 1 << 20;

/// The columns of a [`KeptRow`], of `artifacts a`.
macro_rules! artifact_columns {
    () => {
        "a.run_id, a.call, a.kind, a.body, a.of_call, a.plan_id, a.step, a.agent_id"
    };
}
pub(super) use artifact_columns;

/// An artifact as it is kept.
#[derive(sqlx::FromRow)]
pub(super) struct KeptRow {
    pub(super) run_id: String,
    pub(super) call: String,
    pub(super) kind: String,
    pub(super) body: String,
    /// The call of the run's own that a helper has worked for; with it, who that was.
    of_call: Option<String>,
    plan_id: Option<String>,
    step: Option<i64>,
    agent_id: Option<String>,
}

impl KeptRow {
    /// The helper that has made the call.
    ///
    /// # Errors
    /// When it is not what we write.
    pub(super) fn helper(&self) -> Result<Option<HelperOf>, RecordError> {
        let Some(call) = &self.of_call else { return Ok(None) };
        let origin = CallOrigin {
            plan: self.plan_id.as_deref().map(PlanId::parse).transpose()?,
            step: self.step.and_then(|step| u32::try_from(step).ok()),
            agent: self.agent_id.as_deref().map(ExecutionId::parse).transpose()?,
        };
        Ok(Some(HelperOf { call: ToolCallId::from_model(original(call)), origin }))
    }

    /// The artifact, with its run.
    ///
    /// # Errors
    /// When it is not what we write.
    pub(super) fn into_artifact(self) -> Result<(RunId, CallArtifact), RecordError> {
        let helper = self.helper()?;
        let artifact = Artifact {
            kind: original(&self.kind).into_owned().into(),
            // What takes more memory than may be is not shown any more.
            payload: json::value(&self.body).unwrap_or_default(),
        };
        let call = ToolCallId::from_model(original(&self.call));
        Ok((RunId::parse(&self.run_id)?, CallArtifact { call, artifact, helper }))
    }
}

/// An artifact to be kept.
pub(super) struct ArtifactRow {
    call: String,
    kind: String,
    body: String,
    helper: Option<HelperOf>,
    /// The file that it names.
    file: Option<FileId>,
}

impl ArtifactRow {
    /// The row of `kept`; `None` where it is too large, or nested so deeply that it could not be read again.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(super) fn from_artifact(
        CallArtifact { call, artifact, helper }: &CallArtifact,
    ) -> Result<Option<Self>, RecordError> {
        let body = serde_json::to_string(&artifact.payload).map_err(RecordError::json("artifact"))?;
        let is_kept = body.len() <= MOST_BYTES && json::fits(&body, 1).is_ok() && artifact.payload != Value::Null;
        let (call, kind) = (storable(call.as_str()).into_owned(), storable(&artifact.kind).into_owned());
        Ok(is_kept.then_some(Self { call, kind, body, helper: helper.clone(), file: artifact.file() }))
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
        let Some(ArtifactRow { call, kind, body, helper, file }) = row else { continue };
        let (of_call, origin) = helper.map(|HelperOf { call, origin }| (call, origin)).unzip();
        let CallOrigin { plan, step, agent } = origin.unwrap_or_default();
        let insert = batch.say(
            "INSERT INTO artifacts (tenant, user_id, conversation, run_id, seq, call, kind, body, created_at,
                 of_call, plan_id, step, agent_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (run_id, seq) DO NOTHING",
        );
        let insert = insert.bind((scope, conversation, run.to_string(), seq)).bind((call, kind, body, now));
        let insert = insert.bind(of_call.map(|call| storable(call.as_str()).into_owned()));
        let insert = insert.bind((plan.map(|plan| plan.to_string()), step.map(i64::from)));
        insert.bind(agent.map(|agent| agent.to_string()));
        // What a helper has made stands in no message.
        note_uses(batch, scope, conversation, file.as_slice());
    }
}
