//! The reference server of everything (`tests/peers/mcp-everything`), as a program and over HTTP.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use switchboard::chat::tool::{Effect, Progress};
use switchboard::tools::Source;
use switchboard::tools::mcp;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{call, message, offered, peer, product, until};
use crate::support::environment;
use crate::support::frames;
use crate::support::model::{says, turn};
use crate::support::process::Folder;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp-everything")
}

/// Whether the pinned version is there; if not, says so.
fn is_installed() -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lock = std::fs::read(root.join("tests/peers/everything/package-lock.json")).unwrap();
    let is_there = std::fs::read(root.join("target/peers/everything/installed.json")).is_ok_and(|found| found == lock);
    if !is_there {
        environment::skip("the MCP server is not installed: tests/peers/mcp-everything install");
    }
    is_there
}

/// The settings' keys for the server as a program.
fn program() -> String {
    let path = std::env::var("PATH").unwrap();
    format!(
        "command = {:?}\nargs = [\"stdio\"]\nenv = {{ PATH = {path:?}, GREETING = \"hello\" }}\nconnect_timeout_s = 60\n",
        script().display().to_string()
    )
}

/// The server over HTTP, on a free port; it ends when its standard input does, so nobody may kill its script before.
async fn over_http() -> (Child, String) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new(script())
        .args(["http", &port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let listening = async { while !lines.next_line().await.unwrap().unwrap().contains("listening on port") {} };
    tokio::time::timeout(super::PATIENCE, listening).await.unwrap();
    // Whoever closed this end would end the server with its next word.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (server, format!("url = \"http://127.0.0.1:{port}/mcp\"\nconnect_timeout_s = 60\n"))
}

#[tokio::test]
async fn a_model_calls_the_tools_of_a_program() {
    if !is_installed() {
        return;
    }
    let calls = turn()
        .call("c1", "peer__echo", &json!({"message": "Grüß Gott"}))
        .call("c2", "peer__get-sum", &json!({"a": 2, "b": 40}))
        .call("c3", "peer__get-sum", &json!({"a": "two"}))
        .call("c4", "peer__get-structured-content", &json!({"location": "Chicago"}))
        .call("c5", "peer__get-env", &json!({}))
        .call("c6", "peer__get-tiny-image", &json!({}));
    let s = product(&format!("[mcp.peer]\n{}", program()), [calls.done(), says("Done.")]).await;
    let frames = s.app.chat(&message("Go")).await;
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");

    let names = offered(&s).remove(0);
    assert_eq!(names[0], "discover_entities", "the built-in tools come first");
    assert!(names[1..].iter().all(|name| name.starts_with("peer__")), "{names:?}");
    assert_eq!(s.result_of("c1"), json!("Echo: Grüß Gott"));
    assert_eq!(s.result_of("c2"), json!("The sum of 2 and 40 is 42."));
    let wrong = "bad params: \"b\" is a required property; a: \"two\" is not of type \"number\"";
    let mut told: Vec<_> =
        s.result_of("c3")["error"].as_str().unwrap()["bad params: ".len()..].split("; ").map(str::to_owned).collect();
    let mut wanted: Vec<_> = wrong["bad params: ".len()..].split("; ").map(str::to_owned).collect();
    told.sort();
    wanted.sort();
    assert_eq!(told, wanted, "its schema is ours to check");
    let weather = json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82});
    assert_eq!(s.result_of("c4"), weather, "what is said twice is read once");
    let variables = s.result_of("c5");
    assert_eq!(variables["GREETING"], "hello");
    assert!(variables.get("CARGO_MANIFEST_DIR").is_none(), "our own environment stays with us: {variables}");
    let image = s.result_of("c6");
    assert!(image.as_str().unwrap().contains("[an image, image/png, image.png: as follows]"), "{image}");
}

#[tokio::test]
async fn over_http_it_is_the_same_and_tells_how_far_it_is() {
    if !is_installed() {
        return;
    }
    let (_server, keys) = over_http().await;
    let servers = peer(&keys).await;
    assert_eq!(
        call(&servers, "peer__get-sum", &json!({"a": 1, "b": 2})).await.0,
        Ok("The sum of 1 and 2 is 3.".to_owned())
    );
    let args = json!({"duration": 0.2, "steps": 4});
    let (output, told) = call(&servers, "peer__trigger-long-running-operation", &args).await;
    assert_eq!(output, Ok("Long running operation completed. Duration: 0.2 seconds, Steps: 4.".to_owned()));
    let step = |fraction| Progress {
        stage: "running".to_owned(),
        message: String::new(),
        fraction: Some(fraction),
        data: None,
    };
    // The last one may come together with the result, and nobody waits for it then.
    assert!(told.len() >= 2, "{told:?}");
    assert!(told.iter().all(|told| [0.25, 0.5, 0.75, 1.0].map(step).contains(told)), "{told:?}");
    assert_eq!(servers.find("peer__echo").unwrap().effect(), Effect::Read, "as the server says");
    servers.close().await;
    assert_eq!(servers.offered("peer"), [], "nothing is offered when we have stopped");
}

#[tokio::test]
async fn the_operator_is_shown_what_can_be_pinned() {
    if !is_installed() {
        return;
    }
    let config: mcp::McpConfig = toml::from_str(&program()).unwrap();
    let told = mcp::ask("peer", &config).await.unwrap();
    let echo = told.iter().find(|tool| tool.name == "echo").unwrap();
    assert_eq!(echo.description, "Echoes back the input string");
    let folder = Folder::new();
    folder.write("config/default.toml", &format!("[mcp.peer]\n{}", program()));
    let ended = folder.run(&["mcp-tools"], &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let printed: toml::Table = ended.stdout.parse().unwrap();
    let pins = printed["mcp"]["peer"]["pins"].as_table().unwrap();
    let expected: toml::Table = told.iter().map(|tool| (tool.name.clone(), tool.digest.clone().into())).collect();
    assert_eq!(*pins, expected, "ready to be pasted");

    let pinned = peer(&format!("{}[pins]\necho = \"{}\"\n", program(), echo.digest)).await;
    let names: Vec<Value> = pinned.offered("peer").iter().map(|tool| json!(tool.def.name)).collect();
    assert_eq!(names, [json!("peer__echo")], "the others have no pin");
    pinned.close().await;
}

#[tokio::test]
async fn a_program_that_dies_is_started_again_and_none_outlives_us() {
    if !is_installed() {
        return;
    }
    let folder = Folder::new();
    let note = folder.path().join("pid").display().to_string();
    let start = format!("echo $$ > {note}; exec {} stdio", script().display());
    let path = std::env::var("PATH").unwrap();
    let keys = format!(
        "command = \"/bin/sh\"\nargs = [\"-c\", {start:?}]\nenv = {{ PATH = {path:?} }}\nconnect_timeout_s = 60\n"
    );
    let servers = peer(&keys).await;
    let pid = || std::fs::read_to_string(&note).unwrap().trim().to_owned();
    let signal = |signal: &str, pid: &str| {
        let kill = format!("kill -{signal} {pid} 2>/dev/null");
        std::process::Command::new("/bin/sh").args(["-c", &kill]).status().unwrap().success()
    };
    let first = pid();
    let echo = || async { call(&servers, "peer__echo", &json!({"message": "Hi"})).await.0 };
    assert_eq!(echo().await, Ok("Echo: Hi".to_owned()));
    assert!(signal("KILL", &first));
    until(&servers, <[_]>::is_empty).await;
    assert_eq!(echo().await, Err("the server of this tool cannot be reached at the moment".to_owned()));
    until(&servers, |tools| !tools.is_empty()).await;
    assert_ne!(pid(), first);
    assert_eq!(echo().await, Ok("Echo: Hi".to_owned()));
    let second = pid();
    servers.close().await;
    assert!(!signal("0", &second), "it has ended with us");
}
