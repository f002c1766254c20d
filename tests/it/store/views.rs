//! What every store promises about conversations as their owners see them.

use futures::future::join_all;
use serde_json::json;
use switchboard::agent::ports::conversations::{
    CallView, ConversationHead, ConversationView, Listed, MessageView, Page, PageError, Role,
};
use switchboard::agent::ports::drafts::DraftError;
use switchboard::agent::ports::previews::ClaimError;
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::agent::ports::usage::Used;
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{MessageId, RunId};
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, UserMessage};
use switchboard::chat::run::RunState;
use switchboard::chat::unfinished::Unfinished;
use switchboard::store::Store;

use super::contract::titled;
use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, end, ended, said, summary, tool_turn, user,
};
use crate::support::whole::{exported, seen};

const NOW: i64 = 1_700_000_000_000;

fn page(limit: u32, cursor: Option<&str>) -> Page {
    Page { limit, cursor: cursor.map(str::to_owned) }
}

async fn view(store: &dyn Store, room: &Room) -> ConversationView {
    seen(store, &room.owner, &room.conversation).await.unwrap()
}

/// The messages as `user: text` and `assistant: text`.
async fn lines(store: &dyn Store, room: &Room) -> Vec<String> {
    let view = view(store, room).await;
    assert_eq!(view.head.message_count, view.messages.len() as u64, "the count is that of the messages");
    let line = |message: &MessageView| match message.role {
        Role::User => format!("user: {}", message.text),
        Role::Assistant => format!("assistant: {}", message.text),
    };
    view.messages.iter().map(line).collect()
}

async fn listed(store: &dyn Store, room: &Room, limit: u32) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let part = store.conversations(&room.owner, Listed::default(), Page { limit, cursor }).await.unwrap();
        assert!(part.items.len() <= limit as usize);
        ids.extend(part.items.into_iter().map(|head| head.id.to_string()));
        cursor = part.next;
        if cursor.is_none() {
            return ids;
        }
    }
}

pub async fn a_conversation_is_seen_as_it_was_said(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "which rule? \u{0}\nThat one.").await;
    clock.advance_ms(1000);
    let [calls, results] = tool_turn();
    append(&*store, run, 1, &[calls.clone(), results]).await.unwrap();
    end_at(&*store, run, 3, &[answer("rule 1")]).await;
    let id = |seq| MessageId { run, seq };
    let Message::Assistant(called) = calls else { panic!("calls") };
    let fates = called.calls().zip([CallFate::Done, CallFate::Failed]);
    let calls = fates.map(|(call, fate)| CallView {
        id: call.id.as_str().into(),
        name: call.name.clone(),
        fate,
        approval: None,
        artifacts: Vec::new(),
        stands_for: None,
        of_client: false,
    });
    let message = |seq, role, text: &str, calls, after_ms| MessageView {
        id: id(seq),
        role,
        text: text.into(),
        files: Vec::new(),
        notices: Vec::new(),
        calls,
        created_at_ms: NOW + after_ms,
    };
    let expected = ConversationView {
        head: ConversationHead {
            place: None,
            id: room.conversation.clone(),
            title: "which rule?".into(),
            context_type: "workflow".into(),
            created_at_ms: NOW,
            updated_at_ms: NOW,
            message_count: 3,
            pinned: false,
            archived: false,
        },
        earlier: None,
        feedback: Vec::new(),
        used: Used { runs: 1, turns: 0, ..Used::default() },
        runs: Vec::new(),
        messages: vec![
            message(0, Role::User, "which rule? \u{0}\nThat one.", vec![], 0),
            message(1, Role::Assistant, "I look \u{2028} it up", calls.collect(), 1000),
            message(3, Role::Assistant, "rule 1", vec![], 1000),
        ],
    };
    let mut seen = view(&*store, &room).await;
    let states: Vec<_> = std::mem::take(&mut seen.runs).into_iter().map(|run| (run.id, run.state)).collect();
    assert_eq!(states, [(run, RunState::Completed)], "its runs come with it");
    assert_eq!(seen, expected);
}

/// Completes a run whose next message has the number `first`.
async fn end_at(store: &dyn Store, run: RunId, first: u32, messages: &[Message]) {
    store.finish_run(run, said(first, messages), ended(RunState::Completed)).await.unwrap();
}

pub async fn a_call_nobody_heard_of_again_is_seen_as_such(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "go").await;
    let [Message::Assistant(message), _] = tool_turn() else { panic!("calls") };
    let sent = message.calls().next().unwrap().id.clone();
    let turn = Unfinished { message, results: vec![], dispatched: Some(sent) };
    end(&*store, run, &turn.settle()).await;
    let fates: Vec<CallFate> = view(&*store, &room).await.messages[1].calls.iter().map(|call| call.fate).collect();
    assert_eq!(fates, [CallFate::Unknown, CallFate::NotRun]);
}

pub async fn the_newest_branch_is_seen(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let first = room.exchange(&*store, "one", &[answer("1")]).await;
    room.exchange(&*store, "two", &[answer("2")]).await;
    let edited = Some(Parent::Message(MessageId { run: first, seq: 1 }));
    let (run, _) = room.ask(&*store, &Ask::message("three"), edited).await.unwrap();
    end(&*store, run, &[answer("3")]).await;
    assert_eq!(lines(&*store, &room).await, ["user: one", "assistant: 1", "user: three", "assistant: 3"]);
    let (run, _) = room.ask(&*store, &Ask::Again, None).await.unwrap();
    assert_eq!(lines(&*store, &room).await, ["user: one", "assistant: 1", "user: three"], "while it is answered again");
    end(&*store, run, &[answer("drei")]).await;
    room.exchange(&*store, "four", &[answer("4")]).await;
    let whole = ["user: one", "assistant: 1", "user: three", "assistant: drei", "user: four", "assistant: 4"];
    assert_eq!(lines(&*store, &room).await, whole);
    let before = Some(Parent::Message(MessageId { run: first, seq: 0 }));
    let (run, _) = room.ask(&*store, &Ask::message("stop"), before).await.unwrap();
    complete(&*store, run).await;
    assert_eq!(lines(&*store, &room).await, ["user: one", "user: stop"], "a part of a run that answered");
    let (run, _) = room.ask(&*store, &Ask::message("anew"), Some(Parent::Root)).await.unwrap();
    complete(&*store, run).await;
    assert_eq!(lines(&*store, &room).await, ["user: anew"]);
    assert_eq!(view(&*store, &room).await.head.title, "one");
}

pub async fn what_the_loop_says_to_itself_is_not_seen(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "hi", &[answer("rejected"), user("In English, please"), answer("Hello.")]).await;
    assert_eq!(lines(&*store, &room).await, ["user: hi", "assistant: Hello."]);
}

pub async fn a_list_goes_from_the_newest_change_on(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = |id: &str| Room::at(&format!("acme/ann/{id}"));
    assert_eq!(listed(&*store, &room("a"), 2).await, Vec::<String>::new());
    for id in ["b", "A", "c", "a.1", "_"] {
        room(id).exchange(&*store, "hi", &[answer("ho")]).await;
    }
    for limit in [1, 2, 4, 5, 6] {
        assert_eq!(
            listed(&*store, &room("a"), limit).await,
            ["c", "b", "a.1", "_", "A"],
            "at one time by id, in bytes"
        );
    }
    clock.advance_ms(1);
    room("A").exchange(&*store, "more", &[]).await;
    clock.advance_ms(1);
    let owner = room("b").owner;
    let renamed = store.change(&owner, &room("b").conversation, &titled("New \u{1}")).await.unwrap().unwrap();
    assert_eq!((&*renamed.title, renamed.updated_at_ms, renamed.message_count), ("New \u{1}", NOW + 2, 2));
    assert_eq!(listed(&*store, &room("a"), 2).await, ["b", "A", "c", "a.1", "_"]);
    let whole = store.conversations(&owner, Listed::default(), page(100, None)).await.unwrap();
    assert_eq!((&whole.items[0], whole.items[1].message_count, whole.next), (&renamed, 3, None));
    assert_eq!(view(&*store, &room("b")).await.head, renamed);
}

pub async fn a_cursor_that_no_list_gave_is_refused(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "hi", &[]).await;
    for cursor in ["", "x", "1", "1.", ".c1", "-1.c1", "1.a b", "99999999999999999999.c1"] {
        let refused = store.conversations(&room.owner, Listed::default(), page(1, Some(cursor))).await;
        assert!(matches!(refused, Err(PageError::BadCursor)), "{cursor}: {refused:?}");
    }
    for cursor in ["", "x", "-1", "01", "1.c1"] {
        let refused = store.trail(&room.owner, &room.conversation, page(1, Some(cursor))).await;
        assert!(matches!(refused, Err(PageError::BadCursor)), "{cursor}: {refused:?}");
    }
}

pub async fn a_deleted_conversation_leaves_nothing_behind(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (room, other) = (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"));
    for room in [&room, &other] {
        room.exchange(&*store, "one", &[answer("1")]).await;
        store.create_draft(&room.owner, &room.conversation, &json!({})).await.unwrap();
        room.preview(&*store, "w").await;
    }
    let first = exported(&*store, &room.owner, &room.conversation).await.unwrap().runs[0].0.run.id;
    let (live, _) = room.say(&*store, "two").await;
    store.keep_summary(first, &summary("a summary")).await.unwrap();
    let draft = store.create_draft(&room.owner, &room.conversation, &json!({})).await.unwrap();
    let preview = room.preview(&*store, "x").await;

    let mut gone = store.delete(&room.owner, &room.conversation).await.unwrap().unwrap();
    gone.sort_by_key(ToString::to_string);
    assert_eq!(gone, [first, live]);
    assert!(matches!(append(&*store, live, 1, &[answer("late")]).await, Err(StoreError::RunEnded)));
    assert!(matches!(store.keep_summary(first, &summary("late")).await, Err(StoreError::RunEnded)));
    assert!(matches!(store.draft(&room.owner, &room.conversation, draft).await, Err(DraftError::NotFound)));
    assert!(matches!(store.claim_preview(&room.owner, preview).await, Err(ClaimError::NotFound)));
    assert_eq!(store.delete(&room.owner, &room.conversation).await.unwrap(), None);
    for table in ["runs", "messages", "summaries", "trail", "drafts", "previews"] {
        let left = database.ask(&format!("SELECT conversation FROM {table} WHERE conversation = 'c1'")).await;
        assert_eq!(left, Vec::<String>::new(), "{table}");
    }
    assert_eq!(lines(&*store, &other).await, ["user: one", "assistant: 1"]);
    assert_same(&room.history(&*store).await, &Vec::<Message>::new());
}

pub async fn deleting_and_speaking_at_once_agree(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    for nth in 0..5 {
        let room = Room::at(&format!("acme/ann/c{nth}"));
        let (run, _) = room.say(&*store, "hi").await;
        let messages = [answer("one")];
        let speaking = join_all((1..5).map(|seq| append(&*store, run, seq, &messages)));
        let (spoken, deleted) = futures::join!(speaking, store.delete(&room.owner, &room.conversation));
        assert_eq!(deleted.unwrap(), Some(vec![run]));
        for spoken in spoken {
            assert!(matches!(spoken, Ok(()) | Err(StoreError::RunEnded)), "{spoken:?}");
        }
        assert!(seen(&*store, &room.owner, &room.conversation).await.is_none());
    }
}

pub async fn an_export_has_everything(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let one = room.exchange(&*store, "one", &[answer("1")]).await;
    let two = room.exchange(&*store, "two", &tool_turn()).await;
    let edited = Some(Parent::Message(MessageId { run: one, seq: 0 }));
    let (three, _) = room.ask(&*store, &Ask::message("three"), edited).await.unwrap();
    let export = exported(&*store, &room.owner, &room.conversation).await.unwrap();
    assert_eq!(export.head, view(&*store, &room).await.head);
    let mut runs = Vec::new();
    for (run, messages) in &export.runs {
        assert_eq!(Some(&run.run), store.find_run(&room.owner, run.run.id).await.unwrap().as_ref());
        let kinds: Vec<&str> = messages.iter().map(|message| message.kind.as_str()).collect();
        runs.push((run.run.id, run.parent, kinds));
    }
    let last = |run| Some(MessageId { run, seq: 1 });
    let expected = [
        (one, None, vec!["user", "assistant"]),
        (two, last(one), vec!["user", "assistant", "tool_results"]),
        (three, Some(MessageId { run: one, seq: 0 }), vec!["user"]),
    ];
    assert_eq!(runs, expected);
    assert_eq!(export.runs[0].1[0].body.get(), r#"{"text":"one"}"#);
    let trail = store.trail(&room.owner, &room.conversation, page(100, None)).await.unwrap().unwrap();
    assert_same(&export.trail, &trail.items);
    assert_eq!(trail.items.iter().filter(|entry| entry.kind == "user_message").count(), 3);
}

pub async fn a_trail_comes_in_parts_oldest_first(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut runs = Vec::new();
    for text in ["one", "two", "three"] {
        runs.push(Some(room.exchange(&*store, text, &[]).await));
        Room::at("acme/ann/c2").exchange(&*store, text, &[]).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let part = store.trail(&room.owner, &room.conversation, Page { limit: 2, cursor }).await.unwrap().unwrap();
        seen.extend(part.items.into_iter().map(|entry| (entry.kind, entry.run)));
        cursor = part.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, runs.into_iter().map(|run| ("user_message".to_owned(), run)).collect::<Vec<_>>());
}

pub async fn strangers_see_and_change_no_conversation(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "one", &[answer("1")]).await;
    for Room { owner, conversation } in Room::strangers() {
        assert!(seen(&*store, &owner, &conversation).await.is_none());
        assert_eq!(store.change(&owner, &conversation, &titled("mine")).await.unwrap(), None);
        assert_eq!(store.delete(&owner, &conversation).await.unwrap(), None);
        assert!(exported(&*store, &owner, &conversation).await.is_none());
        assert_eq!(store.trail(&owner, &conversation, page(9, None)).await.unwrap().map(|part| part.items.len()), None);
        let is_ann = owner == room.owner;
        assert_eq!(
            store.conversations(&owner, Listed::default(), page(9, None)).await.unwrap().items.len(),
            usize::from(is_ann)
        );
    }
    assert_eq!(view(&*store, &room).await.head.title, "one");
}

pub async fn rows_of_version_1_are_seen(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "one", &[answer("1")]).await;
    clock.advance_ms(1000);
    let newest = room.exchange(&*store, "two", &[answer("2")]).await;
    for sql in [
        "UPDATE runs SET state = NULL, outcome = NULL, parent_run_seq = NULL, context_type = '',
             seen_before = NULL, seen_own = NULL RETURNING id",
        "UPDATE messages SET created_at = 0, fates = NULL RETURNING kind",
        "UPDATE conversations SET context_type = NULL RETURNING id",
        "DELETE FROM trail RETURNING kind",
    ] {
        assert!(!database.ask(sql).await.is_empty());
    }
    assert_eq!(lines(&*store, &room).await, ["user: one", "assistant: 1", "user: two", "assistant: 2"]);
    let view = view(&*store, &room).await;
    assert_eq!((&*view.head.context_type, view.messages[2].created_at_ms), ("workflow", NOW + 1000));
    let export = exported(&*store, &room.owner, &room.conversation).await.unwrap();
    assert_eq!((export.runs[1].0.run.id, export.runs[1].0.parent.unwrap().seq), (newest, 1));
    assert_eq!(export.runs[1].0.run.state.name(), "interrupted");
}

pub async fn long_conversations_and_lists_are_seen_whole(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for nth in 0..150 {
        room.exchange(&*store, &format!("question {nth}"), &[answer("yes")]).await;
    }
    assert_eq!(lines(&*store, &room).await.len(), 300);
    let heads = store.conversations(&room.owner, Listed::default(), page(100, None)).await.unwrap();
    assert_eq!(heads.items[0].message_count, 300);
}

pub async fn an_answer_in_parts_is_one_message(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let Message::Assistant(AssistantMessage { origin, .. }) = answer("") else { panic!("an answer") };
    let text = |text: &str| AssistantPart::Text { text: text.into(), replay: None };
    let thinking = AssistantPart::Thinking { text: "secret".into(), replay: None };
    let parts = vec![text("a"), thinking, text("b")];
    let (run, start) = room.say(&*store, "hi").await;
    assert_eq!(start.message, UserMessage::new("hi"));
    end(&*store, run, &[Message::Assistant(AssistantMessage { origin, parts })]).await;
    assert_eq!(lines(&*store, &room).await, ["user: hi", "assistant: ab"]);
}

pub async fn messages_are_counted_on_every_kind_of_branch(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let one = room.exchange(&*store, "one", &[answer("1")]).await;
    let [calls, results] = tool_turn();
    let two = room.exchange(&*store, "two", &[calls, results, answer("2")]).await;
    assert_eq!(lines(&*store, &room).await.len(), 5);
    let (three, _) = room.say(&*store, "three").await;
    assert_eq!(lines(&*store, &room).await.len(), 6, "while it runs");
    let (queued, _) = room.queue(&*store, "four", 2).await.unwrap();
    assert_eq!(lines(&*store, &room).await.len(), 7, "and while another one waits");
    append(&*store, three, 1, &[answer("3")]).await.unwrap();
    assert_eq!(lines(&*store, &room).await.len(), 8, "behind one that says more");
    complete(&*store, three).await;
    store.promote(queued, HistoryBound::ALL).await.unwrap().expect("its turn has come");
    end(&*store, queued, &[answer("4")]).await;
    assert_eq!(lines(&*store, &room).await.len(), 9);
    let midway = Some(Parent::Message(MessageId { run: two, seq: 1 }));
    let (edited, _) = room.ask(&*store, &Ask::message("otherwise"), midway).await.unwrap();
    end(&*store, edited, &[answer("5")]).await;
    let expected = [
        "user: one",
        "assistant: 1",
        "user: two",
        "assistant: I look \u{2028} it up",
        "user: otherwise",
        "assistant: 5",
    ];
    assert_eq!(lines(&*store, &room).await, expected);
    let known = "SELECT CAST(seen_before AS TEXT) || ' ' || CAST(seen_own AS TEXT) FROM runs
         WHERE seen_own IS NOT NULL ORDER BY run_seq";
    assert_eq!(database.ask(known).await, ["0 2", "2 3", "5 2", "7 2", "4 2"], "nothing has to be counted");
    // As if version 1 had written all of them but the last.
    database.ask("UPDATE runs SET seen_before = NULL, seen_own = NULL WHERE run_seq < 4 RETURNING id").await;
    assert_eq!(lines(&*store, &room).await, expected);
    let beginning = Some(Parent::Message(MessageId { run: one, seq: 1 }));
    let (last, _) = room.ask(&*store, &Ask::message("again"), beginning).await.unwrap();
    assert_eq!(lines(&*store, &room).await, ["user: one", "assistant: 1", "user: again"]);
    complete(&*store, last).await;
    assert_eq!(database.ask(known).await.last().map(String::as_str), Some("2 1"));
}

pub async fn a_view_reads_no_results(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "one", &tool_turn()).await;
    let seen = view(&*store, &room).await;
    assert_eq!(
        seen.messages[1].calls.iter().map(|call| call.fate).collect::<Vec<_>>(),
        [CallFate::Done, CallFate::Failed]
    );
    let kept = database.ask("SELECT body FROM messages WHERE kind = 'tool_results'").await;
    database.ask("UPDATE messages SET body = '{' WHERE kind = 'tool_results' RETURNING kind").await;
    assert_same(&view(&*store, &room).await, &seen);
    // Rows of version 1 have no fates beside them.
    let body = kept[0].replace('\'', "''");
    database
        .ask(&format!("UPDATE messages SET body = '{body}', fates = NULL WHERE kind = 'tool_results' RETURNING kind"))
        .await;
    assert_same(&view(&*store, &room).await, &seen);
}

pub async fn a_clock_behind_the_others_moves_no_conversation_back(database: &impl Database) {
    let (behind, ahead) = (ManualClock::new(), ManualClock::new());
    ahead.advance_ms(60_000);
    let (behind, ahead) = (database.open(behind).await, database.open(ahead).await);
    let room = Room::at("acme/ann/c1");
    room.exchange(&*ahead, "one", &[]).await;
    Room::at("acme/ann/c2").exchange(&*behind, "other", &[]).await;
    room.exchange(&*behind, "two", &[]).await;
    behind.change(&room.owner, &room.conversation, &titled("mine")).await.unwrap();
    assert_eq!(view(&*behind, &room).await.head.updated_at_ms, NOW + 60_000);
    assert_eq!(listed(&*behind, &room, 9).await, ["c1", "c2"]);
}
