//! A client that answers for its tools at once, in every protocol in which it can: it begins no more runs than anybody else,
//! and all runs that one message began have its turns and calls together.

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{header, with_model};
use crate::support::app::TestApp;
use crate::support::model::calls;
use crate::support::upstream::Upstream;

/// A protocol in which clients bring tools.
#[derive(Debug, Clone, Copy)]
enum Wire {
    AiSdk,
    AgUi,
    OpenAi,
    Responses,
    Messages,
}

const WIRES: [Wire; 5] = [Wire::AiSdk, Wire::AgUi, Wire::OpenAi, Wire::Responses, Wire::Messages];

impl Wire {
    fn path(self) -> &'static str {
        match self {
            Self::AiSdk => "/v1/ai-sdk/chat?context_type=workflow",
            Self::AgUi => "/v1/ag-ui/workflow",
            Self::OpenAi => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }

    /// A question, or the result of the call `answers`, which has the client's conversation where the wire needs it.
    fn body(self, nth: usize, answers: Option<&str>) -> Value {
        let schema = json!({"type": "object", "properties": {}});
        let tool = json!({"name": "locate", "description": "Where the user is."});
        let with = |key: &str| {
            let mut tool = tool.clone();
            tool[key] = schema.clone();
            tool
        };
        match self {
            Self::AiSdk => {
                let user =
                    json!({"id": format!("u{nth}"), "role": "user", "parts": [{"type": "text", "text": "Where?"}]});
                let part = |id: &str| json!({"type": "tool-locate", "toolCallId": id, "input": {}, "state": "output-available", "output": nth});
                let answer = answers
                    .map(|id| json!({"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, part(id)]}));
                let messages: Vec<Value> = [user].into_iter().chain(answer).collect();
                json!({"id": "chat-1", "messages": messages, "tools": [with("inputSchema")]})
            }
            Self::AgUi => {
                let user = json!({"id": format!("u{nth}"), "role": "user", "content": "Where?"});
                let call =
                    |id: &str| json!({"id": id, "type": "function", "function": {"name": "locate", "arguments": "{}"}});
                let answer = answers.into_iter().flat_map(|id| {
                    [
                        json!({"id": format!("a{nth}"), "role": "assistant", "toolCalls": [call(id)]}),
                        json!({"id": format!("t{nth}"), "role": "tool", "toolCallId": id, "content": "here"}),
                    ]
                });
                let messages: Vec<Value> = [user].into_iter().chain(answer).collect();
                json!({
                    "threadId": "t", "runId": format!("r{nth}"), "messages": messages, "tools": [with("parameters")],
                    "state": {}, "context": [], "forwardedProps": {},
                })
            }
            Self::OpenAi => {
                let user = json!({"role": "user", "content": "Where?"});
                let call =
                    |id: &str| json!({"id": id, "type": "function", "function": {"name": "locate", "arguments": "{}"}});
                let answer = answers.into_iter().flat_map(|id| {
                    [
                        json!({"role": "assistant", "content": null, "tool_calls": [call(id)]}),
                        json!({"role": "tool", "tool_call_id": id, "content": "here"}),
                    ]
                });
                let messages: Vec<Value> = [user].into_iter().chain(answer).collect();
                let tool = json!({"type": "function", "function": with("parameters")});
                json!({"model": "workflow", "messages": messages, "tools": [tool]})
            }
            Self::Responses => {
                let mut tool = with("parameters");
                tool["type"] = json!("function");
                let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "here"});
                let input = answers.map_or(json!("Where?"), |id| json!([output(id)]));
                json!({"model": "workflow", "input": input, "tools": [tool]})
            }
            Self::Messages => {
                let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "locate", "input": {}}]);
                let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "here"}]);
                let answer = answers.into_iter().flat_map(|id| {
                    [json!({"role": "assistant", "content": call(id)}), json!({"role": "user", "content": result(id)})]
                });
                let user = json!({"role": "user", "content": "Where?"});
                let messages: Vec<Value> = [user].into_iter().chain(answer).collect();
                json!({"model": "workflow", "max_tokens": 100, "messages": messages, "tools": [with("input_schema")]})
            }
        }
    }
}

/// A client of a model that wants to know where its user is, and asks again whenever it is told.
struct Client<'a> {
    app: &'a TestApp,
    wire: Wire,
    /// The conversation, where the ids of calls carry it.
    conversation: Option<String>,
    /// The newest answer, where the client reads ids in it.
    answer: Value,
    asked: usize,
}

/// What a client was answered.
struct Answered {
    status: StatusCode,
    retry_after: String,
    text: String,
}

impl<'a> Client<'a> {
    fn new(app: &'a TestApp, wire: Wire) -> Self {
        Self { app, wire, conversation: None, answer: Value::Null, asked: 0 }
    }

    async fn send(&mut self, body: &Value) -> Answered {
        self.asked += 1;
        let request = self.app.http.post(self.app.url(self.wire.path())).bearer_auth(&self.app.token);
        let response = request.json(body).send().await.unwrap();
        let conversation = header(&response, "x-conversation-id").to_owned();
        if !conversation.is_empty() && matches!(self.wire, Wire::OpenAi) {
            self.conversation = Some(conversation);
        }
        let (status, retry_after) = (response.status(), header(&response, "retry-after").to_owned());
        let text = response.text().await.unwrap();
        if status == 200 && matches!(self.wire, Wire::Responses | Wire::Messages) {
            self.answer = serde_json::from_str(&text).unwrap();
        }
        Answered { status, retry_after, text }
    }

    async fn question(&mut self) -> Answered {
        self.send(&self.wire.body(self.asked, None)).await
    }

    /// Answers the call `nth` of the model.
    async fn result(&mut self, nth: usize) -> Answered {
        let id = match (self.wire, &self.conversation) {
            (Wire::Responses, _) => self.answer["output"][0]["call_id"].as_str().unwrap().to_owned(),
            (Wire::Messages, _) => self.answer["content"][0]["id"].as_str().unwrap().to_owned(),
            (_, Some(conversation)) => format!("call_{conversation}_c{nth}"),
            (_, None) => format!("c{nth}"),
        };
        let mut body = self.wire.body(self.asked, Some(&id));
        if let Wire::Responses = self.wire {
            body["previous_response_id"] = self.answer["id"].clone();
        }
        self.send(&body).await
    }
}

/// A model that never has enough: its calls are counted from 1.
async fn curious() -> Upstream {
    let asked = AtomicUsize::new(0);
    Upstream::choosing(move |_| {
        let nth = asked.fetch_add(1, Ordering::SeqCst) + 1;
        Some(calls(&format!("c{nth}"), "locate", &json!({})).answer())
    })
    .await
}

#[tokio::test]
async fn results_of_a_client_are_starts_in_every_protocol() {
    for wire in WIRES {
        let model = curious().await;
        let settings = [("LIMITS__STARTS_PER_MINUTE", "1"), ("LIMITS__STARTS_BURST", "3")];
        let app = with_model(&model, &settings).await;
        let mut client = Client::new(&app, wire);
        let begun = client.question().await;
        assert_eq!(begun.status, 200, "{wire:?}: {}", begun.text);
        let (mut answered, mut refused) = (0, 0);
        for _ in 0..80 {
            let told = client.result(answered + 1).await;
            match told.status.as_u16() {
                200 => answered += 1,
                429 => {
                    let wait: u64 = told.retry_after.parse().unwrap();
                    assert!((1..=60).contains(&wait), "{wire:?}: {wait}");
                    refused += 1;
                }
                status => panic!("{wire:?}: {status}: {}", told.text),
            }
        }
        // A slow machine may have paid for one more.
        assert!((2..=4).contains(&answered) && refused == 80 - answered, "{wire:?}: {answered} of 80");
        assert_eq!(model.requests().len(), 1 + answered, "{wire:?}: each model call had its start");
    }
}

#[tokio::test]
async fn all_runs_of_a_message_have_its_turns_together() {
    for wire in WIRES {
        let model = curious().await;
        let app = with_model(&model, &[("RUNS__MAX_TURNS", "3")]).await;
        let mut client = Client::new(&app, wire);
        client.question().await;
        for nth in 1..3 {
            let told = client.result(nth).await.text;
            assert!(!told.contains("max_turns"), "{wire:?}: {told}");
        }
        assert_eq!(model.requests().len(), 3, "{wire:?}");
        // As often as it likes.
        for _ in 0..3 {
            let told = client.result(3).await.text;
            assert!(told.contains("Maximum tool-call rounds exceeded"), "{wire:?}: {told}");
        }
        assert_eq!(model.requests().len(), 3, "{wire:?}: no model was asked any more");
        client.question().await;
        assert_eq!(model.requests().len(), 4, "{wire:?}: the next message has turns of its own");
    }
}

#[tokio::test]
async fn all_runs_of_a_message_have_its_calls_together() {
    let model = curious().await;
    let app = with_model(&model, &[("RUNS__MAX_TOOL_CALLS", "2")]).await;
    let mut client = Client::new(&app, Wire::AiSdk);
    client.question().await;
    client.result(1).await;
    let told = client.result(2).await.text;
    assert!(told.contains("Maximum number of tool calls exceeded"), "{told}");
}
