//! A tool of the demo is one file: the one that `docs/EXTENDING.md` shows, word for word.

use serde_json::{Value, json};

use crate::support::app::TestApp;

/// The first TOML block of the document behind `heading`.
fn block(heading: &str) -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/EXTENDING.md")).unwrap();
    let (_, section) = text.split_once(heading).unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

async fn payload(app: &TestApp, message: &str, page: &str) -> Value {
    let body = json!({"message": message, "context": {"current_page": page}, "interaction_type": "text_input"});
    let request = app.http.post(app.url("/api/chat/stream")).bearer_auth(&app.token).json(&body);
    let text = request.send().await.unwrap().text().await.unwrap();
    let mut frames = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let last: Value = serde_json::from_str(frames.next_back().unwrap()).unwrap();
    assert_eq!(last["type"], "complete", "{text}");
    last["payload"].clone()
}

#[tokio::test]
async fn the_documented_file_adds_a_tool_to_the_demos_pages() {
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(data.path().join("config/tools")).unwrap();
    std::fs::write(data.path().join("config/tools/streams.toml"), block("## A tool of the demo: one file")).unwrap();
    let app = TestApp::start_in(data, &[]).await;
    for page in ["streams_list", "nowhere"] {
        let payload = payload(&app, "Get the stream 123", page).await;
        let history = json!([{
            "tool_name": "get_stream",
            "input": {"stream_id": 123},
            "output": r#"{"name":"Asbestos and mesothelioma","purpose":"Exposure, early signs and litigation-relevant science about mesothelioma."}"#,
        }]);
        assert_eq!(payload["tool_history"], history, "{page}");
    }
}

#[tokio::test]
async fn a_profile_that_does_not_exist_cannot_be_joined() {
    let file = block("## A tool of the demo: one file").replace("[\"pages\"]", "[\"page\"]");
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(data.path().join("config/tools")).unwrap();
    std::fs::write(data.path().join("config/tools/streams.toml"), file).unwrap();
    let sources = switchboard::config::Sources {
        dir: Some(data.path().join("config")),
        ..crate::support::app::sources(&data, &[])
    };
    let config = switchboard::config::Config::load(&sources).unwrap();
    let refused = switchboard::app::check(&config, &sources.assets()).await.unwrap_err();
    let switchboard::app::StartError::Config(problems) = refused else { panic!("{refused}") };
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["tools/streams.toml:4: profiles: \"page\" is no profile's id"]);
}
