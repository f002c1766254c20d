//! Models in clouds, by the addresses that they really have: what Azure and Foundry are sent there, through a proxy that keeps
//! it; and what a server says that finds no credentials of Google Cloud.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::process::{Ended, Folder};
use crate::support::upstream::{Answer, Request, Upstream};

/// What is sent to the model that `section` describes when it is probed; `http` in the place of `https`, so that the proxy sees
/// it.
async fn sent(section: &str) -> Vec<Request> {
    let proxy = Upstream::choosing(|_| Some(Answer::status(400, "application/json", "{}"))).await;
    let folder = Folder::new();
    folder.write("config/default.toml", &format!("[llm.providers.cloud]\n{section}"));
    let mut command =
        folder.command(&["check-config", "--probe", "--probe-timeout", "5"], &[("LLM__MAX_TOKENS", "500")]);
    let ended = Ended::from(command.env("http_proxy", proxy.url()).output().unwrap());
    assert!(ended.stdout.contains("cloud"), "{} {}", ended.stdout, ended.stderr);
    let requests = proxy.requests();
    assert!(!requests.is_empty(), "{} {}", ended.stdout, ended.stderr);
    requests
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn azure_and_foundry_are_asked_at_their_addresses_with_the_key_in_their_header() {
    let rows = [
        (
            "vendor = \"openai\"\nbase_url = \"http://acme.openai.azure.com/openai/v1\"",
            "http://acme.openai.azure.com/openai/v1/chat/completions",
            [("api-key", Some("key-of-azure")), ("authorization", None), ("x-api-key", None)],
            ["model", "messages", "max_completion_tokens"],
        ),
        (
            "vendor = \"openai\"\nbase_url = \"http://acme.openai.azure.com/openai/v1/\"\nwire = \"responses\"",
            "http://acme.openai.azure.com/openai/v1/responses",
            [("api-key", Some("key-of-azure")), ("authorization", None), ("x-api-key", None)],
            ["model", "input", "max_output_tokens"],
        ),
        (
            "vendor = \"openai\"\nbase_url = \"http://acme.services.ai.azure.com/openai/v1\"",
            "http://acme.services.ai.azure.com/openai/v1/chat/completions",
            [("api-key", Some("key-of-azure")), ("authorization", None), ("x-api-key", None)],
            ["model", "messages", "max_completion_tokens"],
        ),
        (
            "vendor = \"claude\"\nbase_url = \"http://acme.services.ai.azure.com/anthropic\"",
            "http://acme.services.ai.azure.com/anthropic/v1/messages",
            [("x-api-key", Some("key-of-azure")), ("anthropic-version", Some("2023-06-01")), ("api-key", None)],
            ["model", "messages", "max_tokens"],
        ),
    ];
    for (section, address, headers, fields) in rows {
        let requests = sent(&format!("{section}\nmodel = \"our-deployment\"\napi_key = \"key-of-azure\"\n")).await;
        let request = &requests[0];
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", address));
        for (name, value) in headers {
            assert_eq!(request.header(name), value, "{address}: {name}");
        }
        let body = request.json();
        assert_eq!(body["model"], "our-deployment", "{address}");
        assert!(fields.iter().all(|field| body.get(field).is_some()), "{address}: {body:#}");
    }
}

const VERTEX: [(&str, &str); 2] = [("LLM__PROVIDER", "vertex"), ("LLM__VERTEX__PROJECT", "acme-1")];

#[test]
fn a_metadata_server_that_never_answers_keeps_a_server_from_starting_and_it_says_so() {
    // It takes connections, and that is all.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // Nobody listens there.
    let closed = "127.0.0.1:1".to_owned();
    let silent_at = silent.local_addr().unwrap().to_string();
    for (host, cause) in [(silent_at, "within 2 s"), (closed, "no access token of Google Cloud")] {
        for command in ["check-config", "serve"] {
            let folder = Folder::new();
            let mut command = folder.command(&[command], &[&VERTEX[..], &[("SERVER__BIND", "127.0.0.1:0")]].concat());
            let began = Instant::now();
            let ended = Ended::from(command.env("GCE_METADATA_HOST", &host).output().unwrap());
            // 2 s of waiting; all else is the start of a process on a busy machine.
            assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
            assert_eq!(ended.code, 1, "{} {}", ended.stdout, ended.stderr);
            let words = "llm.vertex.credentials is empty, there is no file of gcloud's, and the metadata server";
            assert!(ended.stderr.contains(words) && ended.stderr.contains(cause), "{}", ended.stderr);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_metadata_server_that_answers_is_asked_for_a_token_of_the_right_scope() {
    let server = Upstream::choosing(|_| {
        let token = r#"{"access_token":"ya29.canary-0123456789","expires_in":3600,"token_type":"Bearer"}"#;
        Some(Answer::ok("application/json", token))
    })
    .await;
    let folder = Folder::new();
    let host = server.url().replace("http://", "");
    let run =
        || Ended::from(folder.command(&["check-config"], &VERTEX).env("GCE_METADATA_HOST", &host).output().unwrap());
    // A busy machine may not answer within 2 s.
    let ended = (0..5).map(|_| run()).find(|ended| ended.code == 0).unwrap_or_else(run);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "the configuration is good\n", ""));
    let asked = &server.requests()[0];
    assert_eq!(asked.header("metadata-flavor"), Some("Google"));
    assert!(asked.path.contains("/token?scopes=") && asked.path.contains("cloud-platform"), "{}", asked.path);
}

#[test]
fn files_of_credentials_are_found_where_their_users_keep_them() {
    let folder = Folder::new();
    let gcloud = "home/.config/gcloud/application_default_credentials.json";
    folder.write(gcloud, r#"{"type": "gdch_service_account"}"#);
    folder.write("key.json", r#"{"type": "service_account"}"#);
    let home = folder.path().join("home").display().to_string();
    let key = folder.path().join("key.json").display().to_string();
    let named = [&VERTEX[..], &[("LLM__VERTEX__CREDENTIALS", "own.json")]].concat();
    type Row<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, &'a str);
    let rows: [Row<'_>; 3] = [
        (&VERTEX, None, "is of the type \"gdch_service_account\""),
        (&VERTEX, Some(&key), "key.json lacks \"client_email\""),
        (&named, Some(&key), "own.json cannot be read"),
    ];
    for (settings, variable, words) in rows {
        let mut command = folder.command(&["check-config"], settings);
        command.env("HOME", &home);
        if let Some(path) = variable {
            command.env("GOOGLE_APPLICATION_CREDENTIALS", path);
        }
        let ended = Ended::from(command.output().unwrap());
        assert_eq!(ended.code, 2, "{} {}", ended.stdout, ended.stderr);
        let start = "configuration: llm.vertex.credentials: cannot be used: ";
        assert!(ended.stderr.starts_with(start) && ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_key_that_cannot_sign_is_found_at_the_start() {
    let folder = Folder::new();
    let file = r#"{"type": "service_account", "client_email": "a@b", "private_key_id": "1", "private_key": "no-pem-canary", "project_id": "acme-1"}"#;
    folder.write("key.json", file);
    let settings = [&VERTEX[..], &[("LLM__VERTEX__CREDENTIALS", "key.json")]].concat();
    let ended = folder.run(&["check-config"], &settings);
    assert_eq!(ended.code, 1, "{} {}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("llm.vertex.credentials cannot be used: "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("canary"), "{}", ended.stderr);
}
