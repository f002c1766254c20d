//! Streams and messages: what a run says and does, and how it ends.

use serde_json::{Value, json};

use super::{also, ask, blocks, kinds, message, post, refused, streamed, text_of, whole, with};
use crate::approvals::World;
use crate::support::frames::read_until;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::tickets::writes;

async fn playing(turns: impl IntoIterator<Item = Script>) -> Scripted {
    with(&[], &[("LLM__RETRY__ATTEMPTS", "1")], turns.into_iter().map(Script::answer)).await
}

fn as_stream(body: Value) -> Value {
    also(body, json!({"stream": true}))
}

/// Turns with a thought, words, a call of the server's tool, and an answer.
fn rich() -> [Script; 2] {
    let thinks = json!({"object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": null}]});
    let first = turn().raw(&format!("data: {thinks}\n\n")).text("Let me look. ");
    [first.call("t1", "discover_trigger_types", &json!({})).done(), turn().text("Thr").text("ee.").done()]
}

#[tokio::test]
async fn a_plain_answer_is_one_block_between_a_start_and_a_stop() {
    let s = playing([turn().text("Good ").text("day").done()]).await;
    let response = post(&s, &[("accept", "application/json")], &as_stream(ask("Hi"))).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let usage = |input: u64, output: u64| {
        json!({"input_tokens": input, "output_tokens": output,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
    };
    let delta =
        |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let expected = [
        json!({"type": "message_start", "message": {"id": format!("msg_{run}"), "type": "message", "role": "assistant",
            "model": "workflow", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(0, 0)}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        delta("Good "),
        delta("day"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": usage(10, 5)}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(streamed(response).await, expected);
}

#[tokio::test]
async fn the_message_has_the_blocks_of_the_stream_and_thoughts_are_for_those_who_ask() {
    let (s, t) = (playing(rich()).await, playing(rich()).await);
    let body = also(ask("How many?"), json!({"model": "open", "thinking": {"type": "adaptive"}}));
    let first = whole(&s, &body).await;
    let second = blocks(&streamed(post(&t, &[], &as_stream(body)).await).await);
    assert_eq!(kinds(&first), ["thinking", "text", "mcp_tool_use", "mcp_tool_result", "text"]);
    assert_eq!((text_of(&first).as_str(), &first["stop_reason"]), ("Let me look. Three.", &json!("end_turn")));
    let content = first["content"].as_array().unwrap();
    assert_eq!(content[2]["name"], "discover_trigger_types");
    assert_eq!(content[2]["id"], content[3]["tool_use_id"]);
    assert!(!content[3]["content"][0]["text"].as_str().unwrap().is_empty());
    for (one, other) in content.iter().zip(&second) {
        for field in ["type", "text", "thinking", "name", "input", "content", "is_error"] {
            assert_eq!(one[field], other[field]);
        }
    }
    for thinking in [json!(null), json!({"type": "adaptive", "display": "omitted"}), json!({"type": "disabled"})] {
        let s = playing(rich()).await;
        let message = whole(&s, &also(ask("How many?"), json!({"model": "open", "thinking": thinking}))).await;
        assert_eq!(kinds(&message), ["text", "mcp_tool_use", "mcp_tool_result", "text"], "{thinking}");
    }
    let s = playing(rich()).await;
    let hidden = whole(&s, &also(ask("How many?"), json!({"thinking": {"type": "adaptive"}}))).await;
    assert!(!kinds(&hidden).contains(&"thinking"), "its profile does not show that");
}

#[tokio::test]
async fn a_call_that_waits_is_told_in_words_and_made_when_it_is_let_through() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")]).await;
    let body = json!({"model": "tickets", "max_tokens": 100, "messages": [{"role": "user", "content": "Close 7"}]});
    let message = whole(&w.s, &body).await;
    assert_eq!((kinds(&message), &message["stop_reason"]), (vec!["text"], &json!("end_turn")));
    let sentence = text_of(&message);
    let (_, path) = sentence.split_once("/v1/agent/approvals/").unwrap_or_else(|| panic!("{sentence}"));
    let decided = w.decide_as(&w.s.app.token, path.trim_end_matches('.'), &json!({"decision": "approve"})).await;
    let (status, told) = (decided.status(), decided.text().await.unwrap());
    assert_eq!(status, 200, "{told}");
    assert_eq!(writes(&w.backend).len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_cut_says_so() {
    let s = playing([turn().text("Half").finish("length")]).await;
    let message = whole(&s, &also(ask("Hi"), json!({"model": "open", "max_tokens": 7}))).await;
    assert_eq!((text_of(&message).as_str(), &message["stop_reason"]), ("Half", &json!("max_tokens")));
    assert_eq!(s.model.requests()[0].json()["max_tokens"], 7);
    let s = playing([turn().text("Hm").finish("content_filter")]).await;
    let events = streamed(post(&s, &[], &as_stream(ask("Hi"))).await).await;
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "refusal");
    let s = playing([says("Hi.")]).await;
    whole(&s, &also(ask("Hi"), json!({"model": "open", "max_tokens": 100_000}))).await;
    assert_eq!(s.model.requests()[0].json()["max_tokens"], 500, "no more than the profile's");
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_before_the_first_byte_and_in_the_stream() {
    let s = playing([turn().text("Half").breaks(), turn().text("Half").breaks()]).await;
    let events = streamed(post(&s, &[], &as_stream(ask("Hi"))).await).await;
    let [.., stop, error] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&stop["type"], &error["type"]), (&json!("content_block_stop"), &json!("error")));
    assert_eq!(error["error"]["type"], "api_error");
    let response = post(&s, &[], &ask("Hi")).await;
    assert_eq!(response.headers()["x-should-retry"], "false", "the run has begun, and its message is kept");
    let (status, kind, _) = refused(response).await;
    assert_eq!((status, kind.as_str()), (502, "api_error"));
}

#[tokio::test]
async fn a_stream_that_its_reader_leaves_ends_the_run() {
    let s = playing([turn().text("Well").hangs()]).await;
    let mut response = post(&s, &[], &as_stream(ask("Hi"))).await;
    read_until(&mut response, "Well").await;
    drop(response);
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn silence_is_filled_with_pings() {
    let s = with(&[], &[("SERVER__KEEP_ALIVE_S", "1")], [turn().text("Well").hangs().answer()]).await;
    let mut response = post(&s, &[], &as_stream(ask("Hi"))).await;
    read_until(&mut response, "event: ping\ndata: {\"type\":\"ping\"}\n\n").await;
}

#[tokio::test]
async fn an_answer_has_the_form_that_its_request_wants() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "schema": schema});
    // The second as SDKs write it for the beta.
    for format in [json!({"output_config": {"format": format}}), json!({"output_format": format})] {
        let s = playing([says(r#"{"n": "two"}"#), says(r#"{"n": 2}"#)]).await;
        let response = post(&s, &[], &also(ask("How many?"), format)).await;
        assert_eq!(text_of(&message(response).await), r#"{"n": 2}"#);
    }
}
