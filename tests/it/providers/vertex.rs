//! Vertex AI: where its access tokens come from, how many are asked for, and what is said when there is none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use switchboard::agent::ports::llm::{LlmProvider, ProviderErrorKind};
use switchboard::llm::{self, ConnectError, Vendor};
use tempfile::TempDir;

use super::{config, connect, origin, report, set, turn};
use crate::support::upstream::{Answer, Request, Upstream};

const GOOD: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"ready"}]},"finishReason":"STOP"}]}"#;

/// What must be in no error.
const SECRETS: [&str; 2] = ["refresh-canary-0123456789", "client-canary-0123456789"];

/// A model, and a token service at `/token` that answers in turn as it is told, then with good tokens.
async fn cloud(tokens: impl IntoIterator<Item = Answer>) -> Upstream {
    let tokens: Vec<Answer> = tokens.into_iter().collect();
    let asked = AtomicUsize::new(0);
    Upstream::choosing(move |request| {
        if request.path != "/token" {
            return Some(Answer::ok("text/event-stream", format!("{GOOD}\n\n")));
        }
        let nth = asked.fetch_add(1, Ordering::Relaxed);
        Some(tokens.get(nth).cloned().unwrap_or_else(|| token(&format!("ya29.number-{nth}"), 3600)))
    })
    .await
}

fn token(token: &str, expires_in: u32) -> Answer {
    let body = json!({
        "access_token": token, "expires_in": expires_in, "token_type": "Bearer",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    });
    Answer::ok("application/json", body.to_string())
}

fn user(cloud: &Upstream) -> Value {
    let token_uri = format!("{}/token", cloud.url());
    json!({
        "type": "authorized_user", "client_id": "c", "client_secret": SECRETS[1],
        "refresh_token": SECRETS[0], "token_uri": token_uri,
    })
}

/// The settings by which `cloud` is asked with the credentials `file`, which is written to `dir`.
fn settings(cloud: &Upstream, dir: &TempDir, file: &Value, own: &str) -> llm::LlmConfig {
    let path = dir.path().join("credentials.json");
    std::fs::write(&path, file.to_string()).unwrap();
    settings_at(cloud, &path, own)
}

fn settings_at(cloud: &Upstream, path: &Path, own: &str) -> llm::LlmConfig {
    let mut config = config(&cloud.url());
    set(&mut config, Vendor::Vertex, &format!("credentials = '{}'\napi_key = ''\n{own}", path.display()));
    config
}

/// How many requests came for tokens, and those that came for the model.
fn requests(cloud: &Upstream) -> (usize, Vec<Request>) {
    let (tokens, models): (Vec<_>, Vec<_>) = cloud.requests().into_iter().partition(|request| request.path == "/token");
    (tokens.len(), models)
}

async fn says_ready(provider: &dyn LlmProvider) {
    let (turn, failure) = turn(provider).await;
    assert!(failure.is_none(), "{}", report(&failure.unwrap()));
    assert_eq!(turn.message.text(), "ready");
}

#[tokio::test]
async fn fifty_requests_at_once_of_two_models_need_one_token() {
    let (cloud, dir) = (cloud([]).await, TempDir::new().unwrap());
    let config = settings(&cloud, &dir, &user(&cloud), "project = 'acme-1'");
    let other = config.model("vertex:gemini-2.5-pro").unwrap();
    let providers = [connect(Vendor::Vertex, &config), llm::connect(&other, &config).unwrap()];
    futures::future::join_all((0..50).map(|nth| says_ready(&*providers[nth % 2]))).await;
    let (tokens, asked) = requests(&cloud);
    assert_eq!((tokens, asked.len()), (1, 50));
    for request in asked {
        let headers = ["authorization", "x-goog-user-project", "x-goog-api-key"].map(|name| request.header(name));
        assert_eq!(headers, [Some("Bearer ya29.number-0"), Some("acme-1"), None]);
    }
    let asked = cloud.requests().into_iter().find(|request| request.path == "/token").unwrap().json();
    let expected = json!(["refresh_token", SECRETS[0], "https://www.googleapis.com/auth/cloud-platform"]);
    assert_eq!(json!([asked["grant_type"], asked["refresh_token"], asked["scope"]]), expected);
}

#[tokio::test]
async fn a_token_that_has_run_out_is_not_sent_again() {
    let (cloud, dir) = (cloud([token("ya29.brief", 0)]).await, TempDir::new().unwrap());
    let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &user(&cloud), "project = 'acme-1'"));
    says_ready(&*provider).await;
    says_ready(&*provider).await;
    let (tokens, asked) = requests(&cloud);
    let sent: Vec<_> = asked.iter().map(|request| request.header("authorization").unwrap()).collect();
    assert_eq!((tokens, sent), (2, vec!["Bearer ya29.brief", "Bearer ya29.number-1"]));
}

#[tokio::test]
async fn a_service_signs_its_tokens_itself_and_its_file_names_the_project() {
    let (cloud, dir) = (cloud([]).await, TempDir::new().unwrap());
    let pem = include_str!("../../fixtures/keys/rs256-private.pem");
    let file = json!({
        "type": "service_account", "client_email": "bot@acme-1.iam.gserviceaccount.com", "private_key_id": "k1",
        "private_key": pem, "project_id": "acme-of-the-file", "token_uri": "http://127.0.0.1:1/never",
    });
    let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &file, "project = ''"));
    says_ready(&*provider).await;
    let (tokens, asked) = requests(&cloud);
    assert_eq!(tokens, 0);
    assert!(asked[0].path.starts_with("/v1/projects/acme-of-the-file/locations/global/"), "{}", asked[0].path);
    assert_eq!(asked[0].header("x-goog-user-project"), None);
    let jwt = asked[0].header("authorization").unwrap().strip_prefix("Bearer ").unwrap();
    let claims = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let expected = json!(["bot@acme-1.iam.gserviceaccount.com", "https://www.googleapis.com/auth/cloud-platform"]);
    assert_eq!(json!([claims["iss"], claims["scope"]]), expected);
}

#[tokio::test]
async fn who_another_service_vouches_for_changes_its_word_for_a_token() {
    let (cloud, dir) = (cloud([]).await, TempDir::new().unwrap());
    let word = dir.path().join("word");
    std::fs::write(&word, "the-word-of-another").unwrap();
    let file = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/pools/p", "token_url": format!("{}/token", cloud.url()),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": {"file": word},
    });
    let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &file, "project = 'acme-1'"));
    says_ready(&*provider).await;
    let asked = cloud.requests();
    let form: BTreeMap<String, String> = serde_urlencoded::from_bytes(&asked[0].body).unwrap();
    assert_eq!((&*form["subject_token"], &*form["audience"]), ("the-word-of-another", "//iam.googleapis.com/pools/p"));
    assert_eq!(asked[1].header("authorization"), Some("Bearer ya29.number-0"));
}

#[tokio::test]
async fn the_word_of_another_is_in_no_error() {
    for (word, format) in [
        ("canary-word", json!({"type": "text"})),
        (r#"{"token": "canary-word"}"#, json!({"type": "json", "subject_token_field_name": "token"})),
    ] {
        // It repeats what it was sent.
        let words = json!({"error": "invalid_grant", "error_description": "Bad: canary-word"});
        let (cloud, dir) =
            (cloud([Answer::status(400, "application/json", words.to_string())]).await, TempDir::new().unwrap());
        let place = dir.path().join("word");
        std::fs::write(&place, word).unwrap();
        let file = json!({
            "type": "external_account", "audience": "//iam.googleapis.com/pools/p", "token_url": format!("{}/token", cloud.url()),
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": {"file": place, "format": format},
        });
        let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &file, "project = 'acme-1'"));
        let (_, failure) = turn(&*provider).await;
        let line = report(&failure.unwrap());
        assert!(line.contains("invalid_grant") && !line.contains("canary"), "{line}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_token_service_is_the_operator_s_to_mend_and_is_forgotten() {
    for status in [400, 401, 403] {
        // It repeats what it was sent.
        let words = json!({"error": "invalid_grant", "error_description": format!("Bad: {}", SECRETS.join(" "))});
        let refusal = Answer::status(status, "application/json", words.to_string());
        let (cloud, dir) = (cloud([refusal]).await, TempDir::new().unwrap());
        let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &user(&cloud), "project = 'acme-1'"));
        let (_, failure) = turn(&*provider).await;
        let error = failure.unwrap();
        assert_eq!((error.kind, error.retryable), (ProviderErrorKind::Unauthorized, false), "{status}");
        let line = report(&error);
        assert!(line.contains("no access token of Google Cloud") && line.contains("invalid_grant"), "{line}");
        assert!(!line.contains("canary"), "{line}");
        let (tokens, asked) = requests(&cloud);
        assert_eq!((tokens, asked.len()), (1, 0), "{status}: asked once, and nothing without a token");
        // The next request asks anew, by the file as it is now.
        says_ready(&*provider).await;
    }
}

#[tokio::test]
async fn trouble_of_the_token_service_may_pass() {
    let trouble = Answer::status(503, "text/plain", "later");
    let (cloud, dir) = (cloud([trouble]).await, TempDir::new().unwrap());
    let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &user(&cloud), "project = 'acme-1'"));
    let (_, failure) = turn(&*provider).await;
    let error = failure.unwrap();
    assert_eq!((error.kind, error.retryable), (ProviderErrorKind::Unavailable { retry_after: None }, true));
    says_ready(&*provider).await;
}

#[tokio::test]
async fn a_token_is_in_no_error() {
    let cloud = Upstream::choosing(|request| {
        let sent = request.header("authorization").unwrap_or_default();
        Some(match request.path.as_str() {
            "/token" => token("ya29.canary-0123456789", 3600),
            _ => Answer::status(403, "text/plain", format!("no {sent}")),
        })
    })
    .await;
    let dir = TempDir::new().unwrap();
    let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &user(&cloud), "project = 'acme-1'"));
    let (_, failure) = turn(&*provider).await;
    assert_eq!(failure.unwrap().detail.to_string(), "http 403: no [secret]");
}

#[tokio::test]
async fn a_file_that_goes_away_later_is_missed_in_a_sentence() {
    let (cloud, dir) = (cloud([]).await, TempDir::new().unwrap());
    let provider = connect(Vendor::Vertex, &settings(&cloud, &dir, &user(&cloud), "project = 'acme-1'"));
    std::fs::remove_file(dir.path().join("credentials.json")).unwrap();
    let (_, failure) = turn(&*provider).await;
    let error = failure.unwrap();
    assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
    assert!(report(&error).contains("credentials.json cannot be read"), "{}", report(&error));
}

/// Why a provider cannot be set up.
fn mistake(config: &llm::LlmConfig) -> String {
    let error: ConnectError = llm::connect(&origin(Vendor::Vertex, config), config).err().unwrap();
    error.to_string()
}

#[tokio::test]
async fn what_is_no_file_of_credentials_is_a_mistake_of_the_settings() {
    let (cloud, dir) = (cloud([]).await, TempDir::new().unwrap());
    let rows = [
        (
            json!({"type": "impersonated_service_account"}),
            "is of the type \"impersonated_service_account\"; it must be one of",
        ),
        (json!({"installed": {}}), "names no type"),
        (json!([1]), "has no JSON object"),
        (json!({"type": "authorized_user", "client_id": "c"}), "lacks \"client_secret\""),
    ];
    for (file, words) in rows {
        let found = mistake(&settings(&cloud, &dir, &file, "project = 'acme-1'"));
        assert!(found.starts_with("llm.vertex.credentials cannot be used: ") && found.contains(words), "{found}");
    }
    let nowhere = mistake(&settings_at(&cloud, Path::new("/nowhere/key.json"), "project = 'acme-1'"));
    assert!(
        nowhere.starts_with("llm.vertex.credentials cannot be used: /nowhere/key.json cannot be read"),
        "{nowhere}"
    );
    let homeless = mistake(&settings(&cloud, &dir, &user(&cloud), "project = ''"));
    assert_eq!(homeless, "llm.vertex.project must be the id or the number of a project of Google Cloud");
}

#[tokio::test]
async fn the_publisher_may_be_named_where_the_model_s_name_tells_another() {
    let cloud = cloud([]).await;
    for (publisher, place) in [
        ("google", "google/models/claude-like:streamGenerateContent?alt=sse"),
        ("anthropic", "anthropic/models/claude-like:streamRawPredict"),
    ] {
        let mut config = config(&cloud.url());
        let own =
            format!("project = 'acme-1'\napi_key = 'ya29.token'\nmodel = 'claude-like'\npublisher = '{publisher}'");
        set(&mut config, Vendor::Vertex, &own);
        // What a model of Claude's would say is another matter here.
        let _ = turn(&*connect(Vendor::Vertex, &config)).await;
        let asked = cloud.requests().pop().unwrap();
        assert!(asked.path.ends_with(&format!("/publishers/{place}")), "{}", asked.path);
    }
    let error = Vendor::Vertex.read("publisher = 'meta'".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("unknown variant `meta`"), "{error}");
}
