//! Tools that are declared as data: what goes to the backend for a call, and what the model reads of the answer.

mod answers;
mod arguments;
mod backends;
mod calls;
mod declared;
mod issued;
mod large;
mod mistakes;
mod pictures;
mod progress;
mod results;
mod screens;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Script, Scripted, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

/// What came of a message on which the model made some calls.
pub struct Ran {
    /// The user's token.
    pub token: String,
    /// The run's id, as the answer named it.
    pub run: String,
    /// What the model read of each call: the result, or the text of the error.
    pub read: Vec<Result<Value, String>>,
    /// What the backend got.
    pub requests: Vec<Request>,
    /// What the model was asked first.
    pub asked: Value,
}

impl Ran {
    /// The requests as lines.
    pub fn lines(&self) -> Vec<String> {
        self.requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
    }

    /// The `Idempotency-Key` of each request, without the run's id.
    pub fn keys(&self) -> Vec<Option<&str>> {
        let of_run = |key| str::strip_prefix(key, self.run.as_str()).and_then(|key| key.strip_prefix('.')).unwrap();
        self.requests.iter().map(|request| request.header("idempotency-key").map(of_run)).collect()
    }
}

/// A profile over tools, and its files.
pub struct Setup<'a> {
    /// Paths below `config/`, and texts.
    pub files: Vec<(&'a str, &'a str)>,
    /// The tools that the profile offers.
    pub tools: Vec<&'a str>,
    /// What else stands in the profile.
    pub profile: &'a str,
    pub settings: Vec<(&'a str, &'a str)>,
    pub context: Value,
}

impl<'a> Setup<'a> {
    /// The tools of a file.
    pub fn of(text: &'a str) -> Self {
        let names = text.split("[[tool]]\nname = \"").skip(1);
        let tools = names.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name).collect();
        Self { files: vec![("tools/more.toml", text)], tools, profile: "", settings: Vec::new(), context: json!({}) }
    }

    /// Starts the product with these files and a model that says `turns`.
    pub async fn start(
        &self,
        turns: impl IntoIterator<Item = Script>,
        backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
    ) -> (Scripted, Upstream) {
        let data = tempfile::tempdir().unwrap();
        let tools: Vec<String> = self.tools.iter().map(|name| format!("{name:?}")).collect();
        let profile = format!(
            "id = \"mine\"\ncontext_type = \"mine\"\ninstructions = [\"workflow/role.md\"]\ntools = [{}]\n{}",
            tools.join(", "),
            self.profile
        );
        for (path, text) in self.files.iter().copied().chain([("profiles/mine.toml", profile.as_str())]) {
            let path = data.path().join("config").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
        let backend = Upstream::choosing(backend).await;
        let (model_url, backend_url) = (format!("{}/v1", model.url()), format!("{}/api", backend.url()));
        let mut all = vec![
            ("LLM__PROVIDER", "openai"),
            ("LLM__OPENAI__BASE_URL", model_url.as_str()),
            ("BACKEND__MODE", "http"),
            ("BACKEND__BASE_URL", backend_url.as_str()),
        ];
        all.extend(&self.settings);
        (Scripted { app: TestApp::start_in(data, &all).await, model }, backend)
    }

    /// Makes `calls` (id, tool, arguments) in one turn.
    pub async fn calling(
        &self,
        calls: &[(&str, &str, Value)],
        backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
    ) -> Ran {
        let asked = calls.iter().fold(turn(), |turn, (id, tool, args)| turn.call(id, tool, args));
        let (s, backend) = self.start([asked.done(), says("Done.")], backend).await;
        let body = json!({"message": "Go", "context_type": "mine", "context": self.context});
        let response = s.app.post(&body).await;
        let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
        let frames = frames::parse(&response.text().await.unwrap());
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
        let outcomes = frames.iter().filter(|frame| frame.event == "tool_call_result");
        let asked = s.last_asked();
        let results = &asked[asked.len() - calls.len()..];
        let read = outcomes.zip(results).map(|(frame, message)| {
            let text = message["content"].as_str().unwrap();
            match frame.data["is_error"] == json!(true) {
                false => Ok(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
                true => Err(serde_json::from_str::<Value>(text).unwrap()["error"].as_str().unwrap().to_owned()),
            }
        });
        let read = read.collect();
        let asked = s.model.requests()[0].json();
        Ran { token: s.app.token.clone(), run, read, requests: backend.requests(), asked }
    }
}

/// A good answer of JSON.
pub fn answer(body: &Value) -> Option<Answer> {
    Some(Answer::ok("application/json", body.to_string()))
}

/// What the model reads of a write that may have been done.
pub fn unknown(error: &str) -> String {
    format!(
        "it is not known whether this was done; do not repeat the call: look whether it was, or tell the user that it may \
         have been ({error})"
    )
}
