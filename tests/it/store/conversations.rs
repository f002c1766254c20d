//! What every store promises about conversations.

use futures::future::join_all;
use serde_json::json;
use switchboard::agent::ports::drafts::DraftError;
use switchboard::agent::ports::store::{NewRun, RunOutcome, StoreError};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::{ConversationId, RunId};
use switchboard::chat::message::{Message, UserMessage};
use switchboard::chat::preview::Verdict;
use switchboard::chat::stream::Usage;

use super::contract::{Database, ManualClock, Room, answer, assert_same, tool_turn, user};

pub async fn a_new_conversation_begins_without_history(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (_, start) = Room::at("acme/ann/c1").say(&*store, "hello \u{0}").await;
    assert_same(&start.history, &Vec::<Message>::new());
    assert_eq!(start.message, UserMessage::new("hello \u{0}"));
}

pub async fn the_next_run_sees_what_was_said_and_called(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "which rule?").await;
    let [calls, results] = tool_turn();
    append(&*store, run, 1, &[calls.clone(), results.clone()]).await.unwrap();
    append(&*store, run, 3, &[]).await.unwrap();
    append(&*store, run, 3, &[answer("rule 1")]).await.unwrap();
    complete(&*store, run).await;
    let (_, start) = room.say(&*store, "thanks").await;
    assert_same(&start.history, &vec![user("which rule?"), calls, results, answer("rule 1")]);
    assert_eq!(start.message, UserMessage::new("thanks"));
}

pub async fn history_reads_back_exactly(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let texts = ["", "nul \u{0}", "\u{2028}\u{202e}\u{1F600}", "\"}]\\", "1e400", &"long ".repeat(50_000)];
    let room = Room::at("acme/ann/c1");
    let mut expected = Vec::new();
    for text in texts {
        let (run, _) = room.say(&*store, text).await;
        let [calls, results] = tool_turn();
        let said = [calls, results, answer(text)];
        append(&*store, run, 1, &said).await.unwrap();
        expected.push(user(text));
        expected.extend(said);
    }
    assert_same(&room.history(&*store).await, &expected);
}

pub async fn the_newest_whole_messages_that_fit_are_history(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let text = "x".repeat(1000);
    let runs: Vec<_> = (0..3).map(|_| [&[user(&text)][..], &tool_turn(), &[answer(&text)]].concat()).collect();
    let said = runs.concat();
    // A run is between 2500 and 3500 bytes here, a good 1000 of them its question and as much its answer.
    let all: Vec<usize> = (0..12).collect();
    let rows: [(usize, &[usize], &str); 6] = [
        (0, &all, "no limit"),
        (1_000_000, &all, "more than there is"),
        (10, &[8], "not even the newest answer, and still its question"),
        (1_300, &[8, 11], "an answer and its question, without what lies between them"),
        (3_500, &[8, 9, 10, 11], "one run whole"),
        (4_000, &[4, 7, 8, 9, 10, 11], "the end of another run, and its question"),
    ];
    for (index, (bytes, seen, reason)) in rows.into_iter().enumerate() {
        // Asking lengthens the conversation, so each row asks in its own.
        let room = Room::at(&format!("acme/ann/c{index}"));
        for messages in &runs {
            let (run, _) = room.say_within(&*store, &text, 1).await;
            append(&*store, run, 1, &messages[1..]).await.unwrap();
        }
        let (_, start) = room.say_within(&*store, "next", bytes).await;
        let newest: Vec<_> = seen.iter().map(|at| &said[*at]).collect();
        assert_eq!(format!("{:#?}", start.history), format!("{newest:#?}"), "{reason}");
    }
}

pub async fn a_conversation_of_many_messages_is_read_whole_or_cut_anywhere(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut said = Vec::new();
    for n in 0..50 {
        let (run, _) = room.say_within(&*store, "go on", 1).await;
        let [calls, results] = tool_turn();
        let messages = [calls, results, answer(&n.to_string())];
        append(&*store, run, 1, &messages).await.unwrap();
        said.push(user("go on"));
        said.extend(messages);
    }
    for bytes in [10_000, 20_000, 30_000, 0] {
        let seen = room.say_within(&*store, "next", bytes).await.1.history;
        let cut = said.len() - seen.len();
        assert_eq!(bytes == 0, cut == 0, "{bytes}");
        // All but the question that stands before the cut.
        assert_same(&seen[1..].to_vec(), &said[cut + 1..].to_vec());
        assert_same(&seen[0], &user("go on"));
        // Asking lengthens the conversation.
        said.push(user("next"));
    }
}

pub async fn nobody_else_sees_a_conversation(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (run, _) = Room::at("acme/ann/c1").say(&*store, "my secret").await;
    append(&*store, run, 1, &[answer("is safe")]).await.unwrap();
    for stranger in Room::strangers() {
        assert_same(&stranger.history(&*store).await, &Vec::<Message>::new());
    }
}

pub async fn the_same_conversation_id_of_two_owners_names_two_conversations(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    // Joined without care, the parts of these names would be the same text.
    let rooms = ["a/b/c", "a/bc/c", "ab/c/c", "/ab/c", "/a/c", "a//c"].map(Room::at);
    for (index, room) in rooms.iter().enumerate() {
        room.say(&*store, &index.to_string()).await;
    }
    for (index, room) in rooms.iter().enumerate() {
        assert_same(&room.history(&*store).await, &vec![user(&index.to_string())]);
    }
}

pub async fn no_character_of_a_name_is_refused_or_mistaken_for_another(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let names =
        ["ann", "ann\0", "\0ann", "ann\u{1}", "ann\u{1}0", "ann\u{fffd}", "ann\\0", "Ann", "ann ", "änn", "a\u{308}nn"];
    let conversation = ConversationId::parse("c1").unwrap();
    let mut rooms: Vec<Room> = Vec::new();
    for name in names {
        for (tenant, user) in [(name, "u"), ("t", name)] {
            let owner = Owner { tenant: tenant.into(), user: user.into() };
            rooms.push(Room { owner, conversation: conversation.clone() });
        }
    }
    let (mut drafts, mut previews) = (Vec::new(), Vec::new());
    for (index, room) in rooms.iter().enumerate() {
        let said = index.to_string();
        let run = NewRun {
            id: RunId::fresh(),
            owner: &room.owner,
            conversation: &conversation,
            profile: "nul \0",
            text: &said,
            history_bytes: 0,
        };
        let (id, begun) = (run.id, store.begin_run(run).await.unwrap());
        assert_same(&begun.history, &Vec::<Message>::new());
        append(&*store, id, 1, &[answer(&said)]).await.unwrap();
        complete(&*store, id).await;
        drafts.push(store.create_draft(&room.owner, &conversation, &json!(index)).await.unwrap());
        let preview = room.preview(&*store, &said).await;
        room.decide(&*store, preview, &said, Verdict::Accept).await;
        previews.push(preview);
    }
    for (index, room) in rooms.iter().enumerate() {
        let said = index.to_string();
        let changes = store.accepted_changes(&room.owner, &conversation).await.unwrap();
        assert_eq!(changes.iter().map(|(change, _)| &change.name).collect::<Vec<_>>(), [&said]);
        assert_same(&room.history(&*store).await, &vec![user(&said), answer(&said)]);
        assert_eq!(store.draft(&room.owner, &conversation, drafts[index]).await.unwrap().body, json!(index));
        let neighbour = &rooms[(index + 1) % rooms.len()].owner;
        let theirs = store.draft(neighbour, &conversation, drafts[index]).await;
        assert!(matches!(theirs, Err(DraftError::NotFound)), "{theirs:?}");
    }
}

pub async fn two_runs_that_begin_at_once_keep_their_messages_apart(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (first, second) = tokio::join!(room.say(&*store, "one"), room.say(&*store, "two"));
    let seen = [first.1.history.len(), second.1.history.len()];
    assert!(seen == [0, 1] || seen == [1, 0], "one began after the other: {seen:?}");
    let [calls, results] = tool_turn();
    append(&*store, second.0, 1, &[calls.clone(), results.clone()]).await.unwrap();
    append(&*store, first.0, 1, &[answer("to one")]).await.unwrap();
    append(&*store, second.0, 3, &[answer("to two")]).await.unwrap();
    let one = vec![user("one"), answer("to one")];
    let two = vec![user("two"), calls, results, answer("to two")];
    let expected = if seen[0] == 0 { [one, two].concat() } else { [two, one].concat() };
    assert_same(&room.history(&*store).await, &expected);
}

pub async fn twenty_appends_at_once_are_all_kept(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "count").await;
    let pairs: Vec<_> = (0..20).map(|n| [answer(&format!("{n} a")), answer(&format!("{n} b"))]).collect();
    let appended = join_all((1..).step_by(2).zip(&pairs).map(|(first, pair)| append(&*store, run, first, pair))).await;
    assert!(appended.iter().all(Result::is_ok), "{appended:?}");
    let history = room.history(&*store).await;
    assert_same(&history[0], &user("count"));
    let mut found: Vec<_> = history[1..].chunks(2).map(|pair| format!("{pair:?}")).collect();
    let mut expected: Vec<_> = pairs.iter().map(|pair| format!("{:?}", &pair[..])).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "every pair is there, and stands together");
}

pub async fn runs_at_once_in_many_conversations_are_all_kept(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let rooms: Vec<_> = (0..10).map(|n| Room::at(&format!("acme/user{}/c{n}", n % 3))).collect();
    let runs = rooms.iter().map(async |room| {
        for n in 0..5 {
            let (run, _) = room.say(&*store, &n.to_string()).await;
            append(&*store, run, 1, &[answer(&n.to_string())]).await.unwrap();
            complete(&*store, run).await;
        }
    });
    join_all(runs).await;
    let expected: Vec<_> = (0..5).flat_map(|n| [user(&n.to_string()), answer(&n.to_string())]).collect();
    for room in &rooms {
        assert_same(&room.history(&*store).await, &expected);
    }
}

pub async fn two_stores_on_one_database_write_at_once(database: &impl Database) {
    let stores = [database.open(ManualClock::new()).await, database.open(ManualClock::new()).await];
    let room = Room::at("acme/ann/c1");
    let writers = stores.clone().map(|store| {
        let room = room.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let (run, _) = room.say(&*store, &n.to_string()).await;
                append(&*store, run, 1, &[answer(&n.to_string())]).await.unwrap();
                complete(&*store, run).await;
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    let history = room.history(&*stores[0]).await;
    let mut found: Vec<_> = history.chunks(2).map(|pair| format!("{pair:?}")).collect();
    let pair = |n: usize| format!("{:?}", &[user(&n.to_string()), answer(&n.to_string())]);
    let mut expected: Vec<_> = (0..40).map(|n| pair(n / 2)).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "every answer follows its question");
}

pub async fn an_append_and_the_end_at_once_agree(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    for n in 0..20 {
        let room = Room::at(&format!("acme/ann/c{n}"));
        let (run, _) = room.say(&*store, "go").await;
        let said = [answer("done")];
        let append = append(&*store, run, 1, &said);
        let end = store.finish_run(run, RunOutcome::Cancelled, Usage::default());
        let (append, end) = if n % 2 == 0 {
            tokio::join!(append, end)
        } else {
            let (end, append) = tokio::join!(end, append);
            (append, end)
        };
        end.unwrap();
        let expected = match append {
            Ok(()) => vec![user("go"), answer("done")],
            Err(StoreError::Damaged(_)) => vec![user("go")],
            Err(error @ StoreError::Unavailable(_)) => panic!("{error:?}"),
        };
        assert_same(&room.history(&*store).await, &expected);
    }
}

pub async fn twenty_runs_that_begin_at_once_have_twenty_places(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let runs = join_all((0..20).map(|_| {
        let (store, room) = (store.clone(), room.clone());
        tokio::spawn(async move { room.say(&*store, "go").await.1.history.len() })
    }));
    let mut seen: Vec<_> = runs.await.into_iter().map(Result::unwrap).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
}

pub async fn a_call_that_is_dropped_midway_leaves_the_store_usable(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (room, text) = (Room::at("acme/ann/c1"), "x".repeat(100_000));
    for polls in 1..40 {
        let mut call = std::pin::pin!(room.try_say(&*store, RunId::fresh(), &text, 0));
        for _ in 0..polls {
            if futures::poll!(call.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let history = room.history(&*store).await;
    let whole = history.iter().filter(|message| matches!(message, Message::User(said) if said.text == text)).count();
    assert_eq!(whole, history.len(), "every message is whole");
    store.ready().await.unwrap();
}

pub async fn an_append_of_unknown_fate_can_be_repeated(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let [calls, results] = tool_turn();
    let (run, _) = room.say(&*store, "go").await;
    append(&*store, run, 1, &[calls.clone(), results.clone()]).await.unwrap();
    append(&*store, run, 1, &[calls.clone(), results.clone(), answer("done")]).await.unwrap();
    assert_same(&room.history(&*store).await, &vec![user("go"), calls, results, answer("done")]);
}

pub async fn a_restart_keeps_everything(database: &impl Database) {
    let room = Room::at("acme/ann/c1");
    let [calls, results] = tool_turn();
    let store = database.open(ManualClock::new()).await;
    let (run, _) = room.say(&*store, "remember").await;
    append(&*store, run, 1, &[calls.clone(), results.clone()]).await.unwrap();
    store.close().await;
    let store = database.open(ManualClock::new()).await;
    append(&*store, run, 3, &[answer("I do")]).await.unwrap();
    assert_same(&room.history(&*store).await, &vec![user("remember"), calls, results, answer("I do")]);
}

pub async fn a_run_that_was_never_begun_takes_nothing(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let appended = store.append(RunId::fresh(), 1, &[answer("to nobody")]).await;
    assert!(matches!(appended, Err(StoreError::Damaged(_))), "{appended:?}");
    let finished = store.finish_run(RunId::fresh(), RunOutcome::Completed, Usage::default()).await;
    assert!(matches!(finished, Err(StoreError::Damaged(_))), "{finished:?}");
}

pub async fn a_run_that_has_ended_takes_no_more_messages(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "stop").await;
    store.finish_run(run, RunOutcome::Cancelled, Usage::default()).await.unwrap();
    let late = append(&*store, run, 1, &[answer("too late")]).await;
    assert!(matches!(late, Err(StoreError::Damaged(_))), "{late:?}");
    assert_same(&room.history(&*store).await, &vec![user("stop")]);
}

pub async fn the_same_run_begins_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (first, second) = (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"));
    let (run, _) = first.say(&*store, "one").await;
    for room in [&first, &second] {
        let again = room.try_say(&*store, run, "again", 0).await;
        assert!(matches!(again, Err(StoreError::Unavailable(_))), "{again:?}");
    }
    assert_same(&first.history(&*store).await, &vec![user("one")]);
    assert_same(&second.history(&*store).await, &Vec::<Message>::new());
}

pub async fn a_run_ends_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (run, _) = Room::at("acme/ann/c1").say(&*store, "go").await;
    let usage = Usage { input_tokens: u64::MAX, ..Usage::default() };
    for outcome in [RunOutcome::Failed("provider_unavailable".into()), RunOutcome::Cancelled, RunOutcome::Completed] {
        store.finish_run(run, outcome, usage).await.unwrap();
    }
}

pub async fn a_closed_store_is_unavailable(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.say(&*store, "hello").await;
    store.close().await;
    let closed = room.try_say(&*store, RunId::fresh(), "anybody there?", 0).await;
    assert!(matches!(closed, Err(StoreError::Unavailable(_))), "{closed:?}");
}
