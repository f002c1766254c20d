//! Programs that want an answer as a value of a type: the official client, LangChain and Pydantic AI (`tests/peers/agents`),
//! in front of each of the vendors' wires; and what LangChain makes of texts, tools, approvals and a stop.

use serde_json::{Value, json};

use super::wires::{self, Turn, Wire};
use super::{playing, with};
use crate::support::app::TestApp;
use crate::support::model::{calls, says, turn};
use crate::support::python;
use crate::support::upstream::Request;

/// What the clients' types are made from.
fn trip() -> Value {
    json!({"city": "Ulm", "days": 2, "stops": [{"at": "Minster", "kind": "sight"}], "note": null})
}

/// What the steps have seen; `None` where the clients are not installed.
async fn run(steps: &[&str], app: &TestApp) -> Option<Value> {
    python::run("agents", steps, app).await
}

/// The tool by which a request to a model wants its answer, by the names that the clients and we give them.
fn answers_by(request: &Request) -> Option<&'static str> {
    let tools = request.json()["tools"].to_string();
    ["Trip", "final_result", "give_answer"].into_iter().find(|name| tools.contains(&format!("\"name\":\"{name}\"")))
}

#[tokio::test]
async fn they_get_their_values_whoever_answers() {
    const STEPS: [&str; 7] = [
        "openai-parse",
        "openai-stream",
        "langchain-schema",
        "langchain-object",
        "langchain-call",
        "pydantic-ai-schema",
        "pydantic-ai-call",
    ];
    for wire in wires::ALL {
        // Every model gives a wrong answer first.
        let (app, model) = wire
            .serve(|request| {
                let is_again = String::from_utf8_lossy(&request.body).contains("Your answer is not what was asked for");
                match answers_by(request).filter(|_| is_again) {
                    Some(tool) => Turn::Calls(tool, trip()),
                    None if is_again => Turn::Says(format!("```json\n{}\n```", trip())),
                    None => Turn::Says("Ulm is nice.".to_owned()),
                }
            })
            .await;
        let Some(seen) = run(&STEPS, &app).await else { return };
        let expected: Value =
            STEPS.iter().map(|step| ((*step).to_owned(), trip())).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(seen, expected, "{wire:?}");
        assert_eq!(model.requests().len(), 2 * STEPS.len(), "{wire:?}: each was asked again, once");
    }
}

#[tokio::test]
async fn an_expression_that_cannot_be_run_is_no_obstacle() {
    let (app, _model) = Wire::OpenAi.serve(|_| Turn::Says(json!({"price": "1.50"}).to_string())).await;
    let Some(seen) = run(&["decimal"], &app).await else { return };
    assert_eq!(seen, json!({"decimal": {"price": "1.50"}}));
}

#[tokio::test]
async fn langchain_reads_an_answer_as_it_comes() {
    let s = playing([turn().text("Good ").text("day").done()]).await;
    let Some(seen) = run(&["langchain-text"], &s.app).await else { return };
    assert_eq!(seen, json!({"langchain-text": {"content": "Good day", "tokens": 15, "reason": "stop"}}));
}

#[tokio::test]
async fn langchain_calls_its_own_tools_until_the_answer_is_there() {
    let both = turn()
        .call("w1", "get_weather", &json!({"city": "Paris"}))
        .call("w2", "get_weather", &json!({"city": "Rome"}))
        .done();
    let s = playing([both, calls("w3", "get_weather", &json!({"city": "Oslo"})), says("Sunny everywhere.")]).await;
    let Some(seen) = run(&["langchain-tool"], &s.app).await else { return };
    let kinds = ["human", "ai", "tool", "tool", "ai", "tool", "ai"];
    let expected = json!({"asked": ["Paris", "Rome", "Oslo"], "content": "Sunny everywhere.", "kinds": kinds});
    assert_eq!(seen, json!({"langchain-tool": expected}));
    assert!(json!(s.last_asked()).to_string().contains("It is sunny in Oslo."));
}

#[tokio::test]
async fn a_stream_that_langchain_stops_ends_the_run() {
    let s = playing([turn().text("Well").hangs()]).await;
    let Some(seen) = run(&["langchain-stop"], &s.app).await else { return };
    assert_eq!(seen, json!({"langchain-stop": {"content": "Well"}}));
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn a_conversation_that_langchain_keeps_is_told_with_each_question_and_answered_again() {
    let s = playing([says("Hello."), says("Ada."), says("You are Ada.")]).await;
    let Some(seen) = run(&["langchain-again"], &s.app).await else { return };
    assert_eq!(seen, json!({"langchain-again": {"answers": ["Ada.", "You are Ada."]}}));
    let asked = s.asked();
    assert_eq!(asked[1], asked[2], "the same is asked again");
    let told = json!(asked[1]).to_string();
    assert!(told.contains("I am Ada.") && told.contains("Hello."), "{told}");
}

#[tokio::test]
async fn langchain_is_told_in_words_what_waits_for_a_person_and_where() {
    let s = with(&[], &[("LLM__PROVIDER", "demo")], []).await;
    let Some(seen) = run(&["langchain-approval"], &s.app).await else { return };
    let text = seen["langchain-approval"]["content"].as_str().unwrap_or_else(|| panic!("{seen}"));
    let page = format!("accept or reject it on this server's page, {}/#/waiting", s.app.url(""));
    assert!(text.contains(&page), "{text}");
}
