//! Questions before a project: when they are asked, what is kept of them, and when they are over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};

use super::{CLEAR, Set, frame, project, text, types};
use crate::support::frames::data;
use crate::support::model::{Script, says, turn};
use crate::support::upstream::Upstream;

const INTRODUCTION: &str = "Before I set this up, a little more would help.";

/// What a model says next.
type Turns = Arc<Mutex<VecDeque<Script>>>;

/// The set over a model that says `planner`, and to whoever asks it as the helper `helper`.
async fn set(planner: impl IntoIterator<Item = Script>, helper: impl IntoIterator<Item = Script>) -> Set {
    over(planner, helper, "openai:clarifier").await
}

async fn over(planner: impl IntoIterator<Item = Script>, helper: impl IntoIterator<Item = Script>, model: &str) -> Set {
    let turns = |scripts: Vec<Script>| -> Turns { Arc::new(Mutex::new(scripts.into())) };
    let (planner, helper) = (turns(planner.into_iter().collect()), turns(helper.into_iter().collect()));
    let upstream = Upstream::choosing(move |request| {
        let next = if request.json()["model"] == "clarifier" { &helper } else { &planner };
        next.lock().unwrap().pop_front().map(Script::answer)
    });
    Set::over(upstream.await, Upstream::choosing(project).await, &[("HELPERS__CLARIFY", model)]).await
}

fn wants(message: &str, session: Option<&Value>) -> Value {
    json!({"message": message, "context_type": "project_create", "session_id": session})
}

fn asks(questions: &[&str]) -> Script {
    let answer = json!({"hasSufficientContext": false, "confidence": 0.3, "clarifyingQuestions": questions});
    says(&format!("Here you are:\n```json\n{answer}\n```"))
}

fn session(frames: &[Value]) -> Value {
    frame(frames, "session")["session"]["id"].clone()
}

/// The models that were asked.
fn asked(set: &Set) -> Vec<Value> {
    set.s.model.requests().iter().map(|request| request.json()["model"].clone()).collect()
}

async fn row(set: &Set, session: &Value) -> Value {
    let path = format!("/api/agent/stream?session_id={}", session.as_str().unwrap());
    set.ask(Method::GET, &path, None).await.1["data"]["session"].clone()
}

#[tokio::test]
async fn little_said_is_asked_about_in_two_rounds_and_then_no_more() {
    let helper = [asks(&["What is it?", "For whom?", "When?"]), asks(&["How big?"])];
    let set = set([says("I see."), says("Hm.")], helper).await;
    let first = set.turn(&wants("Help me please", None)).await;
    let expected = [
        "agent_state",
        "session",
        "context_usage",
        "text",
        "clarifying_questions",
        "agent_state",
        "last_turn_context",
        "done",
    ];
    assert_eq!(types(&first), expected);
    assert_eq!(text(&first), INTRODUCTION);
    let questions = &frame(&first, "clarifying_questions");
    assert_eq!(**questions, json!({"type": "clarifying_questions", "questions": ["What is it?", "For whom?"]}));
    assert_eq!(frame(&first, "last_turn_context")["context"]["strategy_used"], "ask_clarifying_questions");
    assert_eq!(frame(&first, "done")["finished_reason"], "stop");
    assert_eq!(frame(&first, "done")["usage"]["total_tokens"], 15, "the helper's tokens count");
    let id = session(&first);
    let kept = row(&set, &id).await;
    let state = json!({
        "roundNumber": 1, "accumulatedContext": "Help me please", "previousQuestions": ["What is it?", "For whom?"],
        "previousResponses": ["Help me please"],
    });
    assert_eq!(kept["agent_metadata"]["projectClarification"], state);
    let said = kept["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(said["role"], "assistant");
    assert_eq!(said["content"], format!("{INTRODUCTION}\n\n- What is it?\n\n- For whom?"));

    let second = set.turn(&wants("Something nice", Some(&id))).await;
    assert_eq!(frame(&second, "clarifying_questions")["questions"], json!(["How big?"]));
    let request = set.s.model.requests().last().unwrap().json();
    let told: Value = serde_json::from_str(request["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(told["user_has_said"], json!(["Help me please", "Something nice"]));
    assert_eq!(told["user_was_asked"], json!(["What is it?", "For whom?"]));
    assert_eq!(asked(&set), ["clarifier", "clarifier"], "nobody else is asked");

    let third = set.turn(&wants("I do not know", Some(&id))).await;
    assert_eq!(text(&third), "I see.");
    let seen = json!(set.s.last_asked()).to_string();
    assert!(seen.contains("Help me please") && seen.contains("For whom?") && seen.contains("How big?"), "{seen}");
    assert_eq!(row(&set, &id).await["agent_metadata"]["projectClarification"]["roundNumber"], 2);

    let elsewhere = set.turn(&json!({"message": "Hi", "context_type": "global", "session_id": id})).await;
    assert_eq!(text(&elsewhere), "Hm.");
    assert_eq!(row(&set, &id).await["agent_metadata"].get("projectClarification"), None, "the place is left");
}

#[tokio::test]
async fn who_said_enough_is_not_asked() {
    let set = set(
        [says("One."), says("Two."), says("Three."), says("Four.")],
        [says(r#"Well: {"hasSufficientContext": true, "confidence": 0.9}"#), says("no idea")],
    )
    .await;
    assert_eq!(text(&set.turn(&wants(CLEAR, None)).await), "One.");
    assert_eq!(asked(&set).len(), 1, "no helper for what is clear");
    assert_eq!(text(&set.turn(&wants("Help me please", None)).await), "Two.", "the helper lets it through");
    let likely = "I want to write something that is quite long";
    assert_eq!(text(&set.turn(&wants(likely, None)).await), "Three.", "nonsense, where something was said");
    assert_eq!(text(&set.turn(&json!({"message": "Help", "context_type": "global"})).await), "Four.", "only here");
}

#[tokio::test]
async fn a_helper_of_no_use_means_one_general_question() {
    let rows = [says("no idea"), turn().breaks(), says(r#"{"clarifyingQuestions": []}"#)];
    for helper in rows {
        let again: Vec<Script> = (0..4).map(|_| helper.clone()).collect();
        let set = set([], again).await;
        let frames = set.turn(&wants("Help me", None)).await;
        let questions = frame(&frames, "clarifying_questions")["questions"].as_array().unwrap();
        assert_eq!(questions.len(), 1, "{frames:#?}");
        assert!(!types(&frames).contains(&"error"));
    }
    let set = over([says("Gladly.")], [], "off").await;
    let frames = set.turn(&wants("Help me", None)).await;
    assert!(types(&frames).contains(&"clarifying_questions"), "words alone decide");
    let enough = set.turn(&wants("An app that I want to show to others", None)).await;
    assert_eq!(text(&enough), "Gladly.");
    assert_eq!(asked(&set).len(), 1);
}

#[tokio::test]
async fn a_project_that_is_made_ends_the_questions() {
    let create = json!({"project": {"name": "Garden", "type_key": "project.home.garden"}});
    let set = set([turn().call("c1", "create_onto_project", &create).done(), says("There.")], [asks(&["What?"])]).await;
    let id = session(&set.turn(&wants("Help me", None)).await);
    assert_eq!(row(&set, &id).await["agent_metadata"]["projectClarification"]["roundNumber"], 1);
    let frames = set.turn(&wants(CLEAR, Some(&id))).await;
    assert_eq!(text(&frames), "There.");
    assert_eq!(row(&set, &id).await["agent_metadata"].get("projectClarification"), None);
}

#[tokio::test]
async fn other_wires_say_the_questions_as_text() {
    let set = set([], [asks(&["What?"]), asks(&["What?"]), asks(&["What?"])]).await;
    let all = format!("{INTRODUCTION}\n\n- What?");
    let frames = set.app().chat(&json!({"message": "Help me", "context_type": "project_create"})).await;
    let told: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(told[..2], ["context_usage", "message_start"], "{told:?}");
    assert_eq!(data(&frames, "clarification"), &json!({"questions": ["What?"]}));
    let chunks = frames.iter().filter(|frame| frame.event == "content_chunk");
    assert_eq!(chunks.map(|frame| frame.data["chunk"].as_str().unwrap()).collect::<String>(), all);
    assert_eq!(told.last(), Some(&"message_complete"));

    let post = async |path: &str, body: Value| {
        let request = set.app().http.post(set.app().url(path)).bearer_auth(&set.app().token).json(&body);
        let text = request.send().await.unwrap().text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|json| serde_json::from_str::<Value>(json).ok()).collect::<Vec<Value>>()
    };
    let message = json!({"id": "u1", "role": "user", "content": "Help me"});
    let input = json!({"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": [], "forwardedProps": {}});
    let events = post("/v1/ag-ui/project_create", input).await;
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "RUN_STARTED",
        "CUSTOM",
        "STEP_STARTED",
        "CUSTOM",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "CUSTOM",
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ];
    assert_eq!(kinds, expected, "{events:#?}");
    assert_eq!((&events[3]["name"], &events[3]["value"]["questions"]), (&json!("clarification"), &json!(["What?"])));

    let parts = json!([{"type": "text", "text": "Help me"}]);
    let body =
        json!({"id": "c9", "messages": [{"id": "u1", "role": "user", "parts": parts}], "trigger": "submit-message"});
    let chunks = post("/v1/ai-sdk/chat?context_type=project_create", body).await;
    let part = |kind: &str| chunks.iter().find(|chunk| chunk["type"] == kind).unwrap_or_else(|| panic!("{chunks:#?}"));
    assert_eq!(part("data-clarification")["data"]["questions"], json!(["What?"]));
    let said =
        chunks.iter().filter(|chunk| chunk["type"] == "text-delta").map(|chunk| chunk["delta"].as_str().unwrap());
    assert_eq!(said.collect::<String>(), all);
}

#[tokio::test]
async fn who_leaves_leaves_no_round_without_its_question() {
    let set = set([], [asks(&["What?"]), turn().hangs()]).await;
    let id = session(&set.turn(&wants("Help me", None)).await);
    let before = row(&set, &id).await["agent_metadata"]["projectClarification"].clone();
    let response = set.post(&wants("Something", Some(&id))).await;
    drop(response);
    crate::support::wait::eventually("the end of it", async || {
        let row = row(&set, &id).await;
        let messages = row["messages"].as_array().unwrap();
        (messages.last().unwrap()["role"] == "user" && messages.len() == 3).then_some(())
    })
    .await;
    assert_eq!(row(&set, &id).await["agent_metadata"]["projectClarification"], before, "its client has left");
}

#[tokio::test]
async fn who_said_enough_once_may_answer_shortly() {
    let set = set([says("What is it called?"), says("Good."), says("Hm.")], [asks(&["What?"])]).await;
    let id = session(&set.turn(&wants(CLEAR, None)).await);
    assert_eq!(text(&set.turn(&wants("Foo", Some(&id))).await), "Good.", "the planner has asked that itself");
    assert_eq!(row(&set, &id).await["agent_metadata"].get("projectClarification"), None, "nobody was asked");
    let path = format!("/api/chat/sessions/{}/close", id.as_str().unwrap());
    let (status, _) = set.ask(Method::POST, &path, Some(&json!({"context_type": "global"}))).await;
    assert_eq!(status, 200);
    let frames = set.turn(&wants("Foo", Some(&id))).await;
    assert!(types(&frames).contains(&"clarifying_questions"), "it was left meanwhile: {frames:#?}");
}
