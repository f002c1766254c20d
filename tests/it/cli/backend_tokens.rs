//! What an operator learns of an issuer that gives no token for a backend.

use serde_json::json;

use crate::support::model::{calls, says};
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "look"
description = "Looks."
backend = "ledger"
request = { path = "/rows" }
"#;

const PROFILE: &str =
    "id = \"mine\"\ncontext_type = \"mine\"\ninstructions = [\"workflow/role.md\"]\ntools = [\"look\"]\n";

#[tokio::test]
async fn each_refusal_is_one_line_with_what_the_standards_have_of_it() {
    let refusal = |status, error: &str| {
        let body = json!({"error": error, "error_description": "gossip"});
        Answer::status(status, "application/json", body.to_string())
    };
    let issuer = Upstream::script([
        refusal(400, "invalid_scope"),
        refusal(401, "gossip"),
        Answer::ok("application/json", r#"{"access_token": "gossip", "token_type": "mac"}"#),
    ])
    .await;
    let turns = (0..3).flat_map(|_| [calls("c1", "look", &json!({})), says("So.")]);
    let model = Upstream::script(turns.map(|turn| turn.answer())).await;
    let folder = Folder::new();
    folder.write("config/tools/more.toml", TOOLS);
    folder.write("config/profiles/mine.toml", PROFILE);
    let (model_url, token_url) = (format!("{}/v1", model.url()), format!("{}/secret-path", issuer.url()));
    let mut serving = folder.serve(&[
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", model_url.as_str()),
        ("BACKENDS__LEDGER__BASE_URL", "http://localhost:1"),
        ("BACKENDS__LEDGER__CREDENTIALS", "client_credentials"),
        ("BACKENDS__LEDGER__TOKEN_URL", token_url.as_str()),
        ("BACKENDS__LEDGER__CLIENT_ID", "switchboard"),
        ("BACKENDS__LEDGER__CLIENT_SECRET", "the secret of this server"),
    ]);
    let token = folder.token(&["--user", "u"]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for _ in 0..3 {
        let body = json!({"message": "hi", "context_type": "mine"});
        let request = client.post(serving.url("/v1/agent/chat")).bearer_auth(&token).json(&body);
        request.send().await.unwrap().text().await.unwrap();
    }
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    let log = folder.stderr();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("no token for a backend")).collect();
    let expected = ["HTTP 400, invalid_scope", "HTTP 401, with no error that RFC 6749 has", "another token_type"];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, words) in lines.iter().zip(expected) {
        assert!(line.contains("WARN") && line.contains("ledger") && line.contains(words), "{words} in {line}");
    }
    assert!(!log.contains("gossip") && !log.contains("secret-path") && !log.contains("the secret of this"), "{log}");
}
