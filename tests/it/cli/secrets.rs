//! The canary: with everything logged, neither a token nor a key nor a secret is found where it does not belong.

use serde_json::json;

use crate::support::model::{calls, says};
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};

const API_KEY: &str = "sk-canary-0123456789";

#[tokio::test]
async fn no_secret_is_logged_stored_or_answered() {
    let refusal = r#"{"error":{"message":"incorrect key","type":"invalid_request_error"}}"#;
    let model = Upstream::script([
        calls("t1", "list_my_alerts", &json!({})).answer(),
        says("There they are.").answer(),
        Answer::status(401, "application/json", refusal).header("x-request-id", "req-of-the-vendor"),
    ])
    .await;
    let base_url = model.url();
    let folder = Folder::new();
    let mut serving = folder.serve(&[
        ("LOG__LEVEL", "trace"),
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", base_url.as_str()),
        ("LLM__OPENAI__API_KEY", API_KEY),
        ("LLM__OPENAI__MODEL", "model-of-the-test"),
    ]);
    let printed = serving.lines_until(|line| line.contains("Authorization")).concat();
    let printed = printed.split_once("Bearer ").unwrap().1.split('\'').next().unwrap().to_owned();
    let token = folder.token(&["--user", "11111111-1111-4111-8111-111111111111", "--role", "USER"]);
    let forged = format!("{}forged", folder.token(&["--user", "somebody"]));

    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut answers = String::new();
    for (client, token, status) in [(&plain, &token, 200), (&plain, &printed, 200), (&plain, &forged, 401)] {
        let body = json!({"message": "My alerts", "context_type": "workflow", "conversation_id": "c"});
        let request = client.post(serving.url("/v1/agent/chat")).bearer_auth(token).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        answers.push_str(&format!("{:?}", response.headers()));
        answers.push_str(&response.text().await.unwrap());
    }
    assert!(answers.contains("\"is_error\":false"), "the token reached the backend: {answers}");
    assert_eq!(answers.matches("message_complete").count(), 1, "{answers}");
    assert!(answers.contains("provider_unauthorized"), "{answers}");
    assert!(model.requests().iter().all(|r| r.header("authorization") == Some(&format!("Bearer {API_KEY}"))));
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));

    let dev_secret = std::fs::read_to_string(folder.path().join("data/dev-secret")).unwrap();
    let signature = |token: &str| token.rsplit_once('.').unwrap().1.to_owned();
    let secrets = [
        API_KEY.to_owned(),
        dev_secret.trim().to_owned(),
        signature(&token),
        signature(&printed),
        signature(&forged),
        token.split('.').nth(1).unwrap().to_owned(),
    ];
    let mut places = vec![("the answers".to_owned(), answers.into_bytes())];
    for entry in std::fs::read_dir(folder.path().join("data")).unwrap() {
        let path = entry.unwrap().path();
        // Nobody has uploaded a file.
        if !path.ends_with("dev-secret") && path.is_file() {
            places.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    assert!(places.len() >= 2, "the database is among them: {:?}", folder.entries());
    let log = folder.stderr();
    assert!(log.contains("TRACE") && log.contains("request answered"), "everything is logged");
    let failure = log.lines().find(|line| line.contains("model call failed")).unwrap();
    for known in ["provider_unauthorized", "openai", "model-of-the-test", "req-of-the-vendor"] {
        assert!(failure.contains(known), "{known}: {failure}");
    }
    places.push(("the log".to_owned(), log.into_bytes()));
    for (place, bytes) in places {
        for secret in &secrets {
            let found = bytes.windows(secret.len()).position(|window| window == secret.as_bytes());
            let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at]).into_owned());
            assert_eq!(around, None, "{place} holds {secret}");
        }
    }
}
