//! What single servers of chat completions write that no description has, as their users have recorded it: it is read for what
//! it means.

use std::time::Instant;

use serde_json::{Value, json};
use switchboard::agent::ports::llm::ProviderErrorKind;
use switchboard::chat::stream::FinishReason;
use switchboard::chat::tool::ToolInput;
use switchboard::llm::Vendor;

use super::compatible::{SSE, answered, asked_after, deltas, thinking};
use super::{config, connect, report, turn};
use crate::support::upstream::{Answer, End, Upstream};

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

fn piece(arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})
}

#[tokio::test]
async fn a_text_is_a_text_in_whatever_shape_it_comes() {
    let summary = json!([{"type": "summary_text", "text": "Hm."}]);
    let table = [
        (
            "Workers AI: a token that is a number",
            deltas(&[
                json!({"content": "Rule ["}),
                json!({"content": 6}),
                json!({"content": true}),
                json!({"content": "]"}),
            ]),
            ("Rule [6true]", ""),
        ),
        (
            "Workers AI: in its reasoning",
            deltas(&[json!({"reasoning_content": 6}), json!({"reasoning_content": "."}), json!({"content": "x"})]),
            ("x", "6."),
        ),
        (
            "Envoy's AI gateway",
            deltas(&[json!({"reasoning_content": {"text": "Hm."}}), json!({"content": "x"})]),
            ("x", "Hm."),
        ),
        (
            "Databricks",
            deltas(&[json!({"content": [{"type": "reasoning", "summary": summary}]}), json!({"content": "x"})]),
            ("x", "Hm."),
        ),
        (
            "NVIDIA NIM: a key twice",
            format!(
                "data: {}\n\n{}",
                r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm.","content":null,"reasoning_content":"Hm."}}]}"#,
                deltas(&[json!({"content": "x"})])
            ),
            ("x", "Hm."),
        ),
        (
            "half a character",
            format!("data: {}\n\n{}", r#"{"choices":[{"delta":{"content":"\ud83d\ude00 \udcaf"}}]}"#, deltas(&[])),
            ("😀 \u{fffd}", ""),
        ),
    ];
    for (why, body, (text, thoughts)) in table {
        let turn = answered(Vendor::OpenAi, body).await;
        assert_eq!((turn.message.text().as_str(), thinking(&turn).as_str()), (text, thoughts), "{why}");
    }
}

#[tokio::test]
async fn the_arguments_of_a_call_are_found() {
    let found = |n: u8| ("find".to_owned(), ToolInput::parse(&json!({"n": n}).to_string()));
    let table = [
        (
            "LM Studio: a new id in each piece",
            vec![call("7", "find", &json!("")), call("8", "", &json!("{\"n\":")), call("9", "", &json!("1}"))],
            vec![found(1)],
        ),
        (
            "Envoy's AI gateway: none before there are some",
            vec![call("7", "find", &json!("{}")), piece("{\"n\": 1}")],
            vec![found(1)],
        ),
        ("vLLM with Granite: JSON in JSON", vec![call("7", "find", &json!("\"{\\\"n\\\": 1}\""))], vec![found(1)]),
        (
            "a JSON text that is no object",
            vec![call("7", "find", &json!("\"{\""))],
            vec![("find".to_owned(), ToolInput::Invalid("\"{\"".to_owned()))],
        ),
        (
            "index 0 for all",
            vec![call("7", "find", &json!("{\"n\":1}")), call("8", "find", &json!("{\"n\":2}"))],
            vec![found(1), found(2)],
        ),
    ];
    for (why, pieces, expected) in table {
        let turn = answered(Vendor::OpenAi, deltas(&pieces)).await;
        let calls: Vec<_> = turn.message.calls().map(|call| (call.name.clone(), call.input.clone())).collect();
        assert_eq!(calls, expected, "{why}");
    }
}

/// Claude refuses calls whose thinking is missing, where it thinks.
#[tokio::test]
async fn what_claude_has_signed_goes_back_through_litellm() {
    let blocks = |blocks: Value| json!({"reasoning_content": "", "thinking_blocks": blocks});
    let chunks = [
        json!({"reasoning_content": "Hm.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm."}]}),
        blocks(json!([{"type": "thinking", "thinking": "", "signature": "SIG=="}])),
        call("a", "find", &json!("{}")),
    ];
    let (turn, messages) = asked_after(deltas(&chunks), |_| {}).await;
    assert_eq!(thinking(&turn), "Hm.");
    let expected = json!([{"type": "thinking", "thinking": "Hm.", "signature": "SIG=="}]);
    assert_eq!(messages[1]["thinking_blocks"], expected);

    let unspoken =
        [blocks(json!([{"type": "thinking", "thinking": "", "signature": "S=="}])), call("a", "find", &json!("{}"))];
    let (_, messages) = asked_after(deltas(&unspoken), |_| {}).await;
    let expected = json!([{"type": "thinking", "thinking": "", "signature": "S=="}]);
    assert_eq!(messages[1]["thinking_blocks"], expected, "Claude keeps its thoughts to itself");
}

#[tokio::test]
async fn a_whole_answer_is_one_however_its_connection_ends() {
    let whole = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}));
    for (end, why) in [(End::Hang, "nothing more is said"), (End::Abort, "it breaks off")] {
        let upstream = Upstream::script([Answer::ok(SSE, whole.clone()).ending(end)]).await;
        let began = Instant::now();
        let (turn, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
        assert!(failure.is_none(), "{why}: {failure:?}");
        assert_eq!((turn.message.text().as_str(), turn.reason), ("Hi", Some(FinishReason::Stop)), "{why}");
        println!("{why}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn an_error_is_known_by_each_server_s_words() {
    use ProviderErrorKind as Kind;
    let line = "error: {\"code\":400,\"message\":\"the request exceeds the available context size. try increasing the context \
                size\",\"type\":\"invalid_request_error\"}\n\ndata: [DONE]\n\n";
    let upstream = Upstream::script([Answer::ok(SSE, line)]).await;
    let (_, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
    let error = failure.unwrap();
    assert_eq!(error.kind, Kind::ContextTooLong, "llama.cpp up to September 2025");
    assert!(report(&error).contains("try increasing"), "{}", report(&error));

    let body = |error: Value| json!({ "error": error }).to_string();
    for (status, error, kind, server) in [
        (
            400,
            json!({"message": "Content Exists Risk", "type": "invalid_request_error"}),
            Kind::ContentFiltered,
            "DeepSeek",
        ),
        (400, json!({"code": "data_inspection_failed", "message": "x"}), Kind::ContentFiltered, "Alibaba"),
        (400, json!({"code": "Arrearage", "message": "Access denied"}), Kind::QuotaExceeded, "Alibaba"),
        (
            429,
            json!({"code": "1113", "message": "Insufficient balance or no resource package."}),
            Kind::QuotaExceeded,
            "Z.ai",
        ),
        (
            429,
            json!({"type": "insufficient_balance_error", "message": "insufficient balance (1008)"}),
            Kind::QuotaExceeded,
            "MiniMax",
        ),
    ] {
        let upstream = Upstream::script([Answer::status(status, "application/json", body(error))]).await;
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
        assert_eq!(failure.unwrap().kind, kind, "{server}");
    }
}
