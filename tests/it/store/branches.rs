//! What every store promises about branches: where a run goes on from, what it answers, what stands for what does not
//! fit.

use switchboard::agent::ports::store::{BeginError, CONTINUE_REQUEST, Question, RunStart};
use switchboard::agent::ports::summaries::{Extent, HistoryBound};
use switchboard::chat::ids::{MessageId, RunId};
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::message::{Author, Message, UserMessage};
use switchboard::chat::preview::Verdict;
use switchboard::chat::run::RunState;
use switchboard::store::Store;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, ended, running, said, tool_turn, user, words,
};

fn after(run: RunId, seq: u32) -> Option<Parent> {
    Some(Parent::Message(MessageId { run, seq }))
}

fn message(text: &str) -> Ask {
    Ask::message(text)
}

/// Asks somewhere and says nothing in answer.
async fn look(store: &dyn Store, room: &Room, ask: &Ask, parent: Option<Parent>) -> (RunId, RunStart) {
    let (run, start) = room.ask(store, ask, parent).await.unwrap();
    complete(store, run).await;
    (run, start)
}

async fn go_on(store: &dyn Store, room: &Room, run: RunId) -> Result<(RunId, RunStart), BeginError> {
    let new = room.new_run(Question::Continue(run));
    Ok((new.id, running(store.begin_run(new).await?)))
}

/// Ends a run in some state, with what it said.
async fn end_as(store: &dyn Store, run: RunId, answers: &[Message], state: RunState) {
    store.finish_run(run, said(1, answers), ended(state)).await.unwrap();
}

pub async fn an_edit_begins_a_branch_beside_what_was_said(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let one = room.exchange(&*store, "one", &[answer("1")]).await;
    room.exchange(&*store, "two", &[answer("2")]).await;
    let (edit, start) = room.ask(&*store, &message("zwei"), after(one, 1)).await.unwrap();
    assert_same(&start.past.history, &vec![user("one"), answer("1")]);
    append(&*store, edit, 1, &[answer("II")]).await.unwrap();
    complete(&*store, edit).await;
    let newest = vec![user("one"), answer("1"), user("zwei"), answer("II")];
    assert_same(&room.history(&*store).await, &newest);
    let (_, start) = look(&*store, &room, &message("from scratch"), Some(Parent::Root)).await;
    assert_same(&start.past.history, &Vec::<Message>::new());
}

pub async fn a_message_of_another_conversation_is_none_to_go_on_from(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let run = room.exchange(&*store, "hello", &[answer("hi")]).await;
    let elsewhere = Room::at("acme/ann/c2");
    for (room, parent, reason) in [
        (&room, after(run, 2), "beyond the last message"),
        (&room, after(RunId::fresh(), 0), "no run"),
        (&elsewhere, after(run, 0), "a run of another conversation"),
        (&Room::at("acme/bob/c1"), after(run, 0), "a run of somebody else"),
    ] {
        for ask in [message("x"), Ask::Again] {
            let refused = room.ask(&*store, &ask, parent).await;
            assert!(matches!(refused, Err(BeginError::NoSuchMessage)), "{reason}: {refused:?}");
        }
    }
    let made = database.ask("SELECT id FROM conversations").await;
    assert_eq!(made, ["c1"], "a refusal makes no conversation");
}

pub async fn history_is_the_way_to_the_root(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let [calls, results] = tool_turn();
    let first = room.exchange(&*store, "a", &[calls.clone(), results.clone(), answer("b")]).await;
    let rows: [(u32, &[Message], &str); 4] = [
        (0, &[user("a")], "the question alone"),
        (1, &[user("a"), calls.clone(), results.clone()], "calls and their results go together"),
        (2, &[user("a"), calls.clone(), results.clone()], "a turn whole"),
        (3, &[user("a"), calls.clone(), results.clone(), answer("b")], "all of it"),
    ];
    for (seq, expected, reason) in rows {
        let (_, start) = look(&*store, &room, &message("next"), after(first, seq)).await;
        assert_eq!(format!("{:#?}", start.past.history), format!("{expected:#?}"), "{reason}");
    }
    // A long branch of many short ones, longer than any part of it that is read at once.
    let mut expected = vec![user("a")];
    let mut parent = after(first, 0);
    for n in 0..120 {
        let text = n.to_string();
        let (run, _) = room.ask(&*store, &message(&text), parent).await.unwrap();
        append(&*store, run, 1, &[answer(&text), answer("not on the way")]).await.unwrap();
        complete(&*store, run).await;
        expected.extend([user(&text), answer(&text)]);
        parent = after(run, 1);
    }
    let (_, start) = look(&*store, &room, &message("and?"), parent).await;
    assert_same(&start.past.history, &expected);
}

pub async fn a_question_that_is_asked_again_stands_beside_itself(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let one = room.exchange(&*store, "one", &[answer("1")]).await;
    let preview = room.preview(&*store, "a").await;
    let told = room.decide(&*store, preview, "a", Verdict::Accept).await;
    let two = room.exchange(&*store, "two", &[answer("2"), user("written by the loop"), answer("2!")]).await;
    let question = UserMessage { decisions: vec![told], ..UserMessage::new("two") };
    for (parent, reason) in [
        (None, "the newest question"),
        (after(two, 0), "by its own name"),
        (after(two, 1), "by its answer's"),
        (after(two, 2), "what the loop wrote is no question"),
    ] {
        let (_, start) = look(&*store, &room, &Ask::Again, parent).await;
        assert_same(&start.past.history, &vec![user("one"), answer("1")]);
        assert_eq!(start.message, question, "{reason}: with what was told with it");
    }
    let (_, start) = look(&*store, &room, &Ask::Again, after(one, 0)).await;
    assert_same(&start.past.history, &Vec::<Message>::new());
    assert_eq!(start.message, UserMessage::new("one"));
}

pub async fn there_may_be_nothing_to_repeat(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let empty = room.ask(&*store, &Ask::Again, None).await;
    assert!(matches!(empty, Err(BeginError::NothingToRepeat)), "{empty:?}");
    room.exchange(&*store, "one", &[answer("1")]).await;
    let root = room.ask(&*store, &Ask::Again, Some(Parent::Root)).await;
    assert!(matches!(root, Err(BeginError::NothingToRepeat)), "{root:?}");
}

pub async fn a_run_that_said_something_goes_on_after_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for state in [RunState::Failed, RunState::Cancelled, RunState::Interrupted] {
        let (run, _) = room.ask(&*store, &message("tell me"), Some(Parent::Root)).await.unwrap();
        end_as(&*store, run, &[answer("half")], state).await;
        let (next, start) = go_on(&*store, &room, run).await.unwrap();
        assert_same(&start.past.history, &vec![user("tell me"), answer("half")]);
        assert_eq!(start.message, UserMessage::by(Author::Continuation, CONTINUE_REQUEST));
        assert_eq!(store.find_run(&room.owner, next).await.unwrap().unwrap().continues, Some(run));
        complete(&*store, next).await;
    }
}

pub async fn a_run_that_said_nothing_is_asked_again(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "one", &[answer("1")]).await;
    let (run, _) = room.say(&*store, "two").await;
    end_as(&*store, run, &[], RunState::Failed).await;
    let (next, start) = go_on(&*store, &room, run).await.unwrap();
    assert_same(&start.past.history, &vec![user("one"), answer("1")]);
    assert_eq!(start.message, UserMessage::new("two"));
    assert_eq!(store.find_run(&room.owner, next).await.unwrap().unwrap().continues, Some(run));
}

pub async fn only_runs_that_did_not_end_well_go_on(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for state in [RunState::Completed, RunState::AwaitingApproval, RunState::Running] {
        let (run, _) = room.say(&*store, "go").await;
        if !state.is_live() {
            end_as(&*store, run, &[], state).await;
        }
        let refused = go_on(&*store, &room, run).await;
        assert!(matches!(refused, Err(BeginError::NotContinuable(found)) if found == state), "{refused:?}");
    }
    let (queued, _) = room.queue(&*store, "later", 1).await.unwrap();
    let refused = go_on(&*store, &room, queued).await;
    assert!(matches!(refused, Err(BeginError::NotContinuable(RunState::Queued))), "{refused:?}");
    let unknown = go_on(&*store, &room, RunId::fresh()).await;
    assert!(matches!(unknown, Err(BeginError::NoSuchRun)), "{unknown:?}");
}

/// Keeps a summary of everything up to a run.
async fn summarise(database: &impl Database, run: RunId, text: &str) {
    let sql = format!(
        "INSERT INTO summaries (tenant, user_id, conversation, upto_run_seq, body, created_at)
         SELECT tenant, user_id, conversation, run_seq, '\"{text}\"', 0 FROM runs WHERE id = '{run}' RETURNING body"
    );
    assert_eq!(database.ask(&sql).await.len(), 1);
}

pub async fn a_summary_stands_for_what_does_not_fit(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let long = "x".repeat(1000);
    let mut runs = Vec::new();
    for n in 0..6 {
        runs.push(room.exchange(&*store, &format!("{n}"), &[answer(&long)]).await);
    }
    let said = |from: usize| (from..6).flat_map(|n| [user(&n.to_string()), answer(&long)]).collect::<Vec<_>>();
    let see = async |bytes: usize| {
        let parent = after(runs[5], 1);
        let ask = message("next");
        let new = room.new_run(Question::Ask { ask: &ask, parent });
        let new =
            switchboard::agent::ports::store::NewRun { history: HistoryBound { bytes, by_summary: false }, ..new };
        let id = new.id;
        let start = running(store.begin_run(new).await.unwrap());
        complete(&*store, id).await;
        start
    };
    let room_for_three = 3_500;
    let start = see(room_for_three).await;
    assert_eq!((start.past.summary, start.past.extent), (None, Extent::Partial), "there is none");
    summarise(database, runs[0], "the first").await;
    summarise(database, runs[1], "the first two").await;
    let start = see(0).await;
    assert_eq!((&start.past.summary, start.past.extent), (&None, Extent::Whole), "everything fits");
    assert_same(&start.past.history, &said(0));
    let start = see(room_for_three).await;
    assert_eq!(words(&start), Some("the first two"), "the newest of what was left out");
    assert_eq!(start.past.extent, Extent::Partial, "the third is in neither");
    assert_same(&start.past.history, &said(3));
    summarise(database, runs[3], "the first four").await;
    let start = see(room_for_three).await;
    assert_eq!(words(&start), Some("the first four"), "one that overlaps");
    assert_eq!(start.past.extent, Extent::Summarised);
    assert_same(&start.past.history, &said(4));
}

pub async fn a_summary_of_another_branch_is_not_told(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let first = room.exchange(&*store, "a", &[answer("b"), answer("only here")]).await;
    summarise(database, first, "all of the first").await;
    let other = room.exchange(&*store, "another branch", &[answer("d")]).await;
    summarise(database, other, "another branch").await;
    let (run, _) = room.ask(&*store, &message("c"), after(first, 1)).await.unwrap();
    append(&*store, run, 1, &[answer("e")]).await.unwrap();
    complete(&*store, run).await;
    let (_, start) = room.say_within(&*store, "next", 10).await;
    assert_eq!(start.past.summary, None, "neither is of this branch alone");
}
