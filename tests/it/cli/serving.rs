//! `serve`: what it prints is what a newcomer pastes, and how it stops is what an orchestrator waits for.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::support::frames;
use crate::support::model::turn;
use crate::support::process::Folder;
use crate::support::upstream::Upstream;

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after:?} in {text}")).0
}

#[tokio::test]
async fn the_printed_request_works_as_it_is() {
    let folder = Folder::new();
    let serving = folder.serve(&[]);
    assert!(serving.greeting.contains("(provider: demo, "), "{}", serving.greeting);
    assert!(!serving.address.ends_with(":0"), "the real port");
    let printed = serving.lines_until(|line| line.contains(" -d ")).join("\n");
    assert_eq!(printed.matches("curl -N ").count(), 1);
    let url = between(&printed, "curl -N ", " ");
    assert_eq!(url, serving.url("/v1/agent/chat"));
    let token = between(&printed, "Authorization: Bearer ", "'");
    let body = between(&printed, "-d '", "'");

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.post(url).bearer_auth(token).header("content-type", "application/json").body(body.to_owned());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let frames = frames::parse(&response.text().await.unwrap());
    let good_result = |frame: &frames::Frame| frame.event == "tool_call_result" && frame.data["is_error"] == false;
    assert!(frames.iter().any(good_result), "{frames:#?}");
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"));
    assert!(frames::text(&frames).contains("Low Stock Alert"), "{}", frames::text(&frames));
}

#[test]
fn the_first_line_names_who_answers_and_who_stands_in() {
    let folder = Folder::new();
    let settings = [("LLM__PROVIDER", "ollama:small"), ("LLM__FALLBACKS", "openai:gpt,ollama")];
    let serving = folder.serve(&settings);
    let names = between(&serving.greeting, "(", ", backend");
    assert_eq!(names, "provider: ollama, model: small, fallbacks: openai:gpt ollama:qwen3:14b");
}

#[tokio::test]
async fn a_token_made_in_the_same_folder_is_accepted_and_one_of_another_folder_is_not() {
    let (folder, other) = (Folder::new(), Folder::new());
    // Before the first start: whoever is first makes the secret.
    let before = folder.token(&["--user", "u"]);
    let serving = folder.serve(&[]);
    let after = folder.token(&["--user", "u", "--tenant", "t", "--ttl", "2d"]);
    let foreign = other.token(&["--user", "u"]);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for (token, status) in [(before, 200), (after, 200), (foreign, 401)] {
        let body = json!({"message": "hi", "context_type": "workflow"});
        let response = http.post(serving.url("/v1/agent/chat")).bearer_auth(token).json(&body).send().await.unwrap();
        assert_eq!(response.status(), status);
    }
}

#[tokio::test]
async fn outside_of_dev_mode_no_token_is_printed() {
    let folder = Folder::new();
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef")];
    let mut serving = folder.serve(&settings);
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    assert_eq!(serving.lines.iter().collect::<Vec<_>>(), [""; 0]);
    assert_eq!(folder.entries(), ["data", "stderr.log"]);
    assert!(!folder.path().join("data/dev-secret").exists());
}

#[test]
fn what_the_first_start_makes_is_its_owners_alone() {
    let folder = Folder::new();
    let _serving = folder.serve(&[]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let data = folder.path().join("data");
    let mut open: Vec<_> = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(open.len() >= 3, "a secret, a database and its lock: {open:?}");
    // The one for files of users, too.
    open.retain(|path| mode(path) != if path.is_dir() { 0o700 } else { 0o600 });
    assert_eq!((mode(&data), open), (0o700, Vec::new()));
}

#[tokio::test]
async fn a_server_without_requests_stops_at_once() {
    let folder = Folder::new();
    // At the first moment anybody can know that it is there, several times.
    for _ in 0..5 {
        // A server that waited for its drain time would not end within this test's patience.
        let mut serving = folder.serve(&[("SERVER__DRAIN_S", "3600")]);
        serving.terminate();
        assert_eq!(serving.ended().await, Some(0), "{}", folder.stderr());
        assert!(folder.stderr().contains("stopped"));
    }
}

#[tokio::test]
async fn an_open_stream_gets_the_drain_time_and_then_its_terminal_event() {
    let model = Upstream::script([turn().text("Well").hangs().answer()]).await;
    let base_url = model.url();
    let folder = Folder::new();
    let settings =
        [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str()), ("SERVER__DRAIN_S", "1")];
    let mut serving = folder.serve(&settings);
    let token = folder.token(&["--user", "u"]);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({"message": "hi", "context_type": "workflow"});
    let request = http.post(serving.url("/v1/agent/chat")).bearer_auth(&token).json(&body);
    let mut response = request.send().await.unwrap();
    let mut text = String::new();
    while !text.contains("Well") {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    serving.terminate();
    while let Some(bytes) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    let frames = frames::parse(&text);
    assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "error"]);
    assert_eq!(frames[2].data["code"], "interrupted");
    assert_eq!(serving.ended().await, Some(0), "{}", folder.stderr());
    model.clients_gone(1).await;
}

#[tokio::test]
async fn a_second_signal_ends_the_drain_time_at_once() {
    let model = Upstream::script([turn().text("Well").hangs().answer()]).await;
    let base_url = model.url();
    let folder = Folder::new();
    let settings =
        [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str()), ("SERVER__DRAIN_S", "3600")];
    let mut serving = folder.serve(&settings);
    let token = folder.token(&["--user", "u"]);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({"message": "hi", "context_type": "workflow"});
    let request = http.post(serving.url("/v1/agent/chat")).bearer_auth(&token).json(&body);
    let response = request.send().await.unwrap();
    serving.terminate();
    while !folder.stderr().contains("draining") {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    serving.terminate();
    let frames = frames::parse(&response.text().await.unwrap());
    assert_eq!(frames.last().unwrap().data["code"], "interrupted");
    assert_eq!(serving.ended().await, Some(0), "{}", folder.stderr());
}
