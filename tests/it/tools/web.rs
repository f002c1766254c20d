//! `web_fetch` and `web_search` over HTTP: what a profile offers, what the model reads, and who is never connected to.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{calls, says};
use crate::support::tickets::{started, write};
use crate::support::upstream::{Answer, Upstream};

const PROFILE: &str = r#"
id = "research"
context_type = "research"
instructions = ["workflow/role.md"]
tools = ["web_fetch", "web_search"]
"#;

/// A page, and a search engine.
async fn site() -> Upstream {
    Upstream::choosing(|request| {
        Some(match request.path.split('?').next().unwrap() {
            "/page" => Answer::ok(
                "text/html; charset=iso-8859-1",
                b"<title>T</title><p>Caf\xe9 <b>open</b><script>x()</script>".as_slice(),
            ),
            "/search" => {
                let results = json!([{"title": "One", "url": "https://one.example/", "content": "The first."}]);
                Answer::ok("application/json", json!({"results": results}).to_string())
            }
            _ => Answer::status(404, "text/html", "<p>gone"),
        })
    })
    .await
}

/// A model that makes this call and then says that it is done.
async fn calling(tool: &'static str, args: Value) -> Upstream {
    Upstream::choosing(move |request| {
        let body = request.json();
        let is_answered = body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
        Some(if is_answered { says("Done.").answer() } else { calls("c1", tool, &args).answer() })
    })
    .await
}

async fn ask(app: &TestApp) {
    let body = json!({"message": "Look it up", "context_type": "research"});
    let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).json(&body);
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("message_complete"), "{text}");
}

/// What the model was offered, and what it read of its one call.
async fn read(tool: &'static str, args: Value, settings: &[(&str, &str)]) -> (Vec<String>, Value) {
    let model = calling(tool, args).await;
    let data = tempfile::tempdir().unwrap();
    write(&data, "profiles/research.toml", PROFILE);
    let app = started(data, (&model, "http://127.0.0.1:1"), settings).await;
    ask(&app).await;
    let requests = model.requests();
    let offered = requests[0].json()["tools"].as_array().unwrap().clone();
    let offered = offered.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
    let messages = requests.last().unwrap().json()["messages"].clone();
    let result = messages.as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap().clone();
    (offered, serde_json::from_str(result["content"].as_str().unwrap()).unwrap())
}

#[tokio::test]
async fn a_page_is_read_as_text_where_its_host_is_allowed_and_nobody_is_connected_to_else() {
    let site = site().await;
    let (host, url) = (site.url().replace("http://", ""), format!("{}/page", site.url()));
    let (offered, page) = read("web_fetch", json!({"url": url}), &[("WEB__ALLOW_HOSTS", &host)]).await;
    assert_eq!(offered, ["web_fetch"], "there is no search engine");
    let expected = json!({
        "type": "web_browse_result", "mode": "http", "url": url, "final_url": url, "status": 200,
        "content_type": "text/html; charset=iso-8859-1", "encoding": "windows-1252", "text": page["text"],
    });
    assert_eq!(page, expected);
    let text = page["text"].as_str().unwrap();
    assert!(text.contains("Café open") && !text.contains("x()") && !text.contains('<'), "{text}");

    site.forget();
    let (_, refused) = read("web_fetch", json!({"url": url}), &[]).await;
    let expected = json!({
        "type": "web_browse_error", "name": "web_fetch", "code": "forbidden_address", "error": refused["error"],
    });
    assert_eq!(refused, expected);
    assert_eq!((site.requests().len(), site.connections()), (0, 1), "the one connection is of the page before");
}

#[tokio::test]
async fn a_search_is_offered_with_an_engine_and_asks_it_alone() {
    let site = site().await;
    let engine = format!("{}/search", site.url());
    let args = json!({"query": "switch & board", "num_results": 3});
    let (offered, found) = read("web_search", args, &[("WEB__SEARCH_URL", &engine)]).await;
    assert_eq!(offered, ["web_fetch", "web_search"]);
    let hits = json!([{"title": "One", "url": "https://one.example/", "snippet": "The first."}]);
    assert_eq!(found, json!({"type": "web_search_result", "query": "switch & board", "results": hits, "count": 1}));
    let asked: Vec<String> = site.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/search?q=switch+%26+board&format=json"]);

    let (_, refused) = read("web_search", json!({"query": " "}), &[("WEB__SEARCH_URL", &engine)]).await;
    assert_eq!((&refused["type"], &refused["code"]), (&json!("web_search_error"), &json!("bad_params")));
}
