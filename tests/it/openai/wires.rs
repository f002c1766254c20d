//! The product behind each of the vendors' wires, with a model that a test plays: what it says, and what it calls.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{calls, says};
use crate::support::upstream::{Answer, Request, Upstream};

/// A vendor's wire, and the model that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAi,
    /// A model that is held to schemas, and forced to no call.
    Claude,
    /// One that is forced to calls, and held to no schemas.
    OlderClaude,
    Gemini,
    /// One that is held to nothing beside tools.
    OlderGemini,
    Ollama,
}

pub const ALL: [Wire; 6] =
    [Wire::OpenAi, Wire::Claude, Wire::OlderClaude, Wire::Gemini, Wire::OlderGemini, Wire::Ollama];

/// What a model does.
#[derive(Debug, Clone)]
pub enum Turn {
    Says(String),
    Calls(&'static str, Value),
}

impl Wire {
    /// The product, whose model answers as `turn` says of a request.
    pub async fn serve(self, turn: impl Fn(&Request) -> Turn + Send + Sync + 'static) -> (TestApp, Upstream) {
        let model = Upstream::choosing(move |request| Some(self.answer(turn(request)))).await;
        let url = model.url();
        let settings = match self {
            Self::OpenAi => {
                vec![("LLM__PROVIDER", "openai".to_owned()), ("LLM__OPENAI__BASE_URL", format!("{url}/v1"))]
            }
            Self::Claude => claude("claude-sonnet-5-5", url),
            Self::OlderClaude => claude("claude-sonnet-4-0", url),
            Self::Gemini => gemini("gemini-3.5-flash", url),
            Self::OlderGemini => gemini("gemini-2.5-flash", url),
            Self::Ollama => vec![("LLM__PROVIDER", "ollama".to_owned()), ("LLM__OLLAMA__BASE_URL", url)],
        };
        let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        (TestApp::start(&settings).await, model)
    }

    fn answer(self, turn: Turn) -> Answer {
        match self {
            Self::OpenAi => match turn {
                Turn::Says(text) => says(&text).answer(),
                Turn::Calls(name, args) => calls("call_1", name, &args).answer(),
            },
            Self::Claude | Self::OlderClaude => {
                let (block, delta, reason) = match turn {
                    Turn::Says(text) => {
                        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
                    }
                    Turn::Calls(name, args) => (
                        json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}),
                        json!({"type": "input_json_delta", "partial_json": args.to_string()}),
                        "tool_use",
                    ),
                };
                let usage = json!({"input_tokens": 10, "output_tokens": 5});
                sse([
                    json!({"type": "message_start", "message": {"id": "msg_1", "usage": usage}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                    json!({"type": "content_block_stop", "index": 0}),
                    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}),
                    json!({"type": "message_stop"}),
                ])
            }
            Self::Gemini | Self::OlderGemini => {
                let part = match turn {
                    Turn::Says(text) => json!({"text": text}),
                    Turn::Calls(name, args) => json!({"functionCall": {"name": name, "args": args}}),
                };
                let content = json!({"role": "model", "parts": [part]});
                sse([json!({"candidates": [{"content": content, "finishReason": "STOP"}]})])
            }
            Self::Ollama => {
                let message = match turn {
                    Turn::Says(text) => json!({"role": "assistant", "content": text}),
                    Turn::Calls(name, args) => {
                        let call = json!({"function": {"name": name, "arguments": args}});
                        json!({"role": "assistant", "content": "", "tool_calls": [call]})
                    }
                };
                let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"});
                let lines = format!("{}\n{end}\n", json!({"message": message, "done": false}));
                Answer::ok("application/x-ndjson", lines).cut(|| 37)
            }
        }
    }
}

fn claude(model: &str, url: String) -> Vec<(&'static str, String)> {
    vec![
        ("LLM__PROVIDER", "claude".to_owned()),
        ("LLM__CLAUDE__API_KEY", "sk-1".to_owned()),
        ("LLM__CLAUDE__MODEL", model.to_owned()),
        ("LLM__CLAUDE__BASE_URL", url),
    ]
}

fn gemini(model: &str, url: String) -> Vec<(&'static str, String)> {
    vec![
        ("LLM__PROVIDER", "gemini".to_owned()),
        ("LLM__GEMINI__API_KEY", "g-1".to_owned()),
        ("LLM__GEMINI__MODEL", model.to_owned()),
        ("LLM__GEMINI__BASE_URL", url),
    ]
}

fn sse(events: impl IntoIterator<Item = Value>) -> Answer {
    let body: String = events.into_iter().map(|event| format!("data: {event}\n\n")).collect();
    Answer::ok("text/event-stream", body).cut(|| 37)
}
