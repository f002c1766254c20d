//! Programs that want an answer as a value of a type: the official client, LangChain and Pydantic AI (`tests/peers/agents`),
//! in front of each of the vendors' wires.

use serde_json::{Value, json};

use super::wires::{self, Turn, Wire};
use crate::support::app::TestApp;
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
