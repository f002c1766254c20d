//! The document: complete, consistent, checked in, served and printed alike.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use switchboard::http::description::{Version, document, text};

use super::operations;
use crate::support::app::TestApp;
use crate::support::process::Folder;

#[test]
fn the_description_is_the_one_that_is_checked_in() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let made = text(Version::V31);
    if std::env::var("SWITCHBOARD_UPDATE_SNAPSHOTS").as_deref() == Ok("1") {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
    let at = differs.map(|at| format!("line {}: {}", at + 1, made.lines().nth(at).unwrap_or_default()));
    assert!(made == kept, "docs/openapi.json is another one, {at:?}: renew it with SWITCHBOARD_UPDATE_SNAPSHOTS=1");
}

#[tokio::test]
async fn it_is_served_to_anybody_and_printed_by_the_command() {
    let app = TestApp::demo().await;
    for version in [Version::V31, Version::V32] {
        let answer = app.http.get(app.url(version.path())).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"application/json".parse().unwrap())
        );
        assert_eq!(answer.text().await.unwrap(), text(version));
    }
    let folder = Folder::new();
    for (args, version) in [(&["openapi"][..], Version::V31), (&["openapi", "--3.2"][..], Version::V32)] {
        let printed = folder.run(args, &[]);
        assert_eq!((printed.code, printed.stdout), (0, text(version)), "{}", printed.stderr);
    }
}

#[tokio::test]
async fn without_docs_there_is_neither_the_description_nor_its_page() {
    let app = TestApp::start(&[("SERVER__DOCS", "false")]).await;
    for path in ["/openapi.json", "/openapi-3.2.json", "/docs", "/docs/docs.js"] {
        assert_eq!(app.http.get(app.url(path)).send().await.unwrap().status(), 404, "{path}");
    }
}

#[tokio::test]
async fn every_operation_is_there() {
    let project = tempfile::tempdir().unwrap();
    let app = TestApp::start(&[("WORKSPACE__ROOT", project.path().to_str().unwrap())]).await;
    let all = operations(&document(Version::V31));
    assert!(all.len() > 30, "{all:?}");
    for (method, path, operation) in all {
        let of = app.http.request(method.to_uppercase().parse().unwrap(), app.url(&path.replace(['{', '}'], "")));
        let status = of.send().await.unwrap().status();
        let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(status, if is_open { 200 } else { 401 }, "{method} {path}");
    }
}

#[test]
fn every_operation_has_a_name_of_its_own_a_place_and_words() {
    let document = document(Version::V31);
    let tags: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{place}: its name is taken");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{place}: no summary");
        assert!(
            operation["tags"].as_array().unwrap().iter().all(|tag| tags.contains(tag.as_str().unwrap())),
            "{place}"
        );
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{place}: parameters of the path");
    }
}

#[test]
fn what_it_refers_to_is_there() {
    for version in [Version::V31, Version::V32] {
        let document = document(version);
        let mut waiting = vec![&document];
        let mut references = 0;
        while let Some(value) = waiting.pop() {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        references += 1;
                        let found = document.pointer(reference.trim_start_matches('#'));
                        assert!(found.is_some(), "{reference}");
                    }
                    waiting.extend(map.values());
                }
                Value::Array(items) => waiting.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        assert!(references > 100, "{references}");
    }
}

#[test]
fn a_stream_has_its_events_where_that_version_looks_for_them() {
    for (version, number, key) in [(Version::V31, "3.1.0", "x-itemSchema"), (Version::V32, "3.2.0", "itemSchema")] {
        let document = document(version);
        assert_eq!(document["openapi"], number);
        let answer = &document["paths"]["/v1/agent/chat"]["post"]["responses"]["200"]["content"];
        assert_eq!(answer["text/event-stream"][key]["$ref"], "#/components/schemas/AgentChatEvent");
    }
}
