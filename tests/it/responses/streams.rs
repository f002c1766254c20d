//! Streams: whole transcripts.

use serde_json::json;

use super::{also, ask, items, names, object, playing, post, streamed, text_of, whole, with};
use crate::support::model::{says, turn};

const THINKS: &str = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n";

#[tokio::test]
async fn a_plain_answer_is_one_message_between_its_beginning_and_its_end() {
    let s = playing([turn().text("Good ").text("morning").done()]).await;
    let response = post(&s, &[], &also(ask("Hi"), json!({"stream": true}))).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    let (run, conversation) = (header("x-run-id"), header("x-conversation-id"));
    let events = streamed(response).await;
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names(&events), expected);
    assert_eq!(events[0]["sequence_number"], 0);
    let text = json!({"type": "output_text", "text": "Good morning", "annotations": [], "logprobs": []});
    let message = json!({"type": "message", "id": format!("msg_{run}_0"), "role": "assistant", "status": "completed",
        "content": [text], "phase": "final_answer"});
    assert_eq!(events[8]["item"], message);
    let mut response = events[9]["response"].clone();
    assert!(response["created_at"].take().as_u64().unwrap() > 1_700_000_000);
    let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15});
    let expected = json!({
        "id": format!("resp_{run}"), "object": "response", "created_at": null, "status": "completed", "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "model": "workflow", "output": [message],
        "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [], "top_p": null,
        "conversation": {"id": format!("conv_{conversation}")}, "store": true, "usage": usage,
    });
    assert_eq!(response, expected);
}

#[tokio::test]
async fn the_object_is_the_one_that_the_stream_ends_with() {
    let first = turn().raw(THINKS).text("Let me look.").call("t1", "discover_trigger_types", &json!({})).done();
    let s = playing([first.clone(), says("Three."), first, says("Three.")]).await;
    let body = also(ask("How many?"), json!({"model": "open"}));
    let object = whole(&s, &body).await;
    let events = streamed(post(&s, &[], &also(body, json!({"stream": true}))).await).await;
    let types = |response: &serde_json::Value| -> Vec<String> {
        let items = response["output"].as_array().unwrap();
        items.iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
    };
    let expected = ["reasoning", "message", "mcp_call", "message"];
    assert_eq!(
        (types(&object), types(&events.last().unwrap()["response"])),
        (expected.map(str::to_owned).to_vec(), expected.map(str::to_owned).to_vec())
    );
    assert_eq!(text_of(&object), "Let me look.Three.");
    let call = items(&object, "mcp_call")[0];
    assert_eq!(
        (&call["name"], &call["status"], &call["error"]),
        (&json!("discover_trigger_types"), &json!("completed"), &json!(null))
    );
    assert!(!call["output"].as_str().unwrap().is_empty(), "{call}");
    let added = events.iter().filter(|event| event["type"] == "response.output_item.added").count();
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done").count();
    assert_eq!((added, done), (4, 4));
}

#[tokio::test]
async fn a_model_that_fails_ends_a_stream_with_its_failure_and_an_object_with_an_error() {
    let s = with(
        &[],
        &[("LLM__RETRY__ATTEMPTS", "1")],
        [turn().text("Half").breaks().answer(), turn().text("Half").breaks().answer()],
    )
    .await;
    let events = streamed(post(&s, &[], &also(ask("Hi"), json!({"stream": true}))).await).await;
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["error"]["code"]),
        (&json!("response.failed"), &json!("server_error"))
    );
    assert!(!last["response"]["error"]["message"].as_str().unwrap().is_empty());
    assert_eq!(last["response"]["output"][0]["status"], "incomplete", "the half stays");

    let response = post(&s, &[], &ask("Hi")).await;
    assert_eq!((response.status().as_u16(), &response.headers()["x-should-retry"]), (502, &"false".parse().unwrap()));
    let (_, error) = super::refused(response).await;
    assert_eq!(error["code"], "provider_truncated");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_incomplete() {
    let s = playing([turn().text("Half").finish("length")]).await;
    let response = object(post(&s, &[], &ask("Hi")).await).await;
    assert_eq!(
        (&response["status"], &response["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
}
