//! A gateway that we did not write: a `LiteLLM` proxy, which translates one scripted model (`tests/peers/scripted.py`) to four
//! wires of three vendors. The proxy at `SWITCHBOARD_TEST_LITELLM_URL` is used, or else the installed one is started, once
//! for all tests. Where neither is there the tests say so and pass, unless `SWITCHBOARD_REQUIRE_SERVICES` is 1.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use switchboard::agent::ports::llm::{
    ChatRequest, MustCall, ProviderError, ProviderErrorKind, SentFiles, SystemPrompt,
};
use switchboard::agent::turn::fold::{CallIds, Turn, TurnFold};
use switchboard::chat::fate::CallFate;
use switchboard::chat::message::{AssistantPart, Message, UserMessage};
use switchboard::chat::model::ModelChoice;
use switchboard::chat::stream::FinishReason;
use switchboard::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};
use switchboard::llm::{self, Vendor};
use tokio::sync::OnceCell;

use super::{connect, origin, report, set};
use crate::support::app::TestApp;
use crate::support::frames;

/// The key that the proxy takes; the environment's proxy must be started with it too.
const KEY: &str = "sk-switchboard-test";

/// Python takes its time to load the proxy on a busy machine.
const START: Duration = Duration::from_secs(120);

/// A wire that the proxy serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    ChatCompletions,
    Responses,
    Messages,
    Gemini,
}

use Served::{ChatCompletions, Gemini, Messages, Responses};

/// All of them.
const WIRES: [Served; 4] = [ChatCompletions, Responses, Messages, Gemini];

/// Those of which its translation loses nothing.
const FAITHFUL: [Served; 3] = [ChatCompletions, Responses, Messages];

impl Served {
    fn vendor(self) -> Vendor {
        match self {
            Self::ChatCompletions | Self::Responses => Vendor::OpenAi,
            Self::Messages => Vendor::Claude,
            Self::Gemini => Vendor::Gemini,
        }
    }

    /// The name of the scripted model on it.
    fn model(self) -> &'static str {
        match self {
            Self::Gemini => "scripted-behind-openai",
            Self::ChatCompletions | Self::Responses | Self::Messages => "scripted",
        }
    }
}

/// The running proxy, or why there is none.
static PEER: OnceCell<Result<Peer, String>> = OnceCell::const_new();

struct Peer {
    url: String,
    /// Ends when this process does, however it does: then its standard input ends.
    _process: Option<Child>,
}

/// The proxy's address; `None` when the tests go without it.
async fn peer() -> Option<&'static str> {
    match PEER.get_or_init(start).await {
        Ok(peer) => Some(&peer.url),
        Err(reason) => {
            assert!(std::env::var("SWITCHBOARD_REQUIRE_SERVICES").as_deref() != Ok("1"), "{reason}");
            // Not `println!`, which a test that passes keeps to itself.
            writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
            None
        }
    }
}

async fn start() -> Result<Peer, String> {
    if let Ok(url) = std::env::var("SWITCHBOARD_TEST_LITELLM_URL") {
        return Ok(Peer { url, _process: None });
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read(root.join("tests/peers/litellm-requirements.txt")).unwrap();
    if std::fs::read(root.join("target/peers/litellm/installed.txt")).is_ok_and(|installed| installed == list) {
        return serve(root).await;
    }
    Err("LiteLLM is not installed: tests/peers/litellm install".to_owned())
}

async fn serve(root: &Path) -> Result<Peer, String> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let log: PathBuf = root.join("target/peers/litellm.log");
    let output = File::create(&log).unwrap();
    let mut process = Command::new(root.join("tests/peers/litellm"))
        .args(["attend", &port.to_string()])
        .stdin(Stdio::piped())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answers = async {
        while !http.get(format!("{url}/health/readiness")).send().await.is_ok_and(|answer| answer.status() == 200) {
            assert!(process.try_wait().unwrap().is_none(), "the proxy ended, see {}", log.display());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    match tokio::time::timeout(START, answers).await {
        Ok(()) => Ok(Peer { url, _process: Some(process) }),
        Err(_) => Err(format!("LiteLLM did not answer within {START:?}, see {}", log.display())),
    }
}

/// `model` over `wire`.
fn config(url: &str, wire: Served, model: &str, key: &str) -> llm::LlmConfig {
    let mut config = super::config(url);
    set(&mut config, Vendor::OpenAi, &format!("base_url = '{url}/v1'"));
    let asked = if wire == Responses { "wire = 'responses'" } else { "" };
    set(&mut config, wire.vendor(), &format!("model = '{model}'\napi_key = '{key}'\n{asked}"));
    config
}

/// One turn with `messages`.
async fn ask(wire: Served, config: &llm::LlmConfig, messages: &[Message]) -> (Turn, Option<ProviderError>) {
    let system = SystemPrompt { instructions: "Be brief.".into(), client: String::new(), context: String::new() };
    let input_schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tools =
        [ToolDef { name: "get_weather".to_owned(), description: "The weather.".to_owned(), input_schema }.into()];
    let origin = origin(wire.vendor(), config);
    let model = ModelChoice::from_model(origin.clone(), Some(100));
    let request = ChatRequest {
        system: &system,
        messages,
        files: SentFiles::default(),
        tools: &tools,
        may_call: true,
        must_call: MustCall::No,
        format: None,
        model: &model,
        deadline: None,
    };
    let mut fold = TurnFold::new(Arc::new(origin), CallIds::default());
    let mut failure = None;
    match connect(wire.vendor(), config).stream_chat(request).await {
        Ok(mut stream) => {
            while let Some(item) = stream.events.next().await {
                match item {
                    Ok(event) => drop(fold.push(event)),
                    Err(error) => failure = Some(error),
                }
            }
        }
        Err(error) => failure = Some(error),
    }
    (fold.finish(), failure)
}

async fn play(config: &llm::LlmConfig, wire: Served, script: &str) -> (Turn, Option<ProviderError>) {
    ask(wire, config, &[Message::User(UserMessage::new(format!("play {script} please")))]).await
}

/// What a turn came to, in lines.
fn lines(turn: &Turn) -> Vec<String> {
    let line = |part: &AssistantPart| match part {
        AssistantPart::Text { text, .. } => format!("text {text}"),
        AssistantPart::Thinking { text, .. } => format!("thinking {text}"),
        AssistantPart::ToolCall { call, .. } => {
            let ToolInput::Object(input) = &call.input else { panic!("{:?}", call.input) };
            let id = if call.id.is_minted() { "-" } else { call.id.as_str() };
            format!("call {id} {} {}", call.name, json!(input))
        }
        AssistantPart::Opaque(data) => format!("opaque {}", data.raw()),
    };
    turn.message.parts.iter().map(line).collect()
}

#[tokio::test]
async fn a_gateway_s_answers_are_understood_over_each_of_its_wires() {
    let Some(url) = peer().await else { return };
    let rows: [(&str, &[&str], &[Served]); 6] = [
        ("text", &["text Grüße aus der Werkstatt — 世界."], &WIRES),
        ("slow", &["text one two three"], &WIRES),
        ("thinking", &["thinking First I think, then I speak.", "text Spoken."], &FAITHFUL),
        // Its translation to Gemini's wire drops thoughts and ids.
        ("thinking", &["text Spoken."], &[Gemini]),
        ("tool", &["text Let me look.", r#"call call_one get_weather {"city":"Paris"}"#], &FAITHFUL),
        ("tool", &["text Let me look.", r#"call - get_weather {"city":"Paris"}"#], &[Gemini]),
    ];
    for (script, expected, wires) in rows {
        for &wire in wires {
            let (turn, failure) = play(&config(url, wire, wire.model(), KEY), wire, script).await;
            assert!(failure.is_none(), "{script} over {wire:?}: {}", report(&failure.unwrap()));
            assert_eq!(lines(&turn), expected, "{script} over {wire:?}");
            assert_eq!(turn.reason, Some(FinishReason::Stop), "{script} over {wire:?}");
            // Its translation to Gemini's wire drops the tokens too.
            let told = turn.usage.map(|usage| usage.input_tokens > 0 && usage.output_tokens > 0);
            assert_eq!(told, Some(wire != Gemini), "{script} over {wire:?}");
        }
    }
}

#[tokio::test]
async fn results_of_parallel_calls_reach_the_model_behind_a_gateway() {
    let Some(url) = peer().await else { return };
    // What it has thought goes back to it, as far as the wire has a place for that.
    let asked = WIRES.into_iter().flat_map(|wire| [(wire, "parallel"), (wire, "thinking-calls")]);
    for (wire, script) in asked {
        let config = config(url, wire, wire.model(), KEY);
        let question = Message::User(UserMessage::new(format!("play {script} please")));
        let (turn, failure) = ask(wire, &config, std::slice::from_ref(&question)).await;
        assert!(failure.is_none(), "{script} over {wire:?}: {failure:?}");
        let result = |nth: usize, call: &ToolCall| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: format!("{nth} degrees"),
            fate: CallFate::Done,
            files: Vec::new(),
        };
        let results: Vec<_> = turn.message.calls().enumerate().map(|(nth, call)| result(nth, call)).collect();
        assert_eq!(results.len(), 2, "{script} over {wire:?}");
        let messages = [question, Message::Assistant(turn.message), Message::ToolResults(results)];
        let (turn, failure) = ask(wire, &config, &messages).await;
        assert!(failure.is_none(), "{script} over {wire:?}: {}", report(&failure.unwrap()));
        let expected = match wire {
            // Its translation makes ids of names, and keeps the order.
            Gemini => r#"[call_get_weather: {"output": "0 degrees"}][call_get_weather: {"output": "1 degrees"}]"#,
            ChatCompletions | Responses | Messages => "[call_one: 0 degrees][call_two: 1 degrees]",
        };
        assert_eq!(turn.message.text(), expected, "{script} over {wire:?}");
    }
}

#[tokio::test]
async fn a_gateway_s_refusals_and_failures_are_named() {
    let Some(url) = peer().await else { return };
    let unavailable = ProviderErrorKind::Unavailable { retry_after: None };
    for wire in WIRES {
        let (model, no_model) = (wire.model(), "unknown");
        let rows = [
            ("wrong key", "text", model, "sk-wrong", ProviderErrorKind::Unauthorized, "", "Authentication Error"),
            // The proxy says 400, and which model only in words.
            ("unknown model", "text", no_model, KEY, ProviderErrorKind::ModelNotFound, "", "Invalid model name"),
            ("before the first word", "fails-first", model, KEY, unavailable, "", "before its first word"),
            ("later", "fails-later", model, KEY, unavailable, "Half a sentence, and", "after its first words"),
        ];
        for (why, script, model, key, kind, text, words) in rows {
            let (turn, failure) = play(&config(url, wire, model, key), wire, script).await;
            let failure = failure.unwrap_or_else(|| panic!("no error: {why} over {wire:?}"));
            assert_eq!((failure.kind, &*turn.message.text()), (kind, text), "{why} over {wire:?}");
            assert!(report(&failure).contains(words), "{why} over {wire:?}: {}", report(&failure));
            assert_eq!(turn.reason, None, "{why} over {wire:?}");
        }
    }
}

#[tokio::test]
async fn the_product_answers_through_a_gateway() {
    let Some(url) = peer().await else { return };
    let base_url = format!("{url}/v1");
    for wire in ["chat", "responses"] {
        let app = TestApp::start(&[
            ("LLM__PROVIDER", "openai"),
            ("LLM__OPENAI__BASE_URL", &base_url),
            ("LLM__OPENAI__MODEL", "scripted"),
            ("LLM__OPENAI__API_KEY", KEY),
            ("LLM__OPENAI__WIRE", wire),
            ("LLM__RETRY__ATTEMPTS", "1"),
        ])
        .await;
        let rows = [
            ("text", "Grüße aus der Werkstatt — 世界.", "message_complete"),
            ("slow", "one two three", "message_complete"),
            ("fails-later", "Half a sentence, and", "error"),
            ("fails-first", "", "error"),
        ];
        for (script, text, end) in rows {
            let asked = json!({"message": format!("play {script} please"), "context_type": "workflow"});
            let frames = app.chat(&asked).await;
            assert_eq!(frames::text(&frames), text, "{script} over {wire}");
            assert_eq!(frames::names(&frames).last(), Some(&end), "{script} over {wire}: {frames:#?}");
        }
    }
}
