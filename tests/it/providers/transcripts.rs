//! The corpus of recorded and constructed answers (`tests/fixtures/transcripts/README.md` has its rules): every case,
//! over a real socket, whole, byte by byte and in random pieces, must give the same turn.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::agent::ports::llm::LlmProvider;
use switchboard::agent::ports::llm::ProviderError;
use switchboard::agent::turn::fold::Turn;
use switchboard::chat::message::{AssistantPart, Replay};
use switchboard::chat::stream::FinishReason;
use switchboard::chat::tool::ToolInput;
use switchboard::llm::{Vendor, Wire};

use super::{RESPONSES, config, connect, report, set, turn};
use crate::support::upstream::{Answer, End, Upstream};

pub(super) struct Case {
    pub(super) name: String,
    pub(super) vendor: Vendor,
    pub(super) wire: &'static Wire,
    pub(super) body: Vec<u8>,
    pub(super) expected: Value,
}

impl Case {
    /// The case as an answer in one piece.
    pub(super) fn answer(&self) -> Answer {
        self.answer_up_to(self.body.len())
    }

    /// Who is asked on the wire of the case.
    pub(super) fn provider(&self, base_url: &str) -> Arc<dyn LlmProvider> {
        let mut config = config(base_url);
        if self.wire.name == RESPONSES {
            set(&mut config, self.vendor, "wire = 'responses'");
        }
        connect(self.vendor, &config)
    }

    /// The first `length` bytes of it.
    pub(super) fn answer_up_to(&self, length: usize) -> Answer {
        let content_type = match self.vendor {
            Vendor::Ollama => "application/x-ndjson",
            Vendor::Bedrock => "application/vnd.amazon.eventstream",
            Vendor::Claude | Vendor::Gemini | Vendor::OpenAi | Vendor::Vertex => "text/event-stream",
        };
        Answer::ok(content_type, &self.body[..length])
    }
}

/// All cases by `wire/name`.
pub(super) fn corpus() -> BTreeMap<String, Case> {
    let mut cases = BTreeMap::new();
    for (vendor, wire) in
        Vendor::ALL.into_iter().flat_map(|vendor| vendor.wires().iter().map(move |wire| (vendor, wire)))
    {
        let folder = wire.name;
        let path = format!("{}/tests/fixtures/transcripts/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let extension = path.extension().unwrap().to_str().unwrap();
            if !matches!(extension, "sse" | "ndjson" | "eventstream") {
                continue;
            }
            let name = format!("{folder}/{}", path.file_stem().unwrap().to_str().unwrap());
            let expected = fs::read_to_string(path.with_extension("expected.json")).unwrap();
            let expected = serde_json::from_str(&expected).unwrap();
            let body = fs::read(&path).unwrap();
            cases.insert(name.clone(), Case { name, vendor, wire, body, expected });
        }
    }
    assert!(cases.len() > 100, "{} cases", cases.len());
    cases
}

/// A server that answers `/{wire}/{case}/…` with that case, cut as `cut` says.
async fn replaying(
    cases: Arc<BTreeMap<String, Case>>,
    end: End,
    cut: fn(&str) -> Box<dyn FnMut() -> usize>,
) -> Upstream {
    Upstream::choosing(move |request| {
        let name = request.path.split('/').skip(1).take(2).collect::<Vec<_>>().join("/");
        let case = cases.get(&name)?;
        Some(case.answer().cut(cut(&name)).ending(end))
    })
    .await
}

/// What a turn came to, in the form of the corpus.
fn observed(case: &Case, turn: &Turn, failure: Option<&ProviderError>) -> Value {
    let mut thinking = String::new();
    let mut replay = Vec::new();
    let mut tool_calls = Vec::new();
    for part in &turn.message.parts {
        match part {
            AssistantPart::Text { replay: signature, .. } => {
                replay.extend(signature.as_ref().map(|s| match case.vendor {
                    Vendor::OpenAi => value(s),
                    Vendor::Claude | Vendor::Gemini | Vendor::Ollama | Vendor::Bedrock | Vendor::Vertex => {
                        signed("text", None, s)
                    }
                }));
            }
            AssistantPart::Thinking { text, replay: signature } => {
                thinking.push_str(text);
                match (case.vendor, signature) {
                    (Vendor::Claude | Vendor::Bedrock, Some(s)) => {
                        replay.push(json!({"kind": "thinking", "thinking": text, "signature": value(s)}));
                    }
                    (Vendor::Gemini | Vendor::Vertex, Some(s)) => replay.push(signed("text", None, s)),
                    (Vendor::OpenAi, Some(s)) if case.wire.name == RESPONSES => replay.push(value(s)),
                    // How it came: the name of a field, or blocks.
                    (Vendor::OpenAi, Some(s)) => match value(s) {
                        Value::String(field) => assert!(["reasoning_content", "reasoning"].contains(&field.as_str())),
                        blocks => assert!(blocks["reasoning_details"].is_array(), "{blocks}"),
                    },
                    (_, signature) => assert!(signature.is_none(), "{signature:?}"),
                }
            }
            AssistantPart::ToolCall { call, replay: signature } => {
                if matches!(case.vendor, Vendor::Gemini | Vendor::Vertex) {
                    replay.extend(signature.as_ref().map(|s| signed("functionCall", Some(tool_calls.len()), s)));
                }
                let id = (!call.id.is_minted()).then(|| call.id.as_str());
                let input = match &call.input {
                    ToolInput::Object(map) => Value::Object(map.clone()),
                    ToolInput::Invalid(_) => Value::Null,
                };
                tool_calls.push(json!({"id": id, "name": call.name, "input": input}));
            }
            AssistantPart::Opaque(block) => {
                let block = value(block);
                if case.vendor == Vendor::Bedrock {
                    replay.push(block);
                    continue;
                }
                assert_eq!(block["type"], "redacted_thinking");
                replay.push(json!({"kind": "redacted_thinking", "data": block["data"]}));
            }
        }
    }
    let finish = match turn.reason {
        _ if failure.is_some() => "error",
        Some(FinishReason::Stop) if tool_calls.is_empty() => "stop",
        Some(FinishReason::Stop) => "tool_use",
        Some(FinishReason::Length) => "length",
        Some(FinishReason::ContentFilter | FinishReason::Refusal) => "content_filter",
        None => panic!("{}: neither an end nor an error", case.name),
    };
    let mut observed = json!({
        "text": turn.message.text(),
        "thinking": thinking,
        "tool_calls": tool_calls,
        "stop_for_tool_use": finish == "tool_use",
        "finish": finish,
        "usage": turn.usage.map(|u| json!({"input_tokens": u.input_tokens, "output_tokens": u.output_tokens})),
        "error": failure.map(report),
    });
    if !replay.is_empty() {
        observed["replay"] = Value::Array(replay);
    }
    observed
}

fn value(replay: &Replay) -> Value {
    serde_json::from_str(replay.raw().get()).unwrap()
}

fn signed(on: &str, tool_index: Option<usize>, signature: &Replay) -> Value {
    json!({"kind": "thoughtSignature", "on": on, "tool_index": tool_index, "signature": value(signature)})
}

/// Compares by the corpus's rules: of an error only what was streamed before it counts.
fn check(case: &Case, mut observed: Value, how: &str) {
    let mut expected = case.expected.clone();
    if case.name == "openai/tool-xai-recorded" {
        // The corpus has the numbers as reported; ours are comparable: 196 of reasoning are counted like everybody's.
        expected["usage"]["output_tokens"] = json!(26 + 196);
    }
    if expected["finish"] == "error" {
        let reported = observed["error"].take();
        let words = expected["error"].take();
        let is_reported = reported.as_str().is_some_and(|line| line.contains(words.as_str().unwrap()));
        assert!(is_reported, "{} {how}: {reported} does not say {words}", case.name);
        for compared in [&mut observed, &mut expected] {
            let object = compared.as_object_mut().unwrap();
            object.retain(|key, _| matches!(key.as_str(), "text" | "thinking" | "finish" | "stop_for_tool_use"));
        }
    }
    assert_eq!(observed, expected, "{} {how}", case.name);
}

async fn replay_all(how: &str, cut: fn(&str) -> Box<dyn FnMut() -> usize>) {
    let cases = Arc::new(corpus());
    let upstream = replaying(Arc::clone(&cases), End::Clean, cut).await;
    for case in cases.values() {
        let provider = case.provider(&format!("{}/{}", upstream.url(), case.name));
        let (turn, failure) = turn(&*provider).await;
        check(case, observed(case, &turn, failure.as_ref()), how);
    }
}

#[tokio::test]
async fn every_recorded_answer_is_understood_in_one_piece() {
    replay_all("whole", |_| Box::new(|| usize::MAX)).await;
}

#[tokio::test]
async fn every_recorded_answer_of_gemini_and_claude_is_understood_behind_vertex() {
    let cases = Arc::new(corpus());
    let upstream = replaying(Arc::clone(&cases), End::Clean, |_| Box::new(|| usize::MAX)).await;
    let mut played = 0;
    for case in cases.values() {
        let model = match case.vendor {
            Vendor::Gemini => "gemini-2.5-flash",
            Vendor::Claude => "claude-sonnet-5-5",
            _ => continue,
        };
        let mut config = config(&format!("{}/{}", upstream.url(), case.name));
        let own = format!("project = 'acme-1'\napi_key = 'ya29.token'\nmodel = '{model}'");
        set(&mut config, Vendor::Vertex, &own);
        let (turn, failure) = turn(&*connect(Vendor::Vertex, &config)).await;
        check(case, observed(case, &turn, failure.as_ref()), "behind Vertex");
        played += 1;
    }
    assert!(played >= 40, "{played} cases");
}

#[tokio::test]
async fn every_recorded_answer_is_understood_byte_by_byte() {
    replay_all("in single bytes", |_| Box::new(|| 1)).await;
}

#[tokio::test]
async fn every_recorded_answer_is_understood_in_random_pieces() {
    for seed in 1..=3 {
        // The seed is in the name of the cut, since a plain function cannot hold it.
        let cut: fn(&str) -> Box<dyn FnMut() -> usize> = match seed {
            1 => |name| random_sizes(name, 1),
            2 => |name| random_sizes(name, 2),
            _ => |name| random_sizes(name, 3),
        };
        replay_all(&format!("in random pieces, seed {seed}"), cut).await;
    }
}

/// Sizes from 1 to 64, the same for the same name and seed (xorshift).
pub(super) fn random_sizes(name: &str, seed: u64) -> Box<dyn FnMut() -> usize> {
    let mut state = name.bytes().fold(seed, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)) | 1;
    Box::new(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        1 + usize::try_from(state % 64).unwrap()
    })
}

#[tokio::test]
async fn an_answer_cut_off_by_its_connection_is_an_error_like_one_that_just_ends() {
    let cases = Arc::new(corpus());
    let upstream = replaying(Arc::clone(&cases), End::Abort, |_| Box::new(|| usize::MAX)).await;
    let truncated: Vec<_> = cases.values().filter(|case| case.name.contains("/truncated-")).collect();
    assert!(truncated.len() >= 5, "{} cases", truncated.len());
    for case in truncated {
        let provider = case.provider(&format!("{}/{}", upstream.url(), case.name));
        let (turn, failure) = turn(&*provider).await;
        assert_eq!(failure.as_ref().unwrap().kind.code().name(), "provider_truncated", "{}", case.name);
        check(case, observed(case, &turn, failure.as_ref()), "aborted");
    }
}
