//! Workspaces of many users: each has a folder of their own, or all share one.

use serde_json::json;

use super::{Coding, one_call};

#[tokio::test]
async fn each_owner_works_in_a_folder_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let template = format!("{}/{{tenant}}/{{user}}", root.path().display());
    let write = |text: &str| one_call("write_to_file", &json!({"path": "a.txt", "content": text}));
    let turns = [write("ada"), write("eve")].concat();
    let coding = Coding::with(&[], &[("WORKSPACE__ROOT", &template)], turns).await;
    coding.say("Write").await;
    let eve = coding.app.token_of("eve/../..", Some("acme"), &[]);
    let body = json!({"message": "Write", "context_type": "coding", "conversation_id": "c"});
    let answer = coding.app.post_as(&eve, &body).await.text().await.unwrap();
    assert!(answer.contains("message_complete"), "{answer}");
    let mut found = Vec::new();
    for tenant in std::fs::read_dir(root.path()).unwrap() {
        for user in std::fs::read_dir(tenant.unwrap().path()).unwrap() {
            let path = user.unwrap().path();
            let text = std::fs::read_to_string(path.join("a.txt")).unwrap();
            found.push((path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned(), text));
        }
    }
    found.sort();
    let [ada, theirs] = &found[..] else { panic!("{found:?}") };
    assert_eq!((theirs.0.as_str(), theirs.1.as_str()), ("acme/eve%2F%2E%2E%2F%2E%2E", "eve"));
    assert_eq!((&ada.0[..2], ada.1.as_str()), ("%/", "ada"), "her token names no tenant");
}

#[tokio::test]
async fn what_each_owner_may_keep_is_counted_apart() {
    let root = tempfile::tempdir().unwrap();
    let template = format!("{}/{{user}}", root.path().display());
    let write = |path: &str| one_call("write_to_file", &json!({"path": path, "content": "0".repeat(60_000)}));
    let turns = [write("a.txt"), write("b.txt"), write("a.txt")].concat();
    let settings = [("WORKSPACE__ROOT", template.as_str()), ("WORKSPACE__QUOTA_BYTES", "110000")];
    let coding = Coding::with(&[], &settings, turns).await;
    coding.say("Write").await;
    let refused = coding.say("Write more").await;
    let results = coding.results();
    assert_eq!(results.last().unwrap()["code"], "quota_exceeded", "{refused:?}");
    let eve = coding.app.token_of("eve", None, &[]);
    let answer = coding.app.post_as(&eve, &json!({"message": "Write", "context_type": "coding"})).await;
    let answer = answer.text().await.unwrap();
    assert!(answer.contains("message_complete"), "{answer}");
    let mut found: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(|user| user.unwrap().path()).collect();
    found.retain(|user| std::fs::metadata(user.join("a.txt")).unwrap().len() == 60_000);
    assert_eq!(found.len(), 2, "each has a folder, and room for one file");
    assert!(found.iter().all(|user| !user.join("b.txt").exists()), "{found:?}");
}

#[tokio::test]
async fn one_process_holds_a_workspace() {
    let coding = Coding::with(&[], &[], Vec::new()).await;
    let path = coding.root.path().to_str().unwrap();
    let data = tempfile::tempdir().unwrap();
    let sources = crate::support::app::sources(&data, &[("WORKSPACE__ROOT", path)]);
    let config = switchboard::config::Config::load(&sources).unwrap();
    let second = switchboard::app::App::build(&config, &sources.assets()).await;
    let error = second.err().expect("the workspace is held").to_string();
    assert_eq!(error, "workspace");
}
