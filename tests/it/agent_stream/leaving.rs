//! Clients that leave, requests that come at the same moment, and models that say nothing, refuse or break: what is kept, and
//! that the session goes on.

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{Set, frame, project, read, text, types};
use crate::support::model::{Script, calls, messages, says, turn};
use crate::support::upstream::{Answer, End, Request, Upstream};
use crate::support::wait::eventually;

/// Reads until `words` have come; the session's id, and what was read.
async fn until(response: &mut Response, words: &str) -> (String, String) {
    let mut told = String::new();
    while !told.contains(words) {
        told.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    (response.headers()["x-conversation-id"].to_str().unwrap().to_owned(), told)
}

async fn row(set: &Set, session: &str) -> Value {
    set.ask(Method::GET, &format!("/api/agent/stream?session_id={session}"), None).await.1["data"]["session"].clone()
}

/// The row of a session as soon as it has a message of that type.
async fn with(set: &Set, session: &str, kind: &str) -> Value {
    let found = eventually("the message", async || {
        let row = row(set, session).await;
        let has = row["messages"].as_array().unwrap().iter().any(|message| message["message_type"] == kind);
        has.then_some(row)
    });
    found.await
}

fn of_type<'a>(row: &'a Value, kind: &str) -> &'a Value {
    let messages = row["messages"].as_array().unwrap();
    messages.iter().find(|message| message["message_type"] == kind).unwrap_or_else(|| panic!("no {kind} in {row:#}"))
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_text_ends_its_turn_and_what_was_said_is_kept() {
    let look = turn().text("Let me look. ").call("c1", "list_onto_tasks", &json!({})).done();
    let set = Set::playing([look, turn().text("There is ö").hangs(), says("As I said.")]).await;
    let focus = json!({"focusType": "task", "focusEntityId": "t1", "focusEntityName": "Dig", "projectId": "p1", "projectName": "Garden"});
    let body = json!({
        "message": "What is there?", "context_type": "project", "projectFocus": focus, "stream_run_id": 7,
    });
    let mut response = set.post(&body).await;
    let (session, _) = until(&mut response, "There is").await;
    let left = Instant::now();
    drop(response);
    set.s.model.clients_gone(1).await;
    assert!(left.elapsed() < Duration::from_millis(1500), "{:?}", left.elapsed());

    let row = with(&set, &session, "assistant_interrupted").await;
    assert_eq!(row["agent_metadata"]["focus"], focus, "the focus is that of the turn that was left");
    let said = of_type(&row, "assistant_interrupted");
    assert_eq!(said["content"], "Let me look. There is ö");
    let expected = json!({
        "interrupted": true, "interrupted_reason": "user_cancelled", "stream_run_id": 7, "partial_tokens": 6,
    });
    assert_eq!(said["metadata"], expected, "23 characters are 6 tokens");
    let partial = of_type(&row, "tool_partial");
    assert_eq!((&partial["tool_call_id"], &partial["role"]), (&said["tool_calls"][0]["id"], &json!("tool")));
    assert_eq!(partial["tool_result"]["tasks"][0]["title"], "Dig");

    let frames = set.turn(&json!({"message": "And?", "session_id": session})).await;
    assert_eq!(text(&frames), "As I said.");
    assert_eq!(frame(&frames, "focus_active")["focus"], focus);
    let asked = set.s.last_asked();
    assert!(asked.iter().any(|message| message["content"] == "There is ö"), "{asked:#?}");
}

#[tokio::test]
async fn a_client_that_leaves_before_a_word_was_said_harms_nothing() {
    let set = Set::playing([turn().hangs(), says("Here.")]).await;
    let mut response = set.post(&json!({"message": "Anybody there?"})).await;
    let (session, _) = until(&mut response, "context_usage").await;
    eventually("the model is asked", async || (!set.s.model.requests().is_empty()).then_some(())).await;
    drop(response);
    set.s.model.clients_gone(1).await;
    let frames = set.turn(&json!({"message": "Hello?", "session_id": session})).await;
    assert_eq!(text(&frames), "Here.");
    set.s.last_asked();
    let row = row(&set, &session).await;
    let said: Vec<&Value> = row["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(said, ["Anybody there?", "Hello?", "Here."], "no answer is made up");
}

#[tokio::test]
async fn a_client_that_leaves_during_a_call_ends_that_too() {
    let backend = Upstream::choosing(|request| match request.path.starts_with("/rest/v1/onto_tasks") {
        true => Some(Answer::ok("application/json", "[").ending(End::Hang)),
        false => project(request),
    });
    let both = turn()
        .call("c1", "get_onto_task_details", &json!({"task_id": "t1"}))
        .call("c2", "list_onto_tasks", &json!({}))
        .done();
    let model = Upstream::script([both, says("Here.")].map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[]).await;
    let mut response = set.post(&json!({"message": "Look", "context_type": "project", "entity_id": "p1"})).await;
    let (session, _) = until(&mut response, "\"entity_type\":\"task\",\"entity_name\":\"tasks\"").await;
    eventually("the call", async || set.lines().iter().any(|line| line.contains("onto_tasks")).then_some(())).await;
    let left = Instant::now();
    drop(response);
    set.backend.clients_gone(1).await;
    assert!(left.elapsed() < Duration::from_secs(2), "{:?}", left.elapsed());
    let row = with(&set, &session, "tool_partial").await;
    assert_eq!(of_type(&row, "tool_partial")["tool_name"], "get_onto_task_details");
    let frames = set.turn(&json!({"message": "And?", "session_id": session})).await;
    assert_eq!(text(&frames), "Here.");
    set.s.last_asked();
}

/// A model that begins a long story without end, and else answers at once.
fn tells(request: &Request) -> Option<Answer> {
    let asked = messages(request).pop().unwrap()["content"].as_str().unwrap().to_owned();
    Some(match asked.contains("long") {
        true => turn().text("Once upon").hangs().answer(),
        false => says("Short.").answer(),
    })
}

#[tokio::test]
async fn leaving_and_asking_again_in_one_moment_works_every_time() {
    let model = Upstream::choosing(tells).await;
    let set = Set::over(model, Upstream::choosing(project).await, &[]).await;
    let mut session = Value::Null;
    for round in 0..12 {
        let mut first = set.post(&json!({"message": "A long story", "session_id": session})).await;
        let (id, _) = until(&mut first, "Once upon").await;
        session = json!(id);
        let again = json!({"message": "A short one", "session_id": session});
        let frames = match round % 3 {
            // Both in one moment, the leaving first, or the message.
            0 => {
                drop(first);
                set.turn(&again).await
            }
            1 => tokio::join!(set.turn(&again), async { drop(first) }).0,
            _ => tokio::join!(async { drop(first) }, set.turn(&again)).1,
        };
        assert_eq!(text(&frames), "Short.", "{round}");
        assert_eq!(frame(&frames, "done")["finished_reason"], "stop", "{round}");
    }
    let row = row(&set, session.as_str().unwrap()).await;
    let cut_off = row["messages"].as_array().unwrap().iter();
    let reasons: Vec<&str> = cut_off
        .filter(|message| message["message_type"] == "assistant_interrupted")
        .map(|message| message["metadata"]["interrupted_reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons.len(), 12, "{row:#}");
    assert!(reasons.iter().all(|reason| ["user_cancelled", "superseded"].contains(reason)), "{reasons:?}");
}

#[tokio::test]
async fn a_run_that_is_cancelled_by_its_id_ends_its_stream_as_cancelled() {
    let set = Set::playing([turn().text("Once upon").hangs(), says("Yes.")]).await;
    let mut response = set.post(&json!({"message": "A story"})).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let (session, mut told) = until(&mut response, "Once upon").await;
    let cancel = set.app().http.post(set.app().url(&format!("/v1/agent/runs/{run}/cancel")));
    assert!(cancel.bearer_auth(&set.app().token).send().await.unwrap().status().is_success());
    told.push_str(&response.text().await.unwrap());
    let frames = read(&told);
    assert_eq!(types(&frames), ["agent_state", "session", "context_usage", "text", "done"]);
    assert_eq!(frame(&frames, "done")["finished_reason"], "cancelled");
    let row = with(&set, &session, "assistant_interrupted").await;
    let metadata = &of_type(&row, "assistant_interrupted")["metadata"];
    assert_eq!((&metadata["interrupted_reason"], &metadata["stream_run_id"]), (&json!("user_cancelled"), &Value::Null));
    assert_eq!(text(&set.turn(&json!({"message": "Still there?", "session_id": session})).await), "Yes.");
}

/// A model that says nothing, at once or behind a call, and else answers.
fn is_silent(request: &Request) -> Option<Answer> {
    let asked = messages(request);
    let last = asked.last().unwrap();
    Some(match (last["role"].as_str().unwrap(), last["content"].as_str().unwrap()) {
        ("tool", _) | (_, "Say nothing") => turn().done().answer(),
        (_, "Look") => calls("c1", "list_onto_tasks", &json!({})).answer(),
        _ => says("Yes.").answer(),
    })
}

#[tokio::test]
async fn an_answer_without_anything_in_it_never_ends_in_silence() {
    let model = Upstream::choosing(is_silent).await;
    let set = Set::over(model, Upstream::choosing(project).await, &[]).await;
    for message in ["Say nothing", "Look"] {
        let frames = set.turn(&json!({"message": message})).await;
        let order = types(&frames);
        // An honest error, or the end of every turn.
        match frames.iter().find(|frame| frame["type"] == "error") {
            Some(error) => {
                assert!(!error["error"].as_str().unwrap().is_empty(), "{error}");
                assert_eq!(order[order.len() - 2..], ["error", "done"], "{message}");
                assert_eq!(frame(&frames, "done")["finished_reason"], "error", "{message}");
            }
            None => {
                assert_eq!(order[order.len() - 3..], ["agent_state", "last_turn_context", "done"], "{message}");
                assert_eq!(frame(&frames, "done")["finished_reason"], "stop", "{message}");
            }
        }
        let session = &frame(&frames, "session")["session"]["id"];
        assert_eq!(text(&set.turn(&json!({"message": "Say yes", "session_id": session})).await), "Yes.");
    }
}

#[tokio::test]
async fn a_model_that_refuses_or_breaks_is_told_in_words_of_ours() {
    const KEY: &str = "sk-of-the-server";
    let words = format!("OpenAI: Incorrect API key provided: {KEY}. See platform.openai.com (model gpt-secret)");
    let body = json!({"error": {"message": words, "type": "invalid_request_error", "code": "gpt-secret"}}).to_string();
    let inside = format!("data: {body}\n\n");
    let broken = [
        (Answer::status(401, "application/json", body.clone()), "the key is refused"),
        (Answer::status(400, "application/json", body.clone()), "the request is"),
        (Answer::status(503, "application/json", body.clone()), "it is away"),
        (Answer::ok("text/html", "<html>OpenAI</html>"), "it is a page"),
        (Answer::ok("text/event-stream", inside.clone()), "it fails before the first word"),
        (turn().text("I was ab").raw(&inside).answer(), "and behind it"),
        (turn().text("I was ab").finish("content_filter").answer(), "it is filtered"),
        (turn().breaks().answer(), "it breaks off"),
    ];
    for (answer, reason) in broken {
        let model = Upstream::choosing(move |request| {
            let asked = messages(request).pop().unwrap()["content"].as_str().unwrap().to_owned();
            Some(if asked == "Again" { says("Here.").answer() } else { answer.clone() })
        });
        let settings = [("LLM__OPENAI__API_KEY", KEY)];
        let set = Set::over(model.await, Upstream::choosing(project).await, &settings).await;
        let response = set.post(&json!({"message": "Hi"})).await;
        let told = response.text().await.unwrap();
        for secret in [KEY, "OpenAI", "openai", "gpt-secret", "html"] {
            assert!(!told.contains(secret), "{reason}: {secret} in {told}");
        }
        let frames = read(&told);
        let order = types(&frames);
        assert_eq!(order[order.len() - 2..], ["error", "done"], "{reason}: {frames:#?}");
        assert!(!frame(&frames, "error")["error"].as_str().unwrap().is_empty(), "{reason}");
        assert_eq!(frame(&frames, "done")["finished_reason"], "error", "{reason}");
        let session = frame(&frames, "session")["session"]["id"].as_str().unwrap().to_owned();
        let said = text(&frames);
        let row = row(&set, &session).await;
        let kept: Vec<&Value> = row["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
        assert_eq!(kept, if said.is_empty() { vec!["Hi"] } else { vec!["Hi", said.as_str()] }, "{reason}");
        assert!(!row.to_string().contains("gpt-secret") && !row.to_string().contains(KEY), "{reason}: {row}");
        // A model that fails before its first word may be spared for a while.
        if said.is_empty() {
            continue;
        }
        let frames = set.turn(&json!({"message": "Again", "session_id": session})).await;
        assert_eq!(text(&frames), "Here.", "{reason}");
    }
}
