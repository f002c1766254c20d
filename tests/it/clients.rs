//! The examples of `docs/CLIENTS.md`, taken out by their headings and run word for word against the product.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::support::environment;
use crate::support::frames;
use crate::support::model::{Scripted, turn};
use crate::support::node;

/// What each example asks.
const QUESTION: &str = "Which rules do we have?";

/// The longest time of one example.
const PATIENCE: Duration = Duration::from_secs(120);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text() -> String {
    std::fs::read_to_string(root().join("docs/CLIENTS.md")).unwrap()
}

/// The code under a heading.
fn example(heading: &str) -> String {
    let text = text();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let (_, code) = section.split_once("\n```").unwrap_or_else(|| panic!("no code under {heading}"));
    let (_, code) = code.split_once('\n').unwrap();
    code.split_once("\n```").unwrap().0.to_owned()
}

/// The product whose model answers the question of each example, in two pieces.
async fn product() -> Scripted {
    Scripted::playing([turn().text("You have ").text("two rules.").done()]).await
}

const ANSWER: &str = "You have two rules.";

/// What a program says when it runs an example; `None` where there is no such program.
async fn says(s: &Scripted, mut program: Command) -> Option<String> {
    program
        .env("SWITCHBOARD_URL", s.app.url(""))
        .env("SWITCHBOARD_TOKEN", &s.app.token)
        .env("NO_PROXY", "*")
        .env("no_proxy", "*")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let running = tokio::time::timeout(PATIENCE, program.output());
    let output = match running.await.expect("an example takes too long") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            environment::skip(&format!("{:?} is not installed", program.as_std().get_program()));
            return None;
        }
        output => output.unwrap(),
    };
    let (said, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}\n{error}", output.status);
    assert_eq!(s.last_asked().last().unwrap()["content"], QUESTION);
    Some(said)
}

fn shell(code: &str) -> Command {
    let mut program = Command::new("bash");
    program.args(["-euo", "pipefail", "-c", code]);
    program
}

/// Node with an example, where the packages that it imports are; `None` where they are not installed.
fn node(code: &str) -> Option<Command> {
    if !node::is_installed() {
        return None;
    }
    let mut program = Command::new("node");
    program.args(["--import", "./clients.mjs", "--input-type=module", "--eval", code]);
    program.current_dir(root().join("tests/peers/frontends"));
    Some(program)
}

/// What an example in Node writes; `None` where it cannot run.
async fn node_says(heading: &str) -> Option<String> {
    let program = node(&example(heading))?;
    says(&product().await, program).await
}

/// What a page of an example shows after the question is typed into its form.
async fn page_shows(heading: &str) -> Option<String> {
    let mut program = node(&example(heading))?;
    program.env("EXAMPLE_QUESTION", QUESTION).env("EXAMPLE_ANSWER", "two rules.");
    says(&product().await, program).await
}

#[tokio::test]
async fn curl_shows_the_stream() {
    let Some(said) = says(&product().await, shell(&example("curl"))).await else { return };
    let frames = frames::parse(&said);
    let events = ["message_start", "content_chunk", "content_chunk", "message_complete"];
    assert_eq!((frames::names(&frames), frames::text(&frames).as_str()), (events.to_vec(), ANSWER));
}

#[tokio::test]
async fn curl_gets_one_document() {
    let Some(said) = says(&product().await, shell(&example("curl, one document"))).await else { return };
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&document["state"], &document["message"]), (&"completed".into(), &ANSWER.into()));
}

#[tokio::test]
async fn python_prints_the_answer_with_its_standard_library_alone() {
    let mut program = Command::new("python3");
    program.args(["-c", &example("Python")]);
    let Some(said) = says(&product().await, program).await else { return };
    assert_eq!(said, ANSWER);
}

#[tokio::test]
async fn client_js_reads_the_answer() {
    let Some(said) = node_says("client.js").await else { return };
    assert_eq!(said, ANSWER);
}

#[tokio::test]
async fn the_official_client_of_openai_reads_the_answer() {
    let Some(said) = node_says("OpenAI SDK").await else { return };
    assert_eq!(said, ANSWER);
}

#[tokio::test]
async fn the_official_client_of_openai_reads_a_response() {
    let Some(said) = node_says("OpenAI SDK, Responses").await else { return };
    assert_eq!(said, ANSWER);
}

#[tokio::test]
async fn the_official_client_of_anthropic_reads_the_answer() {
    let Some(said) = node_says("Anthropic SDK").await else { return };
    assert_eq!(said, ANSWER);
}

#[tokio::test]
async fn an_ag_ui_agent_reads_the_answer() {
    let Some(said) = node_says("AG-UI").await else { return };
    assert_eq!(said, ANSWER);
}

#[tokio::test]
async fn a_react_component_with_a_hook_on_client_js_shows_the_answer() {
    let Some(shown) = page_shows("React").await else { return };
    assert_eq!(shown, ANSWER);
}

#[tokio::test]
async fn the_react_hook_of_the_ai_sdk_shows_the_answer() {
    let Some(shown) = page_shows("AI SDK").await else { return };
    assert_eq!(shown, ANSWER);
}

#[test]
fn every_example_is_run() {
    let of_models = ["OpenAI SDK", "OpenAI SDK, Responses", "Anthropic SDK"];
    let run = [&["curl", "curl, one document", "Python", "client.js", "React"][..], &of_models, &["AI SDK", "AG-UI"]]
        .concat();
    let text = text();
    let headings: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings, run);
}
