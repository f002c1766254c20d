//! What every store promises about conversations.

use futures::future::join_all;
use serde_json::json;
use switchboard::agent::ports::drafts::DraftError;
use switchboard::agent::ports::store::{BeginError, Commit, NewRun, Question, RunEnd};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::caller::Owner;
use switchboard::chat::cost::Cost;
use switchboard::chat::failure::{Failure, FailureCode};
use switchboard::chat::ids::{ConversationId, RunId};
use switchboard::chat::input::Ask;
use switchboard::chat::message::{Message, UserMessage};
use switchboard::chat::preview::Verdict;
use switchboard::chat::run::{CancelledBy, RunRecord, RunState};
use switchboard::chat::stream::Usage;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, end, ended, running, said, tool_turn, user,
};

pub async fn a_new_conversation_begins_without_history(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (_, start) = Room::at("acme/ann/c1").say(&*store, "hello \u{0}").await;
    assert_same(&start.past.history, &Vec::<Message>::new());
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
    assert_same(&start.past.history, &vec![user("which rule?"), calls, results, answer("rule 1")]);
    assert_eq!(start.message, UserMessage::new("thanks"));
}

pub async fn history_reads_back_exactly(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let texts = ["", "nul \u{0}", "\u{2028}\u{202e}\u{1F600}", "\"}]\\", "1e400", &"long ".repeat(50_000)];
    let room = Room::at("acme/ann/c1");
    let mut expected = Vec::new();
    for text in texts {
        let [calls, results] = tool_turn();
        let said = [calls, results, answer(text)];
        room.exchange(&*store, text, &said).await;
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
            room.exchange(&*store, &text, &messages[1..]).await;
        }
        let (_, start) = room.say_within(&*store, "next", bytes).await;
        let newest: Vec<_> = seen.iter().map(|at| &said[*at]).collect();
        assert_eq!(format!("{:#?}", start.past.history), format!("{newest:#?}"), "{reason}");
    }
}

pub async fn a_conversation_of_many_messages_is_read_whole_or_cut_anywhere(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut said = Vec::new();
    for n in 0..50 {
        let [calls, results] = tool_turn();
        let messages = [calls, results, answer(&n.to_string())];
        room.exchange(&*store, "go on", &messages).await;
        said.push(user("go on"));
        said.extend(messages);
    }
    for bytes in [10_000, 20_000, 30_000, 0] {
        let (run, start) = room.say_within(&*store, "next", bytes).await;
        complete(&*store, run).await;
        let seen = start.past.history;
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
    for stranger in ["other/ann/c1", "acme/bob/c1"].map(Room::at) {
        assert_eq!(store.find_run(&stranger.owner, run).await.unwrap(), None);
        assert_eq!(store.request_cancel(&stranger.owner, run, CancelledBy::User).await.unwrap(), None);
        let again = Question::Continue(run);
        let begun = store.begin_run(stranger.new_run(again)).await;
        assert!(matches!(begun, Err(BeginError::NoSuchRun)), "{begun:?}");
    }
}

pub async fn the_same_conversation_id_of_two_owners_names_two_conversations(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    // Joined without care, the parts of these names would be the same text.
    let rooms = ["a/b/c", "a/bc/c", "ab/c/c", "/ab/c", "/a/c", "a//c"].map(Room::at);
    for (index, room) in rooms.iter().enumerate() {
        room.exchange(&*store, &index.to_string(), &[]).await;
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
        let ask = Ask::message(said.clone());
        let run = NewRun {
            context_type: "nul \0",
            request_id: "\u{1}\0",
            replica: "\0",
            ..room.new_run(Question::Ask { ask: &ask, parent: None })
        };
        let (id, begun) = (run.id, running(store.begin_run(run).await.unwrap()));
        assert_same(&begun.past.history, &Vec::<Message>::new());
        end(&*store, id, &[answer(&said)]).await;
        let record = store.find_run(&room.owner, id).await.unwrap().unwrap();
        assert_eq!((&*record.context_type, &*record.request_id), ("nul \0", "\u{1}\0"));
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

pub async fn of_two_runs_that_begin_at_once_one_is_told_who_runs(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let ids = [RunId::fresh(), RunId::fresh()];
    let begun = tokio::join!(room.try_say(&*store, ids[0], "one", 0), room.try_say(&*store, ids[1], "two", 0));
    let (first, refused) = match begun {
        (Ok(_), Err(refused)) => (0, refused),
        (Err(refused), Ok(_)) => (1, refused),
        both => panic!("{both:?}"),
    };
    assert!(matches!(refused, BeginError::Busy { running } if running == ids[first]), "{refused:?}");
    end(&*store, ids[first], &[answer("done")]).await;
    assert_same(&room.history(&*store).await, &vec![user(["one", "two"][first]), answer("done")]);
}

pub async fn twenty_appends_at_once_are_all_kept(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "count").await;
    let pairs: Vec<_> = (0..20).map(|n| [answer(&format!("{n} a")), answer(&format!("{n} b"))]).collect();
    let appended = join_all((1..).step_by(2).zip(&pairs).map(|(first, pair)| append(&*store, run, first, pair))).await;
    assert!(appended.iter().all(Result::is_ok), "{appended:?}");
    complete(&*store, run).await;
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
                let run = RunId::fresh();
                while let Err(busy) = room.try_say(&*store, run, &n.to_string(), 0).await {
                    assert!(matches!(busy, BeginError::Busy { .. }), "{busy:?}");
                    tokio::task::yield_now().await;
                }
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
        let done = [answer("done")];
        let append = append(&*store, run, 1, &done);
        let end = store.finish_run(run, said(1, &[]), ended(RunState::Cancelled));
        let (append, end) = if n % 2 == 0 {
            tokio::join!(append, end)
        } else {
            let (end, append) = tokio::join!(end, append);
            (append, end)
        };
        end.unwrap();
        let expected = match append {
            Ok(()) => vec![user("go"), answer("done")],
            Err(StoreError::RunEnded) => vec![user("go")],
            Err(error @ (StoreError::Unavailable(_) | StoreError::Damaged(_))) => panic!("{error:?}"),
        };
        assert_same(&room.history(&*store).await, &expected);
    }
}

pub async fn of_twenty_runs_that_begin_at_once_one_runs(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let runs = join_all((0..20).map(|_| {
        let (store, room) = (store.clone(), room.clone());
        tokio::spawn(async move { room.try_say(&*store, RunId::fresh(), "go", 0).await })
    }));
    let (begun, refused): (Vec<_>, Vec<_>) = runs.await.into_iter().map(Result::unwrap).partition(Result::is_ok);
    assert_eq!(begun.len(), 1);
    let is_busy = |refused: &Result<_, BeginError>| matches!(refused, Err(BeginError::Busy { .. }));
    assert!(refused.iter().all(is_busy), "{refused:?}");
}

pub async fn a_call_that_is_dropped_midway_leaves_the_store_usable(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let text = "x".repeat(100_000);
    for polls in 1..40 {
        let room = Room::at(&format!("acme/ann/c{polls}"));
        let id = RunId::fresh();
        {
            let mut call = std::pin::pin!(room.try_say(&*store, id, &text, 0));
            for _ in 0..polls {
                if futures::poll!(call.as_mut()).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        // A commit may come after its caller has gone. Whoever begins next waits for it: it has begun with its message or
        // not at all.
        store.ready().await.unwrap();
        let next = RunId::fresh();
        match room.try_say(&*store, next, "what was said?", 0).await {
            Ok(start) => {
                assert_same(&start.past.history, &Vec::<Message>::new());
                complete(&*store, next).await;
            }
            Err(BeginError::Busy { running }) => {
                assert_eq!(running, id);
                complete(&*store, id).await;
                assert_same(&room.history(&*store).await, &vec![user(&text)]);
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    store.ready().await.unwrap();
}

pub async fn an_append_of_unknown_fate_can_be_repeated(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let [calls, results] = tool_turn();
    let (run, _) = room.say(&*store, "go").await;
    append(&*store, run, 1, &[calls.clone(), results.clone()]).await.unwrap();
    append(&*store, run, 1, &[calls.clone(), results.clone(), answer("done")]).await.unwrap();
    complete(&*store, run).await;
    assert_same(&room.history(&*store).await, &vec![user("go"), calls, results, answer("done")]);
}

pub async fn a_restart_keeps_everything(database: &impl Database) {
    let room = Room::at("acme/ann/c1");
    let [calls, results] = tool_turn();
    let store = database.open(ManualClock::new()).await;
    let (run, _) = room.say(&*store, "remember").await;
    append(&*store, run, 1, &[calls.clone(), results.clone()]).await.unwrap();
    complete(&*store, run).await;
    store.close().await;
    let store = database.open(ManualClock::new()).await;
    let (run, _) = room.say(&*store, "and?").await;
    append(&*store, run, 1, &[answer("I do")]).await.unwrap();
    complete(&*store, run).await;
    let all = vec![user("remember"), calls, results, user("and?"), answer("I do")];
    assert_same(&room.history(&*store).await, &all);
}

pub async fn a_run_that_was_never_begun_takes_nothing(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let appended = append(&*store, RunId::fresh(), 1, &[answer("to nobody")]).await;
    assert!(matches!(appended, Err(StoreError::RunEnded)), "{appended:?}");
    let finished = store.finish_run(RunId::fresh(), said(1, &[]), ended(RunState::Completed)).await;
    assert!(matches!(finished, Err(StoreError::RunEnded)), "{finished:?}");
    let promoted = store.promote(RunId::fresh(), HistoryBound::ALL).await;
    assert!(matches!(promoted, Err(StoreError::RunEnded)), "{promoted:?}");
}

pub async fn a_run_that_has_ended_takes_no_more_messages(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "stop").await;
    store.finish_run(run, said(1, &[]), ended(RunState::Cancelled)).await.unwrap();
    let late = append(&*store, run, 1, &[answer("too late")]).await;
    assert!(matches!(late, Err(StoreError::RunEnded)), "{late:?}");
    assert_same(&room.history(&*store).await, &vec![user("stop")]);
}

pub async fn the_same_run_begins_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (first, second) = (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"));
    let run = first.exchange(&*store, "one", &[]).await;
    for room in [&first, &second] {
        let again = room.try_say(&*store, run, "again", 0).await;
        assert!(matches!(again, Err(BeginError::Store(StoreError::Unavailable(_)))), "{again:?}");
    }
    assert_same(&first.history(&*store).await, &vec![user("one")]);
    assert_same(&second.history(&*store).await, &Vec::<Message>::new());
}

pub async fn a_run_ends_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (run, _) = Room::at("acme/ann/c1").say(&*store, "go").await;
    let usage = Usage { input_tokens: u64::MAX, ..Usage::default() };
    let failure =
        Failure { code: FailureCode::ProviderUnavailable, message: "nobody\0 answers".into(), retryable: true };
    let failed = RunEnd { error: Some(&failure), last_event_id: 3, ..ended(RunState::Failed) };
    let commit = Commit { usage, turns: 2, ..said(1, &[]) };
    store.finish_run(run, commit, failed).await.unwrap();
    store.finish_run(run, commit, failed).await.expect("the same end, of a commit that was not heard of");
    for other in [RunEnd { last_event_id: 4, ..failed }, ended(RunState::Cancelled), ended(RunState::Completed)] {
        let late = store.finish_run(run, commit, other).await;
        assert!(matches!(late, Err(StoreError::RunEnded)), "{late:?}");
    }
    let record = store.find_run(&Room::at("acme/ann/c1").owner, run).await.unwrap().unwrap();
    assert_eq!((record.state, record.error, record.last_event_id), (RunState::Failed, Some(failure), Some(3)));
    let living = store.finish_run(run, commit, ended(RunState::Running)).await;
    assert!(matches!(living, Err(StoreError::Damaged(_))), "that is no end: {living:?}");
}

pub async fn a_run_is_found_as_it_stands(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let ask = Ask::message("hello");
    let new = NewRun { background: true, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    let id = new.id;
    running(store.begin_run(new).await.unwrap());
    let mut expected = RunRecord {
        id,
        conversation: room.conversation.clone(),
        state: RunState::Running,
        context_type: "workflow".into(),
        turns: 0,
        usage: Usage::default(),
        cost: None,
        error: None,
        created_at_ms: 1_700_000_000_000,
        finished_at_ms: None,
        last_event_id: None,
        request_id: "req-1".into(),
        background: true,
        direct: false,
        continues: None,
        left: Vec::new(),
    };
    assert_eq!(store.find_run(&room.owner, id).await.unwrap().unwrap(), expected);
    let usage = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 };
    let cost = Some(Cost { nano_usd: 7 });
    let commit = Commit { turns: 1, usage, cost, ..said(1, &[]) };
    store.append(id, commit).await.unwrap();
    expected = RunRecord { turns: 1, usage, cost, ..expected };
    assert_eq!(store.find_run(&room.owner, id).await.unwrap().unwrap(), expected);
    clock.advance_ms(5);
    // Of the second turn nobody knows what it cost.
    let commit = Commit { turns: 2, cost: None, ..commit };
    store.finish_run(id, commit, ended(RunState::AwaitingApproval)).await.unwrap();
    expected = RunRecord {
        turns: 2,
        cost: None,
        state: RunState::AwaitingApproval,
        finished_at_ms: Some(1_700_000_000_005),
        last_event_id: Some(9),
        ..expected
    };
    assert_eq!(store.find_run(&room.owner, id).await.unwrap().unwrap(), expected);
    assert_eq!(store.find_run(&room.owner, RunId::fresh()).await.unwrap(), None);
}

pub async fn a_closed_store_is_unavailable(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "hello", &[]).await;
    store.close().await;
    let closed = room.try_say(&*store, RunId::fresh(), "anybody there?", 0).await;
    assert!(matches!(closed, Err(BeginError::Store(StoreError::Unavailable(_)))), "{closed:?}");
}
