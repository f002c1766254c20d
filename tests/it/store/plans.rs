//! What every store promises about plans: only a live run keeps them, and what it has begun ends with it.

use serde_json::{Map, json};
use switchboard::agent::ports::plans::{OfRun, PlanRecord, StepsNow, Waits};
use switchboard::agent::ports::store::{Commit, DecidedCall, RunEnd};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::chat::approval::{Approval, ApprovalState, Consent};
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{ApprovalId, ExecutionId, PlanId, RunId, ToolCallId};
use switchboard::chat::message::{Message, UserMessage};
use switchboard::chat::origin::CallOrigin;
use switchboard::chat::place::{Entity, Place};
use switchboard::chat::plan::{Execution, Plan, PlanMode, PlanStatus, Step, StepCall, StepKind, StepStatus};
use switchboard::chat::run::RunState;
use switchboard::chat::stream::Usage;
use switchboard::store::Store;

use super::approvals::{decide, no, waiting, yes};
use super::contract::{Database, ManualClock, Room, begin, ended, said};

fn room() -> Room {
    Room::at("acme/ann/c1")
}

fn of(room: &Room, run: RunId) -> OfRun<'_> {
    OfRun { owner: &room.owner, conversation: &room.conversation, run, context_type: "workflow" }
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
        so_far: Vec::new(),
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
        waits_for: Vec::new(),
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
    store
        .keep_steps(of(room, run), plan.id, StepsNow { steps: &[(&step(2, Executing), true)], place: None })
        .await
        .unwrap();
    store.keep_execution(of(room, run), &work(plan.id), &[]).await.unwrap();
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
        let late = store
            .keep_steps(
                of(&room, run),
                plan.id,
                StepsNow { steps: &[(&step(2, StepStatus::Completed), true)], place: None },
            )
            .await;
        assert!(matches!(late, Err(StoreError::RunEnded)), "{late:?}");
        assert!(matches!(store.keep_plan(of(&room, run), &plan).await, Err(StoreError::RunEnded)));
        assert!(matches!(store.keep_execution(of(&room, run), &work(plan.id), &[]).await, Err(StoreError::RunEnded)));
    }
    let run = begin(&*store, &room).await;
    let plan = begun(&*store, &room, run).await;
    let entity = Some(Entity { id: "p9".to_owned(), name: None });
    let place = Place { context_type: "project".to_owned(), entity, focus: None };
    let moved = StepsNow { steps: &[(&step(1, StepStatus::Completed), true)], place: Some(&place) };
    store.keep_steps(of(&room, run), plan.id, moved).await.unwrap();
    database.ask("UPDATE runs SET lease_until = 0 WHERE state = 'running' RETURNING id").await;
    assert_eq!(store.reap().await.unwrap(), [run]);
    let record = found(&*store, &room, plan.id).await;
    assert_eq!(record.plan.status, PlanStatus::Failed, "its process died");
    let head = store.head(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert_eq!(head.place, Some(place), "its conversation is where a step has moved it");
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
    let take = async |room: &Room, run, plan| {
        store.take_plan(of(room, run), plan, Waits::ToBegin).await.unwrap().map(|taken| taken.plan)
    };
    let waiting = store.waiting_plans(&room.owner, &room.conversation, 9).await.unwrap();
    assert_eq!(waiting.len(), 2, "they wait beyond their run");
    assert_eq!(waiting[0].objective, "All\0of it");
    let there = begin(&*store, &elsewhere).await;
    assert!(take(&elsewhere, there, draft.id).await.is_none(), "of another conversation");
    let again = begin(&*store, &room).await;
    let own = plan(PlanStatus::Draft, Vec::new());
    store.keep_plan(of(&room, again), &own).await.unwrap();
    assert!(take(&room, again, own.id).await.is_none(), "its user has not seen it");
    store.drop_plan(&room.owner, own.id).await.unwrap();
    let taken = take(&room, again, draft.id).await.unwrap();
    assert_eq!((taken.status, taken.id), (PlanStatus::Executing, draft.id));
    assert!(take(&room, again, draft.id).await.is_none(), "once");
    assert_eq!(found(&*store, &room, draft.id).await.run, again);
    assert_eq!(store.drop_plan(&room.owner, draft.id).await.unwrap(), Some(false), "it does not wait");
    assert_eq!(store.drop_plan(&room.owner, held.id).await.unwrap(), Some(true));
    assert_eq!(store.drop_plan(&room.owner, PlanId::fresh()).await.unwrap(), None);
    assert_eq!(store.waiting_plans(&room.owner, &room.conversation, 9).await.unwrap(), []);
}

/// A plan whose second step waits with a sub-agent of its own, and its run, which has ended with that.
async fn paused(store: &dyn Store, room: &Room) -> (RunId, Plan, Approval) {
    use StepStatus::{AwaitingApproval, Completed, Pending};
    let run = begin(store, room).await;
    let so_far = vec![
        StepCall { id: "a".to_owned(), fate: CallFate::Done, content: "{\"id\": 1}".to_owned() },
        StepCall { id: "b".to_owned(), fate: CallFate::AwaitsApproval, content: String::new() },
    ];
    let waits = Step { so_far, ..step(2, AwaitingApproval) };
    let plan = plan(PlanStatus::Executing, vec![step(1, Completed), waits, step(3, Pending)]);
    store.keep_plan(of(room, run), &plan).await.unwrap();
    let work = Execution { status: AwaitingApproval, waits_for: vec!["b".to_owned()], ..work(plan.id) };
    let said_so_far = [Message::User(UserMessage::new("Nul \0"))];
    store.keep_execution(of(room, run), &work, &said_so_far).await.unwrap();
    let origin = CallOrigin { plan: Some(plan.id), step: Some(2), agent: Some(work.id) };
    let approval = Approval { origin: Some(origin), call: Some("b".to_owned()), ..waiting(room, run, Consent::User) };
    let approvals = std::slice::from_ref(&approval);
    let end = RunEnd { approvals, paused: Some(plan.id), ..ended(RunState::AwaitingApproval) };
    store.finish_run(run, Commit { has_plans: true, ..said(1, &[]) }, end).await.unwrap();
    (run, plan, approval)
}

pub async fn a_plan_that_is_paused_goes_on_once_behind_a_decision(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = room();
    let (run, plan, approval) = paused(&*store, &room).await;
    let record = found(&*store, &room, plan.id).await;
    assert_eq!((record.plan.status, record.run), (PlanStatus::Paused, run));
    assert_eq!(record.plan.steps, plan.steps, "as they were kept");
    assert_eq!(record.executions[0].status, StepStatus::AwaitingApproval);
    assert_eq!(store.waiting_plans(&room.owner, &room.conversation, 9).await.unwrap(), [], "nobody begins it");

    let (next, start) = decide(&*store, &room, approval.id, &yes()).await.unwrap();
    assert_eq!(start.decided.as_ref().and_then(DecidedCall::origin), approval.origin.as_ref());
    let taken = store.take_plan(of(&room, next), plan.id, Waits::ToBegin).await.unwrap();
    assert!(taken.is_none(), "it has begun");
    let taken = store.take_plan(of(&room, next), plan.id, Waits::ToGoOn).await.unwrap().unwrap();
    assert_eq!((taken.plan.status, &taken.plan.steps), (PlanStatus::Executing, &plan.steps));
    let agent = &taken.agents[0];
    assert_eq!((agent.work.waits_for.as_slice(), agent.transcript.len()), (["b".to_owned()].as_slice(), 1));
    assert!(matches!(&agent.transcript[0], Message::User(user) if user.text == "Nul \0"));
    assert!(store.take_plan(of(&room, next), plan.id, Waits::ToGoOn).await.unwrap().is_none(), "once");
    let work = Execution { status: StepStatus::Completed, waits_for: Vec::new(), ..agent.work.clone() };
    store.keep_execution(of(&room, next), &work, &[]).await.unwrap();
    let done = Plan { status: PlanStatus::Completed, completed_ms: Some(9), ..plan.clone() };
    store.keep_plan(of(&room, next), &done).await.unwrap();
    store.finish_run(next, Commit { has_plans: true, ..said(1, &[]) }, ended(RunState::Completed)).await.unwrap();
    let record = found(&*store, &room, plan.id).await;
    assert_eq!((record.plan.status, record.run), (PlanStatus::Completed, next));
    assert_eq!(record.executions[0].status, StepStatus::Completed);
}

/// Whatever ends a plan that is paused, or that goes on: what waits of it waits no more.
pub async fn what_waits_of_a_plan_goes_with_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let is_rejected = async |approval: ApprovalId| {
        let kept = database.ask(&format!("SELECT state FROM approvals WHERE id = '{approval}'")).await;
        kept == [ApprovalState::Rejected.name()]
    };
    let steps = ["completed", "failed", "skipped"];
    // Its owner drops it, and the model reads of it in the next message.
    let room = Room::at("acme/ann/dropped");
    let (_, plan, approval) = paused(&*store, &room).await;
    assert_eq!(store.drop_plan(&room.owner, plan.id).await.unwrap(), Some(true));
    let record = found(&*store, &room, plan.id).await;
    assert_eq!(
        (record.plan.status, states(&record)),
        (PlanStatus::Cancelled, vec!["completed", "cancelled", "cancelled"])
    );
    assert_eq!(record.executions[0].status, StepStatus::Cancelled);
    assert!(is_rejected(approval.id).await);
    assert!(store.drop_plan(&room.owner, plan.id).await.unwrap() == Some(false));
    assert!(room.told(&*store, "And?").await.note.unwrap().contains("was not made, since its plan has ended"));

    // Nobody decides it in time.
    let room = Room::at("acme/ann/late");
    let (_, plan, _) = paused(&*store, &room).await;
    database.ask("UPDATE approvals SET expires_at = 0 WHERE state = 'pending' RETURNING id").await;
    assert!(room.told(&*store, "And?").await.note.unwrap().contains("The plan that needed it has ended"));
    let record = found(&*store, &room, plan.id).await;
    assert_eq!((record.plan.status, states(&record)), (PlanStatus::Failed, steps.to_vec()));
    assert!(record.plan.steps[1].error.as_ref().unwrap().contains("not let through"));

    // It is turned down by a run that ends before it has gone on with it: it waits again.
    let room = Room::at("acme/ann/unheard");
    let (_, plan, first) = paused(&*store, &room).await;
    let (next, _) = decide(&*store, &room, first.id, &no("No")).await.unwrap();
    store.finish_run(next, said(1, &[]), ended(RunState::Cancelled)).await.unwrap();
    assert!(!is_rejected(first.id).await);
    let record = found(&*store, &room, plan.id).await;
    assert_eq!(record.plan.status, PlanStatus::Paused);
    let (next, _) = decide(&*store, &room, first.id, &no("No")).await.unwrap();
    let taken = store.take_plan(of(&room, next), plan.id, Waits::ToGoOn).await.unwrap().unwrap();
    assert_eq!(taken.context_type.as_deref(), Some("workflow"));
    assert_eq!(store.drop_plan(&room.owner, plan.id).await.unwrap(), Some(false), "it goes on");
    store.finish_run(next, Commit { has_plans: true, ..said(1, &[]) }, ended(RunState::Failed)).await.unwrap();

    // The process of the run that goes on with it dies.
    let room = Room::at("acme/ann/dead");
    let (_, plan, first) = paused(&*store, &room).await;
    let (next, _) = decide(&*store, &room, first.id, &yes()).await.unwrap();
    store.take_plan(of(&room, next), plan.id, Waits::ToGoOn).await.unwrap().unwrap();
    database.ask("UPDATE runs SET lease_until = 0 WHERE state = 'running' RETURNING id").await;
    assert_eq!(store.reap().await.unwrap(), [next]);
    let record = found(&*store, &room, plan.id).await;
    assert_eq!((record.plan.status, states(&record)), (PlanStatus::Failed, steps.to_vec()));
    assert_eq!(record.executions[0].status, StepStatus::Failed);
    assert!(is_rejected(first.id).await, "nothing is left to be decided");
    assert_eq!(room.told(&*store, "And?").await.note, None, "the run says so itself");
}
