//! A scripted model on the Responses wire: each turn is written down, item by item.

use serde_json::{Value, json};

use super::upstream::{Answer, End, Request};

/// One turn of the model.
#[derive(Debug, Clone)]
pub struct Script {
    body: String,
    output: Vec<Value>,
    end: End,
}

/// A turn that has begun, to be filled.
pub fn turn() -> Script {
    let response = json!({"id": "resp_1", "object": "response", "status": "in_progress", "output": []});
    let script = Script { body: String::new(), output: Vec::new(), end: End::Clean };
    script.event("response.created", json!({"response": response}))
}

/// A turn that answers.
pub fn says(text: &str) -> Script {
    turn().text(text).done()
}

/// A turn that calls one tool.
pub fn calls(id: &str, name: &str, args: &Value) -> Script {
    turn().call(id, name, args).done()
}

impl Script {
    /// The model says this much, in a message of its own and two pieces.
    pub fn text(self, text: &str) -> Self {
        let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
        let (index, id) = (self.output.len(), format!("msg_{}", self.output.len()));
        let item = |content: Value| json!({"id": id, "type": "message", "role": "assistant", "content": content});
        let delta = |delta: &str| json!({"item_id": id, "output_index": index, "content_index": 0, "delta": delta});
        self.event("response.output_item.added", json!({"output_index": index, "item": item(json!([]))}))
            .event("response.output_text.delta", delta(first))
            .event("response.output_text.delta", delta(second))
            .item(item(json!([{"type": "output_text", "text": text, "annotations": []}])))
    }

    /// The model declines, in a message of its own.
    pub fn refuses(self, words: &str) -> Self {
        let (index, id) = (self.output.len(), format!("msg_{}", self.output.len()));
        self.event(
            "response.refusal.delta",
            json!({"item_id": id, "output_index": index, "content_index": 0, "delta": words}),
        )
        .item(json!({"id": id, "type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": words}]}))
    }

    /// The model thinks, tells this summary, and its thoughts come sealed.
    pub fn thinks(self, summary: &str, sealed: &str) -> Self {
        let (index, id) = (self.output.len(), format!("rs_{}", self.output.len()));
        self.event(
            "response.reasoning_summary_text.delta",
            json!({"item_id": id, "output_index": index, "summary_index": 0, "delta": summary}),
        )
        .item(json!({
            "id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": summary}], "encrypted_content": sealed,
        }))
    }

    /// The model calls a tool, arguments as JSON.
    pub fn call(self, id: &str, name: &str, args: &Value) -> Self {
        self.call_raw(id, name, &args.to_string())
    }

    /// The model calls a tool, arguments as whatever text.
    pub fn call_raw(self, id: &str, name: &str, args: &str) -> Self {
        let (index, item_id) = (self.output.len(), format!("fc_{}", self.output.len()));
        let item = |args: &str| json!({"id": item_id, "type": "function_call", "call_id": id, "name": name, "arguments": args});
        let delta = json!({"item_id": item_id, "output_index": index, "delta": args});
        self.event("response.output_item.added", json!({"output_index": index, "item": item("")}))
            .event("response.function_call_arguments.delta", delta)
            .item(item(args))
    }

    /// The turn ends well.
    pub fn done(self) -> Self {
        self.ends("completed", json!({}))
    }

    /// The turn ends before it is complete, for this reason.
    pub fn incomplete(self, reason: &str) -> Self {
        self.ends("incomplete", json!({"incomplete_details": {"reason": reason}}))
    }

    /// The turn fails.
    pub fn fails(self, code: &str, message: &str) -> Self {
        self.ends("failed", json!({"error": {"code": code, "message": message}}))
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

    /// All that `other` sends behind this, and its end.
    pub fn then(mut self, other: Self) -> Self {
        self.body.push_str(&other.body);
        Self { end: other.end, ..self }
    }

    /// The turn as bytes of a stream that has begun already.
    pub fn bytes(self) -> String {
        self.body
    }

    /// The turn as an HTTP answer, in chunks of a few bytes, so that every event is cut somewhere.
    pub fn answer(self) -> Answer {
        Answer::ok("text/event-stream", self.body).cut(|| 37).ending(self.end)
    }

    fn item(mut self, item: Value) -> Self {
        let index = self.output.len();
        self.output.push(item.clone());
        self.event("response.output_item.done", json!({"output_index": index, "item": item}))
    }

    fn ends(self, status: &str, fields: Value) -> Self {
        let usage = json!({
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15,
        });
        let mut response = json!({"id": "resp_1", "object": "response", "status": status, "output": self.output});
        response["usage"] = usage;
        response.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.event(&format!("response.{status}"), json!({"response": response}))
    }

    fn event(mut self, kind: &str, mut data: Value) -> Self {
        data["type"] = json!(kind);
        self.body.push_str(&format!("event: {kind}\ndata: {data}\n\n"));
        self
    }
}

/// The items of a request, checked: each call is answered once, reasoning stands before what it led to, and nothing is left
/// to the server's memory.
pub fn input(request: &Request) -> Vec<Value> {
    let body = request.json();
    assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)), "{body:#}");
    assert!(body.get("previous_response_id").is_none(), "{body:#}");
    let items = body["input"].as_array().unwrap().clone();
    for (at, item) in items.iter().enumerate() {
        match item["type"].as_str().unwrap() {
            "function_call" => {
                let is_answer =
                    |other: &&Value| other["type"] == "function_call_output" && other["call_id"] == item["call_id"];
                assert_eq!(items[at..].iter().filter(is_answer).count(), 1, "every call is answered: {items:#?}");
            }
            "reasoning" => {
                let led_to = items[at..].iter().find(|other| other["type"] != "reasoning").unwrap();
                let is_own = led_to["type"] == "function_call" || led_to["role"] == "assistant";
                assert!(is_own, "reasoning stands before what it led to: {items:#?}");
            }
            "message" | "function_call_output" => assert!(item.get("id").is_none(), "{item}"),
            other => panic!("{other} is nothing that is sent"),
        }
    }
    items
}
