//! What every store promises about the state that runs leave of their conversation.

use std::sync::Arc;

use switchboard::agent::ports::leases::Old;
use switchboard::agent::ports::names::{MOST_NAMES, Name};
use switchboard::agent::ports::places::Opening;
use switchboard::agent::ports::store::{NewRun, Question, RunEnd, StateLeft};
use switchboard::agent::ports::summaries::{HistoryBound, Keep, KeptSummary};
use switchboard::chat::ids::ConversationId;
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::place::{Entity, Place};
use switchboard::chat::run::RunState;
use switchboard::chat::state::{ContextUsage, Mentioned, Recap, SummaryFigures};
use switchboard::store::Store;

use super::contract::{
    Database, ManualClock, Room, START_MS, answer, assert_same, begin, ended, running, said, summary, user,
};

fn recap(words: &str) -> Recap {
    Recap {
        summary: words.to_owned(),
        context_type: "global".to_owned(),
        entities: vec![Mentioned { kind: "task".to_owned(), is_one: false, ids: vec!["t\0one".to_owned()] }],
        tools: vec!["look".to_owned()],
        at_ms: 7,
        is_asking: false,
    }
}

pub async fn what_a_run_leaves_is_there_for_the_next_one(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let usage = ContextUsage { tokens: 5, budget: 10, near_percent: 85, summary: None };
    let (first, second) = (recap("one"), recap("two"));
    let left = [
        StateLeft { recap: Some(&first), context_usage: Some(&usage), ..StateLeft::default() },
        StateLeft::default(),
        StateLeft { recap: Some(&second), ..StateLeft::default() },
    ];
    for left in left {
        let run = begin(&*store, &room).await;
        let end = RunEnd { state_left: left, ..ended(RunState::Completed) };
        store.finish_run(run, said(1, &[]), end).await.unwrap();
        let session = store.session(&room.owner, &room.conversation).await.unwrap().unwrap();
        assert_eq!(session.context_usage.as_ref(), Some(&usage));
        assert_eq!(session.place, None, "it says nothing of the place");
    }
    let (run, start) = room.say(&*store, "next").await;
    assert_eq!(start.recap, Some(second.clone()));
    store.finish_run(run, said(1, &[]), ended(RunState::Cancelled)).await.unwrap();
    let (run, start) = room.ask(&*store, &Ask::message("anew"), Some(Parent::Root)).await.unwrap();
    assert_eq!(start.recap, None, "it is of another branch");
    store.finish_run(run, said(1, &[]), ended(RunState::Cancelled)).await.unwrap();
    let (_, start) = room.say(&*store, "next").await;
    assert_eq!(start.recap, Some(second), "a branch that leaves nothing is behind it, by its number");
    for other in Room::strangers() {
        let (_, start) = other.say(&*store, "next").await;
        assert_eq!(start.recap, None, "it is nobody else's");
    }
}

pub async fn a_summary_stands_for_what_would_fit_where_that_is_wanted(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut ids = Vec::new();
    for nth in 0..4 {
        ids.push(room.exchange(&*store, &format!("q{nth}"), &[answer(&format!("a{nth}"))]).await);
    }
    let keep = |messages| Keep { bytes: 0, messages };
    assert!(store.unsummarised(ids[3], keep(Some(8))).await.unwrap().is_none(), "all of them stay");
    let what = store.unsummarised(ids[3], keep(Some(3))).await.unwrap().unwrap();
    assert_same(&what.messages, &[user("q0"), answer("a0"), user("q1"), answer("a1")]);
    assert_eq!(what.upto, ids[1]);
    store.keep_summary(what.upto, &summary("four words of it")).await.unwrap();
    let session = store.session(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert_eq!(session.summarised_at_ms, Some(START_MS));

    let ask = Ask::message("next");
    let wanting = |by_summary| NewRun {
        history: HistoryBound { bytes: 0, by_summary },
        ..room.new_run(Question::Ask { ask: &ask, parent: None })
    };
    let rest = [user("q2"), answer("a2"), user("q3"), answer("a3")];
    let start = running(store.begin_run(wanting(true)).await.unwrap());
    let figures = SummaryFigures { id: "1".to_owned(), at_ms: START_MS, original_tokens: 1000, tokens: 4 };
    assert_eq!(start.past.summary, Some(KeptSummary { text: "four words of it".to_owned(), figures: Some(figures) }));
    assert_same(&start.past.history, &rest);
}

pub async fn what_things_are_called_is_kept_for_their_conversation(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let name = |id: &str, name: &str| Name { id: id.to_owned(), name: name.to_owned() };
    let end = async |names: &[Name]| {
        clock.advance_ms(1);
        let run = begin(&*store, &room).await;
        let state_left = StateLeft { names, ..StateLeft::default() };
        store.finish_run(run, said(1, &[]), RunEnd { state_left, ..ended(RunState::Completed) }).await.unwrap();
    };
    end(&[name("t\0one", "Dig\0it"), name("t2", "Größe \"'")]).await;
    end(&[]).await;
    end(&[name("t2", "Water")]).await;
    let of = async |room: &Room, id: &str| store.name_of(&room.owner, &room.conversation, id).await.unwrap();
    assert_eq!(of(&room, "t\0one").await.as_deref(), Some("Dig\0it"));
    assert_eq!(of(&room, "t2").await.as_deref(), Some("Water"), "the newest one");
    assert_eq!(of(&room, "t3").await, None);
    for other in Room::strangers() {
        assert_eq!(of(&other, "t2").await, None, "it is nobody else's");
    }
    let many: Vec<Name> = (0..MOST_NAMES).map(|nth| name(&format!("m{nth}"), "many")).collect();
    end(&many).await;
    assert_eq!((of(&room, "t2").await, of(&room, "m0").await.as_deref()), (None, Some("many")), "the oldest go");
    store.delete(&room.owner, &room.conversation).await.unwrap();
    assert_eq!(of(&room, "m0").await, None);
    assert_eq!(database.ask("SELECT CAST(COUNT(*) AS TEXT) FROM conversation_names").await, ["0"]);
}

pub async fn a_change_of_data_is_its_users_alone(database: &impl Database) {
    let clock = ManualClock::new();
    let stores = [database.open(clock.clone()).await, database.open(clock.clone()).await];
    let room = Room::at("acme/ann/c1");
    let tags = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let version = async |store: &Arc<dyn Store>, room: &Room, names: &[&str]| {
        store.data_version(&room.owner, &tags(names)).await.unwrap()
    };
    let (one, both) = (["a\0"], ["a\0", "b"]);
    let mut seen = vec![(version(&stores[1], &room, &one).await, version(&stores[1], &room, &both).await)];
    // The clock stands, and one change is like no other all the same.
    for changed in [&both[..1], &both[..1], &both[1..], &both[..]] {
        stores[0].data_changes(&room.owner, &tags(changed)).await.unwrap();
        seen.push((version(&stores[1], &room, &one).await, version(&stores[1], &room, &both).await));
    }
    let new =
        |which: fn(&(i64, i64)) -> i64| seen.windows(2).map(|at| which(&at[0]) != which(&at[1])).collect::<Vec<_>>();
    assert_eq!((new(|at| at.0), new(|at| at.1)), (vec![true, true, false, true], vec![true; 4]), "{seen:?}");
    for other in Room::strangers().into_iter().filter(|other| other.owner != room.owner) {
        assert_eq!(version(&stores[0], &other, &both).await, 0, "{:?}", other.owner);
    }
    clock.advance_ms(2 * 24 * 60 * 60 * 1000 + 60_000);
    stores[0].tidy(Old::default()).await.unwrap();
    assert_eq!(database.ask("SELECT tag FROM data_changes").await, [""; 0], "nothing that old is kept");
}

pub async fn what_was_made_for_a_first_message_is_found_once(database: &impl Database) {
    let clock = ManualClock::new();
    let stores = [database.open(clock.clone()).await, database.open(clock.clone()).await];
    let owner = Room::at("acme/ann/c1").owner;
    let place = |entity: Option<&str>| {
        let entity = entity.map(|id| Entity { id: id.to_owned(), name: None });
        Place { context_type: "project".to_owned(), entity, focus: None }
    };
    let (here, there) = (place(Some("p1")), place(None));
    let open = async |id: &str, opening| {
        let id = ConversationId::parse(id).unwrap();
        stores[0].open(&owner, &id, &here, opening).await.unwrap();
        id
    };
    open("c0", Opening::Named { title: None }).await;
    assert_eq!(stores[1].ahead(&owner, &here).await.unwrap(), None, "its client names it");
    let (older, newer) = (open("c1", Opening::Ahead).await, open("c2", Opening::Ahead).await);
    assert_eq!(stores[1].ahead(&owner, &here).await.unwrap(), Some(newer.clone()), "the newest");
    assert_eq!(stores[1].ahead(&owner, &there).await.unwrap(), None, "another place");
    for other in Room::strangers().into_iter().filter(|other| other.owner != owner) {
        assert_eq!(stores[0].ahead(&other.owner, &here).await.unwrap(), None);
        assert!(!stores[0].take_ahead(&other.owner, &newer).await.unwrap());
    }
    let wants = (0..20).map(|nth: usize| stores[nth % 2].take_ahead(&owner, &newer));
    let taken = futures::future::join_all(wants).await.into_iter().filter(|taken| *taken.as_ref().unwrap());
    assert_eq!(taken.count(), 1, "one message finds it");
    assert!(stores[0].head(&owner, &newer).await.unwrap().is_some());
    assert_eq!(stores[0].ahead(&owner, &here).await.unwrap(), Some(older));
    clock.advance_ms(60_000);
    assert_eq!(stores[0].ahead(&owner, &here).await.unwrap(), None, "after a minute nobody looks for it");
}

pub async fn sessions_are_listed_by_their_last_answer(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let rooms = ["acme/ann/c1", "acme/ann/c2", "acme/ann/c3"].map(Room::at);
    let mut runs = Vec::new();
    for room in &rooms {
        runs.push(begin(&*store, room).await);
        clock.advance_ms(10);
    }
    for (run, commit) in [(runs[2], said(1, &[])), (runs[0], said(1, &[]))] {
        store.finish_run(run, commit, ended(RunState::Completed)).await.unwrap();
        clock.advance_ms(10);
    }
    let sessions = store.sessions(&rooms[0].owner, 9).await.unwrap();
    let listed: Vec<_> =
        sessions.iter().map(|session| (session.id.as_str(), session.updated_at_ms - START_MS)).collect();
    assert_eq!(listed, [("c1", 40), ("c3", 30), ("c2", 10)]);
}
