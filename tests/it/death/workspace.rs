//! A process is killed again and again while an agent changes files and its user takes back what it did: the project's
//! repository and every file are whole, and each checkpoint that was told can be restored.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::kills::moments;
use super::{Client, Machine, without_ids};
use crate::support::environment::{kills, seed};
use crate::support::frames::{self, Frame};
use crate::support::model::{messages, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

/// About how long a round takes when nobody is killed, in milliseconds.
const ROUND_MS: u64 = 200;

const FILES: [&str; 3] = ["a.txt", "sub/b.txt", "ignored.log"];

/// A file's text of a version: so long that half of it would be seen.
fn text(version: u64) -> String {
    format!("version {version}\n").repeat(3000)
}

/// Writes all files anew for `write N`.
fn model(request: &Request) -> Option<Answer> {
    let messages = messages(request);
    let last = messages.last().unwrap();
    let question = last["content"].as_str().unwrap().lines().last().unwrap();
    Some(match (last["role"].as_str().unwrap(), question.strip_prefix("write ")) {
        ("user", Some(version)) => {
            let version: u64 = version.parse().unwrap();
            let write = |path: &str| json!({"path": path, "content": text(version)});
            let calls = FILES
                .iter()
                .fold(turn(), |turn, path| turn.call(&format!("{path}-{version}"), "write_to_file", &write(path)));
            calls.done().answer()
        }
        _ => says("Fine.").answer(),
    })
}

/// The version of each file: every one is whole.
fn versions(root: &Path) -> BTreeMap<String, u64> {
    let version = |path: &str| {
        let found = std::fs::read_to_string(root.join(path)).unwrap();
        let first = found.lines().next().unwrap_or_else(|| panic!("{path} is empty"));
        let version = first.strip_prefix("version ").unwrap().parse().unwrap();
        assert!(found == text(version), "{path} is a whole version");
        version
    };
    FILES.iter().map(|path| ((*path).to_owned(), version(path))).collect()
}

/// All files below `.git` with what they say.
fn repository(root: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![root.join(".git")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), std::fs::read(&path).unwrap())),
            }
        }
    }
    files.sort();
    files
}

fn git(root: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    assert!(Command::new("git").arg("-C").arg(root).args(identity).args(args).status().unwrap().success());
}

/// A checkpoint: its conversation, its id, and the versions that it brings back.
type Kept = (String, String, BTreeMap<String, u64>);

/// The events of a stream, as far as it came.
fn events(stream: &str) -> Vec<Frame> {
    let whole = stream.rfind("\n\n").map_or("", |end| &stream[..end + 2]);
    frames::parse(&without_ids(whole))
}

/// The checkpoint that a stream has told.
fn told(stream: &str) -> Option<String> {
    let frames = events(stream);
    let found = frames.iter().find(|frame| frame.event == "checkpoint")?;
    Some(found.data["checkpoint_id"].as_str().unwrap().to_owned())
}

/// Whether a stream has told that this file was changed.
fn is_edited(stream: &str, path: &str) -> bool {
    let is_it = |frame: &Frame| frame.event == "file_edit" && frame.data["file"].as_str().unwrap().ends_with(path);
    events(stream).iter().any(is_it)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_checkpoints_survive_kills_at_any_moment() {
    let seed = seed();
    println!("SWITCHBOARD_TEST_SEED={seed}");
    let mut moments = moments(seed, ROUND_MS);
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for path in FILES {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), text(0)).unwrap();
    }
    std::fs::write(root.join(".gitignore"), "*.log\n").unwrap();
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "first"]);
    git(root, &["pack-refs", "--all"]);
    let before = repository(root);
    let (model, backend) = (Upstream::choosing(model).await, Upstream::choosing(|_| None).await);
    let path = root.to_str().unwrap();
    let settings = [
        ("RUNS__LEASE_S", "5"),
        ("WORKSPACE__ROOT", path),
        ("WORKSPACE__ROLE", ""),
        ("WORKSPACE__COMMANDS", "off"),
        ("LIMITS__TOOL_ARGUMENTS_BYTES", "1000000"),
        ("HELPERS__TITLE", "off"),
    ];
    let machine = Machine::new(&model, &backend, &settings);
    let token = machine.token_of(&["--user", "ada", "--ttl", "2h"], |_| {});
    let mut serving = machine.serve();
    // What each checkpoint has to bring back, with its conversation: those of streams, and those of what the user did.
    let (mut kept, mut done): (Vec<Kept>, Vec<Kept>) = Default::default();
    for round in 1..=kills() as u64 {
        let conversation = format!("c{round}");
        let client = Client::of(&serving, &token);
        let now = versions(root);
        let is_answered = Notify::new();
        let (heard, answered) = (std::sync::Mutex::new(String::new()), std::sync::Mutex::new(Vec::new()));
        let working = async {
            let body =
                json!({"message": format!("write {round}"), "context_type": "coding", "conversation_id": conversation});
            let Ok(mut response) = client.try_chat_with_key(&conversation, &body).await else {
                return is_answered.notify_one();
            };
            while let Ok(Some(chunk)) = response.chunk().await {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk));
            }
            is_answered.notify_one();
            // What its user does then, of three things.
            let first = told(&heard.lock().unwrap());
            let (path, body) = match (round % 3, first) {
                (0, _) => ("approve", json!({})),
                (1, Some(id)) => ("restore", json!({"checkpoint_id": id})),
                _ => ("reset", json!({})),
            };
            let path = format!("/v1/agent/conversations/{conversation}/{path}");
            let before = versions(root);
            let Ok(response) = client.try_post(&path, &body).await else { return };
            let is_done = response.status() == 200;
            let Ok(answer) = response.json::<Value>().await else { return };
            assert!(is_done, "{path}: {answer}");
            let after = versions(root);
            for (name, state) in [
                ("approved_commit", &after),
                ("new_checkpoint", &after),
                ("reset_to", &after),
                ("pre_reset_checkpoint", &before),
            ] {
                let id = answer[name].as_str();
                answered.lock().unwrap().extend(id.map(|id| (id.to_owned(), state.clone())));
            }
        };
        let killing = async {
            // Every other kill comes while the user does something, or after that.
            if round % 2 == 0 {
                is_answered.notified().await;
            }
            tokio::time::sleep(moments.next().unwrap()).await;
            serving.kill();
        };
        tokio::join!(working, killing);
        let heard = heard.into_inner().unwrap();
        // What is ignored is a part of a checkpoint when a tool of that conversation has touched it.
        let parts = |state: BTreeMap<String, u64>| {
            state.into_iter().filter(|(path, _)| path != "ignored.log" || is_edited(&heard, path)).collect()
        };
        kept.extend(told(&heard).map(|id| (conversation.clone(), id, parts(now))));
        let answered = answered.into_inner().unwrap().into_iter();
        done.extend(answered.map(|(id, state)| (conversation.clone(), id, parts(state))));
        versions(root);
        assert!(repository(root) == before, "nothing below .git is touched");
        serving = machine.serve();
    }
    let client = Client::of(&serving, &token);
    assert!(!kept.is_empty(), "some checkpoints were told before their kill");
    for (conversation, id, _) in &kept {
        let path = format!("/v1/agent/conversations/{conversation}/checkpoints");
        let list: Value = client.get(&path).await.json().await.unwrap();
        let listed = list["items"].as_array().unwrap().iter().any(|item| item["id"] == id.as_str());
        assert!(listed, "{id} of {conversation}: {list}");
    }
    for (conversation, id, expected) in kept.iter().chain(&done) {
        let base = format!("/v1/agent/conversations/{conversation}");
        let restored = client.post(&format!("{base}/restore"), &json!({"checkpoint_id": id})).await;
        assert_eq!(restored.status(), 200, "{id} of {conversation}");
        let found: BTreeMap<_, _> =
            versions(root).into_iter().filter(|(path, _)| expected.contains_key(path)).collect();
        assert_eq!(&found, expected, "{id} of {conversation}");
    }
    assert!(repository(root) == before);
    assert!(!done.is_empty(), "some of what the user did was answered before its kill");
    println!("{} kills, {} checkpoints told and {} answered for restored", kills(), kept.len(), done.len());
}
