//! What is sent: each scenario as each vendor must get it, compared whole with `tests/fixtures/requests/<vendor>/*.json`
//! (`UPDATE_GOLDEN=1` writes them); the headers and the addresses; and what stays the same from turn to turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use switchboard::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use switchboard::agent::turn::fold::{CallIds, TurnFold};
use switchboard::chat::message::{Message, ModelOrigin};
use switchboard::chat::model::{Effort, ModelChoice};
use switchboard::chat::tool::ToolDef;
use switchboard::llm::{self, Vendor, recorded};

use super::forms;
use super::models::{
    AZURE_RESPONSES, BEDROCK, BLIND_BEDROCK, BLIND_CLAUDE, BLIND_GEMINI, BLIND_OPENAI, BLIND_RESPONSES,
    BLIND_VERTEX_CLAUDE, BLIND_VERTEX_GEMINI, CLAUDE, FULL_OPENAI, FULL_VERTEX_CLAUDE, GEMINI, LEAST_OPENAI,
    LEAST_RESPONSES, Model, OLDER_CLAUDE, OLDER_GEMINI, OLDEST_CLAUDE, OLLAMA, OPENAI, OTHER_OPENAI, RESPONSES,
    SEEING_OLLAMA, VERTEX_CLAUDE, VERTEX_GEMINI,
};
use super::scenarios::{self, Asked, Scenario};
use super::{config, fixture, origin, set};
use crate::support::upstream::{Answer, Request, Upstream};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/requests");

type Case = (&'static str, Model, fn(&Asked) -> Scenario);

/// Every golden file, with the request it is.
const CASES: [Case; 113] = [
    ("bedrock/text", BEDROCK, scenarios::first_words),
    ("bedrock/tools", BEDROCK, scenarios::one_call),
    ("bedrock/parallel-tools", BEDROCK, scenarios::parallel_calls),
    ("bedrock/thinking-with-tools", BEDROCK, scenarios::thinking),
    ("bedrock/files", BEDROCK, scenarios::files),
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
    ("claude/form", CLAUDE, forms::schema),
    ("claude/form-beside-tools", CLAUDE, forms::beside_tools),
    ("claude/form-again", CLAUDE, forms::again),
    ("claude/form-of-any-object", CLAUDE, forms::any_object),
    ("claude/form-by-a-tool", OLDEST_CLAUDE, forms::schema),
    ("claude/form-by-a-tool-beside-tools", OLDEST_CLAUDE, forms::beside_tools),
    ("claude/form-by-a-tool-again", OLDEST_CLAUDE, forms::again),
    ("claude/must-call", OLDER_CLAUDE, forms::must_call),
    ("claude/must-call-this", OLDER_CLAUDE, forms::must_call_this),
    ("claude/must-call-in-words", CLAUDE, forms::must_call_this),
    ("claude/instructions", CLAUDE, forms::instructions),
    ("gemini/form", GEMINI, forms::schema),
    ("gemini/form-beside-tools", GEMINI, forms::beside_tools),
    ("gemini/form-of-any-object", GEMINI, forms::any_object),
    ("gemini/form-beside-tools-of-an-older-model", OLDER_GEMINI, forms::beside_tools),
    ("gemini/form-again-of-an-older-model", OLDER_GEMINI, forms::again),
    ("gemini/must-call", GEMINI, forms::must_call),
    ("gemini/must-call-this", GEMINI, forms::must_call_this),
    ("ollama/form", OLLAMA, forms::schema),
    ("ollama/form-beside-tools", OLLAMA, forms::beside_tools),
    ("ollama/form-of-any-object", OLLAMA, forms::any_object),
    ("ollama/must-call-this", OLLAMA, forms::must_call_this),
    ("openai/form", FULL_OPENAI, forms::beside_tools),
    ("openai/form-beside-tools-elsewhere", OPENAI, forms::beside_tools),
    ("openai/form-again-elsewhere", OPENAI, forms::again),
    ("openai/form-of-an-object-alone", LEAST_OPENAI, forms::schema),
    ("openai/must-call-this", OPENAI, forms::must_call_this),
    ("openai/must-call-in-words", LEAST_OPENAI, forms::must_call),
    ("responses/text", RESPONSES, scenarios::first_words),
    ("responses/tools", RESPONSES, scenarios::one_call),
    ("responses/parallel-tools", RESPONSES, scenarios::parallel_calls),
    ("responses/thinking-with-tools", RESPONSES, scenarios::thinking),
    ("responses/thinking-is-not-sent-back", AZURE_RESPONSES, scenarios::thinking),
    ("responses/fallback", RESPONSES, scenarios::fallback),
    ("responses/everything", RESPONSES, scenarios::everything),
    ("responses/schemas", RESPONSES, scenarios::schemas),
    ("responses/text-around-a-call", RESPONSES, scenarios::text_around_a_call),
    ("responses/text-of-a-model-that-does-not-reason", LEAST_RESPONSES, scenarios::first_words),
    ("responses/form", RESPONSES, forms::schema),
    ("responses/form-beside-tools", RESPONSES, forms::beside_tools),
    ("responses/form-again", RESPONSES, forms::again),
    ("responses/form-of-any-object", RESPONSES, forms::any_object),
    ("responses/form-of-an-object-alone", LEAST_RESPONSES, forms::schema),
    ("responses/must-call", RESPONSES, forms::must_call),
    ("responses/must-call-this", RESPONSES, forms::must_call_this),
    ("responses/must-call-in-words", LEAST_RESPONSES, forms::must_call),
    ("responses/instructions", RESPONSES, forms::instructions),
    ("claude/files", CLAUDE, scenarios::files),
    ("gemini/files", GEMINI, scenarios::files),
    ("gemini/files-of-an-older-model", OLDER_GEMINI, scenarios::files),
    ("ollama/files-of-a-model-that-cannot-see", OLLAMA, scenarios::files),
    ("openai/files", OPENAI, scenarios::files),
    ("openai/files-of-a-model-that-cannot-see", BLIND_OPENAI, scenarios::files),
    ("responses/files", RESPONSES, scenarios::files),
    ("vertex/gemini-text", VERTEX_GEMINI, scenarios::first_words),
    ("vertex/gemini-tools", VERTEX_GEMINI, scenarios::one_call),
    ("vertex/gemini-parallel-tools", VERTEX_GEMINI, scenarios::parallel_calls),
    ("vertex/gemini-thinking-with-tools", VERTEX_GEMINI, scenarios::thinking),
    ("vertex/gemini-files", VERTEX_GEMINI, scenarios::files),
    ("vertex/claude-text", VERTEX_CLAUDE, scenarios::first_words),
    ("vertex/claude-tools", VERTEX_CLAUDE, scenarios::one_call),
    ("vertex/claude-parallel-tools", VERTEX_CLAUDE, scenarios::parallel_calls),
    ("vertex/claude-thinking-with-tools", VERTEX_CLAUDE, scenarios::thinking),
    ("vertex/claude-files", VERTEX_CLAUDE, scenarios::files),
    ("vertex/claude-form", FULL_VERTEX_CLAUDE, forms::schema),
    ("bedrock/files-of-a-model-that-cannot-see", BLIND_BEDROCK, scenarios::files),
    ("claude/files-of-a-model-that-cannot-see", BLIND_CLAUDE, scenarios::files),
    ("gemini/files-of-a-model-that-cannot-see", BLIND_GEMINI, scenarios::files),
    ("ollama/files", SEEING_OLLAMA, scenarios::files),
    ("responses/files-of-a-model-that-cannot-see", BLIND_RESPONSES, scenarios::files),
    ("vertex/claude-files-of-a-model-that-cannot-see", BLIND_VERTEX_CLAUDE, scenarios::files),
    ("vertex/gemini-files-of-a-model-that-cannot-see", BLIND_VERTEX_GEMINI, scenarios::files),
];

/// Whose words the model of `vendor` speaks.
fn maker(vendor: Vendor, origin: &ModelOrigin) -> Vendor {
    match vendor {
        Vendor::Vertex if origin.model.starts_with("claude") => Vendor::Claude,
        Vendor::Vertex => Vendor::Gemini,
        vendor => vendor,
    }
}

/// A server that keeps what it is sent, and a provider that sends it there.
pub(super) struct Sent {
    pub(super) upstream: Upstream,
    config: llm::LlmConfig,
    origin: ModelOrigin,
    pub(super) asked: Asked,
}

impl Sent {
    pub(super) async fn to(model: Model) -> Self {
        Self::to_one_that(model, |_| Answer::status(500, "text/plain", "seen")).await
    }

    /// The same where the server answers so.
    pub(super) async fn to_one_that(model: Model, answers: fn(&Request) -> Answer) -> Self {
        let upstream = Upstream::choosing(move |request| Some(answers(request))).await;
        let mut config = config(&upstream.url());
        (model.change)(&mut config, &upstream.url());
        let origin = origin(model.vendor, &config);
        let asked = match model.is_responses {
            true => Asked::of_responses(origin.clone()),
            false => Asked::of(maker(model.vendor, &origin), origin.clone()),
        };
        Self { upstream, config, asked, origin }
    }

    /// The request that the vendor gets for the first `messages` of a scenario.
    pub(super) async fn request(&self, scenario: &Scenario, messages: &[Message]) -> Request {
        self.request_that(scenario.may_call, scenario, messages).await
    }

    /// The same where the model may call tools, or may not.
    async fn request_that(&self, may_call: bool, scenario: &Scenario, messages: &[Message]) -> Request {
        let provider = llm::connect(&self.origin, &self.config).unwrap();
        let Scenario { system, tools, effort, temperature, must_call, format, .. } = scenario;
        let choice = ModelChoice::from_model(self.origin.clone(), Some(1000));
        let model = &ModelChoice { effort: *effort, temperature: *temperature, ..choice };
        let request = ChatRequest {
            system,
            messages,
            files: SentFiles { bytes: Some(&scenario.files), takes: self.config.takes(&self.origin) },
            tools,
            may_call,
            must_call: *must_call,
            format: format.as_ref(),
            model,
            deadline: None,
        };
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
async fn bedrock_gets_what_converse_takes() {
    check_all("bedrock/").await;
}

#[tokio::test]
async fn gemini_gets_what_its_api_takes() {
    check_all("gemini/").await;
}

#[tokio::test]
async fn vertex_gets_what_gemini_and_claude_take_there() {
    check_all("vertex/").await;
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
async fn responses_get_what_they_take_and_nothing_is_stored() {
    check_all("responses/").await;
}

#[tokio::test]
async fn a_model_that_may_not_call_is_told_so_and_the_rest_stays_the_same() {
    let stay = "the tools stay, since the history names them";
    let rows = [
        (CLAUDE, None, json!({"tool_choice": {"type": "none"}}), stay),
        (GEMINI, None, json!({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}), stay),
        (OPENAI, Some("tools"), json!({}), "no tools"),
        (RESPONSES, Some("tools"), json!({}), "no tools"),
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

#[tokio::test]
async fn a_tool_of_a_response_is_strict_where_its_schema_can_be_held_to_as_it_stands() {
    let of = |properties, required| json!({"type": "object", "properties": properties, "required": required});
    let closed = |mut schema: serde_json::Value| {
        schema["additionalProperties"] = json!(false);
        schema
    };
    let city = || json!({"city": {"type": "string"}});
    let rows = [
        (closed(of(city(), json!(["city"]))), true, "closed, and nothing may be left out"),
        (closed(of(city(), json!([]))), false, "something may be left out"),
        (of(city(), json!(["city"])), false, "open"),
        (json!({"type": "object"}), false, "says nothing"),
    ];
    let sent = Sent::to(RESPONSES).await;
    for (input_schema, expected, reason) in rows {
        let tool = ToolDef { name: "find".to_owned(), description: "Finds.".to_owned(), input_schema };
        let scenario = Scenario { tools: vec![Arc::new(tool)], ..scenarios::one_call(&sent.asked) };
        let body = sent.request(&scenario, &scenario.messages).await.json();
        assert_eq!(body["tools"][0]["strict"], expected, "{reason}");
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
            BEDROCK,
            "POST /model/global.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
            "application/vnd.amazon.eventstream",
            [("authorization", Some("Bearer b-12345678")), ("x-amz-date", None), ("content-type", json)],
        ),
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
            VERTEX_GEMINI,
            "POST /v1/projects/acme-1/locations/europe-west1/publishers/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
            "text/event-stream",
            [("authorization", Some("Bearer ya29.token")), ("x-goog-api-key", None), ("x-goog-user-project", None)],
        ),
        (
            VERTEX_CLAUDE,
            "POST /v1/projects/acme-1/locations/global/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict",
            "text/event-stream",
            [("authorization", Some("Bearer ya29.token")), ("x-api-key", None), ("anthropic-version", None)],
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
        (
            RESPONSES,
            "POST /v1/responses",
            "text/event-stream",
            [("authorization", Some("Bearer sk-1")), ("x-api-key", None), ("content-type", json)],
        ),
        (
            AZURE_RESPONSES,
            "POST /openai/v1/responses?api-version=preview",
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
        let elsewhere = format!("{} {}", request.path, String::from_utf8_lossy(&request.body));
        for key in ["b-12345678", "sk-1", "g-1", "ya29.token"] {
            assert!(!elsewhere.contains(key), "{method_and_path}: a key is in a header alone");
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
    for model in [CLAUDE, OLDER_CLAUDE, GEMINI, OLDER_GEMINI, OLLAMA, OPENAI, OTHER_OPENAI, RESPONSES, AZURE_RESPONSES]
    {
        let sent = Sent::to(model).await;
        let (scenario, moments) = scenarios::growing(&sent.asked);
        let history = model.history();
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
    for model in [CLAUDE, OLDER_CLAUDE, GEMINI, OTHER_OPENAI, OLLAMA, RESPONSES] {
        let sent = Sent::to(model).await;
        let scenario = scenarios::thinking(&sent.asked);
        let history = model.history();
        let before = fields(&sent.request(&scenario, &scenario.messages[..5]).await).remove(history).unwrap();
        let now = fields(&sent.request(&scenario, &scenario.messages).await).remove(history).unwrap();
        assert!(now.get().starts_with(before.get().strip_suffix(']').unwrap()), "{before}\n{now}");
    }
}

#[tokio::test]
async fn a_temperature_goes_where_it_is_no_error() {
    let newer_api: Model = Model {
        vendor: Vendor::Claude,
        is_responses: false,
        change: |config, _| {
            set(config, Vendor::Claude, "model = 'claude-haiku-4-5'\nversion = '2026-10-21'");
        },
    };
    let newer_gemini: Model = Model {
        vendor: Vendor::Gemini,
        is_responses: false,
        change: |config, _| set(config, Vendor::Gemini, "model = 'gemini-3.6-flash'"),
    };
    let deployment: Model = Model {
        vendor: Vendor::OpenAi,
        is_responses: true,
        change: |config, _| set(config, Vendor::OpenAi, "wire = 'responses'\nmodel = 'our-deployment'"),
    };
    for (model, effort, expected, reason) in [
        (RESPONSES, None, None, "who reasons refuses it"),
        (RESPONSES, Some(Effort::Low), None, "who reasons refuses it"),
        (RESPONSES, Some(Effort::None), Some(1.5), "it does not reason now"),
        (LEAST_RESPONSES, None, Some(1.5), "it does not reason"),
        (deployment, None, Some(1.5), "nobody knows, so it is tried"),
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
    const FOREIGN: Model = Model {
        vendor: Vendor::Claude,
        is_responses: false,
        change: |config, _| set(config, Vendor::Claude, "model = 'glm-4.6'"),
    };
    let rows = [
        (CLAUDE, "/max_tokens", Some(64_000), "it has to be told"),
        (FOREIGN, "/max_tokens", Some(8192), "nobody knows what it can write"),
        (GEMINI, "/generationConfig/maxOutputTokens", None, "left out"),
        (OLLAMA, "/options/num_predict", None, "left out"),
        (OPENAI, "/max_tokens", None, "left out"),
        (OTHER_OPENAI, "/max_completion_tokens", None, "left out"),
        (RESPONSES, "/max_output_tokens", None, "left out"),
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
                files: SentFiles::default(),
                tools: &tools,
                may_call: true,
                must_call: MustCall::No,
                format: None,
                model: &choice,
                deadline: None,
            };
            assert!(provider.stream_chat(request).await.is_err());
            let body = sent.upstream.requests().pop().unwrap().json();
            assert_eq!(body.pointer(field).and_then(serde_json::Value::as_u64), expected, "{field} {reason}");
        }
    }
}
