//! A scripted server over streamable HTTP: it shakes hands and lists tools as it should, and answers calls as it is told.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::upstream::{Answer, Request, Upstream};

/// The running server.
pub struct Fake {
    pub http: Upstream,
    /// What it lists.
    tools: Arc<Mutex<Value>>,
    /// The methods that it was asked, in order.
    asked: watch::Receiver<Vec<String>>,
}

/// A definition.
pub fn tool(name: &str, description: &str, is_read_only: bool) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "annotations": {"readOnlyHint": is_read_only},
    })
}

/// The result of a call.
pub fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A text as the result of a call.
pub fn text(id: &Value, text: &str) -> Answer {
    let result = result(id, &json!({"content": [{"type": "text", "text": text}]}));
    Answer::ok("application/json", result.to_string())
}

impl Fake {
    /// A server of `tools` whose calls are answered by `call`: it is given the id and the parameters.
    pub async fn new(tools: Value, call: impl Fn(&Value, &Value) -> Answer + Send + Sync + 'static) -> Self {
        let tools = Arc::new(Mutex::new(tools));
        let (say, asked) = watch::channel(Vec::new());
        let listed = Arc::clone(&tools);
        let http = Upstream::choosing(move |request| {
            let (method, answer) = answer(request, &listed.lock().unwrap(), &call);
            say.send_modify(|asked: &mut Vec<String>| asked.push(method));
            Some(answer)
        })
        .await;
        Self { http, tools, asked }
    }

    /// Its section of the settings, with more keys.
    pub fn section(&self, more: &str) -> String {
        format!("[mcp.peer]\n{}", self.keys(more))
    }

    /// The keys of its section.
    pub fn keys(&self, more: &str) -> String {
        format!("url = \"{}/mcp\"\n{more}\n", self.http.url())
    }

    /// Lists other tools from now on; whoever is connected is not told.
    pub fn list(&self, tools: Value) {
        *self.tools.lock().unwrap() = tools;
    }

    /// Waits until it has been asked `method` so many times.
    pub async fn asked(&self, method: &str, times: usize) {
        let mut asked = self.asked.clone();
        let enough = |asked: &Vec<String>| asked.iter().filter(|asked| *asked == method).count() >= times;
        tokio::time::timeout(super::PATIENCE, asked.wait_for(enough)).await.unwrap().unwrap();
    }

    /// How many calls it got.
    pub fn calls(&self) -> usize {
        self.asked.borrow().iter().filter(|method| *method == "tools/call").count()
    }
}

/// The method of a request to a server of these tools, and its answer.
pub fn answer(request: &Request, tools: &Value, call: &impl Fn(&Value, &Value) -> Answer) -> (String, Answer) {
    if request.method != "POST" {
        return (request.method.clone(), Answer::status(405, "text/plain", "no"));
    }
    let body = request.json();
    let method = body["method"].as_str().unwrap_or_default().to_owned();
    let ok = |value: Value| Answer::ok("application/json", result(&body["id"], &value).to_string());
    let answer = match method.as_str() {
        "initialize" => ok(json!({
            "protocolVersion": body["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "tools/list" => ok(json!({ "tools": tools })),
        "tools/call" => call(&body["id"], &body["params"]),
        _ => Answer::status(202, "text/plain", ""),
    };
    (method, answer)
}
