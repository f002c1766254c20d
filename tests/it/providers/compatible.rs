//! The many servers that speak chat completions with deviations of their own, and Ollama: reasoning in all its forms and
//! on its way back, token counts, ends and errors.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::{Value, json};
use switchboard::agent::ports::llm::{ChatRequest, LlmProvider, MustCall, ProviderErrorKind, SentFiles, SystemPrompt};
use switchboard::agent::turn::fold::{CallIds, Turn, TurnFold};
use switchboard::chat::fate::CallFate;
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, UserMessage};
use switchboard::chat::model::ModelChoice;
use switchboard::chat::stream::{FinishReason, Usage};
use switchboard::chat::tool::ToolResult;
use switchboard::llm::{self, Vendor};

use super::{config, connect, origin, report, set, some_model, turn};
use crate::support::upstream::{Answer, Upstream};

pub(super) const SSE: &str = "text/event-stream";
const NDJSON: &str = "application/x-ndjson";

/// A body of chunks, one choice with `delta` each, that ends well.
pub(super) fn deltas(deltas: &[Value]) -> String {
    let mut chunks: Vec<Value> =
        deltas.iter().map(|delta| json!({"choices": [{"index": 0, "delta": delta}]})).collect();
    chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    sse(&chunks)
}

fn sse(chunks: &[Value]) -> String {
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events + "data: [DONE]\n\n"
}

fn ndjson(messages: &[Value]) -> String {
    let lines: String = messages.iter().map(|message| format!("{}\n", json!({"message": message}))).collect();
    lines + "{\"done\":true,\"done_reason\":\"stop\"}\n"
}

/// The turn that `vendor` makes of `body`.
pub(super) async fn answered(vendor: Vendor, body: impl Into<Vec<u8>>) -> Turn {
    let content_type = if vendor == Vendor::Ollama { NDJSON } else { SSE };
    let upstream = Upstream::script([Answer::ok(content_type, body).cut(|| 7)]).await;
    let (turn, failure) = turn(&*connect(vendor, &config(&upstream.url()))).await;
    assert!(failure.is_none(), "{failure:?}");
    turn
}

pub(super) fn thinking(turn: &Turn) -> String {
    let texts = turn.message.parts.iter().filter_map(|part| match part {
        AssistantPart::Thinking { text, .. } => Some(text.as_str()),
        AssistantPart::Text { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => None,
    });
    texts.collect()
}

/// The turn that `provider` makes of `messages`, asked as `model` says; `None` when it is refused.
pub(super) async fn ask(provider: &dyn LlmProvider, messages: &[Message], model: &ModelChoice) -> Option<Turn> {
    let system = SystemPrompt { instructions: "".into(), client: String::new(), context: String::new() };
    let request = ChatRequest {
        system: &system,
        messages,
        files: SentFiles::default(),
        tools: &[],
        may_call: true,
        must_call: MustCall::No,
        format: None,
        model,
        deadline: None,
    };
    let mut stream = provider.stream_chat(request).await.ok()?;
    let mut fold = TurnFold::new(Arc::clone(&stream.origin), CallIds::default());
    while let Some(event) = stream.events.next().await {
        drop(fold.push(event.unwrap()));
    }
    Some(fold.finish())
}

/// The request that follows the answer `body`, all its calls done; and the answer.
pub(super) async fn asked_after(body: String, change: fn(&mut llm::LlmConfig)) -> (Turn, Vec<Value>) {
    let upstream = Upstream::script([Answer::ok(SSE, body), Answer::status(500, "text/plain", "seen")]).await;
    let mut config = config(&upstream.url());
    change(&mut config);
    let provider = connect(Vendor::OpenAi, &config);
    let model = ModelChoice::from_model(some_model(), Some(100));
    let mut messages = vec![Message::User(UserMessage::new("Who is Jane?"))];
    let turn = ask(&*provider, &messages, &model).await.unwrap();
    let results = turn.message.calls().map(|call| ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: "{}".to_owned(),
        fate: CallFate::Done,
        files: Vec::new(),
    });
    messages.extend([Message::Assistant(turn.message.clone()), Message::ToolResults(results.collect())]);
    assert!(ask(&*provider, &messages, &model).await.is_none());
    let request = upstream.requests().pop().unwrap().json();
    (turn, request["messages"].as_array().unwrap().clone())
}

#[tokio::test]
async fn reasoning_that_a_server_leaves_in_the_text_is_reasoning_all_the_same() {
    let table = [
        (vec!["<think>\nHm.\n</think>\n\nYes."], "\nHm.\n", "Yes.", "in one piece"),
        (vec!["\n", "<", "thi", "nk>H", "m.<", "/think", ">", "\n", "\nY", "es."], "Hm.", "Yes.", "in pieces"),
        (vec!["<think>Hm.</think>Use <think>", " tags."], "Hm.", "Use <think> tags.", "a later tag is text"),
        (vec!["<think>for ever </"], "for ever </", "", "never closed"),
        (vec!["<", "b>bold</b>"], "", "<b>bold</b>", "no tag at all"),
        (vec!["a", "<think>b</think>"], "", "a<think>b</think>", "not at the beginning"),
    ];
    for (pieces, expected, text, why) in table {
        let contents: Vec<Value> = pieces.iter().map(|piece| json!({"content": piece})).collect();
        for (vendor, body) in [(Vendor::OpenAi, deltas(&contents)), (Vendor::Ollama, ndjson(&contents))] {
            let turn = answered(vendor, body).await;
            assert_eq!((thinking(&turn).as_str(), turn.message.text().as_str()), (expected, text), "{vendor:?} {why}");
        }
    }
}

#[tokio::test]
async fn a_think_tag_behind_reasoning_or_a_call_is_text() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "find", "arguments": "{}"}}]});
    let tag = json!({"content": "<think>x"});
    for before in [json!({"reasoning_content": "Hm."}), json!({"reasoning": "Hm."}), call] {
        let turn = answered(Vendor::OpenAi, deltas(&[before.clone(), tag.clone()])).await;
        assert_eq!(turn.message.text(), "<think>x", "{before}");
    }
    let turn = answered(Vendor::Ollama, ndjson(&[json!({"content": "", "thinking": "Hm."}), tag])).await;
    assert_eq!((thinking(&turn).as_str(), turn.message.text().as_str()), ("Hm.", "<think>x"));
}

#[tokio::test]
async fn a_call_ends_reasoning_that_is_left_open_in_the_text() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "find", "arguments": "{}"}}]});
    let answer = [json!({"content": "<think>Hm."}), call, json!({"content": "Yes."})];
    for (vendor, body) in [(Vendor::OpenAi, deltas(&answer)), (Vendor::Ollama, ndjson(&answer))] {
        let turn = answered(vendor, body).await;
        assert_eq!((thinking(&turn).as_str(), turn.message.text().as_str()), ("Hm.", "Yes."), "{vendor:?}");
    }
}

#[tokio::test]
async fn one_odd_field_does_not_lose_an_answer() {
    let choice = |choice: Value| json!({"choices": [choice]});
    let whole = |said: Value| choice(json!({"delta": said, "finish_reason": "stop"}));
    let beside = |field: &str, value: Value| {
        let mut chunk = whole(json!({"content": "Yes."}));
        chunk[field] = value;
        chunk
    };
    let table = [
        (vec![whole(json!({"content": [{"text": "Yes."}]}))], "a part without a type"),
        (vec![whole(json!({"content": {"type": "text", "text": "Yes."}}))], "a part in place of the list"),
        (vec![whole(json!({"content": "Yes.", "tool_calls": {}}))], "no list of calls"),
        (vec![whole(json!({"content": "Yes.", "reasoning": {"text": "Hm."}, "refusal": false}))], "no texts"),
        (vec![beside("error", json!(""))], "an empty error"),
        (vec![beside("error", json!(false))], "no error"),
        (vec![beside("x_groq", json!({"error": {}}))], "an error without content"),
        (
            vec![choice(json!({"message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}))],
            "the whole answer at once",
        ),
        (
            vec![
                whole(json!({"content": "Yes."})),
                choice(json!({"message": {"content": "Yes."}, "finish_reason": "stop"})),
            ],
            "the whole answer once more",
        ),
    ];
    for (chunks, why) in table {
        let turn = answered(Vendor::OpenAi, sse(&chunks)).await;
        assert_eq!((turn.message.text().as_str(), turn.reason), ("Yes.", Some(FinishReason::Stop)), "{why}");
    }
    let message = json!({"tool_calls": [{"id": "a", "function": {"name": "find", "arguments": "{}"}}]});
    let turn =
        answered(Vendor::OpenAi, sse(&[choice(json!({"message": message, "finish_reason": "tool_calls"}))])).await;
    assert_eq!(turn.message.calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a"], "a call in it");
}

#[tokio::test]
async fn what_was_held_back_for_a_tag_is_said_before_an_error() {
    let sse = |end: &str| format!("data: {}\n\n{end}", json!({"choices": [{"delta": {"content": "<th"}}]}));
    let line = |end: &str| format!("{}\n{end}", json!({"message": {"content": "<th"}}));
    for (vendor, content_type, body) in [
        (Vendor::OpenAi, SSE, sse("")),
        (Vendor::OpenAi, SSE, sse("data: {\"error\":\"it broke\"}\n\n")),
        (Vendor::Ollama, NDJSON, line("")),
        (Vendor::Ollama, NDJSON, line("{\"error\":\"it broke\"}\n")),
    ] {
        let upstream = Upstream::script([Answer::ok(content_type, body.clone())]).await;
        let (turn, failure) = turn(&*connect(vendor, &config(&upstream.url()))).await;
        assert!(failure.is_some(), "{body}");
        assert_eq!(turn.message.text(), "<th", "{body}");
    }
}

#[tokio::test]
async fn reasoning_goes_back_the_way_it_came_and_is_shown_once() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "find", "arguments": "{}"}}]});
    let calls = json!([{"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}]);
    let block = |text: &str| json!([{"type": "reasoning.text", "index": 0, "text": text, "format": "claude"}]);
    let signature = json!([{"type": "reasoning.text", "index": 0, "signature": "SIG=="}]);
    let signed =
        json!([{"type": "reasoning.text", "index": 0, "text": "Hm.", "format": "claude", "signature": "SIG=="}]);
    let encrypted = json!([{"type": "reasoning.encrypted", "index": 0, "data": "AA==", "id": "rs_1"}]);
    let table = [
        ("DeepSeek, xAI, llama.cpp", vec![json!({"reasoning_content": "Hm."})], json!({"reasoning_content": "Hm."})),
        (
            "both names at once",
            vec![json!({"reasoning_content": "Hm.", "reasoning": "Hm."})],
            json!({"reasoning_content": "Hm."}),
        ),
        ("vLLM, Groq", vec![json!({"reasoning": "H"}), json!({"reasoning": "m."})], json!({"reasoning": "Hm."})),
        (
            "OpenRouter: text and blocks, the signature behind the call",
            vec![
                json!({"reasoning": "H", "reasoning_details": block("H")}),
                json!({"reasoning": "m.", "reasoning_details": block("m.")}),
                call.clone(),
                json!({"reasoning": null, "reasoning_details": signature}),
            ],
            json!({"reasoning_details": signed}),
        ),
        (
            "OpenRouter: blocks alone",
            vec![json!({"reasoning_details": block("Hm.")}), json!({"reasoning_details": signature})],
            json!({"reasoning_details": signed}),
        ),
        (
            "OpenRouter: text here, encrypted blocks there",
            vec![json!({"reasoning": "Hm."}), json!({"reasoning_details": encrypted})],
            json!({"reasoning_details": encrypted}),
        ),
        ("inline: nobody asks for it back", vec![json!({"content": "<think>Hm.</think>"})], json!({})),
    ];
    for (why, mut chunks, echo) in table {
        if !chunks.contains(&call) {
            chunks.push(call.clone());
        }
        let (turn, messages) = asked_after(deltas(&chunks), |_| {}).await;
        assert_eq!(thinking(&turn), "Hm.", "{why}");
        let mut expected = json!({"role": "assistant", "content": null, "tool_calls": calls});
        expected.as_object_mut().unwrap().extend(echo.as_object().unwrap().clone());
        assert_eq!(messages[1], expected, "{why}");
        let (_, messages) =
            asked_after(deltas(&chunks), |config| set(config, Vendor::OpenAi, "echo_reasoning = false")).await;
        assert_eq!(
            messages[1],
            json!({"role": "assistant", "content": null, "tool_calls": calls}),
            "{why}, not wanted"
        );
    }
}

#[tokio::test]
async fn what_google_s_layer_puts_on_a_call_goes_back_on_that_call() {
    let signed = json!({"google": {"thought_signature": "CiQB"}});
    let chunk = json!({"tool_calls": [
        {"id": "a", "function": {"name": "find", "arguments": "{}"}, "extra_content": signed},
        {"id": "b", "function": {"name": "find", "arguments": "{}"}},
    ]});
    let (_, messages) = asked_after(deltas(&[chunk]), |_| {}).await;
    let function = json!({"name": "find", "arguments": "{}"});
    let expected = json!([
        {"id": "a", "type": "function", "function": function, "extra_content": signed},
        {"id": "b", "type": "function", "function": function},
    ]);
    assert_eq!(messages[1]["tool_calls"], expected);
}

#[tokio::test]
async fn only_a_server_of_reasoning_content_gets_the_field_in_every_message() {
    for (mark, first, second) in [
        ("reasoning_content", json!({"reasoning_content": ""}), json!({"reasoning_content": "Hm."})),
        ("reasoning", json!({}), json!({"reasoning": "Hm."})),
        ("a mark of a later version", json!({}), json!({})),
    ] {
        let upstream = Upstream::script([Answer::status(500, "text/plain", "seen")]).await;
        let config = config(&upstream.url());
        let origin = Arc::new(origin(Vendor::OpenAi, &config));
        let text = |text: &str| AssistantPart::Text { text: text.to_owned(), replay: None };
        let said = |parts| Message::Assistant(AssistantMessage { origin: Arc::clone(&origin), parts });
        let replay = serde_json::value::to_raw_value(mark).unwrap();
        let replay = Some(switchboard::chat::message::Replay::new(replay));
        let messages = [
            Message::User(UserMessage::new("1")),
            said(vec![text("one")]),
            Message::User(UserMessage::new("2")),
            said(vec![AssistantPart::Thinking { text: "Hm.".to_owned(), replay }, text("two")]),
            Message::User(UserMessage::new("3")),
        ];
        let model = ModelChoice::from_model(some_model(), Some(100));
        assert!(ask(&*connect(Vendor::OpenAi, &config), &messages, &model).await.is_none());
        let sent = upstream.requests().pop().unwrap().json();
        for (at, content, echo) in [(1, "one", first), (3, "two", second)] {
            let mut expected = json!({"role": "assistant", "content": content});
            expected.as_object_mut().unwrap().extend(echo.as_object().unwrap().clone());
            assert_eq!(sent["messages"][at], expected, "{mark}");
        }
    }
}

#[tokio::test]
async fn token_counts_are_read_from_every_shape() {
    let stop = json!([{"finish_reason": "stop"}]);
    let counts = |input, output, cached, reasoning| {
        Some(Usage {
            input_tokens: input,
            output_tokens: output,
            cached_input_tokens: cached,
            reasoning_tokens: reasoning,
        })
    };
    let openai = json!({"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 5}});
    let deepseek = json!({"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17,
        "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6});
    let xai = json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 17,
        "completion_tokens_details": {"reasoning_tokens": 5}});
    let plain = json!({"prompt_tokens": 10, "completion_tokens": 7});
    let table = [
        (
            "OpenAI, Azure, vLLM: a last chunk of its own",
            vec![json!({"choices": stop}), json!({"choices": [], "usage": openai})],
            counts(10, 7, 4, 5),
        ),
        ("DeepSeek: on the finish chunk", vec![json!({"choices": stop, "usage": deepseek})], counts(10, 7, 4, 0)),
        (
            "xAI: reasoning apart",
            vec![json!({"choices": stop}), json!({"choices": [], "usage": xai})],
            counts(10, 7, 0, 5),
        ),
        (
            "Groq: in x_groq alone",
            vec![json!({"choices": stop, "x_groq": {"id": "r", "usage": plain}})],
            counts(10, 7, 0, 0),
        ),
        (
            "Moonshot: in the choice, what was cached beside the others",
            vec![json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage":
                {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, "cached_tokens": 4}}]})],
            counts(10, 7, 4, 0),
        ),
        (
            "OpenRouter: behind the finish, with a choice",
            vec![
                json!({"choices": stop}),
                json!({"choices": [{"delta": {"content": ""}, "finish_reason": null}], "usage": openai}),
            ],
            counts(10, 7, 4, 5),
        ),
        (
            "in every chunk, growing; null and {} erase nothing",
            vec![
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}),
                json!({"choices": stop, "usage": plain}),
                json!({"choices": [], "usage": null}),
                json!({"choices": [], "usage": {}}),
            ],
            counts(10, 7, 0, 0),
        ),
        (
            "null details",
            vec![
                json!({"choices": stop, "usage": {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": null}}),
            ],
            counts(1, 2, 0, 0),
        ),
        (
            "details that a later chunk leaves out",
            vec![
                json!({"choices": stop, "usage": openai}),
                json!({"choices": [], "usage": {"completion_tokens_details": {}, "prompt_tokens_details": {}}}),
            ],
            counts(10, 7, 4, 5),
        ),
        (
            "a total with more in it than anybody explains",
            vec![json!({"choices": stop, "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 112}})],
            counts(9, 103, 0, 0),
        ),
        ("counts that are none", vec![json!({"choices": stop, "usage": {"prompt_tokens": -1}})], None),
        ("llama-cpp-python, older LM Studio: none", vec![json!({"choices": stop})], None),
    ];
    for (why, chunks, expected) in table {
        assert_eq!(answered(Vendor::OpenAi, sse(&chunks)).await.usage, expected, "{why}");
    }
    let ollama = r#"{"message":{"content":"x"},"done":true,"prompt_eval_count":10,"eval_count":7}"#;
    assert_eq!(answered(Vendor::Ollama, ollama).await.usage, counts(10, 7, 0, 0));
    let odd = r#"{"message":{"content":"x","thinking":false},"error":"","done":true,"prompt_eval_count":10,"eval_count":1.5}"#;
    assert_eq!(answered(Vendor::Ollama, odd).await.usage, counts(10, 0, 0, 0), "what is no count says nothing");
    let from_cache = r#"{"message":{"content":"x"},"done":true,"eval_count":7}"#;
    assert_eq!(answered(Vendor::Ollama, from_cache).await.usage, counts(0, 7, 0, 0), "zeros are left out");
}

#[tokio::test]
async fn every_finish_reason_is_an_end_a_limit_a_filter_or_an_error() {
    use ProviderErrorKind as Kind;
    let unavailable = Kind::Unavailable { retry_after: None };
    let table = [
        ("stop", Ok(FinishReason::Stop)),
        ("eos", Ok(FinishReason::Stop)),
        ("function_call", Ok(FinishReason::Stop)),
        ("length", Ok(FinishReason::Length)),
        ("model_length", Ok(FinishReason::Length)),
        ("model_context_window_exceeded", Ok(FinishReason::Length)),
        ("sensitive", Ok(FinishReason::ContentFilter)),
        ("content_filter", Ok(FinishReason::ContentFilter)),
        ("content_filter: PROHIBITED_CONTENT", Ok(FinishReason::ContentFilter)),
        ("SAFETY", Ok(FinishReason::ContentFilter)),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", Err(Kind::ModelFault)),
        ("MALFORMED_RESPONSE", Err(Kind::ModelFault)),
        ("malformed_function_call", Err(Kind::ModelFault)),
        ("IMAGE_OTHER", Err(Kind::ModelFault)),
        ("IMAGE_SAFETY", Ok(FinishReason::ContentFilter)),
        ("MODEL_ARMOR", Ok(FinishReason::ContentFilter)),
        ("safety", Ok(FinishReason::ContentFilter)),
        ("MISSING_THOUGHT_SIGNATURE", Err(Kind::Rejected)),
        ("refusal", Ok(FinishReason::Refusal)),
        ("timeout", Err(unavailable)),
        ("failed", Err(unavailable)),
        ("cancelled", Err(unavailable)),
        ("insufficient_system_resource", Err(unavailable)),
        ("abort", Err(unavailable)),
    ];
    for (label, expected) in table {
        let body = sse(&[json!({"choices": [{"delta": {"content": "x"}, "finish_reason": label}]})]);
        let upstream = Upstream::script([Answer::ok(SSE, body)]).await;
        let (turn, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
        let observed = match failure {
            Some(error) => Err(error.kind),
            None => Ok(turn.reason.unwrap()),
        };
        assert_eq!(observed, expected, "{label}");
    }
}

#[tokio::test]
async fn an_answer_without_its_end_is_an_error_that_says_what_came() {
    use ProviderErrorKind as Kind;
    let text = json!({"choices": [{"delta": {"content": "x"}}]});
    let rate_limited = Kind::RateLimited { retry_after: None };
    let table = [
        (String::new(), Kind::Truncated, "the conversation is too long", "llama-cpp-python: an overlong prompt"),
        ("data: [DONE]\n\n".to_owned(), Kind::Truncated, "too long", "the same behind a gateway"),
        (sse(std::slice::from_ref(&text)), Kind::Truncated, "terminal marker", "[DONE] without a finish reason"),
        (
            sse(&[text.clone(), json!({"error": {"message": "slow down", "code": 429}})]),
            rate_limited,
            "slow down",
            "a code that is a number",
        ),
        (
            sse(&[json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})]),
            rate_limited,
            "slow down",
            "a code that is a word",
        ),
        (
            sse(&[json!({"object": "error", "message": "no", "type": "BadRequestError", "code": 400})]),
            Kind::Rejected,
            "no",
            "vLLM: the chunk is the error",
        ),
        (sse(&[json!({"error": "it broke"})]), Kind::Unavailable { retry_after: None }, "it broke", "a mere text"),
        (
            sse(&[json!({"choices": [], "x_groq": {"error": "over capacity"}})]),
            Kind::Unavailable { retry_after: None },
            "over capacity",
            "Groq: in its own corner",
        ),
        (
            sse(&[
                json!({"error": {"message": "Trying to keep the first 9 tokens when context the overflows. However, \
                the model is loaded with context length of only 8 tokens"}}),
            ]),
            Kind::ContextTooLong,
            "Trying to keep",
            "LM Studio: in words alone",
        ),
    ];
    for (body, kind, words, why) in table {
        let upstream = Upstream::script([Answer::ok(SSE, body)]).await;
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
        let error = failure.unwrap();
        assert_eq!(error.kind, kind, "{why}");
        assert!(report(&error).contains(words), "{why}: {}", report(&error));
    }
}

#[tokio::test]
async fn a_good_answer_with_raw_json_behind_it_is_an_error() {
    use ProviderErrorKind as Kind;
    let good = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}));
    let error = json!({"error": {"message": "it broke", "code": 500}}).to_string();
    let unavailable = Kind::Unavailable { retry_after: None };
    let table = [
        (format!("{error}\n"), unavailable, "it broke", "one error"),
        (error[..error.len() - 4].to_owned(), Kind::Truncated, "no event", "one that is cut"),
        (format!("{error}\n{{\"error\":\"and again\"}}\n"), unavailable, "it broke", "two, in a line each"),
        (json!({"error": "x".repeat(70_000)}).to_string(), Kind::Truncated, "no event", "one that is too long"),
        (format!("{error}\n\ndata: [DONE]\n\n"), unavailable, "it broke", "one before [DONE]"),
        (format!("{}\n\ndata: [DONE]\n\n", &error[..9]), Kind::Malformed, "EOF", "a cut one before [DONE]"),
    ];
    for (tail, kind, words, why) in table {
        let upstream = Upstream::script([Answer::ok(SSE, format!("{good}{tail}")).cut(|| 7)]).await;
        let (turn, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
        let error = failure.unwrap();
        assert_eq!((error.kind, turn.reason, turn.message.text().as_str()), (kind, None, "x"), "{why}");
        assert!(report(&error).contains(words), "{why}: {}", report(&error));
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_known_by_every_server_s_words() {
    for (body, server) in [
        (r#"{"object":"error","message":"This model's maximum context length is 8 tokens.","code":400}"#, "vLLM"),
        (r#"{"error":{"type":"exceed_context_size_error","code":400,"message":"n"}}"#, "llama.cpp"),
        (
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length"}"#,
            "LM Studio",
        ),
        (r#"{"code":"x","error":"This model's maximum prompt length is 8 but the request contains 9 tokens."}"#, "xAI"),
        (
            r#"{"error":{"code":"invalid_parameter_error","message":"<400> Range of input length should be [1, 8]"}}"#,
            "Alibaba",
        ),
        (r#"{"object":"error","message":{"detail":"Prompt has 9 tokens, maximum context length is 8"}}"#, "Mistral"),
        (
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 8 (requested: 9)"}}"#,
            "Kimi",
        ),
        (r#"{"error":{"code":"1261","message":"tokens in request more than max tokens allowed"}}"#, "Z.ai"),
        (r#"{"message":"too many total text bytes: 9 > 8"}"#, "Bedrock"),
        (
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"provider_name":"Anthropic",
                "raw":"{\"type\":\"error\",\"error\":{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}"}}}"#,
            "a vendor behind OpenRouter",
        ),
    ] {
        let upstream = Upstream::script([Answer::status(400, "application/json", body)]).await;
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config(&upstream.url()))).await;
        assert_eq!(failure.unwrap().kind, ProviderErrorKind::ContextTooLong, "{server}");
    }
}
