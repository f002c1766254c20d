//! Answers as frames of bytes, and requests with files, each compared whole.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::frames::tests::frame;
use super::*;
use crate::agent::ports::llm::{Loaded, MustCall, ProviderErrorKind as Kind, SentFiles, SystemPrompt};
use crate::chat::fate::CallFate;
use crate::chat::file::{FileKind, FileRef};
use crate::chat::ids::{FileId, ToolCallId};
use crate::chat::message::{AssistantMessage, AssistantPart, Message, UserMessage};
use crate::chat::model::{Effort, ModelChoice};
use crate::chat::stream::StreamEvent;
use crate::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};

const NAMED: &str = "us.anthropic.claude-haiku-4-5-20251001-v1:0";

fn event(name: &str, payload: &Value) -> Vec<u8> {
    frame("event", name, &payload.to_string())
}

fn delta(index: u64, delta: &Value) -> Vec<u8> {
    event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta, "p": "abcd"}))
}

fn call(index: u64, id: &str, name: &str) -> Vec<u8> {
    let start = json!({"toolUse": {"toolUseId": id, "name": name}});
    event("contentBlockStart", &json!({"contentBlockIndex": index, "start": start}))
}

fn stop(index: u64) -> Vec<u8> {
    event("contentBlockStop", &json!({"contentBlockIndex": index}))
}

fn ends(reason: &str) -> Vec<u8> {
    event("messageStop", &json!({"stopReason": reason}))
}

fn metadata() -> Vec<u8> {
    let usage = json!({
        "inputTokens": 3, "outputTokens": 5, "totalTokens": 38, "cacheReadInputTokens": 20, "cacheWriteInputTokens": 10
    });
    event("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 7}}))
}

/// What an answer says, one line per event, cut into pieces of `size` bytes.
fn said(frames: &[Vec<u8>], size: usize) -> Vec<String> {
    let body = frames.concat();
    let pieces = body.chunks(size).map(Bytes::copy_from_slice).collect();
    let line = |event: Result<StreamEvent, ProviderError>| match event {
        Ok(StreamEvent::Text(text)) => format!("text {text}"),
        Ok(StreamEvent::Thinking(text)) => format!("thinking {text}"),
        Ok(StreamEvent::ToolCallStarted { slot, id, name }) => {
            format!("call {} {} {name}", slot.0, id.unwrap_or_default())
        }
        Ok(StreamEvent::ToolCallInput { slot, json }) => format!("input {} {json}", slot.0),
        Ok(StreamEvent::Replay { on, data }) => format!("replay {on:?} {}", data.raw()),
        Ok(StreamEvent::Used(_)) => "used".to_owned(),
        Ok(StreamEvent::Finished { reason, usage }) => {
            let usage = usage.map(|u| (u.input_tokens, u.cached_input_tokens, u.output_tokens));
            format!("finished {reason:?} {usage:?}")
        }
        Err(error) => format!("{:?}: {}", error.kind, error.detail),
    };
    recorded::read(pieces, reader()).into_iter().map(line).collect()
}

#[test]
fn a_turn_of_reasoning_text_and_two_calls_is_the_same_however_it_is_cut() {
    let frames = [
        event("messageStart", &json!({"role": "assistant", "p": "a"})),
        delta(0, &json!({"reasoningContent": {"text": "Hm"}})),
        delta(0, &json!({"reasoningContent": {"text": "."}})),
        delta(0, &json!({"reasoningContent": {"signature": "SI"}})),
        delta(0, &json!({"reasoningContent": {"signature": "G=="}})),
        stop(0),
        delta(1, &json!({"reasoningContent": {"redactedContent": "AAA="}})),
        stop(1),
        delta(2, &json!({"text": ""})),
        delta(2, &json!({"text": "Grüße"})),
        stop(2),
        event("somethingNew", &json!({"x": 1})),
        call(3, "a", "f"),
        call(4, "b", "g"),
        delta(4, &json!({"toolUse": {"input": "{\"x\":"}})),
        delta(3, &json!({"toolUse": {"input": ""}})),
        delta(3, &json!({"toolUse": {"input": "{}"}})),
        delta(4, &json!({"toolUse": {"input": "1}"}})),
        stop(3),
        stop(4),
        ends("tool_use"),
        metadata(),
    ];
    let expected = [
        "thinking Hm",
        "thinking .",
        "replay Thinking \"SIG==\"",
        "replay Alone {\"reasoningContent\":{\"redactedContent\":\"AAA=\"}}",
        "text Grüße",
        "call 0 a f",
        "call 1 b g",
        "input 1 {\"x\":",
        "input 0 {}",
        "input 1 1}",
        "finished Stop Some((33, 20, 5))",
    ];
    for size in [1, 2, 3, 7, 12, 64, 100_000] {
        assert_eq!(said(&frames, size), expected, "{size}");
    }
    let body = frames.concat();
    // Cut off anywhere, what came before is told, then one error and no end; but behind `messageStop` all is there.
    let complete = body.len() - metadata().len();
    for end in (0..body.len()).filter(|end| *end != complete) {
        for size in [7, 100_000] {
            let said = said(&[body[..end].to_vec()], size);
            let Some((last, told)) = said.split_last() else { panic!("{end}: nothing was said") };
            assert!(last.starts_with("Truncated"), "{end}: {said:?}");
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            assert!(expected[..expected.len() - 1].starts_with(&told), "{end}: {said:?}");
        }
    }
}

#[test]
fn each_reason_to_stop_is_one_of_ours() {
    for (reason, expected) in [
        ("end_turn", "finished Stop None"),
        ("tool_use", "finished Stop None"),
        ("stop_sequence", "finished Stop None"),
        ("max_tokens", "finished Length None"),
        ("model_context_window_exceeded", "finished Length None"),
        ("guardrail_intervened", "finished ContentFilter None"),
        ("content_filtered", "finished ContentFilter None"),
        ("refusal", "finished Refusal None"),
        ("malformed_model_output", "ModelFault: stop reason malformed_model_output"),
        ("malformed_tool_use", "ModelFault: stop reason malformed_tool_use"),
        ("something_new", "finished Stop None"),
    ] {
        assert_eq!(said(&[ends(reason)], 9), [expected], "{reason}");
    }
    assert_eq!(said(&[event("messageStop", &json!({}))], 9), ["finished Stop None"], "none");
}

/// Frames, what they say, and why.
type Row<'a> = (&'a [Vec<u8>], &'a [&'a str], &'a str);

#[test]
fn an_answer_ends_with_its_reason_and_what_was_used_comes_behind_it() {
    let text = || delta(0, &json!({"text": "a"}));
    let rows: [Row<'_>; 5] = [
        (&[text(), ends("end_turn"), metadata()], &["text a", "finished Stop Some((33, 20, 5))"], "in order"),
        (
            &[text(), metadata(), ends("end_turn")],
            &["text a", "finished Stop Some((33, 20, 5))"],
            "the other way round",
        ),
        (&[text(), ends("end_turn")], &["text a", "finished Stop None"], "nothing was said of what was used"),
        (
            &[text(), metadata()],
            &["text a", "Truncated: the stream ended without its terminal marker"],
            "no messageStop",
        ),
        (&[text(), stop(0)], &["text a", "Truncated: the stream ended without its terminal marker"], "cut off"),
    ];
    for (frames, expected, why) in rows {
        assert_eq!(said(frames, 9), expected, "{why}");
    }
}

#[test]
fn a_thought_that_nothing_ends_is_signed_before_what_comes_next() {
    let thought = || delta(0, &json!({"reasoningContent": {"text": "Hm", "signature": "S"}}));
    let signed = ["thinking Hm", "replay Thinking \"S\""];
    for (next, expected) in [
        (delta(1, &json!({"text": "a"})), vec!["text a"]),
        (call(1, "a", "f"), vec!["call 0 a f"]),
        (delta(0, &json!({"text": "a"})), vec!["text a"]),
    ] {
        let frames = [thought(), next, ends("end_turn")];
        assert_eq!(said(&frames, 9), [&signed[..], expected.as_slice(), &["finished Stop None"]].concat());
    }
    assert_eq!(said(&[thought(), ends("end_turn")], 9), [&signed[..], &["finished Stop None"]].concat());
}

#[test]
fn exceptions_are_what_their_names_say_before_and_after_the_first_delta() {
    let limited = Kind::RateLimited { retry_after: None };
    let unavailable = Kind::Unavailable { retry_after: None };
    for (name, message, kind) in [
        ("throttlingException", "Too many requests", limited),
        ("throttlingException", "Too many tokens per day, please wait", Kind::QuotaExceeded),
        ("serviceUnavailableException", "x", unavailable),
        ("internalServerException", "x", unavailable),
        ("modelStreamErrorException", "x", Kind::ModelFault),
        ("validationException", "x", Kind::Rejected),
        ("validationException", "Input is too long for requested model.", Kind::ContextTooLong),
        ("accessDeniedException", "x", Kind::Unauthorized),
        ("somethingNew", "x", unavailable),
    ] {
        let failed = || frame("exception", name, &json!({"message": message, "originalStatusCode": 1}).to_string());
        let failure = format!("{kind:?}: {name}: {message}");
        assert_eq!(said(&[failed()], 9), std::slice::from_ref(&failure), "before");
        let text = delta(0, &json!({"text": "a"}));
        assert_eq!(said(&[text, failed(), ends("end_turn")], 9), ["text a".to_owned(), failure], "after");
    }
    let odd = frame("exception", "throttlingException", "no json");
    assert_eq!(said(&[odd], 9), [format!("{limited:?}: throttlingException: no json")]);
}

#[test]
fn a_frame_that_cannot_be_read_ends_an_answer_and_what_stood_before_it_counts() {
    let mut wrong = delta(0, &json!({"text": "b"}));
    wrong.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
    let frames = [delta(0, &json!({"text": "a"})), wrong, ends("end_turn")];
    assert_eq!(said(&frames, 100_000), ["text a", "Malformed: a frame of the answer has a wrong checksum"]);
    let no_json = [frame("event", "contentBlockDelta", "{"), ends("end_turn")];
    assert!(said(&no_json, 9)[0].starts_with("Malformed"));
}

#[test]
fn the_models_name_is_encoded_once_and_the_region_is_part_of_the_host() {
    let common =
        |base_url: &str| Common { base_url: base_url.to_owned(), ..crate::llm::Vendor::Bedrock.defaults().common };
    let arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.amazon.nova-pro-v1:0";
    for (base, region, model, expected) in [
        (BASE_URL, "", "a.b-v1:0", "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-v1%3A0/converse-stream"),
        (BASE_URL, "eu-west-1", "m", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream"),
        ("http://proxy/aws/", "", "m", "http://proxy/aws/model/m/converse-stream"),
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/",
            "eu-west-1",
            "m",
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream",
        ),
        (
            "http://proxy",
            "",
            arn,
            "http://proxy/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.amazon.nova-pro-v1%3A0/converse-stream",
        ),
        ("http://proxy", "", "a b?%", "http://proxy/model/a%20b%3F%25/converse-stream"),
    ] {
        assert_eq!(url("llm.bedrock", &common(base), region, model).unwrap().as_str(), expected);
    }
    for region in ["evil.example/", "EU", "a@b"] {
        let refused = url("llm.bedrock", &common(BASE_URL), region, "m").unwrap_err();
        assert!(refused.to_string().starts_with("llm.bedrock.region must be"), "{refused}");
    }
    let other = common("https://bedrock-runtime.us-west-2.amazonaws.com");
    let refused = url("llm.bedrock", &other, "eu-west-1", "m").unwrap_err();
    assert!(refused.to_string().starts_with("llm.bedrock.region is another one"), "{refused}");
}

#[test]
fn the_region_of_a_signature_is_that_of_the_address() {
    for (address, expected) in [
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/model", Some("eu-west-1")),
        ("https://bedrock-runtime-fips.us-east-1.amazonaws.com/", Some("us-east-1")),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn/", Some("cn-north-1")),
        ("https://vpce-0a1b.bedrock-runtime.us-west-2.vpce.amazonaws.com/", Some("us-west-2")),
        ("http://proxy/aws/", None),
        ("http://bedrock-runtime.example.com/", None),
    ] {
        assert_eq!(region_of(&Url::parse(address).unwrap()), expected, "{address}");
    }
}

/// What a conversation about files is asked with.
struct Asked {
    model: &'static str,
    messages: Vec<Message>,
    bytes: HashMap<FileId, Loaded>,
    tools: Vec<Arc<ToolDef>>,
    choice: ModelChoice,
    may_call: bool,
    must_call: MustCall<'static>,
    client: &'static str,
}

impl Asked {
    fn of(model: &'static str) -> Self {
        let tool = |name: &str| ToolDef {
            name: name.to_owned(),
            description: "Draws.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
        };
        Self {
            model,
            messages: Vec::new(),
            bytes: HashMap::new(),
            tools: vec![Arc::new(tool("draw"))],
            choice: ModelChoice::from_model(origin(model), None),
            may_call: true,
            must_call: MustCall::No,
            client: "",
        }
    }

    fn file(&mut self, kind: FileKind, name: &str) -> FileRef {
        let file = FileRef { id: FileId::fresh(), kind, name: name.to_owned(), bytes: 3, side: 9 };
        self.bytes.insert(file.id, Loaded { bytes: Ok(Bytes::from_static(b"abc")), rank: 1 });
        file
    }

    fn says(&mut self, text: &str, files: Vec<FileRef>) {
        self.messages.push(Message::User(UserMessage { files, ..UserMessage::new(text) }));
    }

    /// A call that made `files`.
    fn calls(&mut self, id: &str, content: &str, fate: CallFate, files: Vec<FileRef>) {
        let call =
            ToolCall { id: ToolCallId::from_model(id), name: "draw".to_owned(), input: ToolInput::Object(Map::new()) };
        let (id, name) = (call.id.clone(), call.name.clone());
        let parts = vec![AssistantPart::ToolCall { call, replay: None }];
        self.messages.push(Message::Assistant(AssistantMessage { origin: Arc::new(origin(self.model)), parts }));
        self.messages.push(Message::ToolResults(vec![ToolResult {
            id,
            name,
            content: content.to_owned(),
            fate,
            files,
        }]));
    }

    fn body(&self) -> Value {
        let system = SystemPrompt {
            instructions: "Be brief.".into(),
            client: self.client.to_owned(),
            context: "Screen.".to_owned(),
        };
        let takes = (FACTS.sight)(self.model).takes(self.model, &[], None);
        let request = ChatRequest {
            system: &system,
            messages: &self.messages,
            files: SentFiles { bytes: Some(&self.bytes), takes },
            tools: &self.tools,
            may_call: self.may_call,
            must_call: self.must_call,
            format: None,
            model: &self.choice,
            deadline: None,
        };
        serde_json::to_value(wire::Request::new(&request, &origin(self.model), false)).unwrap()
    }
}

fn origin(model: &str) -> ModelOrigin {
    ModelOrigin { provider: "bedrock".to_owned(), model: model.to_owned() }
}

fn point() -> Value {
    json!({"cachePoint": {"type": "default"}})
}

fn picture(format: &str) -> Value {
    json!({"image": {"format": format, "source": {"bytes": "YWJj"}}})
}

fn document(name: &str) -> Value {
    json!({"document": {"format": "pdf", "name": name, "source": {"bytes": "YWJj"}}})
}

#[test]
fn text_and_picture_and_document_are_a_request_with_cache_points() {
    let mut asked = Asked::of(NAMED);
    let files = vec![asked.file(FileKind::Jpeg, "a.jpg"), asked.file(FileKind::Pdf, "Q3_report.pdf")];
    asked.says("Look", files);
    let again = vec![asked.file(FileKind::Pdf, "Q3 report.pdf"), asked.file(FileKind::Pdf, "Q3_report.pdf")];
    asked.calls("t.1", "done", CallFate::Done, vec![]);
    asked.says("", again);
    asked.choice.max_tokens = Some(1000);
    asked.choice.temperature = Some(1.5);
    let spec =
        json!({"name": "draw", "description": "Draws.", "inputSchema": {"json": {"type": "object", "properties": {}}}});
    let expected = json!({
        "system": [{"text": "Be brief."}, point(), {"text": "Screen."}],
        "messages": [
            {"role": "user", "content": [picture("jpeg"), document("Q3-report"), {"text": "Look"}, point()]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t-2e1", "name": "draw", "input": {}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t-2e1", "content": [{"text": "done"}], "status": "success"}},
                document("Q3 report"),
                document("Q3-report (2)"),
                {"text": "The attached document."},
                point()
            ]},
        ],
        "inferenceConfig": {"maxTokens": 1000, "temperature": 1.0},
        "toolConfig": {"tools": [{"toolSpec": spec}, point()]},
    });
    assert_eq!(asked.body(), expected);
    asked.client = "Words of the client.";
    let body = asked.body();
    let system =
        json!([{"text": "Be brief."}, point(), {"text": "Words of the client."}, point(), {"text": "Screen."}]);
    assert_eq!(body["system"], system);
    assert_eq!(body["toolConfig"]["tools"], json!([{"toolSpec": spec}]), "four points are all there may be");
}

#[test]
fn more_documents_than_may_be_sent_are_sentences_and_the_names_of_the_others_stay() {
    let mut asked = Asked::of(NAMED);
    let files: Vec<FileRef> = (0..6).map(|_| asked.file(FileKind::Pdf, "a.pdf")).collect();
    for (nth, file) in files.iter().rev().enumerate() {
        asked.bytes.get_mut(&file.id).unwrap().rank = nth + 1;
    }
    asked.says("Look", files);
    let sentence = "[file a.pdf, 3 bytes: not shown, this model takes fewer PDF documents at once]";
    let mut expected = vec![json!({"text": sentence})];
    expected.extend((2..=6).map(|number| document(&format!("a ({number})"))));
    expected.extend([json!({"text": "Look"}), point()]);
    assert_eq!(asked.body()["messages"][0]["content"], Value::Array(expected));
}

#[test]
fn what_a_tool_made_stands_in_its_result_where_the_model_looks_there() {
    let behind = json!({"text": "[Returned by draw, call t:]"});
    let result =
        |content: Value, status: &str| json!({"toolResult": {"toolUseId": "t", "content": content, "status": status}});
    let unseen = |why: &str| json!({"text": format!("[image a.png, 3 bytes: not shown, {why}]")});
    let no_images = unseen("this model takes no images");
    let no_pdf = json!({"text": "[file a.pdf, 3 bytes: not shown, this model takes no PDF documents]"});
    let together = |content: Value| json!([{"role": "user", "content": content}]);
    // These take nothing else beside results.
    let apart = |content: Value| {
        json!([
            {"role": "user", "content": [result(json!([{"text": "done"}]), "success")]},
            {"role": "assistant", "content": [{"text": "[Files of these results follow.]"}]},
            {"role": "user", "content": content},
        ])
    };
    for (model, fate, content, expected) in [
        (
            "amazon.nova-pro-v1:0",
            CallFate::Done,
            "done",
            together(json!([result(json!([{"text": "done"}, picture("png"), document("a")]), "success"), point()])),
        ),
        (
            "amazon.nova-pro-v1:0",
            CallFate::Done,
            " ",
            together(json!([
                result(json!([picture("png"), document("a"), {"text": "The document."}]), "success"),
                point()
            ])),
        ),
        (
            "amazon.nova-pro-v1:0",
            CallFate::Failed,
            "it broke",
            together(json!([
                result(json!([{"text": "it broke"}]), "error"),
                behind,
                picture("png"),
                document("a"),
                point()
            ])),
        ),
        (
            "amazon.nova-pro-v1:0",
            CallFate::Failed,
            " ",
            together(json!([
                result(json!([{"text": "[No output.]"}]), "error"),
                behind,
                picture("png"),
                document("a"),
                point()
            ])),
        ),
        ("meta.llama3-3-70b-instruct-v1:0", CallFate::Done, "done", apart(json!([behind, no_images, no_pdf]))),
        (
            "us.meta.llama4-scout-17b-instruct-v1:0",
            CallFate::Done,
            "done",
            apart(json!([behind, picture("png"), no_pdf])),
        ),
    ] {
        let mut asked = Asked::of(model);
        asked.says("Draw", Vec::new());
        let files = vec![asked.file(FileKind::Png, "a.png"), asked.file(FileKind::Pdf, "a.pdf")];
        asked.calls("t", content, fate, files);
        assert_eq!(json!(asked.body()["messages"].as_array().unwrap()[2..]), expected, "{model} {fate:?}");
    }
}

#[test]
fn tools_are_listed_wherever_the_history_has_calls_and_choices_are_forced_where_they_can_be() {
    let mut asked = Asked::of(NAMED);
    asked.says("Draw", Vec::new());
    asked.must_call = MustCall::Any;
    assert_eq!(asked.body()["toolConfig"]["toolChoice"], json!({"any": {}}));
    asked.must_call = MustCall::This("draw");
    asked.choice.effort = Some(Effort::High);
    let body = asked.body();
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"tool": {"name": "draw"}}));
    assert!(body.get("additionalModelRequestFields").is_none(), "who has to call may not think first");
    asked.must_call = MustCall::No;
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 16_384}});
    let body = asked.body();
    assert_eq!(
        (&body["additionalModelRequestFields"], &body["inferenceConfig"]),
        (&thinking, &json!({"maxTokens": 64_000}))
    );

    asked.may_call = false;
    assert!(asked.body().get("toolConfig").is_none(), "nothing was called");
    asked.calls(&"x".repeat(65), "done", CallFate::Done, Vec::new());
    let body = asked.body();
    assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["name"], "draw");
    assert!(body.get("additionalModelRequestFields").is_none(), "the turn began without a thought");
    let id = body["messages"][1]["content"][0]["toolUse"]["toolUseId"].as_str().unwrap().to_owned();
    assert_eq!((id.len(), &body["messages"][2]["content"][0]["toolResult"]["toolUseId"]), (64, &json!(id)));
    asked.tools.clear();
    let spec = json!({
        "name": "draw", "description": "Not there any more: do not call it.", "inputSchema": {"json": {"type": "object"}}
    });
    assert_eq!(asked.body()["toolConfig"], json!({"tools": [{"toolSpec": spec}]}));

    let mut asked = Asked::of("mistral.mistral-large-2407-v1:0");
    asked.says("Draw", Vec::new());
    asked.must_call = MustCall::This("draw");
    let body = asked.body();
    assert!(body["toolConfig"].get("toolChoice").is_none());
    assert_eq!(body["system"][2]["text"], "Do not answer in words: call the tool draw.");
}

#[test]
fn reasoning_goes_back_in_its_run_to_the_model_that_wrote_it_and_to_no_other() {
    let raw = |json: &str| {
        crate::chat::message::Replay::new(serde_json::value::RawValue::from_string(json.to_owned()).unwrap())
    };
    let mut asked = Asked::of(NAMED);
    asked.says("Draw", Vec::new());
    asked.calls("t", "done", CallFate::Done, Vec::new());
    if let Some(Message::Assistant(answer)) = asked.messages.get_mut(1) {
        let redacted = AssistantPart::Opaque(raw(r#"{"reasoningContent":{"redactedContent":"AAA="}}"#));
        let thought = AssistantPart::Thinking { text: "Hm.".to_owned(), replay: Some(raw("\"SIG==\"")) };
        answer.parts.splice(0..0, [thought, redacted]);
    }
    let thoughts = [
        json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "SIG=="}}}),
        json!({"reasoningContent": {"redactedContent": "AAA="}}),
    ];
    let call = json!({"toolUse": {"toolUseId": "t", "name": "draw", "input": {}}});
    let [first, second] = thoughts;
    assert_eq!(asked.body()["messages"][1]["content"], json!([first, second, call]));
    let of_this_run = asked.messages.clone();
    asked.says("And now?", Vec::new());
    assert_eq!(asked.body()["messages"][1]["content"], json!([call]), "another run");
    let other = Asked { model: "anthropic.claude-sonnet-5-5", messages: of_this_run, ..asked };
    assert_eq!(other.body()["messages"][1]["content"], json!([call]), "another model");
}
