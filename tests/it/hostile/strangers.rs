//! Servers that we ask and that send us on: no client of ours follows a redirect, keeps a cookie, or tells a key to anybody
//! else.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::tickets::write;
use crate::support::upstream::{Answer, Upstream};

async fn trap() -> Upstream {
    Upstream::choosing(|_| Some(Answer::ok("application/json", "{}"))).await
}

/// All ways to send somebody on.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// A server that sends everybody on to `url`, each in another way, with a cookie.
async fn sends_on(url: String) -> Upstream {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Upstream::choosing(move |_| {
        let nth = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let answer = Answer::status(STATUSES[nth % STATUSES.len()], "text/plain", "go on");
        Some(answer.header("location", &format!("{url}/steal")).header("set-cookie", "a=b"))
    })
    .await
}

#[tokio::test]
async fn a_model_that_sends_us_on_is_not_followed() {
    for (provider, key) in [("openai", "OPENAI"), ("claude", "CLAUDE"), ("gemini", "GEMINI"), ("ollama", "OLLAMA")] {
        let trap = trap().await;
        let model = sends_on(trap.url()).await;
        let (base, secret) = (format!("LLM__{key}__BASE_URL"), format!("LLM__{key}__API_KEY"));
        let url = model.url();
        let settings = [
            ("LLM__PROVIDER", provider),
            (&*base, &*url),
            (&*secret, "sk-canary-0123456789"),
            ("LLM__RETRY__ATTEMPTS", "1"),
            ("LLM__BREAKER__FAILURES", "0"),
        ];
        let app = TestApp::start(&settings).await;
        for status in STATUSES {
            let frames = app.chat(&json!({"message": "Hi", "context_type": "workflow"})).await;
            assert_eq!(frames::names(&frames).last(), Some(&"error"), "{provider} {status}: {frames:#?}");
            assert!(!format!("{frames:?}").contains("canary"), "{provider} {status}");
        }
        assert_eq!((model.requests().len(), trap.connections()), (STATUSES.len(), 0), "{provider}");
        assert!(model.requests().iter().all(|request| request.header("cookie").is_none()), "{provider}");
    }
}

#[tokio::test]
async fn a_server_of_tools_that_sends_us_on_is_not_followed() {
    let trap = trap().await;
    let peer = sends_on(trap.url()).await;
    let data = tempfile::tempdir().unwrap();
    let section =
        format!("[mcp.peer]\nurl = \"{}/mcp\"\nheaders = {{ authorization = \"Bearer canary-0123\" }}\n", peer.url());
    write(&data, "default.toml", &section);
    let app = TestApp::start_in(data, &[]).await;
    tokio::time::timeout(std::time::Duration::from_secs(10), async {
        while peer.requests().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    app.stop().await;
    assert_eq!(trap.connections(), 0);
    assert!(peer.requests().iter().all(|request| request.header("cookie").is_none()));
}

#[tokio::test]
async fn a_server_of_meanings_that_sends_us_on_is_not_followed() {
    use switchboard::agent::ports::embeddings::Embedder;
    use switchboard::llm::embeddings::{Embeddings, EmbeddingsConfig};
    let trap = trap().await;
    let server = sends_on(trap.url()).await;
    let text =
        format!("base_url = \"{}\"\nmodel = \"m\"\napi_key = \"canary-0123456789\"\ntimeout_s = 5", server.url());
    let config: EmbeddingsConfig = toml::from_str(&text).unwrap();
    let embedder = Embeddings::connect(&config).unwrap();
    assert!(embedder.embed("x", &["y"]).await.is_err());
    assert_eq!((server.requests().len(), trap.connections()), (1, 0));
}

#[test]
fn every_http_client_of_ours_says_that_it_follows_nobody() {
    fn files(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, found),
                false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    files(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let mut clients = 0;
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        assert!(!code.contains("Client::new()"), "{} makes a client that follows redirects", path.display());
        assert!(!code.contains("cookie_store"), "{}", path.display());
        let made = code.matches("Client::builder()").count();
        clients += made;
        assert!(code.matches("Policy::none()").count() >= made, "{} makes a client without a policy", path.display());
    }
    assert_eq!(clients, 1, "all are made in one place");
}
