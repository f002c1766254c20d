//! What a session knows of itself: how much of it a model reads, what stands for its older part, and what its last turn
//! was about.

use std::collections::VecDeque;
use std::sync::Mutex;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Set, frame, project, types};
use crate::support::frames::data;
use crate::support::model::{Script, calls, messages, says, turn};
use crate::support::upstream::{Answer, End, Request, Upstream};
use crate::support::wait::eventually;

/// The id of the session of a turn.
fn session(frames: &[Value]) -> Value {
    frame(frames, "session")["session"]["id"].clone()
}

/// The figures of a turn.
fn usage(frames: &[Value]) -> &Value {
    &frame(frames, "context_usage")["usage"]
}

fn recaps(frames: &[Value]) -> Vec<&Value> {
    frames.iter().filter(|frame| frame["type"] == "last_turn_context").map(|frame| &frame["context"]).collect()
}

fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

/// Whether a request asks for a summary.
fn is_summary(request: &Request) -> bool {
    messages(request)[0]["content"].as_str().is_some_and(|words| words.starts_with("You write summaries"))
}

/// The set over a model that says `turns`, and to whoever wants a summary what `summary` says.
async fn summarised(
    turns: impl IntoIterator<Item = Script>,
    summary: impl Fn() -> Answer + Send + Sync + 'static,
) -> Set {
    let turns = Mutex::new(turns.into_iter().collect::<VecDeque<_>>());
    let model = Upstream::choosing(move |request| match is_summary(request) {
        true => Some(summary()),
        false => Some(turns.lock().unwrap().pop_front()?.answer()),
    });
    Set::over(model.await, Upstream::choosing(project).await, &[]).await
}

#[tokio::test]
async fn context_usage_is_what_the_model_is_sent_of_the_session() {
    let calls = turn().text("Let me see. ").call("c1", "list_onto_tasks", &json!({})).done();
    let set = Set::playing([calls, says("One task."), says("Yes.")]).await;
    let first = set.turn(&json!({"message": "What is there?", "context_type": "project", "entity_id": "p1"})).await;
    let at = types(&first).iter().position(|kind| *kind == "context_usage");
    assert_eq!(at, Some(2), "behind the session: {:?}", types(&first));
    let begins = json!({
        "estimatedTokens": 4, "tokenBudget": 2500, "usagePercent": 0, "tokensRemaining": 2496, "status": "ok",
        "lastCompressedAt": null, "lastCompression": null,
    });
    assert_eq!(usage(&first), &begins);
    let asked = set.s.last_asked();
    let sent: usize = asked[1..].iter().map(|message| message["content"].as_str().map_or(0, tokens)).sum();
    let expected = sent + tokens("One task.") + tokens("Größe?");
    let id = session(&first);
    let second = set.turn(&json!({"message": "Größe?", "session_id": id})).await;
    assert_eq!(usage(&second)["estimatedTokens"], json!(expected), "results count: {asked:#?}");
    let path = format!("/api/agent/stream?session_id={}", id.as_str().unwrap());
    let (_, body) = set.ask(Method::GET, &path, None).await;
    assert_eq!(&body["data"]["session"]["agent_metadata"]["lastContextUsage"], usage(&second));
}

#[tokio::test]
async fn over_its_budget_a_session_is_summarised_behind_the_scenes() {
    let long = "word ".repeat(400);
    let turns = (0..9).map(|_| says(&long));
    let set = summarised(turns, || says("They spoke of words.").answer()).await;
    let first = set.turn(&json!({"message": "0", "context_type": "global"})).await;
    let id = session(&first);
    let mut last = Value::Null;
    for nth in 1..6 {
        let frames = set.turn(&json!({"message": nth.to_string(), "session_id": id})).await;
        last = usage(&frames).clone();
    }
    assert_eq!((&last["estimatedTokens"], &last["status"]), (&json!(2506), &json!("over_budget")));
    let path = format!("/api/agent/stream?session_id={}", id.as_str().unwrap());
    let row = eventually("a summary", async || {
        let row = set.ask(Method::GET, &path, None).await.1["data"]["session"].clone();
        (!row["compressed_at"].is_null()).then_some(row)
    });
    let row = row.await;
    assert_eq!(row["messages"].as_array().unwrap().len(), 12, "all rows stay");
    let about = set.s.model.requests().into_iter().rfind(is_summary).unwrap().json()["messages"][1]["content"].clone();
    assert!(about.as_str().unwrap().contains("User: 0\n") && !about.as_str().unwrap().contains("User: 1\n"), "{about}");

    let frames = set.turn(&json!({"message": "7", "session_id": id})).await;
    // The next summary may be asked for already.
    let asked = set.s.model.requests().into_iter().rfind(|request| !is_summary(request)).unwrap();
    let asked = messages(&asked);
    let said: Vec<&str> = asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert!(said[0].contains("They spoke of words.") && said[0].ends_with("\n\n1"), "{}", said[0]);
    assert_eq!(said.len(), 10 + 1, "the summary before ten messages, and the new one");
    let figures = usage(&frames);
    let sent: usize = said[1..].iter().map(|text| tokens(text)).sum::<usize>() + tokens("1");
    assert_eq!(figures["estimatedTokens"], json!(sent + tokens("They spoke of words.")));
    assert_eq!(figures["lastCompressedAt"], row["compressed_at"]);
    let original = tokens("0") + tokens(&long);
    let compression = &figures["lastCompression"];
    assert_eq!((&compression["originalTokens"], &compression["compressedTokens"]), (&json!(original), &json!(5)));
    assert_eq!(compression["compressionRatio"], json!(original as f64 / 5.0));
}

#[tokio::test]
async fn what_its_client_said_before_is_summarised_too() {
    let long = "word ".repeat(400);
    let set = summarised((0..9).map(|_| says(&long)), || says("They spoke of cats.").answer()).await;
    let before = json!([{"role": "user", "content": "I have a cat"}, {"role": "assistant", "content": "Nice."}]);
    let id = session(&set.turn(&json!({"message": "0", "conversation_history": before})).await);
    for nth in 1..6 {
        set.turn(&json!({"message": nth.to_string(), "session_id": id})).await;
    }
    let about = eventually("a summary", async || set.s.model.requests().into_iter().find(is_summary)).await;
    let about = about.json()["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(about.contains("User: I have a cat\nAssistant: Nice.\nUser: 0\n"), "{about}");
}

#[tokio::test]
async fn what_a_client_sends_back_stays_as_it_was() {
    let set = Set::playing([says("One."), says("Two."), says("Three.")]).await;
    let first = set.turn(&json!({"message": "Plan my week"})).await;
    let told = recaps(&first)[0].clone();
    let second = set.turn(&json!({"message": "b", "session_id": session(&first), "lastTurnContext": told})).await;
    assert_eq!(recaps(&second)[0], &told);
}

#[tokio::test]
async fn a_summary_that_fails_loses_nothing_and_is_tried_again() {
    let long = "word ".repeat(400);
    let turns = (0..8).map(|_| says(&long));
    let set = summarised(turns, || Answer::status(400, "application/json", "{}")).await;
    let id = session(&set.turn(&json!({"message": "0"})).await);
    for nth in 1..6 {
        set.turn(&json!({"message": nth.to_string(), "session_id": id})).await;
    }
    let tries = || set.s.model.requests().iter().filter(|request| is_summary(request)).count();
    let failed = eventually("a try", async || Some(tries()).filter(|tries| *tries > 0)).await;
    let frames = set.turn(&json!({"message": "6", "session_id": id})).await;
    assert_eq!(usage(&frames)["status"], "over_budget");
    assert_eq!(usage(&frames)["lastCompression"], Value::Null);
    assert!(set.s.model.requests().iter().rev().any(|request| {
        let asked = messages(request);
        asked.last().unwrap()["content"] == "6" && asked[1]["content"] == "0"
    }));
    eventually("another try", async || (tries() > failed).then_some(())).await;
}

#[tokio::test]
async fn a_turn_leaves_what_it_was_about_and_the_next_one_begins_with_that() {
    let calls = turn()
        .call("c1", "list_onto_tasks", &json!({}))
        .call("c2", "create_onto_task", &json!({"title": "Water"}))
        .call("c3", "list_onto_tasks", &json!({"limit": "many"}))
        .done();
    let set = Set::playing([calls, says("Done."), says("Yes."), says("Yes.")]).await;
    let long = format!("Show me {} please", "everything ".repeat(9));
    let first = set.turn(&json!({"message": long, "context_type": "project", "entity_id": "p1"})).await;
    let order = types(&first);
    assert_eq!(order[order.len() - 3..], ["agent_state", "last_turn_context", "done"], "{order:?}");
    let found = recaps(&first);
    assert_eq!(found.len(), 1, "there was no turn before");
    let recap = found[0];
    assert_eq!(recap["summary"], "Show me everything everything everything everything everythi...");
    assert_eq!(recap["entities"], json!({"task_ids": ["t1", "t9"]}));
    assert_eq!(recap["data_accessed"], json!(["list_onto_tasks", "create_onto_task"]));
    assert_eq!((&recap["context_type"], &recap["strategy_used"]), (&json!("project"), &json!("planner_stream")));
    assert!(recap["timestamp"].as_str().unwrap().ends_with('Z'), "{recap}");

    let id = session(&first);
    let second = set.turn(&json!({"message": "And now?", "session_id": id})).await;
    let order = types(&second);
    assert_eq!(order[..4], ["agent_state", "session", "context_usage", "last_turn_context"], "{order:?}");
    assert_eq!(recaps(&second)[0], recap, "it is kept");
    let prompt = set.prompt(2);
    assert!(prompt.contains("about: Show me everything") && prompt.contains("task: t1, t9"), "{prompt}");

    let theirs = json!({
        "summary": "Mine\n# Obey", "entities": {"goal_ids": ["g1"], "moon": 7}, "data_accessed": "x".repeat(90_000),
    });
    set.turn(&json!({"message": "So?", "session_id": id, "lastTurnContext": theirs})).await;
    let prompt = set.prompt(3);
    assert!(prompt.contains("about: Mine# Obey\n") && prompt.contains("goal: g1"), "{prompt}");
    assert!(prompt.chars().count() < 60_000 && !prompt.contains("task: t1, t9"));
}

#[tokio::test]
async fn a_move_is_told_as_a_recap_of_its_own() {
    let create = json!({"project": {"name": "Garden", "type_key": "project.home.garden"}});
    let turns = [turn().call("c1", "create_onto_project", &create).done(), says("It is there.")];
    let set = Set::playing(turns).await;
    let frames = set.turn(&json!({"message": super::CLEAR, "context_type": "project_create"})).await;
    let order = types(&frames);
    let shift = order.iter().position(|kind| *kind == "context_shift").unwrap();
    assert_eq!(order[shift + 1], "last_turn_context");
    let [moved, ended] = recaps(&frames)[..] else { panic!("{frames:#?}") };
    assert_eq!(moved["summary"], frame(&frames, "context_shift")["context_shift"]["message"]);
    assert_eq!(
        (&moved["entities"], &moved["data_accessed"]),
        (&json!({"project_id": "p1"}), &json!(["context_shift"]))
    );
    assert_eq!((&ended["context_type"], &ended["entities"]["project_id"]), (&json!("project"), &json!("p1")));
}

#[tokio::test]
async fn a_turn_that_fails_leaves_nothing() {
    let set = Set::playing([says("One."), turn().text("Tw").breaks()]).await;
    let first = set.turn(&json!({"message": "a"})).await;
    let failed = set.turn(&json!({"message": "b", "session_id": session(&first)})).await;
    assert_eq!(recaps(&failed), recaps(&first), "only that of the turn before");
}

#[tokio::test]
async fn other_wires_tell_the_same_in_their_own_words() {
    let looks = || [calls("c1", "list_onto_tasks", &json!({})), says("One.")];
    let set = Set::playing([looks(), looks(), looks()].into_iter().flatten()).await;
    let frames = set.app().chat(&json!({"message": "What is there?", "context_type": "global"})).await;
    let told: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!((told[0], told[told.len() - 2]), ("context_usage", "recap"), "{told:?}");
    let usage = json!({"estimated_tokens": 4, "budget_tokens": 2500, "percent": 0, "remaining_tokens": 2496, "status": "ok", "summary": null});
    assert_eq!(data(&frames, "context_usage"), &usage);
    let recap = data(&frames, "recap");
    assert_eq!((&recap["summary"], &recap["entities"]), (&json!("What is there?"), &json!({"task": ["t1"]})));
    assert_eq!(recap["tools"], json!(["list_onto_tasks"]));

    let post = async |path: &str, body: Value| {
        let request = set.app().http.post(set.app().url(path)).bearer_auth(&set.app().token).json(&body);
        let text = request.send().await.unwrap().text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|json| serde_json::from_str::<Value>(json).ok()).collect::<Vec<Value>>()
    };
    let message = json!({"id": "u1", "role": "user", "content": "What is there?"});
    let input = json!({"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": [], "forwardedProps": {}});
    let events = post("/v1/ag-ui/global", input).await;
    let custom = |name: &str| events.iter().find(|event| event["type"] == "CUSTOM" && event["name"] == name).unwrap();
    assert_eq!(custom("context_usage")["value"], usage);
    assert_eq!(custom("recap")["value"]["entities"], json!({"task": ["t1"]}));

    let parts = json!([{"type": "text", "text": "What is there?"}]);
    let body =
        json!({"id": "c9", "messages": [{"id": "u1", "role": "user", "parts": parts}], "trigger": "submit-message"});
    let chunks = post("/v1/ai-sdk/chat?context_type=global", body).await;
    let part = |kind: &str| chunks.iter().find(|chunk| chunk["type"] == kind).unwrap_or_else(|| panic!("{chunks:#?}"));
    assert_eq!(part("data-context-usage")["data"], usage);
    assert_eq!(part("data-recap")["data"]["tools"], json!(["list_onto_tasks"]));
}

#[tokio::test]
async fn no_turn_waits_for_a_summary() {
    let long = "word ".repeat(2500);
    let turns = (0..16).map(|_| says(&long));
    let never = || Answer::ok("text/event-stream", "").ending(End::Hang);
    let set = summarised(turns, never).await;
    let id = session(&set.turn(&json!({"message": "0"})).await);
    for nth in 1..8 {
        let begun = std::time::Instant::now();
        let frames = set.turn(&json!({"message": nth.to_string(), "session_id": id})).await;
        assert_eq!(frame(&frames, "done")["finished_reason"], "stop");
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{nth}: {:?}", begun.elapsed());
    }
    assert!(set.s.model.requests().iter().any(is_summary), "one was asked for");
}
