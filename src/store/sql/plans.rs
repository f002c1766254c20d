//! Plans and the work of sub-agents in SQL.
//!
//! **Invariant:** whatever is kept first holds the row of its run, and demands that it is live. What a run has begun ends
//! with it: [`end_with_run`].

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::SqlStore;
use super::places::move_run;
use crate::agent::ports::plans::{
    OfRun, PausedAgent, PlanCommits, PlanRecord, PlanRecords, StepsNow, TakenPlan, WaitingPlan, Waits,
};
use crate::agent::ports::store_error::StoreError;
use crate::bounded::json;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PlanId, RunId};
use crate::chat::message::Message;
use crate::chat::plan::{Execution, Plan, PlanStatus, Step, StepStatus};
use crate::chat::run::RunState;
use crate::store::database::{Connection, Writing};
use crate::store::fault::{Fault, attempt};
use crate::store::place::encode_place;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};
use crate::store::transcript::{Record, decode, encode};

/// No further plans are listed behind 4 MiB of them.
const LISTED_BYTES: usize = 4 << 20;

/// Why a sub-agent has no end of its own whose plan ended.
const BROKEN_OFF: &str = "its plan ended while it worked";

/// Why a step has no end of its own whose run ended, where nothing can have been changed by it.
const ENDED: &str = "the run ended while it was carried out";

/// The same of one that may have changed something.
const UNKNOWN: &str = "the run ended while it was carried out; what it was to change may have been changed";

/// Why a step has not begun whose run ended.
const NOT_BEGUN: &str = "the run ended before it began";

/// The same of one that waited for a person.
const NOT_LET_THROUGH: &str = "a call of it was not let through";

/// What is said of a call that waited for a person when its plan ended.
pub(super) const PLAN_ENDED: &str = "\"its plan has ended\"";

/// The same when its step failed.
const STEP_ENDED: &str = "\"its step has failed\"";

/// The sub-agents of a plan that wait have what they have said and read under this key of their JSON.
const TRANSCRIPT: &str = "transcript";

/// A plan as it is stored: its id, conversation, run, status, JSON, and when it ended.
type PlanRow = (String, String, String, String, String, Option<i64>);

/// A step, or the work of a sub-agent: its plan, status, JSON, and why it ended with its run.
type PartRow = (String, String, String, Option<String>);

#[async_trait]
impl PlanCommits for SqlStore {
    async fn keep_plan(&self, of: OfRun<'_>, plan: &Plan) -> Result<(), StoreError> {
        attempt("keep a plan", self.try_keep_plan(of, plan)).await
    }

    async fn keep_steps(&self, of: OfRun<'_>, plan: PlanId, now: StepsNow<'_>) -> Result<(), StoreError> {
        attempt("keep steps of a plan", self.try_keep_steps(of, plan, now)).await
    }

    async fn keep_execution(&self, of: OfRun<'_>, work: &Execution, transcript: &[Message]) -> Result<(), StoreError> {
        attempt("keep the work of a sub-agent", self.try_keep_execution(of, work, transcript)).await
    }

    async fn take_plan(&self, of: OfRun<'_>, plan: PlanId, waits: Waits) -> Result<Option<TakenPlan>, StoreError> {
        attempt("take a plan", self.try_take_plan(of, plan, waits)).await
    }

    async fn waiting_plans(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<WaitingPlan>, StoreError> {
        attempt("list plans that wait", self.try_waiting_plans(&owner.into(), conversation, most)).await
    }
}

#[async_trait]
impl PlanRecords for SqlStore {
    async fn plan(&self, owner: &Owner, plan: PlanId) -> Result<Option<PlanRecord>, StoreError> {
        attempt("find a plan", self.try_plan(&owner.into(), plan)).await
    }

    async fn plans(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<PlanRecord>, StoreError> {
        attempt("list plans", self.try_plans(&owner.into(), conversation, most)).await
    }

    async fn made_at(&self, owner: &Owner, plan: PlanId) -> Result<Option<String>, StoreError> {
        attempt("find who makes a plan", self.try_made_at(&owner.into(), plan)).await
    }

    async fn drop_plan(&self, owner: &Owner, plan: PlanId) -> Result<Option<bool>, StoreError> {
        attempt("drop a plan", self.try_drop_plan(&owner.into(), plan)).await
    }
}

impl SqlStore {
    /// A transaction that holds the row of a run, which lives.
    async fn writing_of_run(&self, scope: &Scope, run: RunId) -> Result<Writing, Fault> {
        let mut first = Batch::default();
        let hold = first.say(
            "SELECT id FROM runs WHERE tenant = $1 AND user_id = $2 AND id = $3 AND state = 'running' @for_update",
        );
        hold.bind((scope, run.to_string()));
        let (writing, found) = self.database.write_first::<(String,)>(Reach::User(scope), first).await?;
        found.map(|_| writing).ok_or(Fault::RunEnded)
    }

    async fn try_keep_plan(&self, of: OfRun<'_>, plan: &Plan) -> Result<(), Fault> {
        let scope = Scope::from(of.owner);
        let transaction = self.writing_of_run(&scope, of.run).await?;
        let mut batch = Batch::default();
        let keep = batch.say(
            "INSERT INTO plans (tenant, user_id, conversation, id, run_id, status, body, created_at, completed_at,
                 context_type)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             ON CONFLICT (id) DO UPDATE SET run_id = excluded.run_id, status = excluded.status, body = excluded.body,
                 completed_at = excluded.completed_at",
        );
        let keep = keep.bind((&scope, of.conversation.as_str(), plan.id.to_string(), of.run.to_string()));
        let keep = keep.bind((plan.status.name(), body(&plan.head())?, plan.created_ms));
        keep.bind((plan.completed_ms, storable(of.context_type)));
        if plan.completed_ms.is_none() {
            for step in &plan.steps {
                put_step(&mut batch, &scope, plan.id, step, false)?;
            }
        } else {
            // A step that was broken off has left its sub-agent behind.
            let ended = batch.say(
                "UPDATE executions SET status = 'cancelled', error = $4
                 WHERE tenant = $1 AND user_id = $2 AND plan_id = $3 AND status IN ('executing', 'awaiting_approval')",
            );
            ended.bind((&scope, plan.id.to_string(), BROKEN_OFF));
            let calls = batch.say(
                "UPDATE approvals SET state = 'rejected', decided_at = $4, decided_in = $5, comment = $6
                 WHERE tenant = $1 AND user_id = $2 AND plan_id = $3 AND state IN ('pending', 'granted')
                     AND decided_in IS NULL",
            );
            calls.bind((&scope, plan.id.to_string(), self.clock.now_ms(), of.run.to_string(), PLAN_ENDED));
        }
        batch.commit(transaction).await?;
        Ok(())
    }

    async fn try_keep_steps(&self, of: OfRun<'_>, plan: PlanId, now: StepsNow<'_>) -> Result<(), Fault> {
        let StepsNow { steps, place } = now;
        let scope = Scope::from(of.owner);
        let writing = self.writing_of_run(&scope, of.run).await?;
        let mut batch = Batch::default();
        for (step, writes) in steps {
            put_step(&mut batch, &scope, plan, step, *writes)?;
            if step.status == StepStatus::Failed {
                // Nobody goes on with them.
                let calls = batch.say(
                    "UPDATE approvals SET state = 'rejected', decided_at = $5, decided_in = $6, comment = $7
                     WHERE tenant = $1 AND user_id = $2 AND plan_id = $3 AND step = $4
                         AND state IN ('pending', 'granted') AND decided_in IS NULL",
                );
                let calls = calls.bind((&scope, plan.to_string(), i64::from(step.number), self.clock.now_ms()));
                calls.bind((of.run.to_string(), STEP_ENDED));
            }
        }
        if let Some(place) = place {
            let encoded = encode_place(place)?;
            let conversation = (&scope, of.conversation.as_str());
            move_run(&mut batch, conversation, of.run, &place.context_type, (encoded, self.clock.now_ms()));
        }
        batch.commit(writing).await?;
        Ok(())
    }

    async fn try_keep_execution(&self, of: OfRun<'_>, work: &Execution, transcript: &[Message]) -> Result<(), Fault> {
        let scope = Scope::from(of.owner);
        let mut body = serde_json::to_value(work).map_err(RecordError::json("plan"))?;
        if !transcript.is_empty() {
            let messages = transcript.iter().map(|message| {
                let Record { kind, body, .. } = encode(message)?;
                Ok(Value::Array(vec![Value::from(kind), Value::from(body)]))
            });
            body[TRANSCRIPT] = messages.collect::<Result<_, RecordError>>()?;
        }
        let transaction = self.writing_of_run(&scope, of.run).await?;
        let mut batch = Batch::default();
        let keep = batch.say(
            "INSERT INTO executions (tenant, user_id, conversation, id, run_id, plan_id, status, body, started_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (id) DO UPDATE SET run_id = excluded.run_id, status = excluded.status, body = excluded.body",
        );
        let keep = keep.bind((&scope, of.conversation.as_str(), work.id.to_string(), of.run.to_string()));
        let keep = keep.bind(work.step.map(|(plan, _)| plan.to_string()));
        keep.bind((work.status.name(), body.to_string(), work.started_ms));
        batch.commit(transaction).await?;
        Ok(())
    }

    async fn try_take_plan(&self, of: OfRun<'_>, plan: PlanId, waits: Waits) -> Result<Option<TakenPlan>, Fault> {
        let scope = Scope::from(of.owner);
        let mut transaction = self.writing_of_run(&scope, of.run).await?;
        let taken = query(
            "UPDATE plans SET status = 'executing', run_id = $1,
                 context_type = CASE WHEN status = 'paused' THEN context_type ELSE $8 END
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4 AND id = $5 AND status IN ($6, $7)
                 AND run_id <> $1
             RETURNING context_type",
        );
        let [one, other] = match waits {
            Waits::ToBegin => [PlanStatus::Draft, PlanStatus::Held],
            Waits::ToGoOn => [PlanStatus::Paused; 2],
        };
        let taken = taken.bind((of.run.to_string(), &scope, of.conversation.as_str(), plan.to_string()));
        let taken = taken.bind((one.name(), other.name(), storable(of.context_type)));
        let taken: Option<(Option<String>,)> = taken.fetch_optional(&mut transaction).await?;
        let Some((context_type,)) = taken else { return Ok(None) };
        let Some(record) = find_plan(&mut transaction, &scope, plan).await? else { return Ok(None) };
        let agents = match waits {
            Waits::ToBegin => Vec::new(),
            Waits::ToGoOn => paused_agents(&mut transaction, &scope, plan).await?,
        };
        transaction.commit().await?;
        let context_type = context_type.map(|name| original(&name).into_owned());
        Ok(Some(TakenPlan { plan: record.plan, context_type, agents }))
    }

    async fn try_made_at(&self, scope: &Scope, plan: PlanId) -> Result<Option<String>, Fault> {
        let made_at: Option<(Option<String>,)> =
            query("SELECT context_type FROM plans WHERE tenant = $1 AND user_id = $2 AND id = $3")
                .bind((scope, plan.to_string()))
                .fetch_optional(&mut self.database.reading(Reach::User(scope)).await?)
                .await?;
        Ok(made_at.and_then(|(name,)| name).map(|name| original(&name).into_owned()))
    }

    async fn try_drop_plan(&self, scope: &Scope, plan: PlanId) -> Result<Option<bool>, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let dropped = query(
            "UPDATE plans SET status = 'cancelled', completed_at = $1
             WHERE tenant = $2 AND user_id = $3 AND id = $4 AND status IN ('draft', 'held')",
        );
        let now = self.clock.now_ms();
        let mut dropped = dropped.bind((now, scope, plan.to_string())).execute(&mut transaction).await?;
        if dropped == 0 {
            let paused: Option<String> = query(
                "SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND id = $3 AND status = 'paused' @for_update",
            )
            .bind((scope, plan.to_string()))
            .fetch_optional_value(&mut transaction)
            .await?;
            if paused.is_some() {
                // The model reads of them in the next message.
                query(
                    "UPDATE approvals SET state = 'rejected', decided_at = $4, comment = $5
                     WHERE tenant = $1 AND user_id = $2 AND plan_id = $3 AND state IN ('pending', 'granted')
                         AND decided_in IS NULL",
                )
                .bind((scope, plan.to_string(), now, PLAN_ENDED))
                .execute(&mut transaction)
                .await?;
                dropped = u64::from(end_paused(&mut transaction, scope, plan, RunState::Cancelled, now).await?);
            }
        }
        let found: Option<String> = query("SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND id = $3")
            .bind((scope, plan.to_string()))
            .fetch_optional_value(&mut transaction)
            .await?;
        if dropped > 0 {
            transaction.commit().await?;
        }
        Ok(found.map(|_| dropped > 0))
    }

    async fn try_plan(&self, scope: &Scope, plan: PlanId) -> Result<Option<PlanRecord>, Fault> {
        find_plan(&mut self.database.read(Reach::User(scope)).await?, scope, plan).await
    }

    async fn try_plans(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<PlanRecord>, Fault> {
        let mut reading = self.database.read(Reach::User(scope)).await?;
        let ids: Vec<String> = query(
            "SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND conversation = $3
             ORDER BY created_at DESC, id DESC LIMIT $4",
        )
        .bind((scope, conversation.as_str(), i64::from(most)))
        .fetch_values(&mut reading)
        .await?;
        let (mut plans, mut bytes) = (Vec::with_capacity(ids.len()), 0);
        for id in ids {
            if bytes > LISTED_BYTES {
                break;
            }
            let id = PlanId::parse(&id).map_err(RecordError::from)?;
            if let Some((plan, more)) = find_sized(&mut reading, scope, id).await? {
                plans.push(plan);
                bytes += more;
            }
        }
        Ok(plans)
    }

    async fn try_waiting_plans(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<WaitingPlan>, Fault> {
        let rows: Vec<(String, String)> = query(
            "SELECT id, body FROM plans
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND status IN ('draft', 'held')
             ORDER BY created_at DESC LIMIT $4",
        )
        .bind((scope, conversation.as_str(), i64::from(most)))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let waiting = |(id, body): (String, String)| {
            let id = PlanId::parse(&id).map_err(RecordError::from)?;
            let objective = value(&body)?["objective"].as_str().unwrap_or_default().to_owned();
            Ok(WaitingPlan { id, objective })
        };
        rows.into_iter().rev().map(waiting).collect()
    }
}

/// Ends what a run has begun and not ended itself. The plan that is `paused` waits for a person with its run.
pub(super) fn end_with_run(
    batch: &mut Batch,
    scope: &Scope,
    run: RunId,
    (state, paused): (RunState, Option<PlanId>),
    now: i64,
) {
    let (is_cancelled, ended) = match state {
        RunState::Cancelled => (1, PlanStatus::Cancelled),
        RunState::Queued
        | RunState::Running
        | RunState::AwaitingApproval
        | RunState::Completed
        | RunState::Failed
        | RunState::Interrupted => (0, PlanStatus::Failed),
    };
    if let Some(plan) = paused {
        let pause = batch.say(
            "UPDATE plans SET status = 'paused'
             WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND id = $4 AND status = 'executing'",
        );
        pause.bind((scope, run.to_string(), plan.to_string()));
    }
    // Plans are locked first, before what belongs to them, wherever they change.
    let hold = batch.say(
        "SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND status = 'executing' @for_update",
    );
    hold.bind((scope, run.to_string()));
    let steps = batch.say(
        "UPDATE plan_steps SET
             status = CASE WHEN $4 = 1 THEN 'cancelled' WHEN status = 'pending' THEN 'skipped' ELSE 'failed' END,
             error = CASE WHEN status = 'pending' THEN $5 WHEN writes = 1 THEN $7 WHEN status = 'awaiting_approval' THEN $6
                 ELSE $8 END
         WHERE tenant = $1 AND user_id = $2 AND status IN ('pending', 'executing', 'awaiting_approval') AND plan_id IN (
             SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND status = 'executing')",
    );
    steps.bind((scope, run.to_string(), is_cancelled, NOT_BEGUN, NOT_LET_THROUGH, UNKNOWN, ENDED));
    let work = batch.say(
        "UPDATE executions SET status = $4, error = $5
         WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND status = 'executing'",
    );
    work.bind((scope, run.to_string(), ended.name(), ENDED));
    // Those that wait may be of an earlier run of the plan.
    let waiting = batch.say(
        "UPDATE executions SET status = $4, error = $5
         WHERE tenant = $1 AND user_id = $2 AND status = 'awaiting_approval' AND plan_id IN (
             SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND status = 'executing')",
    );
    waiting.bind((scope, run.to_string(), ended.name(), ENDED));
    let calls = batch.say(
        "UPDATE approvals SET state = 'rejected', decided_at = $4, decided_in = $3, comment = $5
         WHERE tenant = $1 AND user_id = $2 AND state IN ('pending', 'granted') AND decided_in IS NULL AND plan_id IN (
             SELECT id FROM plans WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND status = 'executing')",
    );
    calls.bind((scope, run.to_string(), now, PLAN_ENDED));
    let plans = batch.say(
        "UPDATE plans SET status = $4, completed_at = $5
         WHERE tenant = $1 AND user_id = $2 AND run_id = $3 AND status = 'executing'",
    );
    plans.bind((scope, run.to_string(), ended.name(), now));
}

/// Ends a plan that is paused; whether it was.
pub(super) async fn end_paused(
    connection: &mut dyn Connection,
    scope: &Scope,
    plan: PlanId,
    state: RunState,
    now: i64,
) -> Result<bool, Fault> {
    let run: Option<String> = query(
        "UPDATE plans SET status = 'executing' WHERE tenant = $1 AND user_id = $2 AND id = $3 AND status = 'paused'
         RETURNING run_id",
    )
    .bind((scope, plan.to_string()))
    .fetch_optional_value(&mut *connection)
    .await?;
    let Some(run) = run else { return Ok(false) };
    let mut batch = Batch::default();
    end_with_run(&mut batch, scope, RunId::parse(&run).map_err(RecordError::from)?, (state, None), now);
    batch.run(connection).await?;
    Ok(true)
}

fn put_step(batch: &mut Batch, scope: &Scope, plan: PlanId, step: &Step, writes: bool) -> Result<(), RecordError> {
    let put = batch.say(
        "INSERT INTO plan_steps (tenant, user_id, plan_id, number, status, writes, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (plan_id, number) DO UPDATE SET status = excluded.status, writes = excluded.writes,
             body = excluded.body",
    );
    let put = put.bind((scope, plan.to_string(), i64::from(step.number), step.status.name(), i64::from(writes)));
    put.bind(body(step)?);
    Ok(())
}

/// The sub-agents of a plan that wait for a person.
async fn paused_agents(
    connection: &mut dyn Connection,
    scope: &Scope,
    plan: PlanId,
) -> Result<Vec<PausedAgent>, Fault> {
    let rows: Vec<PartRow> = query(
        "SELECT plan_id, status, body, error FROM executions
         WHERE tenant = $1 AND user_id = $2 AND plan_id = $3 AND status = 'awaiting_approval' ORDER BY started_at, id",
    )
    .bind((scope, plan.to_string()))
    .fetch_all(connection)
    .await?;
    let paused = rows.iter().map(|row| {
        let body = value(&row.2)?;
        let messages = body[TRANSCRIPT].as_array().into_iter().flatten();
        let transcript = messages.map(|message| {
            let (kind, body) = message[0].as_str().zip(message[1].as_str()).ok_or(RecordError::Plan)?;
            decode(kind, body)
        });
        let transcript = transcript.collect::<Result<_, _>>()?;
        Ok(PausedAgent { work: execution(row)?, transcript })
    });
    paused.collect()
}

async fn find_plan(connection: &mut dyn Connection, scope: &Scope, plan: PlanId) -> Result<Option<PlanRecord>, Fault> {
    Ok(find_sized(connection, scope, plan).await?.map(|(plan, _)| plan))
}

/// A plan, and how many bytes its steps and the work for it have.
async fn find_sized(
    connection: &mut dyn Connection,
    scope: &Scope,
    plan: PlanId,
) -> Result<Option<(PlanRecord, usize)>, Fault> {
    let row: Option<PlanRow> = query(
        "SELECT id, conversation, run_id, status, body, completed_at FROM plans
         WHERE tenant = $1 AND user_id = $2 AND id = $3",
    )
    .bind((scope, plan.to_string()))
    .fetch_optional(&mut *connection)
    .await?;
    let Some((_, conversation, run, status, body, completed_ms)) = row else { return Ok(None) };
    let steps: Vec<PartRow> = query(
        "SELECT plan_id, status, body, error FROM plan_steps WHERE tenant = $1 AND user_id = $2 AND plan_id = $3
         ORDER BY number",
    )
    .bind((scope, plan.to_string()))
    .fetch_all(&mut *connection)
    .await?;
    let work: Vec<PartRow> = query(
        "SELECT plan_id, status, body, error FROM executions WHERE tenant = $1 AND user_id = $2 AND plan_id = $3
         ORDER BY started_at, id",
    )
    .bind((scope, plan.to_string()))
    .fetch_all(connection)
    .await?;
    let mut head = value(&body)?;
    head["steps"] = Value::Array(Vec::new());
    let read = Plan::of_value(&head).zip(PlanStatus::of_name(&status)).ok_or(RecordError::Plan)?;
    let plan =
        Plan { status: read.1, completed_ms, steps: steps.iter().map(step).collect::<Result<_, _>>()?, ..read.0 };
    let bytes = steps.iter().chain(&work).map(|(_, _, body, _)| body.len()).sum();
    let record = PlanRecord {
        plan,
        conversation: ConversationId::parse(&original(&conversation)).map_err(RecordError::from)?,
        run: RunId::parse(&run).map_err(RecordError::from)?,
        executions: work.iter().map(execution).collect::<Result<_, _>>()?,
    };
    Ok(Some((record, bytes)))
}

fn step((_, status, body, error): &PartRow) -> Result<Step, RecordError> {
    let (step, status) = Step::of_value(&value(body)?).zip(StepStatus::of_name(status)).ok_or(RecordError::Plan)?;
    Ok(Step { status, error: error.clone().or(step.error), ..step })
}

fn execution((_, status, body, error): &PartRow) -> Result<Execution, RecordError> {
    let (work, status) =
        Execution::of_value(&value(body)?).zip(StepStatus::of_name(status)).ok_or(RecordError::Plan)?;
    Ok(Execution { status, error: error.clone().or(work.error), ..work })
}

fn body(of: &impl Serialize) -> Result<String, RecordError> {
    serde_json::to_string(of).map_err(RecordError::json("plan"))
}

fn value(body: &str) -> Result<Value, RecordError> {
    json::value(body).map_err(|_| RecordError::Plan)
}
