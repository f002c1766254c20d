//! A scripted model on the OpenAI wire: each turn is written down, each request is kept for the test to look at.
//!
//! Every request is checked: each call of the history is answered by exactly one result, at once and in order.

use serde_json::{Value, json};

use super::app::TestApp;
use super::upstream::{Answer, End, Request, Upstream};

/// One turn of the model.
#[derive(Debug, Clone)]
pub struct Script {
    body: String,
    calls: usize,
    end: End,
}

/// An empty turn, to be filled.
pub fn turn() -> Script {
    Script { body: String::new(), calls: 0, end: End::Clean }
}

/// A turn that calls one tool.
pub fn calls(id: &str, name: &str, args: &Value) -> Script {
    turn().call(id, name, args).done()
}

/// A turn that answers.
pub fn says(text: &str) -> Script {
    turn().text(text).done()
}

impl Script {
    /// The model says this much, in one chunk.
    pub fn text(self, text: &str) -> Self {
        self.delta(&json!({"content": text}))
    }

    /// The model calls a tool, arguments as JSON.
    pub fn call(self, id: &str, name: &str, args: &Value) -> Self {
        self.call_raw(id, name, &args.to_string())
    }

    /// The model calls a tool, arguments as whatever text.
    pub fn call_raw(mut self, id: &str, name: &str, args: &str) -> Self {
        let index = self.calls;
        self.calls += 1;
        let function = json!({"name": name, "arguments": ""});
        let opening = json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]});
        let input = json!({"tool_calls": [{"index": index, "function": {"arguments": args}}]});
        self.delta(&opening).delta(&input)
    }

    /// The turn ends well.
    pub fn done(self) -> Self {
        let reason = if self.calls > 0 { "tool_calls" } else { "stop" };
        self.finish(reason)
    }

    /// The turn ends with this finish reason.
    pub fn finish(self, reason: &str) -> Self {
        self.chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
            .chunk(json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}))
            .raw("data: [DONE]\n\n")
    }

    /// The turn sends what it has and then stays silent.
    pub fn hangs(mut self) -> Self {
        self.end = End::Hang;
        self
    }

    /// The connection breaks after what was sent.
    pub fn breaks(mut self) -> Self {
        self.end = End::Abort;
        self
    }

    /// Bytes of any kind.
    pub fn raw(mut self, bytes: &str) -> Self {
        self.body.push_str(bytes);
        self
    }

    /// The turn as bytes of a stream that has begun already.
    pub fn bytes(self) -> String {
        self.body
    }

    fn delta(self, delta: &Value) -> Self {
        self.chunk(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    }

    fn chunk(mut self, mut chunk: Value) -> Self {
        chunk["object"] = json!("chat.completion.chunk");
        self.body.push_str(&format!("data: {chunk}\n\n"));
        self
    }

    /// The turn as an HTTP answer, in chunks of a few bytes, so that every event is cut somewhere.
    pub fn answer(self) -> Answer {
        Answer::ok("text/event-stream", self.body).cut(|| 37).ending(self.end)
    }
}

/// The product with a scripted model, and the model.
pub struct Scripted {
    pub app: TestApp,
    pub model: Upstream,
}

impl Scripted {
    /// The product whose model plays `turns` in order; one request too many fails the test.
    pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        Self::with(&[], turns.into_iter().map(Script::answer)).await
    }

    /// The same with settings and any answers.
    pub async fn with(settings: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Self {
        let model = Upstream::script(answers).await;
        let base_url = format!("{}/v1", model.url());
        let mut all = vec![("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url)];
        all.extend(settings);
        Self { app: TestApp::start(&all).await, model }
    }

    /// The messages of each request so far, checked.
    pub fn asked(&self) -> Vec<Vec<Value>> {
        self.model.requests().iter().map(messages).collect()
    }

    /// The messages of the newest request.
    pub fn last_asked(&self) -> Vec<Value> {
        self.asked().pop().unwrap()
    }

    /// What the model read as the result of a call, as JSON.
    pub fn result_of(&self, call: &str) -> Value {
        let messages = self.last_asked();
        let found = messages.iter().rev().find(|message| message["tool_call_id"] == call);
        let content =
            found.unwrap_or_else(|| panic!("no result of {call} in {messages:#?}"))["content"].as_str().unwrap();
        serde_json::from_str(content).unwrap_or_else(|_| json!(content))
    }
}

/// A prompt whose fences have `MARK` in the place of the mark of its conversation.
pub fn with_plain_marks(prompt: &str) -> String {
    let mark = prompt.split_once("[end of data ").and_then(|(_, rest)| rest.split_once(']')).map(|(mark, _)| mark);
    mark.filter(|mark| !mark.is_empty()).map_or_else(|| prompt.to_owned(), |mark| prompt.replace(mark, "MARK"))
}

/// The messages of a request, checked.
pub fn messages(request: &Request) -> Vec<Value> {
    let messages = request.json()["messages"].as_array().unwrap().clone();
    for (at, message) in messages.iter().enumerate() {
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (nth, call) in calls.iter().enumerate() {
            let answer = &messages[at + 1 + nth];
            assert_eq!(answer["tool_call_id"], call["id"], "every call is answered, in order: {messages:#?}");
        }
    }
    messages
}
