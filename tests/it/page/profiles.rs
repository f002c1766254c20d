//! `GET /v1/agent/profiles`: whom the caller may ask, with what a page shows of them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::app::{LOW_STOCK, TestApp};

async fn profiles(app: &TestApp, token: &str) -> Vec<Value> {
    let response = app.http.get(app.url("/v1/agent/profiles")).bearer_auth(token).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let body: Value = response.json().await.unwrap();
    body["items"].as_array().unwrap().clone()
}

fn types(profiles: &[Value]) -> Vec<&str> {
    profiles.iter().map(|profile| profile["context_type"].as_str().unwrap()).collect()
}

/// The product with these profile files besides the built-in ones.
async fn with(files: &[(&str, &str)]) -> TestApp {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("config/profiles");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    TestApp::start_in(data, &[]).await
}

#[tokio::test]
async fn the_shipped_profiles_have_faces_and_an_example() {
    let app = TestApp::demo().await;
    let all = profiles(&app, &app.token).await;
    assert!(types(&all).is_sorted(), "{:?}", types(&all));
    let workflow = all.iter().find(|profile| profile["context_type"] == "workflow").unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/profiles/workflow.toml");
    let file: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let expected = json!({
        "context_type": "workflow", "title": file["title"], "description": file["description"],
        "starters": file["starters"],
        "context": {"workflow_id": LOW_STOCK, "rule_name": "Low Stock Alert"},
        "models": [], "input": ["text"], "shows_thinking": false, "shows_tools": true,
    });
    assert_eq!(workflow, &expected);
}

#[tokio::test]
async fn a_profile_shows_what_its_file_says_and_only_to_those_it_lets() {
    let plain = "id = \"plain\"\ncontext_type = \"plain\"\ninstructions = [\"workflow/role.md\"]\n";
    let secret = "id = \"secret\"\ncontext_type = \"secret\"\nroles = [\"AUDITOR\"]\nshow_thinking = true\n\
                  instructions = [\"workflow/role.md\"]\n[model.request]\nmodels = { fast = \"demo\", best = \"demo\" }\n";
    let app = with(&[("plain.toml", plain), ("secret.toml", secret)]).await;
    let all = profiles(&app, &app.token).await;
    assert_eq!(types(&all), ["plain", "tables", "workflow"]);
    let expected = json!({"context_type": "plain", "title": "plain", "starters": [], "models": [], "input": ["text"],
        "shows_thinking": false, "shows_tools": false});
    assert_eq!(all[0], expected);

    let auditor = app.token_of("eve", None, &["AUDITOR"]);
    let all = profiles(&app, &auditor).await;
    assert_eq!(types(&all), ["plain", "secret", "tables", "workflow"]);
    assert_eq!((&all[1]["models"], &all[1]["shows_thinking"]), (&json!(["best", "fast"]), &json!(true)));
}

#[tokio::test]
async fn they_are_for_callers_only() {
    let app = TestApp::demo().await;
    let response = app.http.get(app.url("/v1/agent/profiles")).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"switchboard\"");
}
