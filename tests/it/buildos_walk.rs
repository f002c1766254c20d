//! The set of `config/samples/buildos` as it is, with the demo's model and backend, as the README has it: a plan is made, its steps
//! run, and the task that it adds is there.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::agent_stream::{frame, read, text};
use crate::support::app::TestApp;
use crate::support::process::Folder;

const SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples/buildos");

/// The project of the README.
const GARDEN: &str = "0198c0de-1000-7000-8000-000000000001";

const DEMO: [(&str, &str); 2] = [("BACKEND__MODE", "demo"), ("BACKENDS__DATA__BASE_URL", "demo")];

async fn set() -> TestApp {
    let data = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(Path::new(SET), data.path().join("config")).unwrap();
    TestApp::start_in(data, &DEMO).await
}

async fn turn(app: &TestApp, body: &Value) -> Vec<Value> {
    let request = app.http.post(app.url("/api/agent/stream")).bearer_auth(&app.token).json(body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    read(&response.text().await.unwrap())
}

fn of<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

#[test]
fn its_files_have_no_mistakes() {
    let ended = Folder::new().run(&["check-config", "--config-dir", SET], &[]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "the configuration is good\n", ""));
}

#[test]
fn the_demo_backend_is_there_for_a_named_backend_only_where_it_is_served() {
    let ended = Folder::new().run(&["check-config", "--config-dir", SET], &[("BACKENDS__DATA__BASE_URL", "demo")]);
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains("backends.data.base_url: is of use only with backend.mode"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_plan_is_made_and_run_and_what_it_adds_is_there() {
    let app = set().await;
    let message = "Plan my week, and add a task \"Call the printer\"";
    let body = json!({"message": message, "context_type": "project", "entity_id": GARDEN});
    let frames = turn(&app, &body).await;
    let plan = &frame(&frames, "plan_created")["plan"];
    assert_eq!(plan["steps"].as_array().unwrap().len(), 3, "{plan:#}");
    let done = of(&frames, "step_complete");
    assert!(done.len() == 3 && done.iter().all(|frame| frame["step"]["status"] == "completed"), "{done:#?}");
    assert!(text(&frames).contains("Add the task: completed"), "{}", text(&frames));
    let told = of(&frames, "operation").into_iter().map(|frame| &frame["operation"]);
    let made: Vec<&Value> = told.filter(|told| told["action"] == "create").collect();
    assert_eq!(json!([made[0]["entity_name"], made[1]["status"]]), json!(["Call the printer", "success"]));

    let id = plan["id"].as_str().unwrap();
    let request = app.http.request(Method::GET, app.url(&format!("/v1/agent/plans/{id}"))).bearer_auth(&app.token);
    let kept: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(kept["status"], "completed");
    let found = kept["steps"][1]["result"]["tasks"].as_array().unwrap();
    let titles: Vec<&Value> = found.iter().map(|task| &task["title"]).collect();
    assert_eq!(titles, ["Buy soil", "Measure the roof"], "those of this project, the newest first");

    let again = turn(&app, &body).await;
    let plan = frame(&again, "plan_created")["plan"]["id"].as_str().unwrap().to_owned();
    let request = app.http.get(app.url(&format!("/v1/agent/plans/{plan}"))).bearer_auth(&app.token);
    let kept: Value = request.send().await.unwrap().json().await.unwrap();
    let found = kept["steps"][1]["result"]["tasks"].as_array().unwrap();
    assert_eq!(found[0]["title"], "Call the printer", "the task of the first plan");
}

#[tokio::test]
async fn where_no_project_is_open_a_plan_only_looks() {
    let app = set().await;
    let frames = turn(&app, &json!({"message": "Plan my week", "context_type": "global"})).await;
    let done = of(&frames, "step_complete");
    assert_eq!(done.len(), 2, "{frames:#?}");
    assert_eq!(done[0]["step"]["status"], "completed");
}
