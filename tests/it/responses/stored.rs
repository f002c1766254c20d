//! Responses that are read again: as objects, as streams from any event on, in the background, cancelled, deleted.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    RESPONSES, also, ask, events, get, items, names, object, playing, post, refused, streamed, text_of, whole, with,
};
use crate::support::frames::read_until;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::wait::eventually;

fn path(response: &Value) -> String {
    format!("{RESPONSES}/{}", response["id"].as_str().unwrap())
}

async fn cancel(s: &Scripted, path: &str) -> Value {
    object(s.app.http.post(s.app.url(&format!("{path}/cancel"))).bearer_auth(&s.app.token).send().await.unwrap()).await
}

async fn delete(s: &Scripted, path: &str) -> reqwest::Response {
    s.app.http.delete(s.app.url(path)).bearer_auth(&s.app.token).send().await.unwrap()
}

#[tokio::test]
async fn a_stream_is_read_again_from_the_start_and_from_any_event_in_the_same_bytes() {
    let first = turn().text("Let me look.").call("t1", "discover_trigger_types", &json!({})).done();
    let s = playing([first, turn().text("There \"are\"").text(" three.").done()]).await;
    let response = post(&s, &[], &also(ask("How many?"), json!({"stream": true}))).await;
    let id = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let sent = response.text().await.unwrap();
    let path = format!("{RESPONSES}/resp_{id}");
    let again = get(&s, &format!("{path}?stream=true")).await.text().await.unwrap();
    assert_eq!(again, sent);
    let frames: Vec<&str> = sent.split_inclusive("\n\n").collect();
    for after in [0, 3, frames.len() - 2] {
        let rest = get(&s, &format!("{path}?stream=true&starting_after={after}&include_obfuscation=false")).await;
        assert_eq!(rest.text().await.unwrap(), frames[after + 1..].concat(), "{after}");
    }
    let nothing = get(&s, &format!("{path}?stream=true&starting_after={}", frames.len())).await;
    assert_eq!((nothing.status().as_u16(), nothing.text().await.unwrap()), (200, String::new()));
    assert_eq!(&object(get(&s, &path).await).await, &events(&sent).last().unwrap()["response"]);
    for query in
        ["?stream=true&starting_after=x", "?stream=perhaps", "?stream=true&starting_after=99999999999999999999"]
    {
        assert_eq!(get(&s, &format!("{path}{query}")).await.status(), 400, "{query}");
    }
}

#[tokio::test]
async fn what_is_kept_of_a_response_tells_it_when_its_events_are_gone() {
    let first = turn().text("Let me look.").call("t1", "discover_trigger_types", &json!({})).done();
    let s = with(&[], &[("RUNS__RETENTION_S", "0")], [first.answer(), says("Three.").answer()]).await;
    let response = whole(&s, &ask("How many?")).await;
    let path = path(&response);
    let kept = eventually("its events are gone", async || {
        let gone = get(&s, &format!("{path}?stream=true&starting_after=1")).await;
        (gone.status() == 410).then_some(())
    });
    kept.await;
    let again = object(get(&s, &path).await).await;
    assert_eq!(
        (text_of(&again), &again["status"], &again["usage"]),
        (text_of(&response), &json!("completed"), &response["usage"])
    );
    assert_eq!(items(&again, "mcp_call")[0]["name"], "discover_trigger_types");
    let all = streamed(get(&s, &format!("{path}?stream=true")).await).await;
    assert_eq!(all.last().unwrap()["response"], again);
}

#[tokio::test]
async fn a_response_in_the_background_comes_at_once_and_is_read_until_it_is_there() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [turn().text("A").answer().gated(&gate, says("B").bytes())]).await;
    let begun = whole(&s, &also(ask("Hi"), json!({"background": true}))).await;
    assert_eq!((&begun["status"], &begun["output"]), (&json!("queued"), &json!([])));
    let path = path(&begun);
    let live = object(get(&s, &path).await).await;
    assert!(["queued", "in_progress"].contains(&live["status"].as_str().unwrap()), "{live}");
    let mut reading = get(&s, &format!("{path}?stream=true")).await;
    let mut read = read_until(&mut reading, "\"A\"").await;
    gate.notify_one();
    read += &reading.text().await.unwrap();
    assert_eq!(names(&events(&read)).last(), Some(&"completed"));
    let done = object(get(&s, &path).await).await;
    assert_eq!((&done["status"], text_of(&done)), (&json!("completed"), "AB".to_owned()));
}

#[tokio::test]
async fn a_response_is_cancelled_once_and_stays_so() {
    let s = playing([turn().text("Well").hangs()]).await;
    let begun = whole(&s, &also(ask("Hi"), json!({"background": true}))).await;
    let path = path(&begun);
    let mut reading = get(&s, &format!("{path}?stream=true")).await;
    let mut read = read_until(&mut reading, "Well").await;
    let first = cancel(&s, &path).await;
    assert_eq!((&first["status"], text_of(&first)), (&json!("cancelled"), "Well".to_owned()));
    s.model.clients_gone(1).await;
    assert_eq!(cancel(&s, &path).await, first);
    read += &reading.text().await.unwrap();
    let last = events(&read).pop().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.incomplete"), &json!("cancelled")));
}

#[tokio::test]
async fn one_that_is_not_stored_or_anothers_is_not_there() {
    let s = playing([says("One."), says("Two."), says("Three.")]).await;
    let unstored = whole(&s, &also(ask("Hi"), json!({"store": false}))).await;
    assert_eq!((&unstored["store"], &unstored["conversation"]), (&json!(false), &json!(null)));
    let stored = whole(&s, &ask("Hi")).await;
    let bob = s.app.token_of("bob", None, &["USER"]);
    for (path, token) in
        [(path(&unstored), &s.app.token), (path(&stored), &bob), (format!("{RESPONSES}/resp_x"), &s.app.token)]
    {
        for part in ["", "?stream=true", "/input_items"] {
            let response = s.app.http.get(s.app.url(&format!("{path}{part}"))).bearer_auth(token).send().await.unwrap();
            let (status, error) = refused(response).await;
            assert_eq!((status, &error["code"]), (404, &json!("not_found")), "{path}{part}");
        }
        for request in [s.app.http.delete(s.app.url(&path)), s.app.http.post(s.app.url(&format!("{path}/cancel")))] {
            assert_eq!(request.bearer_auth(token).send().await.unwrap().status(), 404, "{path}");
        }
    }
    for (previous, token) in [(&unstored, &s.app.token), (&stored, &bob)] {
        let body = also(ask("And?"), json!({"previous_response_id": previous["id"]}));
        let response = s.app.http.post(s.app.url(RESPONSES)).bearer_auth(token).json(&body).send().await.unwrap();
        let (status, error) = refused(response).await;
        let told = (status, &error["code"], &error["param"]);
        assert_eq!(told, (400, &json!("previous_response_not_found"), &json!("previous_response_id")));
    }
    let listed = object(get(&s, "/v1/agent/conversations").await).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "what is not stored is in no list");
}

#[tokio::test]
async fn a_response_is_deleted_with_its_conversation_and_not_with_others() {
    let s = playing([says("One."), says("Two.")]).await;
    let first = whole(&s, &ask("Hi")).await;
    let second = whole(&s, &also(ask("And?"), json!({"previous_response_id": first["id"]}))).await;
    for response in [&first, &second] {
        let (status, error) = refused(delete(&s, &path(response)).await).await;
        assert_eq!((status, &error["code"]), (400, &json!("invalid_request")), "the other one would be lost");
    }
    let conversation = format!("/v1/conversations/{}", first["conversation"]["id"].as_str().unwrap());
    assert_eq!(object(delete(&s, &conversation).await).await["deleted"], true);
    for response in [&first, &second] {
        assert_eq!(get(&s, &path(response)).await.status(), 404);
    }

    let s = playing([says("One.")]).await;
    let alone = whole(&s, &ask("Hi")).await;
    let deleted = json!({"id": alone["id"], "object": "response", "deleted": true});
    assert_eq!(object(delete(&s, &path(&alone)).await).await, deleted);
    assert_eq!(get(&s, &path(&alone)).await.status(), 404);
    assert_eq!(delete(&s, &path(&alone)).await.status(), 404);
}

#[tokio::test]
async fn conversations_are_opened_gone_on_with_and_read_item_by_item() {
    let s = playing([calls("t1", "discover_trigger_types", &json!({})), says("Three."), says("Four.")]).await;
    let opened =
        object(s.app.http.post(s.app.url("/v1/conversations")).bearer_auth(&s.app.token).send().await.unwrap()).await;
    let id = opened["id"].as_str().unwrap();
    assert_eq!((&opened["object"], &opened["metadata"]), (&json!("conversation"), &json!({})));
    let path = format!("/v1/conversations/{id}");
    assert_eq!(object(get(&s, &path).await).await, opened);
    assert_eq!(object(get(&s, &format!("{path}/items")).await).await["data"], json!([]));

    let first = whole(&s, &also(ask("How many?"), json!({"conversation": id}))).await;
    assert_eq!(first["conversation"]["id"], id);
    whole(&s, &also(ask("And then?"), json!({"conversation": {"id": id}}))).await;
    let list = object(get(&s, &format!("{path}/items?order=asc&limit=2")).await).await;
    let data = list["data"].as_array().unwrap();
    let run = first["id"].as_str().unwrap().strip_prefix("resp_").unwrap();
    let question = json!({"type": "message", "id": format!("msg_{run}_user"), "role": "user", "status": "completed",
        "content": [{"type": "input_text", "text": "How many?"}]});
    assert_eq!((&data[0], &data[1]["type"], &list["has_more"]), (&question, &json!("mcp_call"), &json!(true)));
    let rest =
        object(get(&s, &format!("{path}/items?order=asc&after={}", list["last_id"].as_str().unwrap())).await).await;
    let types: Vec<_> =
        rest["data"].as_array().unwrap().iter().map(|item| (&item["role"], &item["content"][0]["text"])).collect();
    assert_eq!(
        types,
        [
            (&json!("assistant"), &json!("Three.")),
            (&json!("user"), &json!("And then?")),
            (&json!("assistant"), &json!("Four."))
        ]
    );
    let newest = object(get(&s, &format!("{path}/items?limit=1")).await).await;
    assert_eq!(newest["data"][0]["content"][0]["text"], "Four.");
    let one = object(get(&s, &format!("{path}/items/msg_{run}_user")).await).await;
    assert_eq!(one, question);
    let input = object(get(&s, &format!("{RESPONSES}/resp_{run}/input_items")).await).await;
    assert_eq!((&input["data"], &input["has_more"]), (&json!([question]), &json!(false)));

    let bob = s.app.token_of("bob", None, &["USER"]);
    for path in [path.clone(), format!("{path}/items"), format!("{path}/items/msg_{run}_user")] {
        let response = s.app.http.get(s.app.url(&path)).bearer_auth(&bob).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
    for query in ["?limit=0", "?order=up", "?after=msg_x"] {
        assert_eq!(get(&s, &format!("{path}/items{query}")).await.status(), 400, "{query}");
    }
    let body = also(ask("Hi"), json!({"conversation": "conv_nowhere"}));
    assert_eq!(refused(post(&s, &[], &body).await).await.0, 404);
    let with_items = s.app.http.post(s.app.url("/v1/conversations")).bearer_auth(&s.app.token);
    let with_items = with_items.json(&json!({"items": [{"role": "user", "content": "x"}]})).send().await.unwrap();
    assert_eq!(refused(with_items).await.1["param"], "items");
}
