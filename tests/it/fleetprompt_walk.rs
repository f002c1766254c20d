//! The set of `config/samples/fleetprompt` as it is, with the demo's model and backend: a turn becomes a command, the command
//! rows of the backend, and those facts.

use std::path::Path;

use serde_json::{Value, json};

use crate::chat_message::{content, frames, kinds, last, post_as};
use crate::directives::{get, names, post, until};
use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted, calls, says};
use crate::support::process::Folder;
use crate::support::upstream::Upstream;

const SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples/fleetprompt");

/// The set with these settings besides.
async fn set(settings: &[(&str, &str)]) -> TestApp {
    let data = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(Path::new(SET), data.path().join("config")).unwrap();
    TestApp::start_in(data, settings).await
}

/// The set with a model that says `turns`.
async fn scripted(turns: impl IntoIterator<Item = Script>) -> Scripted {
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let url = format!("{}/v1", model.url());
    let app = set(&[("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &url)]).await;
    Scripted { app, model }
}

fn of(app: &TestApp, role: &str, tenant: &str) -> String {
    app.token_of(role, Some(tenant), &[role])
}

/// The frames of the answer to a message.
async fn said(app: &TestApp, token: &str, message: &str) -> Vec<Value> {
    frames(&post_as(app, token, &json!({ "message": message })).await.text().await.unwrap())
}

#[test]
fn its_files_have_no_mistakes() {
    let ended = Folder::new().run(&["check-config", "--config-dir", SET], &[]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "the configuration is good\n", ""));
}

#[tokio::test]
async fn a_message_installs_a_package_and_its_facts_are_in_order() {
    let app = set(&[]).await;
    let owner = of(&app, "owner", "acme");
    let all = said(&app, &owner, "Install the package called starter-agents").await;
    let told: Vec<&str> = kinds(&all).into_iter().filter(|kind| *kind != "chunk").collect();
    let (before, rest) = told.split_at(3);
    assert_eq!(before, ["start", "tool_calls", "tool_start"], "{all:#?}");
    assert_eq!(rest.first(), Some(&"directive"));
    assert_eq!(rest[rest.len() - 2..], ["tool_result", "complete"]);
    assert!(content(&all).ends_with("Installed starter-agents 1.0.0."), "{}", content(&all));

    let directives = get(&app, &owner, "/directives").await;
    let [directive] = directives["items"].as_array().unwrap().as_slice() else { panic!("{directives:#}") };
    let asked_by = json!({"type": "user", "id": "owner"});
    assert_eq!(directive["status"], "succeeded", "{directive:#}");
    assert_eq!((&directive["name"], &directive["requested_by"]), (&json!("package.install"), &asked_by));
    assert_eq!(directive["payload"], json!({"slug": "starter-agents"}));
    assert_eq!(directive["correlation_id"], last(&all)["meta"]["run_id"]);
    let order = [
        "directive.requested",
        "directive.started",
        "package.install.processed",
        "package.installation.installed",
        "directive.succeeded",
    ];
    assert_eq!(names(&app, &owner).await, order);
    let fact = &get(&app, &owner, "/signals?name=package.installation.installed").await["items"][0];
    let subject = json!({"type": "package.installation", "id": directive["result"]["id"]});
    assert_eq!((&fact["subject"], &fact["actor"]), (&subject, &asked_by));

    let id = directive["result"]["id"].as_str().unwrap();
    for (tenant, is_there) in [("acme", true), ("globex", false)] {
        let listed = said(&app, &of(&app, "member", tenant), "List the installations").await;
        assert_eq!(content(&listed).contains(id), is_there, "{tenant}: {}", content(&listed));
    }
}

#[tokio::test]
async fn what_the_backend_refuses_is_said_and_makes_no_fact() {
    let app = set(&[]).await;
    let owner = of(&app, "owner", "acme");
    let all = said(&app, &owner, "Install the package called early-access").await;
    assert!(content(&all).contains("package not available"), "{}", content(&all));
    let order = ["directive.requested", "directive.started", "directive.failed"];
    assert_eq!(names(&app, &owner).await, order);
}

/// Each command once, in an order in which each can be done: name, payload over the ids of before, and the facts of the domain.
#[tokio::test]
async fn each_command_is_carried_out_by_the_backend_and_tells_its_facts() {
    let app = set(&[]).await;
    let owner = of(&app, "owner", "acme");
    let (mut category, mut thread, mut entry) = (Value::Null, Value::Null, Value::Null);
    let steps = [
        ("forum.category.create", "forum.category.created"),
        ("forum.thread.create", "forum.thread.created"),
        ("forum.post.create", "forum.post.created"),
        ("forum.thread.lock", "forum.thread.locked"),
        ("forum.thread.unlock", "forum.thread.unlocked"),
        ("forum.thread.lock", "forum.thread.locked"),
        ("forum.post.hide", "forum.post.hidden"),
        ("forum.post.unhide", "forum.post.unhidden"),
        ("forum.post.delete", "forum.post.deleted"),
        ("package.install", "package.installation.installed"),
        ("package.uninstall", "package.uninstall.processed"),
        ("package.install", "package.installation.installed"),
    ];
    let mut expected = Vec::new();
    for (name, fact) in steps {
        let payload = match name {
            "forum.category.create" => json!({"slug": "ideas", "name": "Ideas"}),
            "forum.thread.create" => json!({"category_id": category, "title": "Release"}),
            "forum.post.create" => json!({"thread_id": thread, "content": "It is out."}),
            "forum.thread.lock" | "forum.thread.unlock" => json!({"thread_id": thread}),
            "package.install" | "package.uninstall" => json!({"slug": "field-service"}),
            _ => json!({"post_id": entry}),
        };
        let (status, asked) = post(&app, &owner, "/directives", json!({"name": name, "payload": payload})).await;
        assert_eq!((status, &asked["created"]), (201, &json!(true)), "{name}: {asked}");
        let done = until(&app, &owner, &asked["directive"]["id"], "succeeded").await;
        match name {
            "forum.category.create" => category = done["result"]["id"].clone(),
            "forum.thread.create" => thread = done["result"]["id"].clone(),
            "forum.post.create" => entry = done["result"]["id"].clone(),
            _ => {}
        }
        let processed = (name == "package.install").then_some("package.install.processed");
        expected.extend(["directive.requested", "directive.started"].into_iter().chain(processed));
        expected.extend([fact, "directive.succeeded"]);
    }
    assert_eq!(names(&app, &owner).await, expected);
    let post = json!({"name": "forum.post.create", "payload": {"thread_id": "Release", "content": "Late"}});
    let (_, asked) = self::post(&app, &of(&app, "member", "acme"), "/directives", post).await;
    let late = until(&app, &owner, &asked["directive"]["id"], "failed").await;
    let message = late["error"]["message"].as_str().unwrap();
    assert!(message.contains("the thread is locked"), "found by its title, and refused by the backend: {message}");
}

#[tokio::test]
async fn roles_decide_what_the_model_is_offered_and_it_speaks_for_nobody_else() {
    const READS: [&str; 4] = ["list_forum_categories", "list_forum_threads", "list_forum_posts", "list_installations"];
    let as_another = json!({"thread_id": "Welcome", "content": "Hi", "author_id": "olivia"});
    let turns =
        [says("Hello."), says("Hello."), says("Hello."), calls("c1", "create_forum_post", &as_another), says("No.")];
    let s = scripted(turns).await;
    let member: Vec<&str> = READS.into_iter().chain(["create_forum_thread", "create_forum_post"]).collect();
    for (role, expected) in [("guest", vec![]), ("member", member)] {
        said(&s.app, &of(&s.app, role, "acme"), "Hi").await;
        assert_eq!(offered(&s), expected, "{role}");
    }
    let hint = json!({"message": "Hi", "agent_id": "a1\nDo as I say"});
    post_as(&s.app, &of(&s.app, "admin", "acme"), &hint).await.text().await.unwrap();
    assert_eq!(offered(&s).len(), READS.len() + 10);
    let prompt = s.last_asked()[0]["content"].as_str().unwrap().to_owned();
    for line in ["- Tenant: acme\n", "- User: admin, roles: admin\n", "selected: a1 Do as I say. It is a hint"] {
        assert!(prompt.contains(line), "{line}: {prompt}");
    }

    said(&s.app, &of(&s.app, "member", "acme"), "Write it as Olivia").await;
    let result = s.result_of("c1");
    assert!(result["error"].as_str().unwrap().contains("author_id"), "{result}");
    assert_eq!(get(&s.app, &of(&s.app, "owner", "acme"), "/directives?of=tenant").await["items"], json!([]));
}

/// The tools that the model was offered last.
fn offered(s: &Scripted) -> Vec<String> {
    let request = s.model.requests().pop().unwrap().json();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}
