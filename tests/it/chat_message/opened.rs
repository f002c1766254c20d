//! A page in Node, as a user has it before them (`tests/peers/frontends/chat-message-page.mjs`).

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::node;

/// The longest time of one step on a busy machine, the start included.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Opened {
    running: Child,
    input: ChildStdin,
    shown: Lines<BufReader<ChildStdout>>,
}

impl Opened {
    /// Opens a page of this server, behind a proxy that adds `token` if it is not empty. `None` where Node's packages are
    /// not installed.
    pub fn at(server: &str, token: &str, options: &Value) -> Option<Self> {
        if !node::is_installed() {
            return None;
        }
        let mut running = Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/frontends/chat-message-page.mjs"))
            .arg(options.to_string())
            .env("SWITCHBOARD_URL", server)
            .env("SWITCHBOARD_TOKEN", token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, out) = (running.stdin.take().unwrap(), running.stdout.take().unwrap());
        Some(Self { running, input, shown: BufReader::new(out).lines() })
    }

    /// Does something, such as `{"press": "Send"}`: what the page shows then.
    pub async fn does(&mut self, what: &Value) -> Value {
        self.input.write_all(format!("{what}\n").as_bytes()).await.unwrap();
        let line = tokio::time::timeout(PATIENCE, self.shown.next_line()).await;
        if let Some(line) = line.unwrap_or_else(|_| panic!("{what} takes too long")).unwrap() {
            return serde_json::from_str(&line).unwrap();
        }
        let mut words = String::new();
        self.running.stderr.take().unwrap().read_to_string(&mut words).await.unwrap();
        panic!("{what}: {words}");
    }

    /// Waits until what the page shows is so.
    pub async fn until(&mut self, wanted: Value) -> Value {
        self.does(&json!({"until": wanted})).await
    }

    /// Types and sends.
    pub async fn sends(&mut self, text: &str) -> Value {
        self.does(&json!({"type": text})).await;
        self.does(&json!({"key": "Enter"})).await
    }

    /// Types and sends, and waits for the end of the answer.
    pub async fn asks(&mut self, text: &str) -> Value {
        self.sends(text).await;
        self.until(json!({"is_sending": false})).await
    }

    /// Presses a button.
    pub async fn presses(&mut self, label: &str) -> Value {
        self.does(&json!({"press": label})).await
    }
}

/// The texts of all messages.
pub fn texts(shown: &Value) -> Vec<&str> {
    shown["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect()
}

/// The page is whole, and nothing goes on.
pub fn is_at_rest(shown: &Value) -> bool {
    let nothing = [&shown["bubble"], &shown["broken"]];
    nothing.iter().all(|value| value.is_null()) && shown["error"] == "" && shown["logged"] == json!([])
}
