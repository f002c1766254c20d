//! The 12 tools of the tables profile: called by a scripted model, run against the demo backend or a scripted one, and
//! judged by what the client sees and what the model reads.

mod changes;
mod edits_refused;
mod failing_backend;
mod previews;
mod reading;
mod saving;

use serde_json::{Value, json};

use crate::support::app::ADA;
use crate::support::frames::{self, Frame};
use crate::support::model::{Scripted, says, turn};

/// `orders_table` of the demo backend.
pub const ORDERS: &str = "99000000-0000-4000-8000-000000000001";

/// `inventory_table` of the demo backend.
pub const INVENTORY: &str = "99000000-0000-4000-8000-000000000002";

/// `suppliers_table`, which belongs to the system: nobody may change it.
pub const SUPPLIERS: &str = "99000000-0000-4000-8000-000000000004";

/// A UUID that nothing has.
pub const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// The stored object that the demo backend begins with under this id.
pub fn seeded(id: &str) -> Value {
    let all: Vec<Value> = serde_json::from_str(include_str!("../../../../config/demo/tables.json")).unwrap();
    all.into_iter().find(|stored| stored["id"] == id).unwrap()
}

/// The configuration in [`seeded`].
pub fn config(id: &str) -> Value {
    seeded(id)["config"].clone()
}

/// A call of a tool and its arguments.
pub type Call<'a> = (&'a str, Value);

/// What the model read: the result, or the text of the error.
pub type Read = Result<Value, String>;

/// Who asks, on which screen, with which settings.
#[derive(Default)]
pub struct Asking<'a> {
    pub settings: &'a [(&'a str, &'a str)],
    pub context: Option<Value>,
    /// Ada with the roles USER and ADMIN when `None`.
    pub roles: Option<&'a [&'a str]>,
}

impl Asking<'_> {
    /// Makes `calls` in one turn and returns what the model read of each, with the frames of the run.
    pub async fn run(&self, calls: &[Call<'_>]) -> (Vec<Read>, Vec<Frame>) {
        let (_, read, frames) = self.run_with_token(calls).await;
        (read, frames)
    }

    /// The same, and before it the token with which the server was asked.
    pub async fn run_with_token(&self, calls: &[Call<'_>]) -> (String, Vec<Read>, Vec<Frame>) {
        let calling = calls.iter().enumerate();
        let calling = calling.fold(turn(), |turn, (n, (name, args))| turn.call(&format!("t{n}"), name, args));
        let answers = [calling.done(), says("Done.")].map(crate::support::model::Script::answer);
        let s = Scripted::with(self.settings, answers).await;
        let token = self.roles.map_or_else(|| s.app.token.clone(), |roles| s.app.token_of(ADA, None, roles));
        let body = json!({"message": "Go", "context_type": "tables", "context": self.context});
        let response = s.app.post_as(&token, &body).await;
        let frames = frames::parse(&response.text().await.unwrap());
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
        let read = (0..calls.len()).map(|n| read(&s, &frames, &format!("t{n}"))).collect();
        (token, read, frames)
    }

    /// What the model read of each of `calls`.
    pub async fn results(&self, calls: &[Call<'_>]) -> Vec<Read> {
        self.run(calls).await.0
    }
}

/// What the model read of each of `calls`, made by Ada without a screen.
pub async fn results(calls: &[Call<'_>]) -> Vec<Read> {
    Asking::default().results(calls).await
}

/// What the model read of one call.
pub async fn result(tool: &str, args: Value) -> Read {
    results(&[(tool, args)]).await.remove(0)
}

/// What the newest request to the model holds as the result of `call`; the frame of the client must agree.
pub fn read(s: &Scripted, frames: &[Frame], call: &str) -> Read {
    let of_call = |frame: &&Frame| frame.event == "tool_call_result" && frame.data["tool_use_id"] == call;
    let is_error = frames.iter().find(of_call).unwrap().data["is_error"].as_bool().unwrap();
    let result = s.result_of(call);
    match is_error {
        false => Ok(result),
        true => Err(result["error"]
            .as_str()
            .unwrap_or_else(|| panic!("an error is {{\"error\": text}}: {result}"))
            .to_owned()),
    }
}

/// Asserts that each call fails with a text that begins with its words.
#[track_caller]
pub fn assert_refused(read: &[Read], expected: &[(&str, &str)]) {
    assert_eq!(read.len(), expected.len());
    for (read, (words, reason)) in read.iter().zip(expected) {
        let Err(text) = read else { panic!("{reason}: not refused: {read:?}") };
        assert!(text.starts_with(words), "{reason}: {text}");
    }
}
