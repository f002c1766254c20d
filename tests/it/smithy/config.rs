//! `/api/config` and `/health`: what the settings page and the model picker of an editor see and change.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Editor, kinds};
use crate::support::model::{Script, says};
use crate::support::upstream::Upstream;

const BULLETS: &str = "••••••••";

const EDIT: &[(&str, &str)] = &[("WORKSPACE__CONFIG", "edit"), ("LLM__OPENAI__API_KEY", "sk-of-the-operator")];

async fn put(editor: &Editor, config: Value) -> (u16, Value) {
    editor.ask(Method::PUT, "/api/config", Some(json!({"config": config}))).await
}

fn choice(workload: &str) -> Value {
    json!({"models": {"agents": {"universal": {"workload": workload}}}})
}

/// Another model, and the settings that name it.
async fn another(turns: Vec<Script>) -> (Upstream, Value) {
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let config = json!({
        "providers": {"mine": {"type": "other", "api_key": "sk-mine", "base_url": format!("{}/v1", model.url()), "options": {}}},
        "workloads": {"quick": {"provider": "mine", "model": "quick-1", "options": {"temperature": 0.5}}},
    });
    (model, config)
}

#[tokio::test]
async fn the_settings_are_shown_without_keys() {
    let editor = Editor::with(&[], EDIT, Vec::new()).await;
    let shown = editor.get("/api/config").await;
    let openai = &shown["config"]["providers"]["openai"];
    assert_eq!((&openai["type"], &openai["api_key"]), (&json!("openai"), &json!(BULLETS)));
    assert_eq!(openai["base_url"], format!("{}/v1", editor.model.url()));
    let workload = shown["config"]["models"]["agents"]["universal"]["workload"].as_str().unwrap();
    let chosen = &shown["config"]["workloads"][workload];
    assert_eq!((&chosen["provider"], &chosen["kind"]), (&json!("openai"), &json!("chat")));
    let metadata = &shown["metadata"];
    assert_eq!(metadata["workload_kinds"], json!(["chat", "embeddings"]));
    for kind in ["openai", "ollama", "anthropic", "xai", "deepseek", "other"] {
        assert!(metadata["provider_types"].as_array().unwrap().contains(&json!(kind)), "{kind}");
    }
    assert_eq!(metadata["providers"][0]["has_api_key"], true);
    assert_eq!(metadata["agent_provider_slots"][0]["path"], "models.agents.universal.workload");
    assert!(!shown.to_string().contains("sk-of-the-operator"));
    let health = editor.get("/health").await;
    assert_eq!((&health["config_valid"], &health["config_errors"]), (&json!(true), &json!([])));
    assert_eq!((&health["port"], &health["server_error"]), (&json!(editor.app.address.port()), &Value::Null));
}

#[tokio::test]
async fn a_new_provider_answers_from_the_next_message_on_and_after_a_restart() {
    let editor = Editor::with(&[], EDIT, Vec::new()).await;
    let (model, config) = another(vec![says("Mine."), says("Still mine.")]).await;
    let (status, answer) = put(&editor, config).await;
    assert_eq!((status, &answer["success"]), (200, &json!(true)), "{answer}");
    assert_eq!(answer["config"]["providers"]["mine"]["api_key"], BULLETS);
    assert_eq!(answer["config"]["workloads"]["quick"]["kind"], "chat");
    assert_eq!(put(&editor, choice("quick")).await.0, 200);
    assert_eq!(kinds(&editor.chat("Hi", json!({})).await), ["user", "chat_start", "chat", "chat_end", "done"]);
    let asked = &model.requests()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer sk-mine"));
    assert_eq!((&asked.json()["model"], &asked.json()["temperature"]), (&json!("quick-1"), &json!(0.5)));

    let editor = editor.restarted(EDIT).await;
    let shown = editor.get("/api/config").await;
    assert_eq!(shown["config"]["models"]["agents"]["universal"]["workload"], "quick");
    editor.chat("Hi", json!({})).await;
    assert_eq!(model.requests()[1].header("authorization"), Some("Bearer sk-mine"));
}

#[tokio::test]
async fn the_whole_document_comes_back_with_its_bullets_and_one_change() {
    let editor = Editor::with(&[], EDIT, vec![says("Old key."), says("New key.")]).await;
    let shown = editor.get("/api/config").await["config"].clone();
    assert_eq!(put(&editor, shown.clone()).await.0, 200, "nothing has changed");
    editor.chat("Hi", json!({})).await;
    let mut changed = shown.clone();
    changed["providers"]["openai"]["api_key"] = json!("sk-new");
    assert_eq!(put(&editor, changed).await.0, 200);
    editor.chat("Hi", json!({})).await;
    let keys: Vec<_> =
        editor.model.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(keys, ["Bearer sk-of-the-operator", "Bearer sk-new"]);
    // An emptied field comes as null, and is there again.
    let mut emptied = shown;
    emptied["providers"]["openai"]["api_key"] = Value::Null;
    let (status, answer) = put(&editor, emptied).await;
    assert_eq!((status, &answer["config"]["providers"]["openai"]["api_key"]), (200, &json!("")));
    let health = editor.get("/health").await;
    assert_eq!(health["config_errors"], json!(["providers.openai.api_key is not set"]));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name_and_changes_nothing() {
    let editor = Editor::with(&[], EDIT, Vec::new()).await;
    let (_model, config) = another(Vec::new()).await;
    put(&editor, config).await;
    put(&editor, choice("quick")).await;
    let before = editor.get("/api/config").await;
    let provider = |kind: &str, url: &str| json!({"providers": {"x": {"type": kind, "base_url": url}}});
    for (config, status, named) in [
        (json!({"providers": {"mine": null}}), 400, "mine"),
        (json!({"workloads": {"quick": null}}), 400, "quick"),
        (json!({"workloads": {"w": {"provider": "nobody", "model": "m"}}}), 400, "nobody"),
        (json!({"workloads": {"w": {"provider": "mine", "model": "m", "kind": "x"}}}), 400, "workloads.w.kind"),
        (choice("nothing"), 400, "nothing"),
        (provider("magic", ""), 400, "magic"),
        (provider("other", "not a url"), 400, "providers.x.base_url"),
        (provider("other", "file:///etc/passwd"), 400, "providers.x.base_url"),
        (provider("other", "http://169.254.169.254/latest"), 400, "providers.x.base_url"),
        (provider("other", "http://[::ffff:169.254.169.254]/"), 400, "providers.x.base_url"),
        (json!({"providers": {"x": {"type": "other", "api_key": "a\nb"}}}), 400, "providers.x.api_key"),
        (json!({"providers": {"": {"type": "other"}}}), 400, "name"),
        (json!({"other": 1}), 400, "other"),
        (json!({"providers": []}), 422, "providers"),
        (json!({"providers": {"x": 1}}), 422, "providers.x"),
        (json!({"providers": {"x": {"type": 1}}}), 422, "providers.x.type"),
        (json!({"providers": {"x": {"type": "other", "options": "{"}}}), 422, "providers.x.options"),
        (json!({"models": {"agents": {"universal": {"workload": 1}}}}), 422, "models.agents.universal.workload"),
    ] {
        let (found, answer) = put(&editor, config.clone()).await;
        assert_eq!(found, status, "{config}: {answer}");
        assert!(answer["detail"].to_string().contains(named), "{config}: {answer}");
        assert_eq!(answer["detail"]["errors"].is_array(), status == 400, "{answer}");
    }
    for (body, status) in [(json!([]), 422), (json!({}), 422), (json!({"config": 1}), 422)] {
        assert_eq!(editor.ask(Method::PUT, "/api/config", Some(body.clone())).await.0, status, "{body}");
    }
    assert_eq!(editor.get("/api/config").await, before);
}

#[tokio::test]
async fn a_half_made_workload_is_taken_and_said_to_be_unfinished() {
    let editor = Editor::with(&[], EDIT, Vec::new()).await;
    let config = json!({
        "providers": {"p": {"type": "anthropic", "api_key": "", "base_url": "", "options": {}}},
        "workloads": {"w": {"provider": "", "model": "", "options": {}}},
    });
    assert_eq!(put(&editor, config).await.0, 200);
    assert_eq!(put(&editor, json!({"workloads": {"w": {"provider": "p", "model": "m"}}})).await.0, 200);
    assert_eq!(put(&editor, json!({"providers": {"p": null}, "workloads": {"w": null}})).await.0, 200);
    let config = json!({
        "providers": {"o": {"type": "other", "api_key": "", "base_url": "", "options": {}}},
        "workloads": {"w": {"provider": "o", "model": "m", "options": {}}},
    });
    assert_eq!(put(&editor, config).await.0, 200, "an empty address is fine");
}

#[tokio::test]
async fn a_provider_that_cannot_be_asked_is_in_nobodys_way() {
    let editor = Editor::with(&[], EDIT, Vec::new()).await;
    let (model, config) = another(vec![says("Mine."), says("Mended.")]).await;
    assert_eq!(put(&editor, config).await.0, 200);
    let file = editor.root.path().join(".agentsmithy/models.json");
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    // Another version may have taken what this one does not.
    kept["providers"]["broken"] = json!({"kind": "other", "base_url": "http://169.254.169.254/v1", "options": {}});
    kept["workloads"]["broken"] = json!({"provider": "broken", "model": "m", "is_for_embeddings": false});
    std::fs::write(&file, kept.to_string()).unwrap();
    let editor = editor.restarted(EDIT).await;

    let answered = ["user", "chat_start", "chat", "chat_end", "done"];
    assert_eq!(kinds(&editor.chat("Hi", json!({"workload": "quick"})).await), answered, "the others answer");
    assert_eq!(kinds(&editor.chat("Hi", json!({"workload": "broken"})).await), ["user", "error", "done"]);
    let (status, answer) = put(&editor, json!({"workloads": {"more": {"provider": "mine", "model": "m-2"}}})).await;
    assert_eq!(status, 200, "others are changed: {answer}");
    let (status, answer) = put(&editor, json!({"providers": {"broken": {"api_key": "sk-1"}}})).await;
    assert_eq!(status, 400);
    let told = answer["detail"]["errors"][0].as_str().unwrap();
    assert!(told.starts_with("providers.broken.base_url: is a link-local address"), "{told}");
    assert_eq!(
        put(&editor, json!({"providers": {"broken": {"base_url": format!("{}/v1", model.url())}}})).await.0,
        200
    );
    assert_eq!(kinds(&editor.chat("Hi", json!({"workload": "broken"})).await), answered);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_rename_takes_its_references_along() {
    let editor = Editor::with(&[], EDIT, Vec::new()).await;
    let (model, config) = another(vec![says("Hi.")]).await;
    put(&editor, config).await;
    put(&editor, choice("quick")).await;
    let rename = async |kind: &str, old: &str, new: &str| {
        let body = json!({"type": kind, "old_name": old, "new_name": new});
        editor.ask(Method::POST, "/api/config/rename", Some(body)).await
    };
    let (status, answer) = rename("provider", "mine", "ours").await;
    assert_eq!((status, &answer["updated_references"]), (200, &json!(["workloads.quick.provider"])), "{answer}");
    let (status, answer) = rename("workload", "quick", "fast").await;
    assert_eq!((status, &answer["updated_references"]), (200, &json!(["models.agents.universal.workload"])));
    editor.chat("Hi", json!({})).await;
    assert_eq!(model.requests()[0].header("authorization"), Some("Bearer sk-mine"), "the key has come along");
    for (kind, old, new) in [
        ("workload", "nothing", "x"),
        ("provider", "ours", "openai"),
        ("provider", "ours", "ours"),
        ("provider", "ours", " "),
    ] {
        let (status, answer) = rename(kind, old, new).await;
        assert_eq!((status, answer["detail"].is_string()), (400, true), "{answer}");
    }
    assert_eq!(rename("model", "a", "b").await.0, 422);
    let body = json!({"type": "provider", "old_name": "ours"});
    assert_eq!(editor.ask(Method::POST, "/api/config/rename", Some(body)).await.0, 422);
}

#[tokio::test]
async fn by_default_each_user_chooses_their_model_and_changes_nothing_else() {
    let settings = [("LLM__FALLBACKS", "openai:second"), ("LLM__OPENAI__API_KEY", "sk-x"), ("WORKSPACE__ROLE", "")];
    let editor = Editor::with(&[], &settings, vec![says("Second."), says("First."), says("Second again.")]).await;
    let shown = editor.get("/api/config").await["config"].clone();
    let first = shown["models"]["agents"]["universal"]["workload"].as_str().unwrap().to_owned();
    let mut whole = shown.clone();
    whole["models"] = choice("second")["models"].clone();
    assert_eq!(put(&editor, whole).await.0, 200, "all else is as it was");
    editor.chat("Hi", json!({})).await;
    let other = editor.app.token_of("eve", None, &[]);
    let (_, of_other) = editor.ask_as(&other, Method::GET, "/api/config", None).await;
    assert_eq!(of_other["config"]["models"]["agents"]["universal"]["workload"], first);
    // For one message alone; an unknown one does not count.
    editor.chat("Hi", json!({"workload": first})).await;
    editor.chat("Hi", json!({"workload": "deleted"})).await;
    let models: Vec<_> = editor.model.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(models, [json!("second"), json!(first), json!("second")]);
    let (status, answer) = put(&editor, json!({"providers": {"openai": {"base_url": "http://127.0.0.1:1"}}})).await;
    assert_eq!((status, answer["detail"]["errors"].is_array()), (400, true));
    let body = json!({"type": "provider", "old_name": "openai", "new_name": "x"});
    let (status, answer) = editor.ask(Method::POST, "/api/config/rename", Some(body)).await;
    assert_eq!((status, answer["detail"].is_string()), (400, true));
    let refused = editor.ask(Method::POST, "/api/chat", Some(json!({"messages": [], "workload": 1}))).await;
    assert_eq!(refused.0, 422);
}

#[tokio::test]
async fn what_was_kept_and_cannot_be_read_is_not_written_over() {
    let editor = Editor::with(&[], EDIT, vec![says("Hi.")]).await;
    let file = editor.root.path().join(".agentsmithy/models.json");
    std::fs::write(&file, "{ half a file").unwrap();
    let editor = editor.restarted(EDIT).await;
    let (_model, config) = another(Vec::new()).await;
    assert_eq!(put(&editor, config).await.0, 500);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ half a file");
    assert_eq!(kinds(&editor.chat("Hi", json!({})).await).last(), Some(&"done"), "the configuration's own answers");
}

#[tokio::test]
async fn a_server_without_a_model_says_so_until_it_has_one() {
    let editor = Editor::with(&[], &[("LLM__PROVIDER", "none"), ("WORKSPACE__CONFIG", "edit")], Vec::new()).await;
    let shown = editor.get("/api/config").await["config"].clone();
    assert_eq!((&shown["providers"], &shown["workloads"]), (&json!({}), &json!({})));
    let health = editor.get("/health").await;
    assert_eq!(health["config_valid"], false);
    assert!(health["config_errors"][0].as_str().unwrap().contains("models.agents.universal.workload"));
    assert_eq!(kinds(&editor.chat("Hi", json!({})).await), ["user", "error", "done"]);
    let (model, config) = another(vec![says("Here.")]).await;
    assert_eq!(put(&editor, config).await.0, 200);
    assert_eq!(editor.get("/health").await["config_valid"], true);
    assert_eq!(kinds(&editor.chat("Hi", json!({})).await), ["user", "chat_start", "chat", "chat_end", "done"]);
    assert_eq!(model.requests().len(), 1);
}
