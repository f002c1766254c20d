//! Calls that wait for a person, as requests for an approval and responses to them.

use serde_json::{Value, json};

use super::{RESPONSES, items, object, refused, text_of};
use crate::approvals::World;
use crate::support::model::{Script, calls, says, turn};
use crate::support::tickets::writes;

fn closing(id: &str, ticket: u32) -> Script {
    calls(id, "close_ticket", &json!({"id": ticket}))
}

async fn post(w: &World, body: &Value) -> reqwest::Response {
    w.s.app.http.post(w.s.app.url(RESPONSES)).bearer_auth(&w.s.app.token).json(body).send().await.unwrap()
}

async fn ask(w: &World, input: Value, previous: Option<&Value>) -> Value {
    let mut body = json!({"model": "tickets", "input": input});
    if let Some(previous) = previous {
        body["previous_response_id"] = previous["id"].clone();
    }
    object(post(w, &body).await).await
}

fn decides(request: &Value, approve: bool) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve})
}

#[tokio::test]
async fn a_call_waits_is_made_once_when_it_is_let_through_and_by_nobody_else() {
    let w = World::playing([closing("c1", 7), says("Closed.")]).await;
    let first = ask(&w, json!("Close 7"), None).await;
    let [request] = items(&first, "mcp_approval_request")[..] else { panic!("{first}") };
    assert_eq!((&request["name"], &request["arguments"]), (&json!("close_ticket"), &json!("{\"id\":7}")));
    assert_eq!((items(&first, "mcp_call").len(), &first["status"]), (0, &json!("completed")));
    let body = json!({"model": "tickets", "input": [decides(request, true)], "previous_response_id": first["id"]});

    let bob = w.s.app.token_of("bob", None, &["USER"]);
    let mut theirs = body.clone();
    theirs.as_object_mut().unwrap().remove("previous_response_id");
    let as_bob = w.s.app.http.post(w.s.app.url(RESPONSES)).bearer_auth(bob).json(&theirs).send().await.unwrap();
    assert_eq!(refused(as_bob).await.0, 404);
    assert_eq!(writes(&w.backend), [""; 0]);

    let second = object(post(&w, &body).await).await;
    assert_eq!(
        (text_of(&second), items(&second, "mcp_call")[0]["status"].clone()),
        ("Closed.".to_owned(), json!("completed"))
    );
    assert_eq!(writes(&w.backend).len(), 1);
    let (status, error) = refused(post(&w, &body).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("input")), "{error}");
    assert_eq!(writes(&w.backend).len(), 1);
}

#[tokio::test]
async fn a_call_that_is_turned_down_is_not_made() {
    let w = World::playing([closing("c1", 7), says("All right.")]).await;
    let first = ask(&w, json!("Close 7"), None).await;
    // Without what was said before: the decision finds its conversation.
    let mut decision = decides(items(&first, "mcp_approval_request")[0], false);
    decision["reason"] = json!("not that one");
    let second = ask(&w, json!([decision]), None).await;
    assert_eq!((text_of(&second), &second["conversation"]), ("All right.".to_owned(), &first["conversation"]));
    assert_eq!(writes(&w.backend), [""; 0]);
    assert!(json!(w.s.last_asked()).to_string().contains("not that one"));
}

#[tokio::test]
async fn several_decisions_and_a_message_are_taken_one_after_the_other_and_the_last_is_shown() {
    let both =
        turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done();
    let w = World::playing([both, says("First."), says("Second."), says("Good."), says("Bye.")]).await;
    let first = ask(&w, json!("Close both"), None).await;
    let [one, two] = items(&first, "mcp_approval_request")[..] else { panic!("{first}") };
    // As a client tells it that names the requests again.
    let input = json!([
        {"role": "user", "content": "Close both"},
        {"type": "item_reference", "id": one["id"]}, decides(one, true),
        {"type": "item_reference", "id": two["id"]}, decides(two, true),
        {"role": "user", "content": "Thanks."},
    ]);
    let last = ask(&w, input, None).await;
    assert_eq!((text_of(&last), &last["conversation"]), ("Good.".to_owned(), &first["conversation"]));
    let mut closed = writes(&w.backend);
    closed.sort();
    assert_eq!(
        closed.iter().map(|line| line.split(' ').nth(1).unwrap()).collect::<Vec<_>>(),
        ["/v1/tickets/1/close", "/v1/tickets/2/close"]
    );
    let next = json!({"model": "tickets", "input": "Bye", "previous_response_id": last["id"]});
    object(post(&w, &next).await).await;
    let asked = json!(w.s.last_asked()).to_string();
    assert!(["First.", "Second.", "Good."].iter().all(|text| asked.contains(text)), "{asked}");
}

#[tokio::test]
async fn a_call_that_another_role_decides_is_told_of_in_words_too() {
    let w = World::playing([calls("c1", "refund", &json!({"amount": 5}))]).await;
    let first = ask(&w, json!("Refund 5"), None).await;
    assert!(text_of(&first).contains("chief"), "{first}");
    let [request] = items(&first, "mcp_approval_request")[..] else { panic!("{first}") };
    let body = json!({"model": "tickets", "input": [decides(request, true)]});
    assert_eq!(refused(post(&w, &body).await).await.0, 403);
    assert_eq!(writes(&w.backend), [""; 0]);
}
