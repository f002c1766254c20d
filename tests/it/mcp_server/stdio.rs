//! Messages on lines, as desktops send them to programs that they have started.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::app::stdio::{Bearer, carry};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::Notify;

use super::made::drawing;
use super::{call, forms, request, text};
use crate::files::PIXEL;
use crate::openai::{playing, with};
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Answer;
use crate::support::wait::eventually;

/// A desktop.
struct Desktop {
    answers: BufReader<ReadHalf<DuplexStream>>,
    says: WriteHalf<DuplexStream>,
}

impl Desktop {
    async fn say(&mut self, line: &str) {
        self.says.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hears(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }
}

/// What a desktop does while its messages are carried to the product; it goes at the end.
async fn with_desktop(s: &Scripted, story: impl AsyncFnOnce(&mut Desktop)) {
    with_desktop_of(s, &s.app.token, story).await;
}

/// The same as the user of that token.
async fn with_desktop_of(s: &Scripted, token: &str, story: impl AsyncFnOnce(&mut Desktop)) {
    let (near, far) = duplex(1 << 16);
    let (input, output) = split(far);
    let (answers, says) = split(near);
    let mut desktop = Desktop { answers: BufReader::new(answers), says };
    let carrying = carry(s.app.address, Bearer::Given(token.to_owned().into()), input, output);
    let telling = async {
        story(&mut desktop).await;
        desktop.says.shutdown().await.unwrap();
    };
    tokio::join!(carrying, telling);
}

#[tokio::test]
async fn messages_of_both_eras_are_carried_and_answered_line_by_line() {
    let s = playing([says("One.")]).await;
    with_desktop(&s, async |desktop| {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}});
        desktop.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()).await;
        assert_eq!(desktop.hears().await["result"]["protocolVersion"], "2025-11-25");
        desktop.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        desktop.say("").await;
        desktop.say("nonsense").await;
        assert_eq!(desktop.hears().await["error"]["code"], -32700);
        desktop.say(&request("tools/list", json!({}), forms()).to_string()).await;
        assert_eq!(desktop.hears().await["result"]["ttlMs"], 60_000);
        let mut ask = call("ask_workflow", json!({"message": "First?"}), forms());
        ask["params"]["_meta"]["progressToken"] = json!(5);
        desktop.say(&ask.to_string()).await;
        assert_eq!(desktop.hears().await["params"]["progress"], 1);
        let answer = desktop.hears().await;
        assert_eq!((&answer["id"], text(&answer["result"])), (&json!(7), "One.".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_called_off_ends_its_run() {
    let s = playing([turn().text("Slowly").hangs()]).await;
    with_desktop(&s, async |desktop| {
        desktop.say(&call("ask_workflow", json!({"message": "a"}), forms()).to_string()).await;
        eventually("the model is asked", async || (s.model.requests().len() == 1).then_some(())).await;
        desktop.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
        s.model.clients_gone(1).await;
    })
    .await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_carried() {
    let s = playing([]).await;
    with_desktop(&s, async |desktop| {
        let long = json!({"jsonrpc": "2.0", "method": "ping", "params": {"a": "x".repeat(5 << 20)}, "id": "long"});
        desktop.say(&long.to_string()).await;
        let refused = desktop.hears().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("long"), &json!(-32600)), "{refused}");
        desktop.say(r#"{"jsonrpc":"2.0","method":"ping","id":2}"#).await;
        assert_eq!(desktop.hears().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    })
    .await;
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_input_is_answered() {
    let s = playing([says("One.")]).await;
    with_desktop(&s, async |desktop| {
        desktop.say(&call("ask_workflow", json!({"message": "First?"}), forms()).to_string()).await;
        desktop.says.shutdown().await.unwrap();
        assert_eq!(text(&desktop.hears().await["result"]), "One.");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_in_work_at_the_end_of_input_is_answered() {
    let gate = Arc::new(Notify::new());
    let slowly =
        Answer::ok("text/event-stream", turn().text("One.").bytes()).gated(&gate, turn().finish("stop").bytes());
    let s = with(&[], &[], [slowly]).await;
    with_desktop(&s, async |desktop| {
        desktop.say(&call("ask_workflow", json!({"message": "First?"}), forms()).to_string()).await;
        eventually("the model is asked", async || (s.model.requests().len() == 1).then_some(())).await;
        desktop.says.shutdown().await.unwrap();
        gate.notify_one();
        assert_eq!(text(&desktop.hears().await["result"]), "One.");
    })
    .await;
}

#[tokio::test]
async fn what_names_no_request_is_answered_without_a_name_and_what_wants_no_answer_gets_none() {
    let s = playing([]).await;
    with_desktop(&s, async |desktop| {
        desktop.say(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#).await;
        desktop.say(r#"{"jsonrpc":"2.0","method":"notifications/made-up"}"#).await;
        for line in
            [r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "[]"]
        {
            desktop.say(line).await;
            let refused = desktop.hears().await;
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_small_file_is_in_the_answer_itself() {
    let (_fake, s) = drawing([calls("c1", "peer__draw", &json!({})), says("Drawn.")]).await;
    with_desktop(&s, async |desktop| {
        desktop.say(&call("ask_desk", json!({"message": "Draw"}), forms()).to_string()).await;
        let answer = desktop.hears().await;
        let items = answer["result"]["content"].as_array().unwrap();
        let [words, file] = &items[..] else { panic!("{answer}") };
        assert_eq!((&words["text"], &file["type"]), (&json!("Drawn."), &json!("resource")), "{answer}");
        let file = &file["resource"];
        assert_eq!((&file["blob"], &file["mimeType"]), (&json!(PIXEL), &json!("image/png")));
        assert!(file["uri"].as_str().unwrap().ends_with("/content"));
    })
    .await;
}

#[tokio::test]
async fn every_failure_names_the_request_and_none_answers_a_notification() {
    let s = playing([]).await;
    with_desktop_of(&s, "no.such.token", async |desktop| {
        desktop.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        desktop.say(&call("ask_workflow", json!({"message": "First?"}), forms()).to_string()).await;
        let refused = desktop.hears().await;
        assert_eq!((&refused["id"], refused["error"]["code"].is_i64()), (&json!(7), true), "{refused}");
    })
    .await;
}
