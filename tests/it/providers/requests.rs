//! What is sent: each scenario as each vendor must get it, compared whole with `tests/fixtures/requests/<vendor>/*.json`
//! (`UPDATE_GOLDEN=1` writes them); the headers and the addresses; and what stays the same from turn to turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use switchboard::agent::ports::llm::ChatRequest;
use switchboard::agent::turn::fold::{CallIds, TurnFold};
use switchboard::chat::message::{Message, ModelOrigin};
use switchboard::chat::model::{Effort, ModelChoice};
use switchboard::llm::{self, Vendor, recorded};

use super::scenarios::{self, Asked, Scenario};
use super::{config, fixture, origin, set};
use crate::support::upstream::{Answer, Request, Upstream};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/requests");

/// Who is asked: a vendor, with what a test changes in the configuration.
#[derive(Clone, Copy)]
struct Model {
    vendor: Vendor,
    change: fn(&mut llm::LlmConfig, &str),
}

const CLAUDE: Model =
    Model { vendor: Vendor::Claude, change: |config, _| set(config, Vendor::Claude, "api_key = 'sk-1'") };

const OLDER_CLAUDE: Model =
    Model { vendor: Vendor::Claude, change: |config, _| set(config, Vendor::Claude, "model = 'claude-haiku-4-5'") };

const GEMINI: Model = Model {
    vendor: Vendor::Gemini,
    change: |config, _| {
        set(config, Vendor::Gemini, "api_key = 'g-1'\nmodel = 'models/gemini-3.5-flash'");
    },
};

const OLDER_GEMINI: Model = Model { vendor: Vendor::Gemini, change: |_, _| {} };

const OLLAMA: Model = Model { vendor: Vendor::Ollama, change: |_, _| {} };

const OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    change: |config, url| {
        set(config, Vendor::OpenAi, &format!("api_key = 'sk-1'\nbase_url = '{url}/v1/'"));
    },
};

const OTHER_OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    change: |config, url| {
        let base_url = format!("base_url = '{url}/openai?api-version=1'");
        let own = "max_tokens_field = 'max_completion_tokens'\nstream_options = false";
        set(config, Vendor::OpenAi, &format!("{base_url}\n{own}"));
    },
};

type Case = (&'static str, Model, fn(&Asked) -> Scenario);

/// Every golden file, with the request it is.
const CASES: [Case; 36] = [
    ("claude/text", CLAUDE, scenarios::first_words),
    ("claude/tools", CLAUDE, scenarios::one_call),
    ("claude/parallel-tools", CLAUDE, scenarios::parallel_calls),
    ("claude/thinking-with-tools", CLAUDE, scenarios::thinking),
    ("claude/fallback", CLAUDE, scenarios::fallback),
    ("claude/everything", CLAUDE, scenarios::everything),
    ("claude/schemas", CLAUDE, scenarios::schemas),
    ("claude/text-around-a-call", CLAUDE, scenarios::text_around_a_call),
    ("claude/text-of-an-older-model", OLDER_CLAUDE, scenarios::first_words),
    ("claude/thinking-with-tools-of-an-older-model", OLDER_CLAUDE, scenarios::thinking),
    ("claude/fallback-to-an-older-model", OLDER_CLAUDE, scenarios::fallback),
    ("gemini/text", GEMINI, scenarios::first_words),
    ("gemini/tools", GEMINI, scenarios::one_call),
    ("gemini/parallel-tools", GEMINI, scenarios::parallel_calls),
    ("gemini/thinking-with-tools", GEMINI, scenarios::thinking),
    ("gemini/fallback", GEMINI, scenarios::fallback),
    ("gemini/text-around-a-call", GEMINI, scenarios::text_around_a_call),
    ("gemini/everything", GEMINI, scenarios::everything),
    ("gemini/schemas", GEMINI, scenarios::schemas),
    ("gemini/thinking-with-tools-of-an-older-model", OLDER_GEMINI, scenarios::thinking),
    ("gemini/fallback-to-an-older-model", OLDER_GEMINI, scenarios::fallback),
    ("ollama/text", OLLAMA, scenarios::first_words),
    ("ollama/tools", OLLAMA, scenarios::one_call),
    ("ollama/parallel-tools", OLLAMA, scenarios::parallel_calls),
    ("ollama/thinking-with-tools", OLLAMA, scenarios::thinking),
    ("ollama/fallback", OLLAMA, scenarios::fallback),
    ("ollama/everything", OLLAMA, scenarios::everything),
    ("ollama/schemas", OLLAMA, scenarios::schemas),
    ("openai/text", OPENAI, scenarios::first_words),
    ("openai/tools", OPENAI, scenarios::one_call),
    ("openai/parallel-tools", OPENAI, scenarios::parallel_calls),
    ("openai/thinking-with-tools", OPENAI, scenarios::thinking),
    ("openai/fallback", OPENAI, scenarios::fallback),
    ("openai/everything", OPENAI, scenarios::everything),
    ("openai/everything-elsewhere", OTHER_OPENAI, scenarios::everything),
    ("openai/schemas", OPENAI, scenarios::schemas),
];

/// A server that keeps what it is sent, and a provider that sends it there.
struct Sent {
    upstream: Upstream,
    config: llm::LlmConfig,
    origin: ModelOrigin,
    asked: Asked,
}

impl Sent {
    async fn to(model: Model) -> Self {
        let upstream = Upstream::choosing(|_| Some(Answer::status(500, "text/plain", "seen"))).await;
        let mut config = config(&upstream.url());
        (model.change)(&mut config, &upstream.url());
        let origin = origin(model.vendor, &config);
        Self { upstream, config, asked: Asked::of(model.vendor, origin.clone()), origin }
    }

    /// The request that the vendor gets for the first `messages` of a scenario.
    async fn request(&self, scenario: &Scenario, messages: &[Message]) -> Request {
        self.request_that(true, scenario, messages).await
    }

    /// The same where the model may call tools, or may not.
    async fn request_that(&self, may_call: bool, scenario: &Scenario, messages: &[Message]) -> Request {
        let provider = llm::connect(&self.origin, &self.config).unwrap();
        let Scenario { system, tools, effort, temperature, .. } = scenario;
        let choice = ModelChoice::from_model(self.origin.clone(), Some(1000));
        let model = &ModelChoice { effort: *effort, temperature: *temperature, ..choice };
        let request = ChatRequest { system, messages, tools, may_call, model, deadline: None };
        assert!(provider.stream_chat(request).await.is_err());
        self.upstream.requests().pop().unwrap()
    }
}

/// The request of one scenario.
async fn sent(model: Model, scenario: fn(&Asked) -> Scenario) -> Request {
    let sent = Sent::to(model).await;
    let scenario = scenario(&sent.asked);
    sent.request(&scenario, &scenario.messages).await
}

async fn check_all(folder: &str) {
    for (name, model, scenario) in CASES.iter().filter(|(name, ..)| name.starts_with(folder)) {
        let body = sent(*model, *scenario).await.json();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(format!("{FOLDER}/{folder}")).unwrap();
            fs::write(format!("{FOLDER}/{name}.json"), serde_json::to_string_pretty(&body).unwrap() + "\n").unwrap();
        }
        assert_eq!(body, fixture(&format!("requests/{name}.json")), "{name}: {body:#}");
    }
}

#[tokio::test]
async fn claude_gets_what_the_messages_api_takes() {
    check_all("claude/").await;
}

#[tokio::test]
async fn gemini_gets_what_its_api_takes() {
    check_all("gemini/").await;
}

#[tokio::test]
async fn ollama_gets_what_its_server_takes() {
    check_all("ollama/").await;
}

#[tokio::test]
async fn chat_completions_get_what_most_servers_take() {
    check_all("openai/").await;
}

#[tokio::test]
async fn a_model_that_may_not_call_is_told_so_and_the_rest_stays_the_same() {
    let stay = "the tools stay, since the history names them";
    let rows = [
        (CLAUDE, None, json!({"tool_choice": {"type": "none"}}), stay),
        (GEMINI, None, json!({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}), stay),
        (OPENAI, Some("tools"), json!({}), "no tools"),
        (OLLAMA, Some("tools"), json!({}), "no tools"),
    ];
    for (model, without, with, reason) in rows {
        let sent = Sent::to(model).await;
        let scenario = scenarios::one_call(&sent.asked);
        let mut expected = sent.request(&scenario, &scenario.messages).await.json();
        let fields = expected.as_object_mut().unwrap();
        without.into_iter().for_each(|name| assert!(fields.remove(name).is_some(), "{name}"));
        fields.extend(with.as_object().cloned().unwrap());
        assert_eq!(sent.request_that(false, &scenario, &scenario.messages).await.json(), expected, "{reason}");

        let no_tools = Scenario { tools: Vec::new(), ..scenario };
        let [may, may_not] = [true, false].map(|may| sent.request_that(may, &no_tools, &no_tools.messages));
        assert_eq!(may.await.json(), may_not.await.json(), "without tools there is no choice");
    }
}

#[test]
fn every_golden_file_is_some_request() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        // They are being written.
        return;
    }
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(FOLDER).unwrap() {
        let folder = folder.unwrap().path();
        assert!(folder.is_dir(), "{} belongs to no vendor", folder.display());
        for file in fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(Path::new(FOLDER)).unwrap().to_str().unwrap();
            found.insert(name.strip_suffix(".json").unwrap().to_owned());
        }
    }
    let cases: BTreeSet<String> = CASES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(found, cases);
}

#[tokio::test]
async fn requests_go_to_the_vendors_addresses_with_the_key_in_a_header() {
    let json = Some("application/json");
    for (model, method_and_path, accept, headers) in [
        (
            CLAUDE,
            "POST /v1/messages",
            "text/event-stream",
            [("x-api-key", Some("sk-1")), ("anthropic-version", Some("2023-06-01")), ("authorization", None)],
        ),
        (
            GEMINI,
            "POST /v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
            "text/event-stream",
            [("x-goog-api-key", Some("g-1")), ("authorization", None), ("content-type", json)],
        ),
        (
            OLDER_GEMINI,
            "POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            "text/event-stream",
            [("x-goog-api-key", None), ("authorization", None), ("content-type", json)],
        ),
        (
            OLLAMA,
            "POST /api/chat",
            "application/x-ndjson",
            [("authorization", None), ("x-api-key", None), ("content-type", json)],
        ),
        (
            OPENAI,
            "POST /v1/chat/completions",
            "text/event-stream",
            [("authorization", Some("Bearer sk-1")), ("x-api-key", None), ("content-type", json)],
        ),
        (
            OTHER_OPENAI,
            "POST /openai/chat/completions?api-version=1",
            "text/event-stream",
            [("authorization", None), ("api-key", None), ("content-type", json)],
        ),
    ] {
        let request = sent(model, scenarios::first_words).await;
        assert_eq!(format!("{} {}", request.method, request.path), method_and_path);
        let common = ["accept", "accept-encoding", "content-type"].map(|header| request.header(header));
        assert_eq!(common, [Some(accept), Some("identity"), json]);
        for (header, value) in headers {
            assert_eq!(request.header(header), value, "{method_and_path}: {header}");
        }
    }
}

/// A body's fields as they were written, without Claude's cache marks, which move with the end of the conversation.
fn fields(request: &Request) -> BTreeMap<String, Box<RawValue>> {
    let body = String::from_utf8(request.body.clone()).unwrap();
    serde_json::from_str(&body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")).unwrap()
}

#[tokio::test]
async fn what_was_sent_stays_byte_for_byte_the_beginning_of_what_is_sent_next() {
    for model in [CLAUDE, OLDER_CLAUDE, GEMINI, OLDER_GEMINI, OLLAMA, OPENAI, OTHER_OPENAI] {
        let sent = Sent::to(model).await;
        let (scenario, moments) = scenarios::growing(&sent.asked);
        let history = if model.vendor == Vendor::Gemini { "contents" } else { "messages" };
        let mut before: Option<BTreeMap<String, Box<RawValue>>> = None;
        for moment in moments {
            let mut now = fields(&sent.request(&scenario, &scenario.messages[..moment]).await);
            if let Some(mut before) = before.replace(now.clone()) {
                let (old, new) = (before.remove(history).unwrap(), now.remove(history).unwrap());
                let old = old.get().strip_suffix(']').unwrap();
                assert!(new.get().starts_with(old), "{}\n{}", old, new.get());
                let texts = |fields: &BTreeMap<String, Box<RawValue>>| -> Vec<String> {
                    fields.iter().map(|(key, value)| format!("{key}: {value}")).collect()
                };
                assert_eq!(texts(&now), texts(&before), "system, tools and settings");
            }
        }
    }
}

#[tokio::test]
async fn thinking_of_a_running_turn_stays_the_beginning_of_the_next_step() {
    for model in [CLAUDE, OLDER_CLAUDE, GEMINI, OTHER_OPENAI, OLLAMA] {
        let sent = Sent::to(model).await;
        let scenario = scenarios::thinking(&sent.asked);
        let history = if model.vendor == Vendor::Gemini { "contents" } else { "messages" };
        let before = fields(&sent.request(&scenario, &scenario.messages[..5]).await).remove(history).unwrap();
        let now = fields(&sent.request(&scenario, &scenario.messages).await).remove(history).unwrap();
        assert!(now.get().starts_with(before.get().strip_suffix(']').unwrap()), "{before}\n{now}");
    }
}

#[tokio::test]
async fn a_temperature_goes_where_it_is_no_error() {
    let newer_api: Model = Model {
        vendor: Vendor::Claude,
        change: |config, _| {
            set(config, Vendor::Claude, "model = 'claude-haiku-4-5'\nversion = '2026-10-21'");
        },
    };
    let newer_gemini: Model =
        Model { vendor: Vendor::Gemini, change: |config, _| set(config, Vendor::Gemini, "model = 'gemini-3.6-flash'") };
    for (model, effort, expected, reason) in [
        (OLDER_CLAUDE, None, Some(1.0), "the scale ends at 1"),
        (OLDER_CLAUDE, Some(Effort::Low), None, "not while it thinks"),
        (OLDER_CLAUDE, Some(Effort::None), Some(1.0), "it does not think"),
        (newer_api, None, None, "the newer version of the api refuses it"),
        (CLAUDE, None, None, "the newer models refuse it"),
        (OLDER_GEMINI, Some(Effort::Low), Some(1.5), "the scale ends at 2"),
        (newer_gemini, None, None, "the newer models ignore it"),
    ] {
        let sent = Sent::to(model).await;
        let scenario = Scenario { effort, temperature: Some(1.5), ..scenarios::one_call(&sent.asked) };
        // A turn that began with a call and no thought cannot think on an older Claude; the user's words can be thought of.
        let body = sent.request(&scenario, &scenario.messages[..1]).await.json();
        let settings = body.get("generationConfig").unwrap_or(&body);
        assert_eq!(settings.get("temperature").and_then(serde_json::Value::as_f64), expected, "{reason}");
    }
}

#[tokio::test]
async fn an_older_claude_thinks_in_a_turn_that_began_with_a_thought_of_its_own() {
    const SMALL: Model =
        Model { vendor: Vendor::Claude, change: |config, _| set(config, Vendor::Claude, "model = 'claude-opus-4-1'") };
    for (scenario, messages, expected, reason) in [
        (scenarios::thinking as fn(&Asked) -> Scenario, 3, Some(8192), "a turn begins"),
        (scenarios::thinking, 5, Some(8192), "it goes on"),
        (scenarios::stopped, 8, None, "the stopped run's results belong to the turn, and its thoughts are gone"),
        (scenarios::interrupted, 3, Some(2048), "nobody else has answered"),
        (scenarios::interrupted, 5, None, "another model has"),
        (scenarios::interrupted, 7, None, "and had before the last answer"),
        (scenarios::fallback, 5, None, "another model began it"),
        (scenarios::fallback, 3, Some(2048), "its words are no turn that goes on"),
    ] {
        let sent = Sent::to(SMALL).await;
        let scenario = scenario(&sent.asked);
        let body = sent.request(&scenario, &scenario.messages[..messages]).await.json();
        assert_eq!(body["thinking"]["budget_tokens"].as_u64(), expected, "{reason}");
        assert_eq!(body["max_tokens"], 1000 + expected.unwrap_or(0), "{reason}");
    }
}

#[tokio::test]
async fn signed_text_of_gemini_goes_back_in_the_parts_it_came_in() {
    let sent = Sent::to(GEMINI).await;
    let parts = [
        json!({"text": "a"}),
        json!({"text": "b", "thoughtSignature": "S1"}),
        json!({"text": "c"}),
        json!({"text": "", "thoughtSignature": "S2"}),
    ];
    let chunk =
        |part: &serde_json::Value| json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]});
    let counts = json!({"usageMetadata": {"promptTokenCount": -1}});
    let body: String = parts.iter().map(chunk).chain([counts]).map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut turn = TurnFold::new(Arc::clone(&sent.asked.ours), CallIds::default());
    for event in recorded::events(Vendor::Gemini, [body.as_bytes()]) {
        turn.push(event.unwrap());
    }
    let mut scenario = scenarios::first_words(&sent.asked);
    scenario.messages.push(Message::Assistant(turn.finish().message));
    let body = sent.request(&scenario, &scenario.messages).await.json();
    assert_eq!(body["contents"][1]["parts"], json!(parts));
}

#[tokio::test]
async fn how_long_an_answer_may_be_is_left_to_the_model_where_it_may_be_left() {
    const FOREIGN: Model =
        Model { vendor: Vendor::Claude, change: |config, _| set(config, Vendor::Claude, "model = 'glm-4.6'") };
    let rows = [
        (CLAUDE, "/max_tokens", Some(64_000), "it has to be told"),
        (FOREIGN, "/max_tokens", Some(8192), "nobody knows what it can write"),
        (GEMINI, "/generationConfig/maxOutputTokens", None, "left out"),
        (OLLAMA, "/options/num_predict", None, "left out"),
        (OPENAI, "/max_tokens", None, "left out"),
        (OTHER_OPENAI, "/max_completion_tokens", None, "left out"),
    ];
    for (model, field, expected, reason) in rows {
        for (max_tokens, expected) in [(None, expected), (Some(1000), Some(1000))] {
            let sent = Sent::to(model).await;
            let Scenario { system, tools, messages, .. } = scenarios::first_words(&sent.asked);
            let choice = ModelChoice { max_tokens, ..ModelChoice::from_model(sent.origin.clone(), None) };
            let provider = llm::connect(&sent.origin, &sent.config).unwrap();
            let request = ChatRequest {
                system: &system,
                messages: &messages,
                tools: &tools,
                may_call: true,
                model: &choice,
                deadline: None,
            };
            assert!(provider.stream_chat(request).await.is_err());
            let body = sent.upstream.requests().pop().unwrap().json();
            assert_eq!(body.pointer(field).and_then(serde_json::Value::as_u64), expected, "{field} {reason}");
        }
    }
}
