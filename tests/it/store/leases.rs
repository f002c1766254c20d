//! What every store promises about leases: who is alive, what becomes of runs whose process is not, and who is told.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Map, json};
use switchboard::agent::ports::leases::{EndedRun, Piece, Progress, Standing};
use switchboard::agent::ports::store::{Begun, Commit, NewRun, Question};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::{RunId, ToolCallId};
use switchboard::chat::input::Ask;
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin};
use switchboard::chat::run::{CancelledBy, RunState};
use switchboard::chat::tool::{ToolCall, ToolInput, ToolResult};
use switchboard::chat::unfinished::Unfinished;
use switchboard::store::Store;

use super::contract::{
    Database, LEASE_MS, ManualClock, Room, answer, append, assert_same, complete, ended, said, tool_turn, user,
};

/// A lease that is over at once.
const NO_LEASE_MS: i64 = -1;

fn room() -> Room {
    Room::at("acme/ann/c1")
}

/// Begins a run of a process with such a lease.
async fn begin(store: &dyn Store, room: &Room, replica: &str, lease_ms: i64) -> RunId {
    let ask = Ask::message("go");
    let new = room.new_run(Question::Ask { ask: &ask, parent: None });
    let new = NewRun { replica, lease_ms, queue: Some(9), ..new };
    store.begin_run(new).await.unwrap();
    new.id
}

fn progress(run: RunId, turn: u32, text: Option<&str>) -> Progress {
    piece(run, turn, text.map(|text| (0, text)))
}

fn piece(run: RunId, turn: u32, piece: Option<(u64, &str)>) -> Progress {
    let piece = piece.map(|(at, text)| Piece { at, text: text.to_owned() });
    Progress { run, turn, piece, last_event_id: Some(7) }
}

/// What a beat tells of the runs, in their order.
async fn standings(store: &dyn Store, replica: &str, runs: &[RunId]) -> Vec<Option<Standing>> {
    let said: Vec<_> = runs.iter().map(|run| progress(*run, 0, None)).collect();
    let notices = store.beat(replica, LEASE_MS, &said).await.unwrap();
    runs.iter().map(|run| notices.iter().find(|notice| notice.run == *run).map(|notice| notice.standing)).collect()
}

async fn state(store: &dyn Store, run: RunId) -> RunState {
    store.find_run(&room().owner, run).await.unwrap().unwrap().state
}

/// Lets the lease of a run be over.
async fn forget(database: &impl Database, run: RunId) {
    let sql = format!("UPDATE runs SET lease_until = 0 WHERE id = '{run}' RETURNING id");
    assert_eq!(database.ask(&sql).await.len(), 1);
}

async fn trail(database: &impl Database, run: RunId) -> Vec<String> {
    let sql = format!(
        "SELECT CAST(seq AS TEXT) || ' ' || kind || ' ' || body FROM trail WHERE run_id = '{run}' ORDER BY seq"
    );
    database.ask(&sql).await
}

pub async fn a_beat_tells_how_every_run_stands(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    assert_eq!(store.beat("here", LEASE_MS, &[]).await.unwrap(), []);
    let rooms: Vec<Room> = (0..5).map(|n| Room::at(&format!("acme/ann/c{n}"))).collect();
    let mut runs = Vec::new();
    for room in &rooms {
        runs.push(begin(&*store, room, "here", LEASE_MS).await);
    }
    let queued = begin(&*store, &rooms[0], "here", LEASE_MS).await;
    let theirs = begin(&*store, &Room::at("acme/bob/c9"), "there", LEASE_MS).await;
    store.watch(&[runs[1]]).await.unwrap();
    store.request_cancel(&rooms[2].owner, runs[2], CancelledBy::User).await.unwrap();
    complete(&*store, runs[3]).await;
    database.ask("DELETE FROM conversations WHERE id = 'c4' RETURNING id").await;
    runs.push(queued);
    let live = |watched| Some(Standing::Live { watched });
    let expected = [
        live(false),
        live(true),
        Some(Standing::CancelRequested),
        Some(Standing::Ended),
        Some(Standing::Gone),
        live(false),
    ];
    assert_eq!(standings(&*store, "here", &runs).await, expected);
    assert_eq!(store.beat("here", LEASE_MS, &[]).await.unwrap(), [], "nobody is told of what they did not name");
    assert_eq!(standings(&*store, "there", &[theirs]).await, [live(false)]);
}

pub async fn a_run_that_its_process_does_not_name_ends_with_its_lease(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let driven = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    let forgotten = begin(&*store, &Room::at("acme/ann/c2"), "here", NO_LEASE_MS).await;
    let queued = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    let live = Some(Standing::Live { watched: false });
    assert_eq!(
        standings(&*store, "here", &[driven]).await,
        [live],
        "a lease that is over is renewed until somebody ends it"
    );
    let mut reaped = store.reap().await.unwrap();
    reaped.sort_by_key(RunId::to_string);
    assert_eq!(reaped, [forgotten, queued]);
    assert_eq!(state(&*store, driven).await, RunState::Running);
}

pub async fn a_beat_renews_the_leases_of_its_replica_alone(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let mine = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    let theirs = begin(&*store, &Room::at("acme/ann/c2"), "there", NO_LEASE_MS).await;
    let over = begin(&*store, &Room::at("acme/ann/c3"), "here", NO_LEASE_MS).await;
    complete(&*store, over).await;
    let live = Some(Standing::Live { watched: false });
    assert_eq!(standings(&*store, "here", &[mine, over]).await, [live, Some(Standing::Ended)]);
    assert_eq!(store.reap().await.unwrap(), [theirs]);
    assert_eq!(store.reap().await.unwrap(), []);
    assert_eq!(state(&*store, mine).await, RunState::Running);
    assert_eq!(state(&*store, over).await, RunState::Completed);
    assert_eq!(state(&*store, theirs).await, RunState::Interrupted);
    assert_eq!(standings(&*store, "there", &[theirs]).await, [Some(Standing::Ended)]);
    assert_eq!(store.reap().await.unwrap(), [], "a beat gives nobody their life back");
}

pub async fn whoever_has_no_lease_any_more_can_do_nothing(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    let queued = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    append(&*store, run, 1, &[answer("still there")]).await.expect("nobody has ended it yet");
    let mut reaped = store.reap().await.unwrap();
    reaped.sort_by_key(RunId::to_string);
    assert_eq!(reaped, [run, queued]);
    let (call, turn) = (ToolCallId::mint(), calling(0, None));
    for run in [run, queued] {
        assert!(matches!(append(&*store, run, 2, &[answer("late")]).await, Err(StoreError::RunEnded)));
        assert!(matches!(store.dispatch(run, &write(&call), &turn).await, Err(StoreError::RunEnded)));
        assert!(matches!(store.promote(run, HistoryBound::ALL).await, Err(StoreError::RunEnded)));
        let finished = store.finish_run(run, said(2, &[answer("late")]), ended(RunState::Completed)).await;
        assert!(matches!(finished, Err(StoreError::RunEnded)), "{finished:?}");
        store.beat("here", LEASE_MS, &[progress(run, 1, Some("late"))]).await.unwrap();
        assert_eq!(state(&*store, run).await, RunState::Interrupted);
    }
    assert_same(&room().history(&*store).await, &vec![user("go"), answer("still there"), user("go")]);
}

/// A call that writes.
pub fn write(id: &ToolCallId) -> ToolCall {
    ToolCall { id: id.clone(), name: "save".to_owned(), input: ToolInput::Object(Map::new()) }
}

/// The turn with two calls, so many of them answered.
fn calling(answered: usize, dispatched: Option<usize>) -> Unfinished {
    let [Message::Assistant(message), Message::ToolResults(results)] = tool_turn() else { unreachable!() };
    // Ids that are known, so that runs of one test agree about them.
    let dispatched = dispatched.and_then(|at| message.calls().nth(at).map(|call| call.id.clone()));
    let known: Vec<ToolCallId> = message.calls().map(|call| call.id.clone()).collect();
    let results = results.into_iter().zip(known).map(|(result, id)| ToolResult { id, ..result });
    let results = results.take(answered).collect();
    Unfinished { message, results, dispatched }
}

pub async fn a_call_is_dispatched_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    let other = begin(&*store, &Room::at("acme/ann/c2"), "here", LEASE_MS).await;
    let call = ToolCallId::from_model("call\u{0}".repeat(1000));
    let turn = calling(0, Some(0));
    store.dispatch(run, &write(&call), &turn).await.unwrap();
    let again = store.dispatch(run, &write(&call), &turn).await;
    assert!(matches!(again, Err(StoreError::Damaged(_))), "{again:?}");
    store.dispatch(run, &write(&ToolCallId::from_model("next")), &turn).await.unwrap();
    store.dispatch(other, &write(&call), &turn).await.expect("of another run");
    let many = join_all((0..8).map(|_| {
        let (store, turn) = (store.clone(), turn.clone());
        let call = write(&ToolCallId::from_model("at once"));
        tokio::spawn(async move { store.dispatch(run, &call, &turn).await.is_ok() })
    }));
    assert_eq!(many.await.into_iter().filter(|sent| *sent.as_ref().unwrap()).count(), 1);
}

pub async fn a_call_that_was_sent_has_an_unknown_fate(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    append(&*store, run, 1, &[answer("first")]).await.unwrap();
    let turn = calling(0, Some(0));
    let call = turn.dispatched.clone().unwrap();
    store.dispatch(run, &write(&call), &turn).await.unwrap();
    store.beat("here", LEASE_MS, &[progress(run, 0, Some("I look"))]).await.unwrap();
    forget(database, run).await;
    assert_eq!(store.reap().await.unwrap(), [run]);
    let [message, results] = turn.settle();
    let Message::ToolResults(told) = &results else { unreachable!() };
    assert!(told[0].content.contains("unknown") && told[1].content.contains("not completed"), "{told:?}");
    let trail = trail(database, run).await;
    let entry = |text: &str| serde_json::from_str::<serde_json::Value>(text.splitn(3, ' ').nth(2).unwrap()).unwrap();
    let kinds: Vec<_> = trail.iter().map(|entry| entry.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(kinds, ["0 user_message", "1 model_turn", "2 tool_call", "3 tool_call", "4 run_ended"]);
    let fates = trail[2..4].iter().map(|text| entry(text)["fate"].clone()).collect::<Vec<_>>();
    assert_eq!(fates, [json!("unknown"), json!("not_run")]);
    assert_eq!(entry(&trail[4])["state"], json!("interrupted"));
    assert_same(&room().history(&*store).await, &vec![user("go"), answer("first"), message, results]);
    let record = store.find_run(&room().owner, run).await.unwrap().unwrap();
    assert_eq!((record.state, record.turns, record.error), (RunState::Interrupted, 1, None));
    assert_eq!(record.finished_at_ms, Some(1_700_000_000_000));
}

pub async fn what_was_said_is_kept_when_its_process_dies(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    for text in [Some("I th"), Some("I think\u{0}"), None] {
        store.beat("here", LEASE_MS, &[progress(run, 0, text)]).await.unwrap();
    }
    forget(database, run).await;
    assert_eq!(store.reap().await.unwrap(), [run]);
    let by = |provider: &str, model: &str, text: &str| {
        let origin = ModelOrigin { provider: provider.into(), model: model.into() };
        let parts = vec![AssistantPart::Text { text: text.into(), replay: None }];
        Message::Assistant(AssistantMessage { origin: Arc::new(origin), parts })
    };
    assert_same(&room().history(&*store).await, &vec![user("go"), by("unknown", "unknown", "I think\u{0}")]);
    assert_eq!(store.find_run(&room().owner, run).await.unwrap().unwrap().last_event_id, Some(7));

    let room = Room::at("acme/ann/c2");
    let run = begin(&*store, &room, "here", LEASE_MS).await;
    let [calls, results] = tool_turn();
    let commit = Commit { turns: 1, ..said(1, &[]) };
    let messages = [calls.clone(), results.clone()];
    store.append(run, Commit { messages: &messages, ..commit }).await.unwrap();
    store.beat("here", LEASE_MS, &[progress(run, 1, Some("So"))]).await.unwrap();
    forget(database, run).await;
    store.reap().await.unwrap();
    let said = vec![user("go"), calls, results, by("claude", "m", "So")];
    assert_same(&room.history(&*store).await, &said);
}

/// The pieces that are kept of a run: turn, where they begin, how long their JSON is.
async fn pieces(database: &impl Database, run: RunId) -> Vec<String> {
    let text = |column: &str| format!("CAST({column} AS TEXT)");
    let columns = [text("turn"), text("at"), text("length(body)")].join(" || ' ' || ");
    database.ask(&format!("SELECT {columns} FROM partials WHERE run_id = '{run}' ORDER BY turn, at")).await
}

pub async fn what_is_said_is_kept_once_however_often_it_comes(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    let long = "x".repeat(1000);
    for said_now in
        [(0, &*long), (1000, "I th"), (1000, "I think"), (1000, "I th"), (1007, " so"), (2000, "lost before")]
    {
        store.beat("here", LEASE_MS, &[piece(run, 0, Some(said_now))]).await.unwrap();
    }
    store.beat("here", LEASE_MS, &[piece(run, 1, Some((0, "of a turn that has not begun")))]).await.unwrap();
    assert_eq!(
        pieces(database, run).await,
        ["0 0 1002", "0 1000 9", "0 1007 5", "0 2000 13"],
        "a piece costs what is new; the longer one of two stays"
    );
    forget(database, run).await;
    assert_eq!(store.reap().await.unwrap(), [run]);
    assert!(pieces(database, run).await.is_empty());
    let Some(Message::Assistant(whole)) = room().history(&*store).await.pop() else { panic!("an answer") };
    assert_eq!(whole.text(), format!("{long}I think so"), "what comes after a gap is left out");

    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    store.beat("here", LEASE_MS, &[piece(run, 0, Some((0, "one")))]).await.unwrap();
    store.append(run, Commit { turns: 1, ..said(1, &[]) }).await.unwrap();
    assert!(pieces(database, run).await.is_empty(), "a commit has it now");
    store.beat("here", LEASE_MS, &[piece(run, 1, Some((0, "two")))]).await.unwrap();
    complete(&*store, run).await;
    store.beat("here", LEASE_MS, &[piece(run, 0, Some((0, "late")))]).await.unwrap();
    assert!(pieces(database, run).await.is_empty(), "only live runs keep any");
}

pub async fn text_of_a_turn_that_was_committed_is_not_kept_twice(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    store.beat("here", LEASE_MS, &[progress(run, 0, Some("one"))]).await.unwrap();
    store.append(run, Commit { turns: 1, ..said(1, &[answer("one")]) }).await.unwrap();
    store.beat("here", LEASE_MS, &[progress(run, 0, Some("one"))]).await.unwrap();
    store.beat("there", LEASE_MS, &[progress(run, 1, Some("not mine to say"))]).await.unwrap();
    forget(database, run).await;
    assert_eq!(store.reap().await.unwrap(), [run]);
    assert_same(&room().history(&*store).await, &vec![user("go"), answer("one")]);
}

pub async fn runs_that_said_nothing_end_as_interrupted(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    let queued = begin(&*store, &room(), "here", NO_LEASE_MS).await;
    store.beat("there", LEASE_MS, &[]).await.unwrap();
    let mut reaped = store.reap().await.unwrap();
    reaped.sort_by_key(RunId::to_string);
    assert_eq!(reaped, [run, queued]);
    for run in reaped {
        assert_eq!(state(&*store, run).await, RunState::Interrupted);
        let kinds: Vec<String> = trail(database, run)
            .await
            .iter()
            .map(|text| text.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(kinds, ["0 user_message", "1 run_ended"]);
    }
    assert_same(&room().history(&*store).await, &vec![user("go"), user("go")]);
}

pub async fn what_was_noted_and_does_not_read_back_is_lost_and_the_run_ends(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let damages = [
        "UPDATE runs SET calling = '{' WHERE id = 'RUN' RETURNING id",
        "UPDATE runs SET calling = '{}' WHERE id = 'RUN' RETURNING id",
        "INSERT INTO partials (run_id, turn, at, body) VALUES ('RUN', 0, 0, '{') RETURNING run_id",
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let room = Room::at(&format!("acme/ann/c{n}"));
        let run = begin(&*store, &room, "here", NO_LEASE_MS).await;
        assert_eq!(database.ask(&damage.replace("RUN", &run.to_string())).await, [run.to_string()]);
        assert_eq!(store.reap().await.unwrap(), [run], "{damage}");
        assert_same(&room.history(&*store).await, &vec![user("go")]);
    }
}

pub async fn many_runs_are_reaped_once_by_many(database: &impl Database) {
    let stores = [database.open(ManualClock::new()).await, database.open(ManualClock::new()).await];
    let mut runs = Vec::new();
    for n in 0..120 {
        runs.push(begin(&*stores[0], &Room::at(&format!("acme/ann/c{n}")), "here", NO_LEASE_MS).await);
    }
    let mut reaped = Vec::new();
    for _ in 0..3 {
        let at_once = (0..4).map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move { store.reap().await.unwrap() })
        });
        reaped.extend(join_all(at_once).await.into_iter().flat_map(Result::unwrap));
    }
    runs.sort_by_key(RunId::to_string);
    reaped.sort_by_key(RunId::to_string);
    assert_eq!(reaped, runs, "each once");
}

pub async fn watching_is_told_to_the_owner_and_ends_are_told_to_the_watcher(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let run = begin(&*store, &room(), "here", LEASE_MS).await;
    let watched = |watched| [Some(Standing::Live { watched })];
    assert_eq!(store.watch(&[]).await.unwrap(), []);
    assert_eq!(standings(&*store, "here", &[run]).await, watched(false));
    assert_eq!(store.watch(&[run]).await.unwrap(), []);
    assert_eq!(standings(&*store, "here", &[run]).await, watched(true));
    database
        .ask(&format!("UPDATE runs SET watched_until = watched_until - 5000 WHERE id = '{run}' RETURNING id"))
        .await;
    assert_eq!(standings(&*store, "here", &[run]).await, watched(false), "five seconds are over");
    complete(&*store, run).await;
    assert_eq!(store.watch(&[run]).await.unwrap(), [], "its owner has time to say so");
    // Three seconds later, by the database's own clock.
    database.ask(&format!("UPDATE runs SET lease_until = lease_until - 3000 WHERE id = '{run}' RETURNING id")).await;
    let gone = RunId::fresh();
    let finished = AgentEvent::Finished { usage: switchboard::chat::stream::Usage::default() };
    let told = [
        EndedRun { run: gone, end: AgentEvent::Cancelled, last_event_id: None },
        EndedRun { run, end: finished, last_event_id: Some(9) },
    ];
    assert_eq!(store.watch(&[gone, run]).await.unwrap(), told);
    let begun: Begun = room().queue(&*store, "next", 1).await.unwrap().1;
    assert!(matches!(begun, Begun::Running(_)), "{begun:?}");
}

pub async fn the_number_of_an_end_is_its_owners_word(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let reaped = begin(&*store, &room(), "here", LEASE_MS).await;
    let cancelled = begin(&*store, &room(), "here", LEASE_MS).await;
    let failed = begin(&*store, &Room::at("acme/ann/c2"), "here", LEASE_MS).await;
    store.beat("here", LEASE_MS, &[progress(reaped, 0, None), progress(failed, 0, None)]).await.unwrap();
    forget(database, reaped).await;
    assert_eq!(store.reap().await.unwrap(), [reaped]);
    store.request_cancel(&room().owner, cancelled, CancelledBy::User).await.unwrap();
    store.finish_run(failed, said(1, &[]), ended(RunState::Interrupted)).await.unwrap();
    let runs = [reaped, cancelled, failed];
    for run in runs {
        forget(database, run).await;
    }
    let told: Vec<_> =
        store.watch(&runs).await.unwrap().into_iter().map(|ended| (ended.end, ended.last_event_id)).collect();
    let interrupted = |id| (AgentEvent::Interrupted, id);
    assert_eq!(told, [interrupted(None), (AgentEvent::Cancelled, None), interrupted(Some(9))]);
    let mut known = Vec::new();
    for run in runs {
        known.push(store.find_run(&room().owner, run).await.unwrap().unwrap().last_event_id);
    }
    assert_eq!(
        known,
        [Some(7), Some(0), Some(9)],
        "the last known of one that died; the end of one that had said nothing"
    );
}
