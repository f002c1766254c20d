//! What every store promises about the trail, about what is tidied away, and about the version before this one.

use serde_json::{Value, json};
use switchboard::agent::ports::leases::Old;
use switchboard::agent::ports::previews::ClaimToken;
use switchboard::agent::ports::store::{Commit, RequestKey, RunEnd};
use switchboard::chat::failure::{Failure, FailureCode};
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{PreviewId, RunId, ToolCallId};
use switchboard::chat::message::{Message, ModelOrigin};
use switchboard::chat::preview::Verdict;
use switchboard::chat::run::RunState;
use switchboard::chat::stream::{Counted, Usage};
use switchboard::chat::tool::ToolInput;
use switchboard::chat::trail::{TrailEntry, TrailEvent};

use super::contract::{Database, ManualClock, Room, answer, assert_same, complete, decided, ended, said, user};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The whole trail: kind, run, number, time and body of each entry.
async fn trail(database: &impl Database) -> Vec<(String, Value)> {
    let rows = "SELECT kind || ' ' || COALESCE(run_id, '-') || ' ' || COALESCE(CAST(seq AS TEXT), '-') || ' '
         || CAST(at AS TEXT) || '|' || body FROM trail ORDER BY id";
    let rows = database.ask(rows).await;
    let split = |row: &String| {
        let (head, body) = row.split_once('|').unwrap();
        (head.to_owned(), serde_json::from_str(body).unwrap())
    };
    rows.iter().map(split).collect()
}

fn entry(run: RunId, at_ms: i64, what: TrailEvent) -> TrailEntry {
    TrailEntry { at_ms, run: Some(run), what }
}

fn call(arguments: Value, result: &str) -> TrailEvent {
    let Value::Object(arguments) = arguments else { unreachable!() };
    TrailEvent::ToolCall {
        sent: false,
        note: None,
        turn: 0,
        id: ToolCallId::from_model("t1"),
        name: "get_rule".into(),
        arguments: ToolInput::Object(arguments),
        result: result.into(),
        fate: CallFate::Done,
        duration_ms: 12,
    }
}

fn ended_as(state: RunState, error: Option<(String, String)>) -> TrailEvent {
    TrailEvent::RunEnded { state, error, usage: Usage::default() }
}

pub async fn the_trail_tells_what_happened_in_a_run(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (run, _) = Room::at("acme/ann/c1").say(&*store, "hello").await;
    let usage = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 };
    let turn = TrailEvent::ModelTurn {
        turn: 0,
        origin: Some(ModelOrigin { provider: "demo".into(), model: "rules".into() }),
        request_id: Some("v-1".into()),
        text: ["I look"].into_iter().collect(),
        thinking: ["hm\u{0}"].into_iter().collect(),
        calls: vec!["get_rule".into()],
        finish: "stop".into(),
        usage: Some(Counted::reported(usage)),
        duration_ms: 1500,
    };
    let entries = [entry(run, 10, turn), entry(run, 20, call(json!({"id": 1}), "{\"ok\":true}"))];
    store.append(run, Commit { trail: &entries, ..said(1, &[]) }).await.unwrap();
    let failure = Failure { code: FailureCode::MaxTurns, message: "too many".into(), retryable: false };
    let last = [entry(run, 30, ended_as(RunState::Failed, Some(("max_turns".into(), "too many".into()))))];
    let end = RunEnd { error: Some(&failure), ..ended(RunState::Failed) };
    store.finish_run(run, Commit { trail: &last, first_entry: 3, ..said(1, &[]) }, end).await.unwrap();
    let tokens =
        |a, b, c, d| json!({"input_tokens": a, "output_tokens": b, "cached_input_tokens": c, "reasoning_tokens": d});
    let expected = [
        (format!("user_message {run} 0 1700000000000"), json!({"text": "hello", "decisions": []})),
        (
            format!("model_turn {run} 1 10"),
            json!({
                "turn": 0, "provider": "demo", "model": "rules", "request_id": "v-1", "text": "I look",
                "thinking": "hm\u{0}", "calls": ["get_rule"], "finish": "stop", "usage": tokens(1, 2, 3, 4),
                "duration_ms": 1500,
            }),
        ),
        (
            format!("tool_call {run} 2 20"),
            json!({
                "turn": 0, "tool_use_id": "t1", "name": "get_rule", "arguments": {"id": 1},
                "result": "{\"ok\":true}", "fate": "done", "duration_ms": 12,
            }),
        ),
        (
            format!("run_ended {run} 3 30"),
            json!({
                "state": "failed", "error": {"code": "max_turns", "message": "too many"}, "usage": tokens(0, 0, 0, 0),
            }),
        ),
    ];
    assert_eq!(trail(database).await, expected);
}

pub async fn a_trail_entry_of_unknown_fate_can_be_repeated(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (run, _) = Room::at("acme/ann/c1").say(&*store, "hello").await;
    let entries = [entry(run, 10, call(json!({}), "1")), entry(run, 20, call(json!({}), "2"))];
    let commit = |trail| Commit { trail, ..said(1, &[]) };
    store.append(run, commit(&entries[..1])).await.unwrap();
    store.append(run, commit(&entries)).await.unwrap();
    let end = [entry(run, 30, ended_as(RunState::Completed, None))];
    for _ in 0..2 {
        let commit = Commit { trail: &end, first_entry: 3, ..said(1, &[]) };
        store.finish_run(run, commit, ended(RunState::Completed)).await.unwrap();
    }
    let seen: Vec<String> = trail(database).await.into_iter().map(|(head, _)| head).collect();
    let expected = ["user_message - 0 1700000000000", "tool_call - 1 10", "tool_call - 2 20", "run_ended - 3 30"];
    assert_eq!(seen, expected.map(|head| head.replace('-', &run.to_string())));
}

pub async fn secrets_do_not_reach_the_trail(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "I am Bearer hunter2hunter2").await;
    let arguments = json!({"password": "hunter2", "max_tokens": 5, "url": "https://ann:hunter2@host/"});
    let entries = [
        entry(run, 10, call(arguments, "{\"access_token\":\"hunter2\",\"n\":1}")),
        entry(run, 20, ended_as(RunState::Failed, Some(("x".into(), "token=hunter2".into())))),
    ];
    store.append(run, Commit { trail: &entries, ..said(1, &[answer("password=hunter2")]) }).await.unwrap();
    let bodies: Vec<Value> = trail(database).await.into_iter().map(|(_, body)| body).collect();
    assert!(!format!("{bodies:?}").contains("hunter2"), "{bodies:?}");
    assert_eq!(
        bodies[1]["arguments"],
        json!({"password": "[redacted]", "max_tokens": 5, "url": "https://[redacted]@host/"})
    );
    complete(&*store, run).await;
    let said = vec![user("I am Bearer hunter2hunter2"), answer("password=hunter2")];
    assert_same(&room.history(&*store).await, &said);
}

pub async fn long_texts_are_cut_in_the_trail(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let text = "ä".repeat(40_000);
    let (run, _) = Room::at("acme/ann/c1").say(&*store, &text).await;
    let entries = [entry(run, 10, call(json!({"a": [&text, "b"]}), &"x".repeat(65_536)))];
    store.append(run, Commit { trail: &entries, ..said(1, &[]) }).await.unwrap();
    let bodies: Vec<Value> = trail(database).await.into_iter().map(|(_, body)| body).collect();
    let cut = format!("{} [cut here; 80000 bytes in all]", "ä".repeat(32_768));
    assert_eq!(bodies[0]["text"], json!(cut));
    assert!(bodies[1]["arguments"].as_str().unwrap().ends_with(" [cut here; 80014 bytes in all]"));
    assert_eq!(bodies[1]["result"], json!("x".repeat(65_536)), "what fits stays");
}

pub async fn a_decision_is_in_the_trail_of_its_conversation(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let untold = room.preview(&*store, "early").await;
    room.decide(&*store, untold, "early", Verdict::Reject).await;
    assert_eq!(trail(database).await, [], "nothing was said there yet");
    let (run, _) = room.say(&*store, "hello").await;
    complete(&*store, run).await;
    let id: PreviewId = room.preview(&*store, "a").await;
    let decision = room.decide(&*store, id, "a", Verdict::Accept).await;
    store.settle_preview(&room.owner, id, ClaimToken(1), &decision).await.unwrap();
    let trail = trail(database).await;
    let told = |decision: &Value| decision["name"].clone();
    assert_eq!(trail[0].1["decisions"].as_array().unwrap().iter().map(told).collect::<Vec<_>>(), [json!("early")]);
    let expected = json!({
        "preview": id.to_string(), "what": "workflow", "name": "a", "verdict": "accept",
        "comment": decided(id, "a", Verdict::Accept).comment, "saved_id": "saved-a",
    });
    assert_eq!(trail[1..], [("preview_decided - - 1700000000000".to_owned(), expected)]);
}

pub async fn what_is_old_is_tidied_away(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let key = RequestKey { key: "key", digest: b"x", or_lately: false };
    let (run, _) = room.ask_by_key(&*store, "hello", key).await.unwrap();
    let entries: Vec<TrailEntry> = (0..6000).map(|n| entry(run, n, call(json!({}), ""))).collect();
    for (first_entry, trail) in (1..).step_by(1000).zip(entries.chunks(1000)) {
        store.append(run, Commit { first_entry, trail, ..said(1, &[]) }).await.unwrap();
    }
    let count = async || database.ask("SELECT CAST(COUNT(*) AS TEXT) FROM trail").await.remove(0);
    assert!(!store.tidy(Old::default()).await.unwrap());
    assert_eq!(count().await, "6001", "all is kept");
    assert!(store.tidy(Old { trail_before_ms: Some(5900), ..Old::default() }).await.unwrap(), "more is left");
    assert_eq!(count().await, "1001");
    assert!(!store.tidy(Old { trail_before_ms: Some(5900), ..Old::default() }).await.unwrap());
    assert_eq!(count().await, "101", "the border itself is kept");
    let keys = async || database.ask("SELECT request_key FROM runs WHERE request_key IS NOT NULL").await.len();
    clock.advance_ms(DAY_MS - 1);
    store.tidy(Old::default()).await.unwrap();
    assert_eq!(keys().await, 1);
    clock.advance_ms(1);
    store.tidy(Old::default()).await.unwrap();
    assert_eq!(keys().await, 0);
}

/// Begins a run as version 1 does.
async fn begin_as_version_1(database: &impl Database, run: RunId, text: &str) {
    let conversation = "INSERT INTO conversations (tenant, user_id, id, profile, created_at, updated_at)
         VALUES ('acme', 'ann', 'c1', 'old', 5, 5)
         ON CONFLICT (tenant, user_id, id) DO UPDATE SET profile = excluded.profile, updated_at = excluded.updated_at
         RETURNING id";
    let place = format!(
        "INSERT INTO runs (id, tenant, user_id, conversation, run_seq, started_at)
         SELECT '{run}', 'acme', 'ann', 'c1', COALESCE(MAX(run_seq), -1) + 1, 5
         FROM runs WHERE tenant = 'acme' AND user_id = 'ann' AND conversation = 'c1' RETURNING id"
    );
    let message = say_as_version_1(run, 0, "user", &json!({ "text": text }));
    for sql in [conversation, &place, &message] {
        assert_eq!(database.ask(sql).await.len(), 1, "{sql}");
    }
}

fn say_as_version_1(run: RunId, seq: u32, kind: &str, body: &Value) -> String {
    format!(
        "INSERT INTO messages (tenant, user_id, conversation, run_seq, seq, kind, body)
         SELECT tenant, user_id, conversation, run_seq, {seq}, '{kind}', '{body}' FROM runs WHERE id = '{run}'
         ON CONFLICT (tenant, user_id, conversation, run_seq, seq) DO NOTHING RETURNING kind"
    )
}

fn finish_as_version_1(run: RunId, outcome: &str) -> String {
    format!(
        "UPDATE runs SET finished_at = 6, outcome = '{outcome}', failure_code = 'run_timeout',
             input_tokens = 1, output_tokens = 2, cached_input_tokens = 3, reasoning_tokens = 4
         WHERE tenant = 'acme' AND user_id = 'ann' AND id = '{run}' RETURNING id"
    )
}

/// The database as version 1 left it, with a run that was answered, one that failed, and one whose process died; then
/// as this version finds it. `database` has the schema of version 1.
pub async fn what_version_1_kept_is_kept(database: &impl Database) {
    let room = Room::at("acme/ann/c1");
    let runs = [RunId::fresh(), RunId::fresh(), RunId::fresh()];
    for (run, text) in runs.iter().zip(["one", "two", "three"]) {
        begin_as_version_1(database, *run, text).await;
    }
    let body = json!({"provider": "demo", "model": "rules", "parts": [{"text": {"text": "1"}}]});
    database.ask(&say_as_version_1(runs[0], 1, "assistant", &body)).await;
    database.ask(&finish_as_version_1(runs[0], "completed")).await;
    database.ask(&finish_as_version_1(runs[1], "failed")).await;
    let store = database.open(ManualClock::new()).await;
    let mut found = Vec::new();
    for run in runs {
        let record = store.find_run(&room.owner, run).await.unwrap().unwrap();
        assert_eq!((&*record.context_type, record.created_at_ms), ("old", 5));
        found.push((record.state, record.finished_at_ms, record.usage.input_tokens));
    }
    let expected =
        [(RunState::Completed, Some(6), 1), (RunState::Failed, Some(6), 1), (RunState::Interrupted, Some(5), 0)];
    assert_eq!(found, expected);
    // A process of version 1 was still running it, and ends it now.
    database.ask(&finish_as_version_1(runs[2], "completed")).await;
    assert_eq!(store.find_run(&room.owner, runs[2]).await.unwrap().unwrap().state, RunState::Completed);
    let said = vec![user("one"), answer("1"), user("two"), user("three")];
    assert_same(&room.history(&*store).await, &said);
}

pub async fn version_1_goes_on_working(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "from 2", &[answer("to 2")]).await;
    let (failed, open) = (RunId::fresh(), RunId::fresh());
    begin_as_version_1(database, failed, "from 1").await;
    let body = json!({"provider": "demo", "model": "rules", "parts": [{"text": {"text": "to 1"}}]});
    database.ask(&say_as_version_1(failed, 1, "assistant", &body)).await;
    database.ask(&finish_as_version_1(failed, "failed")).await;
    begin_as_version_1(database, open, "never ended").await;
    // Each sees what the other said.
    let seen = vec![user("from 2"), answer("to 2"), user("from 1"), answer("to 1"), user("never ended")];
    assert_same(&room.history(&*store).await, &seen);
    let rows = "SELECT kind FROM messages WHERE tenant = 'acme' AND user_id = 'ann' AND conversation = 'c1'
         AND (run_seq, seq) < (9, 9) ORDER BY run_seq DESC, seq DESC LIMIT 32";
    assert_eq!(database.ask(rows).await, ["user", "user", "assistant", "user", "assistant", "user"]);
    let record = store.find_run(&room.owner, failed).await.unwrap().unwrap();
    assert_eq!(
        (record.state, &*record.context_type),
        (RunState::Failed, "workflow"),
        "the newest run's, as version 1 has it"
    );
    assert_eq!((record.finished_at_ms, record.error.unwrap().code), (Some(6), FailureCode::RunTimeout));
    let record = store.find_run(&room.owner, open).await.unwrap().unwrap();
    assert_eq!((record.state, record.finished_at_ms), (RunState::Interrupted, Some(5)));
    assert_eq!(store.reap().await.unwrap(), [], "they have no lease");
    // How version 1 reads whether a run has ended.
    let (run, _) = room.say(&*store, "and on").await;
    let has_ended =
        format!("SELECT CASE WHEN outcome IS NOT NULL THEN 'yes' ELSE 'no' END FROM runs WHERE id = '{run}'");
    assert_eq!(database.ask(&has_ended).await, ["no"]);
    store.finish_run(run, said(1, &[]), ended(RunState::Interrupted)).await.unwrap();
    assert_eq!(database.ask(&has_ended).await, ["yes"]);
}

/// Results as version 5 kept them, when their words told what became of their calls. `database` has the schema of version 5.
pub async fn what_was_told_in_words_has_a_fate_of_its_own(database: &impl Database) {
    let lost = "the state of this call is unknown: it was sent, and the run ended before its answer came. It may or may not have \
                taken effect. Do not repeat it; check what is there now, or ask the user";
    let unconfirmed = "it is not known whether this was done; do not repeat the call: look whether it was, or tell the user that \
                       it may have been (HTTP 504: )";
    let error = |words: &str| json!({ "error": words }).to_string();
    let rows = [
        (json!({"status": "awaiting_approval", "note": "n"}).to_string(), false, CallFate::AwaitsApproval),
        (json!({"status": "awaiting_client", "note": "n"}).to_string(), false, CallFate::AwaitsClient),
        (error("this call was not made: it is the same call"), true, CallFate::NotRun),
        (error("this call was not completed because the run ended"), true, CallFate::NotRun),
        (error(lost), true, CallFate::Unknown),
        (error(unconfirmed), true, CallFate::Unknown),
        (error("HTTP 400: this call was not made"), true, CallFate::Failed),
        (format!(" {}", json!({"status": "awaiting_approval"})), false, CallFate::Done),
        (json!({"a": ",\"content\":\"{\\\"status\\\":\\\"awaiting_client\\\""}).to_string(), false, CallFate::Done),
        ("a nul \u{0} is text".to_owned(), false, CallFate::Done),
    ];
    let run = RunId::fresh();
    begin_as_version_1(database, run, "Go").await;
    let id = |nth: usize| json!({ "model": format!("t{nth}") });
    let call = |nth| json!({"tool_call": {"id": id(nth), "name": "n", "input": {"object": {}}}});
    let calls: Vec<Value> = (0..rows.len()).map(call).collect();
    let results = rows.iter().enumerate().map(|(nth, (content, is_error, _))| match is_error {
        true => json!({"id": id(nth), "name": "n", "content": content, "is_error": true}),
        false => json!({"id": id(nth), "name": "n", "content": content}),
    });
    let results = Value::Array(results.collect());
    let message = json!({"provider": "demo", "model": "rules", "parts": calls});
    let told = json!({
        "turn": 0, "tool_use_id": "t5", "name": "n", "arguments": {"fate": "failed", "duration_ms": 12},
        "result": rows[5].0, "fate": "failed", "duration_ms": 12,
    });
    for sql in [
        say_as_version_1(run, 1, "assistant", &message),
        say_as_version_1(run, 2, "tool_results", &results),
        "UPDATE messages SET fates = '[]' WHERE kind = 'tool_results' RETURNING kind".to_owned(),
        format!("UPDATE runs SET calling = '{{\"results\":{results}}}' WHERE id = '{run}' RETURNING id"),
        finish_as_version_1(run, "completed"),
        format!(
            "INSERT INTO trail (tenant, user_id, conversation, run_id, seq, at, kind, body)
             VALUES ('acme', 'ann', 'c1', '{run}', 1, 5, 'tool_call', '{told}') RETURNING kind"
        ),
    ] {
        assert_eq!(database.ask(&sql).await.len(), 1, "{sql}");
    }
    let store = database.open(ManualClock::new()).await;
    let history = Room::at("acme/ann/c1").history(&*store).await;
    let Some(Message::ToolResults(results)) = history.get(2) else { panic!("{history:?}") };
    for (result, (content, _, fate)) in results.iter().zip(&rows) {
        assert_eq!((&result.content, result.fate), (content, *fate));
    }
    assert_eq!(results.len(), rows.len());
    let fates = database.ask("SELECT COALESCE(fates, 'none') FROM messages WHERE kind = 'tool_results'").await;
    assert_eq!(fates, ["none"], "those in the results count");
    let noted: Value =
        serde_json::from_str(&database.ask("SELECT calling FROM runs WHERE calling IS NOT NULL").await.remove(0))
            .unwrap();
    assert_eq!(noted["results"][5]["fate"], json!("unknown"));
    let entry: Value =
        serde_json::from_str(&database.ask("SELECT body FROM trail WHERE kind = 'tool_call'").await.remove(0)).unwrap();
    let mut expected = told;
    expected["fate"] = json!("unknown");
    assert_eq!(entry, expected);
}

/// What stood in the user's place as version 5 kept it, when its words told who wrote it. `database` has the schema of version 5.
pub async fn who_wrote_what_stands_in_the_users_place_is_classified(database: &impl Database) {
    let go_on = "[Your previous answer was interrupted. Go on from where it stopped, without repeating what was said.]";
    let decision = "[Decision on a waiting call: the user approved the call of save.]";
    let results = "[Results from the application: the calls that were left to it stand here again.]";
    let rows = [
        ("Go", false, "user"),
        (go_on, true, "continuation"),
        (decision, true, "decision"),
        (results, true, "client_results"),
        (decision, false, "user"),
        ("Go on", true, "user"),
    ];
    let ask = async |sql: String| assert_eq!(database.ask(&sql).await.len(), 1, "{sql}");
    for (nth, (text, continues, _)) in rows.iter().enumerate() {
        let run = RunId::fresh();
        begin_as_version_1(database, run, text).await;
        if *continues {
            ask(format!("UPDATE runs SET continues = id WHERE id = '{run}' RETURNING id")).await;
        }
        if nth == 0 {
            let last = "[You have used all the tool calls that one answer may take. Answer now.]";
            for (seq, text) in [(1, "Answer in English, please."), (2, last)] {
                ask(say_as_version_1(run, seq, "user", &json!({ "text": text }))).await;
            }
        }
        ask(finish_as_version_1(run, "completed")).await;
    }
    database.open(ManualClock::new()).await;
    let found = database.ask("SELECT COALESCE(author, 'user') FROM messages WHERE seq = 0 ORDER BY run_seq").await;
    assert_eq!(found, rows.map(|(_, _, author)| author));
    let within = database.ask("SELECT author FROM messages WHERE seq > 0 ORDER BY seq").await;
    assert_eq!(within, ["correction", "last_answer"]);
    let told = database.ask("SELECT body FROM messages WHERE seq = 0 ORDER BY run_seq").await;
    for (body, (text, _, author)) in told.iter().zip(&rows) {
        let mut expected = json!({ "text": text });
        if *author != "user" {
            expected["author"] = json!(author);
        }
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
    }
}
