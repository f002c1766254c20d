//! `check-config --probe`: what it finds out about models that behave in different ways, and how it ends.

use std::net::TcpListener;

use serde_json::json;

use crate::support::model::{Script, calls, says, turn};
use crate::support::process::{Ended, Folder};
use crate::support::upstream::{Answer, Request, Upstream};

/// The key of all providers here.
const KEY: &str = "sk-canary-0123456789";

/// Longer than one token can be.
const NUMBERS: &str = "one two three four five six seven eight nine ten eleven twelve";

/// The end of an answer without a count of tokens.
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A server with a model of every kind, by the first part of its path.
async fn zoo() -> Upstream {
    Upstream::choosing(|request| {
        let kind = request.path.split('/').nth(1).unwrap();
        Some(match (kind, question(request)) {
            ("denied", _) => {
                let words = format!("Incorrect API key provided:\n {KEY}");
                let body = json!({"error": {"message": words, "type": "invalid_request_error"}});
                Answer::status(401, "application/json", body.to_string()).header("x-request-id", "req-7")
            }
            ("silent", _) => turn().hangs().answer(),
            ("mute", _) => turn().finish("length").answer(),
            ("breaks", "numbers") => turn().text("one").breaks().answer(),
            ("lump", "numbers") => says(NUMBERS).answer(),
            ("terse", "numbers") => says("1-20").answer(),
            (_, "numbers") => pieces().answer(),
            ("toolless", "colour") => {
                let body = json!({"object": "error", "message": "tools are not supported"});
                Answer::status(400, "application/json", body.to_string())
            }
            ("chatty", "colour") => says("Green it is.").answer(),
            ("wrong", "colour") => calls("t", "choose_colour", &json!({"colour": "mauve"})).answer(),
            (_, "colour") => calls("t", "choose_colour", &json!({"colour": "green"})).answer(),
            ("uncounted", _) => turn().text("ready").raw(FINISH).answer(),
            (_, _) => says("ready").answer(),
        })
    })
    .await
}

fn pieces() -> Script {
    NUMBERS.split_inclusive(' ').fold(turn(), Script::text).done()
}

/// Which of the three calls it is.
fn question(request: &Request) -> &'static str {
    let body = request.json();
    let asked = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    let found = [("single word", "word"), ("numbers", "numbers"), ("tool", "colour")];
    found.into_iter().find(|(words, _)| asked.contains(words)).unwrap().1
}

/// A folder whose settings have a provider of each of these kinds.
fn folder(zoo: &Upstream, kinds: &[&str]) -> Folder {
    let folder = Folder::new();
    let section = |kind: &&str| {
        let url = format!("{}/{kind}/v1", zoo.url());
        format!(
            "[llm.providers.{kind}]\nvendor = \"openai\"\nbase_url = \"{url}\"\nmodel = \"m\"\napi_key = \"{KEY}\"\n"
        )
    };
    folder.write("config/default.toml", &kinds.iter().map(section).collect::<String>());
    folder
}

/// The lines of the table, times replaced.
fn table(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.stderr, "");
    assert!(!ended.stdout.contains(KEY), "{}", ended.stdout);
    let lines = ended.stdout.strip_prefix("the configuration is good\n").unwrap().lines();
    let squeezed = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    squeezed
        .map(|mut words| {
            if let Some(at) = words.iter().position(|word| *word == "ms") {
                words[at - 1] = "N";
            }
            words.join(" ")
        })
        .collect()
}

const TITLES: &str = "provider model answers streams tools first token usage";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_model_is_said_to_be_good() {
    let zoo = zoo().await;
    let folder = folder(&zoo, &["good", "terse", "uncounted"]);
    let ended = folder.run(&["check-config", "--probe"], &[]);
    let expected =
        [TITLES, "good m yes yes yes N ms yes", "terse m yes ? yes N ms yes", "uncounted m yes yes yes N ms no"];
    assert_eq!((table(&ended), ended.code), (expected.map(str::to_owned).to_vec(), 0));
    assert_eq!(zoo.requests().len(), 9, "three calls of each, nothing repeated");
    assert!(zoo.requests().iter().all(|request| request.json()["tools"].is_array() == (question(request) == "colour")));
    assert_eq!(folder.entries(), ["config"], "no trace");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_model_is_on_its_line_and_never_its_key() {
    let zoo = zoo().await;
    let kinds = ["breaks", "chatty", "denied", "lump", "mute", "silent", "toolless", "wrong"];
    let folder = folder(&zoo, &kinds);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = [
        ("LLM__PROVIDERS__ABSENT__VENDOR", "ollama"),
        ("LLM__PROVIDERS__ABSENT__BASE_URL", &*format!("http://{nobody}")),
        ("LLM__PROVIDERS__ABSENT__MODEL", "m"),
        ("LLM__PROVIDERS__EMPTY__VENDOR", "openai"),
    ];
    let ended = folder.run(&["check-config", "--probe", "--probe-timeout", "2"], &settings);
    let expected = [
        TITLES.to_owned(),
        "absent m no ? ? ? ? provider_unavailable: ".to_owned(),
        "breaks m yes ? ? N ms yes streams: provider_truncated: ".to_owned(),
        "chatty m yes yes no N ms yes tools: it answered without a call".to_owned(),
        "denied m no ? ? ? ? provider_unauthorized: http 401: Incorrect API key provided: [secret] (request req-7)"
            .to_owned(),
        "lump m yes no yes N ms yes".to_owned(),
        "mute m no ? ? ? yes no text within the model's own limit".to_owned(),
        "silent m no ? ? ? ? provider_timeout: the probe's time is up".to_owned(),
        "toolless m yes yes no N ms yes tools: provider_rejected: http 400: tools are not supported".to_owned(),
        "wrong m yes yes no N ms yes tools: it called choose_colour with {\"colour\":\"mauve\"}".to_owned(),
        "empty ? no ? ? ? ? \"empty\" names no model, and llm.providers.empty.model is empty".to_owned(),
    ];
    let found = table(&ended);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (line, start) in found.iter().zip(&expected) {
        // What the transport says of a broken connection is not ours.
        let is_ours = !start.ends_with(": ");
        assert!(if is_ours { line == start } else { line.starts_with(start) }, "{line}\n{start}");
    }
    assert_eq!(ended.code, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_model_that_may_be_asked_is_asked_once_as_it_would_be() {
    let zoo = zoo().await;
    let folder = folder(&zoo, &["good", "spare", "unused"]);
    let shipped = include_str!("../../../config/profiles/tables.toml");
    let model = "[model]\nuse = \"spare:of-tables\"\n[model.request]\nmodels = { a = \"good\", b = \"demo\" }\n";
    folder.write("config/profiles/tables.toml", &format!("{shipped}\n{model}"));
    let shipped = include_str!("../../../config/profiles/workflow.toml");
    folder.write("config/profiles/workflow.toml", &format!("{shipped}\n[model]\neffort = \"low\"\n"));
    let settings = [("LLM__PROVIDER", "good"), ("LLM__FALLBACKS", "spare")];
    let ended = folder.run(&["check-config", "--probe"], &settings);
    let good = "yes yes yes N ms yes";
    let expected = [
        TITLES.to_owned(),
        format!("good m {good}"),
        format!("spare m {good}"),
        format!("spare of-tables {good}"),
        format!("good m effort=low {good}"),
        format!("spare m effort=low {good}"),
        format!("unused m {good}"),
    ];
    assert_eq!((table(&ended), ended.code), (expected.to_vec(), 0));
}

#[test]
fn without_a_model_there_is_nothing_to_probe() {
    let folder = Folder::new();
    let ended = folder.run(&["check-config", "--probe"], &[]);
    let said = "the configuration is good\nthere is no model to probe: the built-in demo model answers\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, said, ""));
}

#[test]
fn mistakes_come_before_any_probe() {
    let folder = Folder::new();
    let ended = folder.run(&["check-config", "--probe"], &[("LLM__PROVIDER", "claude")]);
    let said = "configuration: llm.claude.api_key: is required\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (2, "", said));
    for args in [&["check-config", "--probe-timeout", "5"][..], &["check-config", "--probe", "--probe-timeout", "0"]] {
        assert_eq!(folder.run(args, &[]).code, 2, "{args:?}");
    }
}

/// A token that is given here.
const GIVEN: &str = "given-canary-0123456789";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_backend_is_asked_once_with_credentials_of_the_settings() {
    let backends = Upstream::choosing(|request| {
        let json = |status, body: serde_json::Value| Answer::status(status, "application/json", body.to_string());
        let presented = request.header("authorization");
        Some(match (request.path.as_str(), presented) {
            ("/tokens/good", _) => json(200, json!({"access_token": GIVEN, "token_type": "Bearer", "expires_in": 60})),
            ("/tokens/bad", _) => json(401, json!({"error": "invalid_client"})),
            ("/granted", Some(token)) if token == format!("Bearer {GIVEN}") => json(200, json!({})),
            ("/taken", Some(token)) if token == format!("Bearer {KEY}") => json(204, json!(null)),
            ("/main" | "/exchanged" | "/open", None) => json(404, json!({})),
            (_, _) => json(401, json!({"said": presented})),
        })
    })
    .await;
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = Folder::new();
    let url = backends.url();
    let issued = |name: &str, grant: &str, issuer: &str, scope: &str| {
        format!(
            "[backends.{name}]\nbase_url = \"{url}/{name}\"\ncredentials = \"{grant}\"\nclient_id = \"us\"
             client_secret = \"{KEY}\"\ntoken_url = \"{url}/tokens/{issuer}\"\nscope = \"{scope}\"\n"
        )
    };
    let of_settings = |name: &str, at: &str| {
        format!("[backends.{name}]\nbase_url = \"{at}\"\ncredentials = \"static\"\napi_key = \"{KEY}\"\n")
    };
    let sections = [
        format!("[backend]\nmode = \"http\"\nbase_url = \"{url}/main\"\n"),
        "[backend.service]\nmode = \"token\"\ntoken = \"other-canary-0123456789\"\n".to_owned(),
        of_settings("away", &format!("http://{nobody}")),
        issued("exchanged", "token_exchange", "good", ""),
        issued("granted", "client_credentials", "good", ""),
        issued("of-tenant", "client_credentials", "good", "of:{tenant}"),
        format!("[backends.open]\nbase_url = \"{url}/open\"\ncredentials = \"none\"\n"),
        of_settings("taken", &format!("{url}/taken")),
        issued("ungranted", "client_credentials", "bad", ""),
    ];
    folder.write("config/default.toml", &sections.concat());
    let ended = folder.run(&["check-config", "--probe", "--probe-timeout", "5"], &[]);
    let expected = [
        "there is no model to probe: the built-in demo model answers",
        "backend credentials answers token accepted",
        "backend caller yes ? ?",
        "backends.away static no ? ? the backend could not be reached",
        "backends.exchanged token_exchange yes ? ?",
        "backends.granted client_credentials yes yes yes",
        "backends.of-tenant client_credentials yes ? ? a token is given for a tenant alone",
        "backends.open none yes ? ?",
        "backends.taken static yes ? yes",
        "backends.ungranted client_credentials yes no ? its issuer refused one (HTTP 401)",
        "backend.service static yes ? no HTTP 401",
    ];
    let found = table(&ended);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (line, start) in found.iter().zip(expected) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
    assert_eq!(ended.code, 1);
    assert!(!ended.stdout.contains("canary"), "{}", ended.stdout);
    let issuers = backends.requests().into_iter().filter(|request| request.path.starts_with("/tokens/"));
    assert_eq!(issuers.count(), 2, "nobody's token is exchanged, and none is asked for without a tenant");
    let asked = backends.requests().into_iter().filter(|request| !request.path.starts_with("/tokens/"));
    assert_eq!(asked.filter(|request| request.method == "GET").count(), 8);
}
