//! What every store promises about conversations under whole numbers, answers as they were shown, and payloads.

use std::sync::Arc;

use serde_json::json;
use switchboard::agent::ports::chats::{ChatHead, Chats};
use switchboard::agent::ports::store::{Commit, NewRun, Question, RunEnd};
use switchboard::bounded::json::JsonText;
use switchboard::chat::answer::{Answer, AnswerPiece, SuggestedValue, Suggestions};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::{PayloadId, RunId};
use switchboard::chat::input::Ask;
use switchboard::chat::payload::{Payload, PayloadHead, PayloadSource};
use switchboard::chat::run::RunState;
use switchboard::chat::screen::ScreenState;
use switchboard::store::Store;

use super::contract::titled;
use super::contract::{Database, ManualClock, Room, answer, ended, running, said, tool_turn};
use crate::support::whole::seen;

fn payload(kind: &str, source: PayloadSource) -> Arc<Payload> {
    Arc::new(Payload {
        id: PayloadId::fresh(),
        kind: kind.into(),
        data: JsonText::of(&json!({ "z": 1.5, "a": ["nul \u{0}", null] })),
        summary: format!("a {kind}\u{0}"),
        source,
    })
}

fn own(room: &Room) -> Chats<'_> {
    Chats::Own { owner: &room.owner, app: None }
}

/// A run that says something and keeps payloads.
async fn exchange(store: &dyn Store, room: &Room, text: &str, payloads: &[Arc<Payload>]) -> RunId {
    let (run, _) = room.say(store, text).await;
    let commit = Commit { payloads, ..said(1, &[]) };
    store.append(run, commit).await.unwrap();
    store.append(run, commit).await.unwrap();
    store.finish_run(run, said(1, &[answer("Yes")]), ended(RunState::Completed)).await.unwrap();
    run
}

pub async fn a_conversation_has_one_number_of_its_owners(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let rooms = ["acme/ann/c1", "acme/ann/c2", "acme/bob/c1", "other/ann/c1"].map(Room::at);
    let mut numbers = Vec::new();
    for room in &rooms {
        let number = store.number(&room.owner, None, &room.conversation, "kh").await.unwrap();
        assert_eq!(store.number(&room.owner, None, &room.conversation, "chat").await.unwrap(), number);
        numbers.push(number);
    }
    numbers.dedup();
    assert_eq!(numbers.len(), 4);
    assert!(numbers.iter().all(|number| *number > 0));
    let store = database.open(ManualClock::new()).await;
    for (room, number) in rooms.iter().zip(&numbers) {
        for other in &rooms {
            let found = store.numbered(&other.owner, *number).await.unwrap();
            let expected = (other.owner == room.owner).then(|| room.conversation.clone());
            assert_eq!(found, expected, "{:?} for {:?}", room.owner, other.owner);
        }
    }
    assert_eq!(store.numbered(&rooms[0].owner, 9999).await.unwrap(), None);
}

pub async fn numbers_asked_for_at_once_are_one(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let asked = futures::future::join_all((0..8).map(|_| {
        let (store, room) = (store.clone(), room.clone());
        tokio::spawn(async move { store.number(&room.owner, None, &room.conversation, "kh").await.unwrap() })
    }));
    let numbers: std::collections::HashSet<_> = asked.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers.len(), 1);
}

pub async fn chats_are_listed_newest_change_first(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let mut numbers = Vec::new();
    for (path, app) in [("acme/ann/c1", "kh"), ("acme/ann/c2", "other"), ("acme/bob/c3", "kh"), ("other/ann/c4", "kh")]
    {
        let room = Room::at(path);
        numbers.push(store.number(&room.owner, None, &room.conversation, app).await.unwrap());
        clock.advance_ms(10);
        exchange(&*store, &room, &format!("First words\nof {path}"), &[]).await;
    }
    let ann = Room::at("acme/ann/c1");
    store.number(&ann.owner, None, &Room::at("acme/ann/empty").conversation, "kh").await.unwrap();
    exchange(&*store, &Room::at("acme/ann/unnumbered"), "Hi", &[]).await;
    clock.advance_ms(10);
    exchange(&*store, &ann, "More", &[]).await;
    let named = |of: Vec<ChatHead>| of.into_iter().map(|head| head.number).collect::<Vec<_>>();
    let acme = |user| Chats::Tenant { tenant: "acme", user };
    let kh = Chats::Own { owner: &ann.owner, app: Some("kh") };
    let rows = [
        (own(&ann), 10, 0, vec![numbers[0], numbers[1]], 2, "an owner's"),
        (kh, 10, 0, vec![numbers[0]], 1, "of one application"),
        (acme(None), 10, 0, vec![numbers[0], numbers[2], numbers[1]], 3, "of a tenant"),
        (acme(None), 1, 1, vec![numbers[2]], 3, "a part of them"),
        (acme(None), 5, 9, vec![], 3, "behind the end"),
        (acme(Some("bob")), 10, 0, vec![numbers[2]], 1, "of one user of a tenant"),
        (acme(Some("zoe")), 10, 0, vec![], 0, "of nobody"),
    ];
    for (of, limit, offset, expected, total, reason) in rows {
        let (heads, all) = store.chats(of, limit, offset).await.unwrap();
        assert_eq!((named(heads), all), (expected, total), "{reason}");
    }
    let (heads, _) = store.chats(own(&ann), 1, 0).await.unwrap();
    let head = ChatHead {
        number: numbers[0],
        owner: ann.owner.clone(),
        known_as: None,
        title: "First words\nof acme/ann/c1".into(),
        created_at_ms: 1_700_000_000_010,
        updated_at_ms: 1_700_000_000_050,
        message_count: 4,
    };
    assert_eq!(heads, [head]);
    store.change(&ann.owner, &ann.conversation, &titled("Named")).await.unwrap();
    assert_eq!(store.chats(own(&ann), 1, 0).await.unwrap().0[0].title, "Named");
}

pub async fn a_chat_has_all_that_was_said_and_shown(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let number = store.number(&room.owner, None, &room.conversation, "kh").await.unwrap();
    let context = ScreenState::parse(r#"{"page":"reports","nul\u0000":1}"#).unwrap();
    let ask = Ask::message("Look it up");
    let new = NewRun { context: Some(&context), ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    running(store.begin_run(new).await.unwrap());
    let payloads = [payload("found", PayloadSource::Tool), payload("hint", PayloadSource::Model)];
    let mut shown = Answer {
        pieces: vec![AnswerPiece::Text("I look it up".into())],
        suggestions: Suggestions {
            values: Some(vec![SuggestedValue { label: "Yes".into(), value: "yes".into() }]),
            actions: None,
        },
        diagnostics: Some(json!({ "shape": "basic" })),
    };
    let [calls, results] = tool_turn();
    let switchboard::chat::message::Message::Assistant(message) = &calls else { unreachable!() };
    shown.pieces.extend(message.calls().map(|call| AnswerPiece::Call(call.id.clone())));
    shown.pieces.extend([AnswerPiece::RoundEnd, AnswerPiece::Text("There.".into())]);
    let messages = [calls.clone(), results, answer("There. SUGGESTED_VALUES: []")];
    let end = RunEnd { answer: Some(&shown), ..ended(RunState::Completed) };
    store.finish_run(new.id, Commit { payloads: &payloads, ..said(1, &messages) }, end).await.unwrap();
    let second = exchange(&*store, &room, "Thanks", &[]).await;

    let details = "SELECT CAST(COUNT(*) AS TEXT) FROM run_details";
    assert_eq!(database.ask(details).await, ["1"], "of the run that has something that its messages do not tell");
    let store = database.open(ManualClock::new()).await;
    let chat = store.chat(own(&room), number).await.unwrap().unwrap();
    assert_eq!((chat.head.number, chat.head.message_count, chat.runs.len()), (number, 5, 2));
    let run = &chat.runs[0];
    assert_eq!((run.state, run.messages.len(), run.run_seq), (RunState::Completed, 4, 0));
    assert_eq!(run.answer.as_ref(), Some(&shown));
    assert_eq!(run.payloads, payloads.map(Arc::unwrap_or_clone));
    assert_eq!(run.context.as_ref(), Some(&context));
    assert_eq!((&chat.runs[1].answer, &chat.runs[1].context, chat.runs[1].messages.len()), (&None, &None, 2));
    let strangers = [
        Chats::Own { owner: &Owner { tenant: "acme".into(), user: "bob".into() }, app: None },
        Chats::Own { owner: &room.owner, app: Some("other") },
        Chats::Tenant { tenant: "other", user: None },
        Chats::Tenant { tenant: "acme", user: Some("bob") },
    ];
    for of in strangers {
        assert!(store.chat(of, number).await.unwrap().is_none(), "{of:?}");
    }
    assert!(store.chat(Chats::Tenant { tenant: "acme", user: None }, number).await.unwrap().is_some());

    let seen = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    let texts: Vec<_> = seen.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["Look it up", "I look it up", "There.", "Thanks", "Yes"], "a view has what was shown");
    assert_eq!(seen.messages[3].id.run, second);
}

pub async fn a_long_chat_is_read_from_its_newest_runs(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let number = store.number(&room.owner, None, &room.conversation, "kh").await.unwrap();
    let long = "ü".repeat(700 << 10);
    let diagnosed = |words: &str| Answer { diagnostics: Some(json!(words)), ..Answer::default() };
    let kept = payload("a", PayloadSource::Tool);
    for (answered, shown) in [
        (&*long, diagnosed("no room")),
        (&*long, diagnosed("no room")),
        (&*long, diagnosed(&long)),
        ("short", diagnosed("room")),
    ] {
        let (run, _) = room.say(&*store, "Go on").await;
        let payloads = std::slice::from_ref(&kept).get(..usize::from(answered == "short")).unwrap();
        let messages = [answer(answered)];
        let commit = Commit { payloads, ..said(1, &messages) };
        let end = RunEnd { answer: Some(&shown), ..ended(RunState::Completed) };
        store.finish_run(run, commit, end).await.unwrap();
    }
    let chat = store.chat(own(&room), number).await.unwrap().unwrap();
    let diagnostics = |answer: &Answer| answer.diagnostics.as_ref().map(|words| words.to_string().len());
    let read: Vec<_> = chat
        .runs
        .iter()
        .map(|run| (run.run_seq, run.payloads.len(), run.answer.as_ref().and_then(diagnostics)))
        .collect();
    assert_eq!(read, [(1, 0, None), (2, 0, None), (3, 1, Some(6))], "what was said goes before diagnostics");
    assert_eq!(chat.head.message_count, 8, "the head knows of all of them");
}

pub async fn payloads_are_their_conversations_own(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let payloads = ["a", "b", "c"].map(|kind| payload(kind, PayloadSource::Tool));
    exchange(&*store, &room, "one", &payloads[..2]).await;
    exchange(&*store, &room, "two", &payloads[2..]).await;
    let head = |Payload { id, kind, summary, .. }: &Payload| PayloadHead {
        id: id.clone(),
        kind: kind.clone(),
        summary: summary.clone(),
    };
    let heads: Vec<_> = payloads.iter().map(|payload| head(payload)).collect();
    assert_eq!(store.payloads(&room.owner, &room.conversation, 10).await.unwrap(), heads);
    assert_eq!(store.payloads(&room.owner, &room.conversation, 2).await.unwrap(), heads[1..], "the newest");
    for payload in &payloads {
        let found = store.payload(&room.owner, &room.conversation, &payload.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(&**payload));
        for stranger in Room::strangers() {
            let found = store.payload(&stranger.owner, &stranger.conversation, &payload.id).await.unwrap();
            assert_eq!(found, None);
        }
    }
    for stranger in Room::strangers() {
        assert_eq!(store.payloads(&stranger.owner, &stranger.conversation, 10).await.unwrap(), []);
    }
    let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
    let deep = Arc::new(Payload { data: JsonText::of(&deep), ..(*payload("deep", PayloadSource::Tool)).clone() });
    exchange(&*store, &room, "three", std::slice::from_ref(&deep)).await;
    let found = store.payload(&room.owner, &room.conversation, &deep.id).await.unwrap();
    assert_eq!(
        found,
        Some(Payload { data: JsonText::null(), ..(*deep).clone() }),
        "what could not be read again is left out"
    );
}

pub async fn a_deleted_conversation_takes_its_number_and_payloads_along(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let number = store.number(&room.owner, None, &room.conversation, "kh").await.unwrap();
    let kept = payload("a", PayloadSource::Tool);
    exchange(&*store, &room, "one", std::slice::from_ref(&kept)).await;
    let (run, _) = room.say(&*store, "two").await;
    let shown = Answer { pieces: vec![AnswerPiece::Text("Shown".into())], ..Answer::default() };
    let end = RunEnd { answer: Some(&shown), ..ended(RunState::Completed) };
    store.finish_run(run, said(1, &[answer("Said")]), end).await.unwrap();
    store.delete(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert_eq!(store.numbered(&room.owner, number).await.unwrap(), None);
    assert_eq!(store.payloads(&room.owner, &room.conversation, 10).await.unwrap(), []);
    for table in ["chats", "payloads", "approvals", "run_details"] {
        assert_eq!(database.ask(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}")).await, ["0"], "{table}");
    }
    let again = store.number(&room.owner, None, &room.conversation, "kh").await.unwrap();
    assert!(again > number, "a number is not given twice");
}
