//! What one agent says next to another.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Set, project};
use crate::support::model::{Script, says};
use crate::support::upstream::Upstream;

const PATH: &str = "/api/agentic-chat/agent-message";

async fn set(turns: impl IntoIterator<Item = Script>, more: &[(&str, &str)]) -> Set {
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    Set::over(model, Upstream::choosing(project).await, more).await
}

fn body(project: &str) -> Value {
    json!({"agentId": "actionable_insight_agent", "projectId": project, "goal": "Find what is late"})
}

async fn ask(set: &Set, body: &Value) -> (u16, Value) {
    set.ask(Method::POST, PATH, Some(body)).await
}

#[tokio::test]
async fn an_agent_says_one_thing_and_nothing_of_it_is_kept() {
    let set = set([says("  Which tasks are late? \n")], &[]).await;
    let mut asked = body("p1");
    asked["history"] = json!([
        {"role": "agent", "content": "What is there?"}, {"role": "buildos", "content": "Three tasks."},
    ]);
    let (status, answer) = ask(&set, &asked).await;
    assert_eq!((status, &answer["data"]), (200, &json!({"message": "Which tasks are late?"})));
    let request = set.s.model.requests()[0].json();
    assert_eq!(request.get("tools"), None, "{request}");
    assert_eq!(json!([request["temperature"], request["max_tokens"]]), json!([0.2, 320]));
    let prompt = set.prompt(0);
    assert!(prompt.contains("You only read.") && prompt.contains("name: Garden"), "{prompt}");
    let words = request["messages"][1]["content"].as_str().unwrap();
    assert!(words.contains("Find what is late"), "{words}");
    assert!(words.contains("You: What is there?\nBuildOS: Three tasks.\n"), "{words}");
    assert_eq!(request["messages"].as_array().unwrap().len(), 2);
    let (_, list) = set.ask(Method::GET, "/api/agent/stream", None).await;
    assert_eq!(list["data"]["sessions"], json!([]));
    let (_, usage) = set.ask(Method::GET, "/v1/agent/usage", None).await;
    assert_eq!(json!([usage["total"]["turns"], usage["total"]["input_tokens"]]), json!([1, 10]), "it counts: {usage}");
}

#[tokio::test]
async fn what_is_wrong_has_its_status() {
    let set = set([says("")], &[]).await;
    let mut other = body("p1");
    other["agentId"] = json!("moon");
    let rows = [
        (json!([]), 400, "INVALID_REQUEST", "no object"),
        (json!({"agentId": "actionable_insight_agent", "goal": "g"}), 400, "INVALID_REQUEST", "no project"),
        (other, 400, "INVALID_REQUEST", "another agent"),
        (body("p404"), 404, "NOT_FOUND", "no such project"),
        (body("p403"), 403, "FORBIDDEN", "not the caller's"),
        (body("p401"), 403, "FORBIDDEN", "nor with this token"),
        (body(".."), 404, "NOT_FOUND", "nor can there be"),
        (body("p500"), 500, "INTERNAL_ERROR", "the backend is broken"),
        (body("p1"), 500, "INTERNAL_ERROR", "the model has said nothing"),
    ];
    for (body, status, code, reason) in rows {
        let (found, answer) = ask(&set, &body).await;
        assert_eq!((found, &answer["code"]), (status, &json!(code)), "{reason}: {answer}");
    }
    assert_eq!(set.s.model.requests().len(), 1, "without the project no model is asked");
}

#[tokio::test]
async fn it_is_off_or_limited_like_runs() {
    let off = set([], &[("HELPERS__MESSAGE", "off")]).await;
    let (status, answer) = ask(&off, &body("p1")).await;
    assert_eq!((status, &answer["code"]), (503, &json!("SERVICE_UNAVAILABLE")));
    let limited = set([says("One.")], &[("LIMITS__STARTS_BURST", "1"), ("LIMITS__STARTS_PER_MINUTE", "1")]).await;
    assert_eq!(ask(&limited, &body("p1")).await.0, 200);
    let (status, answer) = ask(&limited, &body("p1")).await;
    assert_eq!((status, &answer["code"]), (429, &json!("RATE_LIMITED")));
}

#[tokio::test]
async fn its_profile_answers_no_user() {
    let set = set([says("Hello.")], &[]).await;
    let frames = set.turn(&json!({"message": "Hi", "context_type": "agent_message"})).await;
    assert_eq!(frames[0]["contextType"], "global");
    assert!(!set.prompt(0).contains("You only read."), "{}", set.prompt(0));
    let (_, profiles) = set.ask(Method::GET, "/v1/agent/profiles", None).await;
    assert!(!profiles.to_string().contains("agent_message"), "{profiles}");
}
