//! Directives that are requested again and again, each time once, also after a gap and by two processes.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use super::get;
use crate::support::app::TestApp;
use crate::support::postgres::TestPostgres;
use crate::support::process::Folder;
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;
use crate::tools::rest::answer;

const TOOLS: &str = r#"
[[tool]]
name = "send_digest"
description = "Sends the digest."
roles = ["clerk"]
request = { method = "POST", path = "/digests" }
[tool.input_schema]
type = "object"
required = ["kind"]
properties = { kind = { type = "string" } }
[tool.directive]
name = "digest.send"
runs_as = "service"

[[schedule]]
name = "nightly"
cron = "0 3 * * *"
time_zone = "Europe/Berlin"
directive = "digest.send"
payload = { kind = "short" }
tenants = ["acme", "globex"]
roles = ["clerk"]

[[schedule]]
name = "hourly"
cron = "0 * * * *"
directive = "digest.send"
payload = { kind = "long" }
tenants = ["acme"]
user = "olga"
roles = ["clerk"]
catch_up = "none"
"#;

/// A server of these files on this database.
async fn server(backend: &Upstream, more: &[(&str, &str)]) -> TestApp {
    let data = tempfile::tempdir().unwrap();
    let tools = data.path().join("config/tools");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(tools.join("mine.toml"), TOOLS).unwrap();
    let url = format!("{}/api", backend.url());
    TestApp::start_in(data, &[&settings(&url)[..], more].concat()).await
}

fn settings(url: &str) -> [(&str, &str); 6] {
    [
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", url),
        ("BACKEND__SERVICE__MODE", "token"),
        ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
        ("DIRECTIVES__READER_ROLES", "auditor"),
        ("DIRECTIVES__POLL_MS", "100"),
    ]
}

async fn backend() -> Upstream {
    Upstream::choosing(|_| answer(&json!({"id": "d1"}))).await
}

/// Three days ago, a while behind the full hour.
const LONG_AGO: &str = "UPDATE schedules SET fired_at = fired_at - 259200000";

/// The directives of a tenant, when there are any.
async fn requested(app: &TestApp, tenant: &str) -> Vec<Value> {
    let auditor = app.token_of("cy", Some(tenant), &["auditor"]);
    eventually("a directive is over", async || {
        let list = get(app, &auditor, "/directives?of=tenant&limit=100").await;
        let items = list["items"].as_array().unwrap().clone();
        (!items.is_empty() && items.iter().all(|item| item["status"] == "succeeded")).then_some(items)
    })
    .await
}

#[tokio::test]
async fn the_newest_time_of_a_gap_is_requested_once_where_it_is_caught_up() {
    let backend = backend().await;
    let app = server(&backend, &[]).await;
    let is_there = "UPDATE schedules SET fired_at = fired_at WHERE 2 = (SELECT COUNT(*) FROM schedules)";
    // New ones begin now, and request nothing of the past.
    tokio::time::sleep(Duration::from_millis(300)).await;
    app.beside(is_there).await;
    assert_eq!(backend.requests().len(), 0);
    app.beside(LONG_AGO).await;
    let url = format!("{}/api", backend.url());
    let app = TestApp::start_in(app.stop().await, &settings(&url)).await;
    for tenant in ["acme", "globex"] {
        let items = requested(&app, tenant).await;
        let nightly: Vec<&Value> = items.iter().filter(|item| item["payload"]["kind"] == "short").collect();
        let [only] = nightly[..] else { panic!("{items:#?}") };
        let key = only["idempotency_key"].as_str().unwrap();
        assert!(key.starts_with("schedule:nightly:20") && key.ends_with(":00:00.000Z"), "{key}");
        assert_eq!(only["correlation_id"], key);
        assert_eq!(only["requested_by"], json!({"type": "user", "id": "schedule:nightly"}));
        // What was missed is not caught up, unless the hour has come just now.
        assert!(items.len() - nightly.len() <= 1, "{items:#?}");
    }
    let sent = backend.requests().len();
    let request = &backend.requests()[0];
    assert_eq!(request.header("x-switchboard-actor-roles"), Some("clerk"));
    let app = TestApp::start_in(app.stop().await, &settings(&url)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    requested(&app, "acme").await;
    assert!(backend.requests().len() <= sent + 1, "no time is requested twice");
}

#[tokio::test]
async fn two_processes_request_a_time_once() {
    let Some(postgres) = TestPostgres::shared() else { return };
    let database = postgres.new_database().await;
    let backend = backend().await;
    let store = [("STORE__URL", database.url.as_str())];
    server(&backend, &store).await.stop().await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    assert_eq!(sqlx::query(LONG_AGO).execute(&mut connection).await.unwrap().rows_affected(), 2);
    let (first, second) = tokio::join!(server(&backend, &store), server(&backend, &store));
    for app in [&first, &second] {
        let nightly = requested(app, "globex").await;
        assert_eq!(nightly.len(), 1, "{nightly:#?}");
    }
}

#[test]
fn mistakes_in_schedules_are_named_with_their_place() {
    let command = TOOLS.split("[[schedule]]").next().unwrap();
    let whole = |lines: &str| format!("{command}[[schedule]]\n{lines}");
    let rows = [
        ("name = \"a\"\ncron = \"0 3 * *\"\ndirective = \"digest.send\"\nroles = [\"clerk\"]", "fields", "four fields"),
        (
            "name = \"a\"\ncron = \"0 3 * * *\"\ntime_zone = \"Mars/Base\"\ndirective = \"digest.send\"\nroles = [\"clerk\"]",
            "Mars",
            "no time zone",
        ),
        (
            "name = \"a\"\ncron = \"0 3 * * *\"\ndirective = \"digest.sent\"",
            "\"digest.sent\" is no directive",
            "no directive",
        ),
        ("name = \"a\"\ncron = \"0 3 * * *\"\ndirective = \"digest.send\"", "needs one of clerk", "no role"),
        (
            "name = \"a b\"\ncron = \"0 3 * * *\"\ndirective = \"digest.send\"\nroles = [\"clerk\"]",
            "\"a b\" must be",
            "no name",
        ),
        (
            "name = \"a\"\ncron = \"0 3 * * *\"\ndirective = \"digest.send\"\nroles = [\"clerk\"]\nwhen = 1",
            "when",
            "an unknown key",
        ),
        (
            "name = \"a\"\ncron = \"0 3 * * *\"\ndirective = \"digest.send\"\nroles = [\"clerk\"]\npayload = [1]",
            "must be a table",
            "no payload",
        ),
    ];
    for (lines, words, reason) in rows {
        let folder = Folder::new();
        folder.write("config/tools/mine.toml", &whole(lines));
        let env = [("SWITCHBOARD__BACKEND__SERVICE__MODE", "token"), ("SWITCHBOARD__BACKEND__SERVICE__TOKEN", "x")];
        let ended = folder.run(&["check-config"], &env);
        assert_eq!(ended.code, 2, "{reason}: {}", ended.stderr);
        let said = ended.stderr;
        assert!(said.contains("tools/mine.toml:") && said.contains(words), "{reason}: {said}");
    }
}

#[test]
fn a_mistake_in_a_directive_is_named_with_its_place_and_nothing_starts() {
    let tool = |name: &str, directive: &str| {
        let request = "request = { method = \"POST\", path = \"/x\" }";
        format!("[[tool]]\nname = \"{name}\"\ndescription = \"X.\"\n{request}\n[tool.directive]\n{directive}\n")
    };
    let good = "name = \"post.letter.send\"";
    let rows = [
        (tool("a", "name = \"post.letter.send\"\nruns_as = \"service\""), "[backend.service]", "no credential"),
        (tool("a", "name = \"Letter\""), "must be two words or more", "a bad name"),
        (tool("a", good) + &tool("b", good), "post.letter.send is there twice", "two of one name"),
        (tool("a", "name = \"post.letter.send\"\nfrobnicate = 1"), "frobnicate", "an unknown key"),
        (tool("a", "name = \"post.letter.send\"\nmax_attempts = 2"), "tried again", "attempts without the caller"),
    ];
    for (text, words, reason) in rows {
        let folder = Folder::new();
        folder.write("config/tools/mine.toml", &text);
        for command in ["check-config", "serve"] {
            let ended = folder.run(&[command], &[]);
            assert_eq!(ended.code, 2, "{reason}, {command}: {}", ended.stderr);
            let said = ended.stderr;
            assert!(said.contains("tools/mine.toml:") && said.contains(words), "{reason}, {command}: {said}");
        }
    }
}
