//! What every store promises about plans: only a live run keeps them, and what it has begun ends with it.

use serde_json::{Map, json};
use switchboard::agent::ports::plans::{OfRun, PlanRecord};
use switchboard::agent::ports::store::Commit;
use switchboard::agent::ports::store_error::StoreError;
use switchboard::chat::ids::{ExecutionId, PlanId, RunId, ToolCallId};
use switchboard::chat::plan::{Execution, Plan, PlanMode, PlanStatus, Step, StepKind, StepStatus};
use switchboard::chat::run::RunState;
use switchboard::chat::stream::Usage;
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, begin, ended, said};

fn room() -> Room {
    Room::at("acme/ann/c1")
}

fn of(room: &Room, run: RunId) -> OfRun<'_> {
    OfRun { owner: &room.owner, conversation: &room.conversation, run }
}

fn step(number: u32, status: StepStatus) -> Step {
    Step {
        number,
        kind: StepKind::Action,
        description: format!("Step\0{number}"),
        by_agent: false,
        tools: vec!["save".to_owned()],
        needs: Vec::new(),
        metadata: Map::new(),
        status,
        calls: 1,
        result: (status == StepStatus::Completed).then(|| json!({"id": number})),
        error: None,
    }
}

fn plan(status: PlanStatus, steps: Vec<Step>) -> Plan {
    Plan {
        id: PlanId::fresh(),
        call: ToolCallId::from_model("c1"),
        objective: "All\0of it".to_owned(),
        mode: PlanMode::Execute,
        status,
        steps,
        requested_outputs: Vec::new(),
        priority_entities: Vec::new(),
        review: None,
        created_ms: 5,
        completed_ms: None,
    }
}

fn work(plan: PlanId) -> Execution {
    Execution {
        id: ExecutionId::fresh(),
        step: Some((plan, 2)),
        name: "action".to_owned(),
        task: "save".to_owned(),
        tools: Vec::new(),
        writes: false,
        status: StepStatus::Executing,
        result: None,
        error: None,
        calls: Vec::new(),
        usage: Usage::default(),
        started_ms: 6,
        duration_ms: 0,
    }
}

/// A plan with a step of each kind: done, begun and perhaps saved, begun and only read, not begun.
async fn begun(store: &dyn Store, room: &Room, run: RunId) -> Plan {
    use StepStatus::{Completed, Executing, Pending};
    let plan = plan(
        PlanStatus::Executing,
        [Completed, Pending, Executing, Pending]
            .into_iter()
            .zip(1..)
            .map(|(status, number)| step(number, status))
            .collect(),
    );
    store.keep_plan(of(room, run), &plan).await.unwrap();
    store.keep_steps(of(room, run), plan.id, &[(&step(2, Executing), true)]).await.unwrap();
    store.keep_execution(of(room, run), &work(plan.id)).await.unwrap();
    plan
}

async fn found(store: &dyn Store, room: &Room, plan: PlanId) -> PlanRecord {
    store.plan(&room.owner, plan).await.unwrap().unwrap()
}

fn states(record: &PlanRecord) -> Vec<&'static str> {
    record.plan.steps.iter().map(|step| step.status.name()).collect()
}

pub async fn a_plan_reads_back_as_it_was_kept(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (room, other) = (room(), Room::at("acme/bob/c1"));
    let run = begin(&*store, &room).await;
    let mut plan = begun(&*store, &room, run).await;
    plan.steps[1].status = StepStatus::Executing;
    let record = found(&*store, &room, plan.id).await;
    assert_eq!(record.plan, plan);
    assert_eq!((record.run, record.conversation.clone()), (run, room.conversation.clone()));
    assert_eq!(record.executions.len(), 1);
    assert_eq!(store.plans(&room.owner, &room.conversation, 9).await.unwrap(), [record]);
    assert_eq!(store.plan(&other.owner, plan.id).await.unwrap(), None, "nobody else's");
    assert_eq!(store.plans(&other.owner, &room.conversation, 9).await.unwrap(), []);
    store.finish_run(run, said(1, &[]), ended(RunState::Completed)).await.unwrap();
    store.delete(&room.owner, &room.conversation).await.unwrap();
    assert_eq!(store.plan(&room.owner, plan.id).await.unwrap(), None, "it goes with its conversation");
}

pub async fn what_a_run_has_begun_ends_with_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = room();
    let rows = [
        (RunState::Cancelled, "cancelled", ["completed", "cancelled", "cancelled", "cancelled"]),
        (RunState::Failed, "failed", ["completed", "failed", "failed", "skipped"]),
    ];
    for (state, status, steps) in rows {
        let run = begin(&*store, &room).await;
        let plan = begun(&*store, &room, run).await;
        let commit = Commit { has_plans: true, ..said(1, &[]) };
        store.finish_run(run, commit, ended(state)).await.unwrap();
        let record = found(&*store, &room, plan.id).await;
        assert_eq!((record.plan.status.name(), states(&record)), (status, steps.to_vec()));
        assert!(record.plan.completed_ms.is_some());
        assert_eq!(record.executions[0].status.name(), status);
        assert!(record.plan.steps[1].error.as_ref().unwrap().contains("may have been changed"));
        assert!(!record.plan.steps[2].error.as_ref().unwrap().contains("may have been changed"), "it only reads");
        let late = store.keep_steps(of(&room, run), plan.id, &[(&step(2, StepStatus::Completed), true)]).await;
        assert!(matches!(late, Err(StoreError::RunEnded)), "{late:?}");
        assert!(matches!(store.keep_plan(of(&room, run), &plan).await, Err(StoreError::RunEnded)));
        assert!(matches!(store.keep_execution(of(&room, run), &work(plan.id)).await, Err(StoreError::RunEnded)));
    }
    let run = begin(&*store, &room).await;
    let plan = begun(&*store, &room, run).await;
    database.ask("UPDATE runs SET lease_until = 0 WHERE state = 'running' RETURNING id").await;
    assert_eq!(store.reap().await.unwrap(), [run]);
    let record = found(&*store, &room, plan.id).await;
    assert_eq!(record.plan.status, PlanStatus::Failed, "its process died");
    assert_eq!(states(&record), ["completed", "failed", "failed", "skipped"]);
}

pub async fn a_plan_that_waits_is_taken_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (room, elsewhere) = (room(), Room::at("acme/ann/c2"));
    let run = begin(&*store, &room).await;
    let draft = plan(PlanStatus::Draft, vec![step(1, StepStatus::Pending)]);
    let held = plan(PlanStatus::Held, vec![step(1, StepStatus::Pending)]);
    for plan in [&draft, &held] {
        store.keep_plan(of(&room, run), plan).await.unwrap();
    }
    store.finish_run(run, Commit { has_plans: true, ..said(1, &[]) }, ended(RunState::Cancelled)).await.unwrap();
    let waiting = store.waiting_plans(&room.owner, &room.conversation, 9).await.unwrap();
    assert_eq!(waiting.len(), 2, "they wait beyond their run");
    assert_eq!(waiting[0].objective, "All\0of it");
    let there = begin(&*store, &elsewhere).await;
    assert_eq!(store.take_plan(of(&elsewhere, there), draft.id).await.unwrap(), None, "of another conversation");
    let again = begin(&*store, &room).await;
    let own = plan(PlanStatus::Draft, Vec::new());
    store.keep_plan(of(&room, again), &own).await.unwrap();
    assert_eq!(store.take_plan(of(&room, again), own.id).await.unwrap(), None, "its user has not seen it");
    store.drop_plan(&room.owner, own.id).await.unwrap();
    let taken = store.take_plan(of(&room, again), draft.id).await.unwrap().unwrap();
    assert_eq!((taken.status, taken.id), (PlanStatus::Executing, draft.id));
    assert_eq!(store.take_plan(of(&room, again), draft.id).await.unwrap(), None, "once");
    assert_eq!(found(&*store, &room, draft.id).await.run, again);
    assert_eq!(store.drop_plan(&room.owner, draft.id).await.unwrap(), Some(false), "it does not wait");
    assert_eq!(store.drop_plan(&room.owner, held.id).await.unwrap(), Some(true));
    assert_eq!(store.drop_plan(&room.owner, PlanId::fresh()).await.unwrap(), None);
    assert_eq!(store.waiting_plans(&room.owner, &room.conversation, 9).await.unwrap(), []);
}
