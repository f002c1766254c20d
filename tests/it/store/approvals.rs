//! What every store promises about calls that wait for somebody's approval.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Map, Value, json};
use switchboard::agent::ports::approvals::{ApprovalView, GrantError, call_digest};
use switchboard::agent::ports::leases::Old;
use switchboard::agent::ports::store::{
    AFTER_APPROVED_CALL, ApprovedCall, BeginError, Begun, DecidedCall, NewRun, Question, RunEnd, RunStart, TurnedDown,
};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::approval::{Approval, ApprovalState, Consent, Decision, Standing};
use switchboard::chat::caller::{Bearer, Caller};
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{ApprovalId, RunId, ToolCallId};
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::message::{AssistantMessage, AssistantPart, Author, Message, ModelOrigin, UserMessage};
use switchboard::chat::run::{CancelledBy, RunState};
use switchboard::chat::screen::ScreenState;
use switchboard::chat::tool::{ToolCall, ToolInput, ToolResult};
use switchboard::chat::unfinished::Unfinished;
use switchboard::store::Store;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, ended, running, said, tool_turn, user,
};
use super::leases::write;
use crate::support::whole::seen;

const HOUR_MS: i64 = 3_600_000;

/// What the tool is, as it was shown.
const DEFINITION: &str = "the digest of a definition";

fn chief() -> Consent {
    Consent::Role { role: "chief".into(), not_requester: false }
}

/// Somebody with these roles.
fn caller(path: &str, roles: &[&str]) -> Caller {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    Caller {
        owner: Room::at(path).owner,
        known_as: None,
        expires_at_ms: None,
        roles,
        bearer: Bearer::new("t"),
        cookie: None,
    }
}

fn arguments() -> Map<String, Value> {
    let value = json!({ "z": 1.10, "a": { "nul\u{0}": [true, null, -0.5e-7] }, "text": "ü \u{2028}" });
    let Value::Object(arguments) = value else { unreachable!() };
    arguments
}

fn now_ms() -> i64 {
    i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

/// What the model had said of them.
fn input() -> Map<String, Value> {
    Map::from_iter([("z".to_owned(), json!(1.10))])
}

/// A call that waits for an hour, by the database's clock and not by the story's.
pub fn waiting(room: &Room, run: RunId, consent: Consent) -> Approval {
    Approval {
        id: ApprovalId::fresh(),
        run,
        conversation: room.conversation.clone(),
        call: Some("toolu_\u{0}1".into()),
        origin: None,
        tool: "close_ticket".into(),
        arguments: arguments(),
        input: input(),
        definition: Some(DEFINITION.into()),
        digest: call_digest("close_ticket", DEFINITION, &arguments()),
        consent,
        created_at_ms: now_ms(),
        expires_at_ms: now_ms() + HOUR_MS,
    }
}

/// The screen of [`asked`].
fn screen() -> ScreenState {
    ScreenState::parse(r#"{"report":7}"#).unwrap()
}

/// A run that ends with these calls, on a screen of its own.
async fn asked(store: &dyn Store, room: &Room, consents: &[Consent]) -> (RunId, Vec<Approval>) {
    ended_with(store, room, |run| consents.iter().map(|consent| waiting(room, run, consent.clone())).collect()).await
}

async fn ended_with(
    store: &dyn Store,
    room: &Room,
    calls: impl FnOnce(RunId) -> Vec<Approval>,
) -> (RunId, Vec<Approval>) {
    let context = screen();
    let ask = Ask::message("Close it");
    let new = NewRun { context: Some(&context), ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    let run = new.id;
    running(store.begin_run(new).await.unwrap());
    let approvals = calls(run);
    let end = RunEnd { approvals: &approvals, ..ended(RunState::AwaitingApproval) };
    store.finish_run(run, said(1, &tool_turn()), end).await.unwrap();
    (run, approvals)
}

/// The call of a story, turned down.
fn turned_down() -> TurnedDown {
    TurnedDown { requested_as: Some("toolu_\u{0}1".into()), tool: "close_ticket".into(), origin: None }
}

pub fn yes() -> Decision {
    Decision { approve: true, comment: None }
}

pub fn no(comment: &str) -> Decision {
    Decision { approve: false, comment: Some(comment.into()) }
}

pub async fn decide(
    store: &dyn Store,
    room: &Room,
    approval: ApprovalId,
    decision: &Decision,
) -> Result<(RunId, RunStart), BeginError> {
    let new = room.new_run(Question::Decided { approval, decision });
    Ok((new.id, running(store.begin_run(new).await?)))
}

/// The call that a run has to make.
fn approved(start: &RunStart) -> ApprovedCall {
    match start.decided.clone() {
        Some(DecidedCall::Approved(call)) => call,
        other => panic!("{other:?}"),
    }
}

async fn state(store: &dyn Store, room: &Room, approval: &Approval) -> ApprovalState {
    let caller = caller(&format!("{}/{}/c", room.owner.tenant, room.owner.user), &[]);
    store.approval(&caller, approval.id).await.unwrap().unwrap().standing.state
}

/// Where the approvals of the calls of its conversation stand, as its user sees it.
async fn standings(store: &dyn Store, room: &Room) -> Vec<&'static str> {
    let seen = seen(store, &room.owner, &room.conversation).await.unwrap();
    let calls = seen.messages.iter().flat_map(|message| &message.calls);
    calls.filter_map(|call| call.approval).map(Standing::name).collect()
}

pub async fn a_call_that_waits_reads_back_exactly(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let ann = caller("acme/ann/c1", &[]);
    let (run, approvals) = asked(&*store, &room, &[Consent::User, chief()]).await;
    assert_eq!(store.find_run(&room.owner, run).await.unwrap().unwrap().state, RunState::AwaitingApproval);
    let view = |approval: &Approval| ApprovalView {
        owner: room.owner.clone(),
        approval: approval.clone(),
        standing: Standing { state: ApprovalState::Pending, is_over: false },
    };
    let mut expected: Vec<_> = approvals.iter().map(view).collect();
    expected.sort_by_key(|view| std::cmp::Reverse(view.approval.id.to_string()));
    assert_eq!(store.waiting(&ann).await.unwrap(), expected);
    let store = database.open(ManualClock::new()).await;
    for approval in &approvals {
        assert_eq!(store.approval(&ann, approval.id).await.unwrap(), Some(view(approval)));
    }
}

pub async fn a_call_tells_where_its_approval_stands(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let rooms = ["c1", "c2", "c3"].map(|name| Room::at(&format!("acme/ann/{name}")));
    for (room, decision, expected) in
        [(&rooms[0], Some(yes()), "approved"), (&rooms[1], Some(no("no")), "rejected"), (&rooms[2], None, "expired")]
    {
        let call = |run| vec![Approval { call: Some("toolu_1".into()), ..waiting(room, run, Consent::User) }];
        let (_, approvals) = ended_with(&*store, room, call).await;
        assert_eq!(standings(&*store, room).await, ["pending"]);
        match decision {
            Some(decision) => drop(decide(&*store, room, approvals[0].id, &decision).await.unwrap()),
            None => drop(database.ask("UPDATE approvals SET expires_at = created_at RETURNING id").await),
        }
        assert_eq!(standings(&*store, room).await, [expected]);
    }
}

pub async fn an_approval_begins_a_run_with_the_exact_call(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, approvals) = asked(&*store, &room, &[Consent::User]).await;
    let (next, start) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    let approved = approved(&start);
    let shown = call_digest("close_ticket", DEFINITION, &arguments());
    assert_eq!((approved.digest, approved.context), (shown, Some(screen())));
    assert_eq!(approved.requested_as.as_deref(), Some("toolu_\u{0}1"));
    let ToolCall { id, name, input: given } = approved.call;
    assert!(id.is_minted());
    assert_eq!((name.as_str(), given), ("close_ticket", ToolInput::Object(input())));
    assert_eq!(start.context, Some(screen()));
    let [calls, results] = tool_turn();
    assert_eq!(start.past.history.len(), 3);
    assert_same(&start.past.history[0], &user("Close it"));
    assert_eq!(format!("{:?}", start.past.history[2]).len(), format!("{results:?}").len());
    drop(calls);
    let text = "[Decision on a waiting call: the user approved the call of close_ticket. It is made once, now, and its \
                result follows; where no result follows it was not made.]";
    assert_eq!(start.message, UserMessage::by(Author::Decision, text));
    let record = store.find_run(&room.owner, next).await.unwrap().unwrap();
    assert_eq!(record.continues, Some(run));
    assert_eq!(state(&*store, &room, &approvals[0]).await, ApprovalState::Approved);
    assert_eq!(store.waiting(&caller("acme/ann/c1", &[])).await.unwrap(), []);
}

pub async fn an_answer_that_is_given_again_goes_on_behind_its_approved_call(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (asking, approvals) = asked(&*store, &room, &[Consent::User]).await;
    let (decided, start) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    let call = approved(&start).call;
    let result = ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: "{\"ok\":1}".into(),
        fate: CallFate::Done,
        files: Vec::new(),
    };
    let origin = Arc::new(ModelOrigin { provider: "switchboard".into(), model: "approved".into() });
    let made =
        Message::Assistant(AssistantMessage { origin, parts: vec![AssistantPart::ToolCall { call, replay: None }] });
    let made = [made, Message::ToolResults(vec![result])];
    append(&*store, decided, 1, &made).await.unwrap();
    store.finish_run(decided, said(3, &[answer("Closed.")]), ended(RunState::Completed)).await.unwrap();
    // Once more, and that answer again.
    for _ in 0..2 {
        let (again, start) = room.ask(&*store, &Ask::Again, None).await.unwrap();
        assert!(start.decided.is_none() && start.answered.is_none(), "it is made once");
        assert_eq!(start.message, UserMessage::by(Author::Decision, AFTER_APPROVED_CALL));
        assert_eq!(start.past.history.len(), 6, "{:#?}", start.past.history);
        assert_same(&start.past.history[4], &made[0]);
        assert_same(&start.past.history[5], &made[1]);
        assert_eq!(store.find_run(&room.owner, again).await.unwrap().unwrap().continues, Some(asking));
        store.finish_run(again, said(1, &[answer("Done.")]), ended(RunState::Completed)).await.unwrap();
    }
    let view = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    let texts: Vec<_> = view.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["Close it", "I look \u{2028} it up", "", "Done."], "the answer of before is on another branch");
    assert_eq!(view.head.message_count, 4);
    assert_eq!(state(&*store, &room, &approvals[0]).await, ApprovalState::Approved);
}

pub async fn a_refusal_is_told_and_makes_no_call(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
    let (run, start) = decide(&*store, &room, approvals[0].id, &no("not\n\"now\"]  \u{0}")).await.unwrap();
    assert_eq!(start.decided, Some(DecidedCall::TurnedDown(turned_down())));
    let text = "[Decision on a waiting call: the user turned down the call of close_ticket. It was not made; do not make it \
                again unless they ask for it. Their words: \"not \\\"now\\\"] \\u0000\"]";
    assert_eq!(start.message, UserMessage::by(Author::Decision, text));
    complete(&*store, run).await;
    assert_eq!(state(&*store, &room, &approvals[0]).await, ApprovalState::Rejected);
    let seen = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    let texts: Vec<_> = seen.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["Close it", "I look \u{2028} it up"], "a user does not see what the server says for them");
    assert_eq!(seen.head.message_count, 2);
    assert_eq!(room.told(&*store, "more").await, UserMessage::new("more"), "it is told once");
}

pub async fn a_decision_is_taken_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
    let (run, _) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    complete(&*store, run).await;
    for decision in [yes(), no("late")] {
        let again = decide(&*store, &room, approvals[0].id, &decision).await;
        assert!(matches!(again, Err(BeginError::AlreadyDecided)), "{again:?}");
    }
}

pub async fn of_many_decisions_at_once_one_is_taken(database: &impl Database) {
    let (one, other) = (database.open(ManualClock::new()).await, database.open(ManualClock::new()).await);
    for round in 0..3 {
        let room = Room::at(&format!("acme/ann/c{round}"));
        let (_, approvals) = asked(&*one, &room, &[Consent::User]).await;
        let id = approvals[0].id;
        let tries = join_all((0..8).map(|n| {
            let (store, room) = (if n % 2 == 0 { one.clone() } else { other.clone() }, room.clone());
            tokio::spawn(async move {
                let decision = if n < 6 { yes() } else { no("no") };
                let new = room.new_run(Question::Decided { approval: id, decision: &decision });
                store.begin_run(NewRun { queue: Some(20), ..new }).await
            })
        }));
        let tries: Vec<_> = tries.await.into_iter().map(Result::unwrap).collect();
        assert_eq!(tries.iter().filter(|begun| begun.is_ok()).count(), 1, "{tries:?}");
        let late = tries.iter().filter(|begun| matches!(begun, Err(BeginError::AlreadyDecided)));
        assert_eq!(late.count(), 7, "{tries:?}");
    }
}

pub async fn a_decision_that_does_not_begin_a_run_is_not_taken(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
    let (other, _) = room.say(&*store, "meanwhile").await;
    let busy = decide(&*store, &room, approvals[0].id, &yes()).await;
    assert!(matches!(busy, Err(BeginError::Busy { running }) if running == other), "{busy:?}");
    complete(&*store, other).await;
    let (_, start) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    assert!(start.decided.is_some());
    assert_eq!(start.past.history.len(), 4, "what was said meanwhile is before it");
}

pub async fn an_approved_call_that_was_not_made_waits_again(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let [message, results] = tool_turn();
    let Message::Assistant(asking) = message.clone() else { unreachable!() };
    let call = asking.calls().next().unwrap().id.clone();
    let open = Unfinished { message: asking, results: Vec::new(), dispatched: Some(call.clone()) };
    let unmade = Unfinished { dispatched: None, ..open.clone() }.settle();

    for ended_as in [RunState::Failed, RunState::Cancelled, RunState::Interrupted] {
        let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
        let (run, _) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
        store.finish_run(run, said(1, &unmade), ended(ended_as)).await.unwrap();
        assert_eq!(state(&*store, &room, &approvals[0]).await, ApprovalState::Pending, "{ended_as:?}");
        let (run, start) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
        assert!(start.decided.is_some(), "it is decided again");
        store.finish_run(run, said(1, &[message.clone(), results.clone()]), ended(ended_as)).await.unwrap();
        assert_eq!(state(&*store, &room, &approvals[0]).await, ApprovalState::Approved, "it was answered");
    }

    let (_, approvals) = asked(&*store, &room, &[chief(), Consent::User]).await;
    store.grant(&caller("acme/zoe/c1", &["chief"]), approvals[0].id, &yes()).await.unwrap();
    let (run, _) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    let agreed = yes();
    let waits =
        NewRun { queue: Some(9), ..room.new_run(Question::Decided { approval: approvals[1].id, decision: &agreed }) };
    assert!(matches!(store.begin_run(waits).await.unwrap(), Begun::Queued));
    store.request_cancel(&room.owner, waits.id, CancelledBy::User).await.unwrap();
    assert_eq!(state(&*store, &room, &approvals[1]).await, ApprovalState::Pending, "it never had its turn");
    store.finish_run(run, said(1, &[]), ended(RunState::Cancelled)).await.unwrap();
    assert_eq!(state(&*store, &room, &approvals[0]).await, ApprovalState::Granted, "what somebody said still counts");

    for (is_sent, expected) in [(false, ApprovalState::Pending), (true, ApprovalState::Approved)] {
        let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
        let yes = yes();
        let new = room.new_run(Question::Decided { approval: approvals[0].id, decision: &yes });
        running(store.begin_run(new).await.unwrap());
        if is_sent {
            store.dispatch(new.id, &write(&call), &open).await.unwrap();
        }
        database.ask("UPDATE runs SET lease_until = 0 WHERE state = 'running' RETURNING id").await;
        let late = store.dispatch(new.id, &write(&ToolCallId::mint()), &open).await;
        assert!(matches!(late, Err(StoreError::RunEnded)), "nothing is noted under a lease that is over: {late:?}");
        assert_eq!(store.reap().await.unwrap(), [new.id]);
        assert_eq!(state(&*store, &room, &approvals[0]).await, expected, "its process died; sent: {is_sent}");
    }
}

pub async fn a_decision_that_waits_for_its_turn_has_its_call_then(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[Consent::User, Consent::User]).await;
    let (other, _) = room.say(&*store, "meanwhile").await;
    let (yes, no) = (yes(), no("no"));
    let mut queued = Vec::new();
    for (approval, decision) in approvals.iter().zip([&yes, &no]) {
        let new = room.new_run(Question::Decided { approval: approval.id, decision });
        let begun = store.begin_run(NewRun { queue: Some(9), ..new }).await.unwrap();
        assert!(matches!(begun, Begun::Queued), "{begun:?}");
        queued.push(new.id);
    }
    complete(&*store, other).await;
    let start = store.promote(queued[0], HistoryBound::ALL).await.unwrap().unwrap();
    let approved = approved(&start);
    assert_eq!(approved.call.input, ToolInput::Object(input()));
    assert_eq!(approved.context, Some(screen()), "the screen of the run that asked");
    assert_eq!(start.context, Some(screen()));
    complete(&*store, queued[0]).await;
    let start = store.promote(queued[1], HistoryBound::ALL).await.unwrap().unwrap();
    assert_eq!(start.decided, Some(DecidedCall::TurnedDown(turned_down())));
}

pub async fn what_has_expired_is_decided_no_more_and_the_model_is_told(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[chief()]).await;
    let chief = caller("acme/zoe/c1", &["chief"]);
    clock.advance_ms(1000 * HOUR_MS);
    assert_eq!(store.waiting(&chief).await.unwrap().len(), 1, "the process's clock says nothing");
    database.ask("UPDATE approvals SET expires_at = created_at RETURNING id").await;
    assert_eq!(store.waiting(&chief).await.unwrap(), []);
    assert_eq!(store.waiting(&caller("acme/ann/c1", &[])).await.unwrap(), []);
    let late = decide(&*store, &room, approvals[0].id, &yes()).await;
    assert!(matches!(late, Err(BeginError::ApprovalExpired)), "{late:?}");
    let late = store.grant(&chief, approvals[0].id, &yes()).await;
    assert!(matches!(late, Err(GrantError::Expired)), "{late:?}");
    let note = "[Decision on a waiting call: nobody decided the call of close_ticket in time, and it was not made.]";
    let told = UserMessage { note: Some(note.into()), ..UserMessage::new("well?") };
    assert_eq!(room.told(&*store, "well?").await, told);
    assert_eq!(room.told(&*store, "and?").await, UserMessage::new("and?"));
    store.tidy(Old::default()).await.unwrap();
    store.tidy(Old::default()).await.unwrap();
    let trail = database.ask("SELECT body FROM trail WHERE kind = 'approval_decided'").await;
    let trail: Vec<Value> = trail.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let id = approvals[0].id.to_string();
    let entry = json!({"approval_id": id, "tool": "close_ticket", "decision": "expired", "by": null, "comment": null});
    assert_eq!(trail, [entry]);
}

pub async fn somebody_with_the_role_grants_or_refuses(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let role = chief;
    let chief = caller("acme/zoe/c1", &["other", "chief"]);
    let (_, approvals) = asked(&*store, &room, &[role(), role(), Consent::User]).await;
    assert_eq!(store.waiting(&chief).await.unwrap().len(), 2);
    let granted = store.grant(&chief, approvals[0].id, &yes()).await.unwrap();
    assert_eq!(granted.standing.state, ApprovalState::Granted);
    let refused = store.grant(&chief, approvals[1].id, &no("too dear")).await.unwrap();
    assert_eq!((refused.standing.state, refused.owner), (ApprovalState::Rejected, room.owner.clone()));
    for (approval, decision) in [(0, no("after all")), (1, yes())] {
        let again = store.grant(&chief, approvals[approval].id, &decision).await;
        assert!(matches!(again, Err(GrantError::AlreadyDecided)), "{again:?}");
    }
    assert_eq!(store.waiting(&chief).await.unwrap(), []);
    let of_owner = store.waiting(&caller("acme/ann/c1", &[])).await.unwrap();
    assert_eq!(of_owner.len(), 2, "the granted one waits for its owner, and the owner's own");
    let refused = decide(&*store, &room, approvals[1].id, &yes()).await;
    assert!(matches!(refused, Err(BeginError::AlreadyDecided)), "{refused:?}");

    let (run, start) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    assert!(start.decided.is_some());
    let note = "[Decision on a waiting call: the call of close_ticket was turned down by somebody who may, and was not made. \
                Their words: \"too dear\"]";
    assert_eq!(start.message.note.as_deref(), Some(note));
    complete(&*store, run).await;
    let trail = database.ask("SELECT body FROM trail WHERE kind = 'approval_decided' ORDER BY id").await;
    let said: Vec<_> = trail.iter().map(|body| serde_json::from_str::<Value>(body).unwrap()).collect();
    let said: Vec<_> = said.iter().map(|body| (body["decision"].as_str().unwrap(), &body["by"])).collect();
    let zoe = json!("zoe");
    assert_eq!(said, [("granted", &zoe), ("rejected", &zoe), ("approved", &Value::Null)]);
}

pub async fn whoever_may_not_decide_an_approval_does_not_see_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[chief(), Consent::User]).await;
    let strangers = [
        (caller("acme/bob/c1", &[]), "another user"),
        (caller("acme/bob/c1", &["chie", "Chief", ""]), "with other roles"),
        (caller("other/ann/c1", &["chief"]), "another tenant"),
    ];
    for (stranger, reason) in &strangers {
        assert_eq!(store.waiting(stranger).await.unwrap(), [], "{reason}");
        for approval in &approvals {
            assert_eq!(store.approval(stranger, approval.id).await.unwrap(), None, "{reason}");
            let granted = store.grant(stranger, approval.id, &yes()).await;
            assert!(matches!(granted, Err(GrantError::NotFound)), "{reason}: {granted:?}");
        }
        let theirs = Room { owner: stranger.owner.clone(), conversation: room.conversation.clone() };
        let decided = decide(&*store, &theirs, approvals[1].id, &yes()).await;
        assert!(matches!(decided, Err(BeginError::NoSuchApproval)), "{reason}: {decided:?}");
        assert_eq!(
            store
                .conversations(&theirs.owner, switchboard::agent::ports::conversations::Listed::default(), page())
                .await
                .unwrap()
                .items,
            [],
            "{reason}: nothing began"
        );
    }
    let chief = caller("acme/zoe/c1", &["chief"]);
    let theirs = store.grant(&chief, approvals[1].id, &yes()).await;
    assert!(matches!(theirs, Err(GrantError::NotFound)), "it asks for no role: {theirs:?}");
    let own = store.grant(&caller("acme/ann/c1", &["chief"]), approvals[0].id, &yes()).await;
    assert!(matches!(own, Err(GrantError::NotFound)), "an owner decides, and does not grant: {own:?}");
    let elsewhere = decide(&*store, &Room::at("acme/ann/c2"), approvals[1].id, &yes()).await;
    assert!(matches!(elsewhere, Err(BeginError::NoSuchApproval)), "{elsewhere:?}");
}

fn page() -> switchboard::agent::ports::conversations::Page {
    switchboard::agent::ports::conversations::Page { limit: 10, cursor: None }
}

pub async fn a_call_that_was_changed_beside_us_is_not_made(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for column in ["arguments = '{\"id\":8}'", "tool = 'delete_all'"] {
        let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
        database.ask(&format!("UPDATE approvals SET {column} RETURNING id")).await;
        let damaged = decide(&*store, &room, approvals[0].id, &yes()).await;
        assert!(matches!(damaged, Err(BeginError::Store(StoreError::Damaged(_)))), "{damaged:?}");
        let (run, start) = decide(&*store, &room, approvals[0].id, &no("odd")).await.unwrap();
        assert!(matches!(start.decided, Some(DecidedCall::TurnedDown(_))), "it can still be turned down");
        complete(&*store, run).await;
    }
}

pub async fn a_decision_on_another_branch_is_told_there(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (_, approvals) = asked(&*store, &room, &[Consent::User]).await;
    let (aside, _) = room.ask(&*store, &Ask::message("Something else"), Some(Parent::Root)).await.unwrap();
    store.finish_run(aside, said(1, &[answer("Yes")]), ended(RunState::Completed)).await.unwrap();
    let (_, start) = decide(&*store, &room, approvals[0].id, &yes()).await.unwrap();
    let first = start.past.history.first();
    assert!(matches!(first, Some(Message::User(user)) if user.text == "Close it"), "{first:?}");
}
