//! Models on Bedrock asked with the credentials of AWS: each request is signed, and nothing else says who asks.

use std::collections::BTreeMap;

use serde_json::json;
use switchboard::agent::ports::llm::ProviderErrorKind;
use switchboard::aws::Variables;
use switchboard::config::Config;
use switchboard::llm::{LlmConfig, Vendor};

use super::{config, connect, report, set, turn};
use crate::support::app::{self, TestApp};
use crate::support::converse;
use crate::support::sigv4::{KEY_ID, SECRET, Signed};
use crate::support::upstream::{Answer, Upstream};

fn says(text: &str) -> Answer {
    Answer::ok("application/vnd.amazon.eventstream", [converse::text(text), converse::end()].concat())
}

#[tokio::test]
async fn a_request_is_signed_with_the_credentials_of_the_machine() {
    let arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-sonnet-4-6";
    for (model, token) in [("amazon.nova-pro-v1:0", None), (arn, Some("session+token/=="))] {
        let upstream = Upstream::script([says("Grüße.")]).await;
        let url = upstream.url();
        let mut settings = vec![
            ("LLM__PROVIDER", "bedrock"),
            ("LLM__BEDROCK__BASE_URL", &url),
            ("LLM__BEDROCK__MODEL", model),
            ("LLM__BEDROCK__AUTH", "aws"),
            // Not sent where requests are signed.
            ("LLM__BEDROCK__API_KEY", "b-12345678"),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
        ];
        settings.extend(token.map(|token| ("AWS_SESSION_TOKEN", token)));
        let app = TestApp::start(&settings).await;
        app.say("c", "Hello").await;
        let requests = upstream.requests();
        let [request] = &requests[..] else { panic!("{} requests", requests.len()) };
        let signed =
            Signed { method: &request.method, path: &request.path, headers: &request.headers, body: &request.body };
        assert_eq!(signed.verify_now("bedrock", "eu-central-1"), Ok(()), "{model}");
        assert_eq!(request.header("x-amz-security-token"), token);
        assert_eq!(request.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn a_refused_signature_is_an_operators_matter() {
    let body = r#"{"message": "The security token included in the request is invalid."}"#;
    let refusal =
        Answer::status(403, "application/json", body).header("x-amzn-errortype", "UnrecognizedClientException");
    let upstream = Upstream::script([refusal]).await;
    let url = upstream.url();
    let settings = [
        ("LLM__PROVIDER", "bedrock"),
        ("LLM__BEDROCK__BASE_URL", url.as_str()),
        ("LLM__BEDROCK__AUTH", "aws"),
        ("AWS_ACCESS_KEY_ID", KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ];
    let app = TestApp::start(&settings).await;
    let frames = app.say("c", "Hello").await;
    let said = format!("{frames:?}");
    assert!(said.contains("provider_unauthorized"), "{said}");
    assert!(!said.contains(KEY_ID) && !said.contains(SECRET), "{said}");
}

#[tokio::test]
async fn models_of_one_region_share_the_credentials_that_are_fetched_for_it() {
    let until = "2999-01-01T00:00:00Z";
    let given = json!({"AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, "Token": "t", "Expiration": until});
    let given = given.to_string();
    let upstream = Upstream::choosing(move |request| {
        Some(match request.path.as_str() {
            "/credentials" => Answer::ok("application/json", given.clone()),
            "/model/one/converse-stream" => Answer::status(503, "application/json", "{}"),
            _ => says("Hello."),
        })
    })
    .await;
    let (url, credentials) = (upstream.url(), format!("{}/credentials", upstream.url()));
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "good").unwrap();
    let settings = [
        ("LLM__PROVIDER", "bedrock"),
        ("LLM__BEDROCK__BASE_URL", url.as_str()),
        ("LLM__BEDROCK__MODEL", "one"),
        ("LLM__BEDROCK__AUTH", "aws"),
        ("LLM__FALLBACKS", "bedrock:two"),
        ("LLM__RETRY__ATTEMPTS", "1"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &credentials),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap()),
    ];
    let app = TestApp::start(&settings).await;
    app.say("c", "Hello").await;
    let asked: Vec<String> = upstream.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/credentials", "/model/one/converse-stream", "/model/two/converse-stream"]);
}

/// The settings by which Bedrock at `url` is asked with the credentials that `variables` lead to.
fn with_variables(url: &str, variables: &[(&str, &str)]) -> LlmConfig {
    let mut config = config(url);
    set(&mut config, Vendor::Bedrock, "auth = 'aws'");
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    config.aws = Variables::of(&variables.collect::<BTreeMap<_, _>>());
    config
}

#[tokio::test]
async fn a_session_token_is_in_no_error() {
    let token = "session-canary-0123456789";
    let refusal = Answer::status(403, "application/json", format!(r#"{{"message": "no {token}"}}"#));
    let upstream = Upstream::script([refusal]).await;
    let key = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_SESSION_TOKEN", token)];
    let (_, failure) = turn(&*connect(Vendor::Bedrock, &with_variables(&upstream.url(), &key))).await;
    let line = report(&failure.unwrap());
    assert!(line.contains("no [secret]") && !line.contains(token), "{line}");
}

#[tokio::test]
async fn trouble_of_who_gives_credentials_may_pass_and_mistakes_do_not() {
    let upstream = Upstream::choosing(|_| Some(Answer::status(503, "text/plain", "later"))).await;
    let there = format!("{}/credentials", upstream.url());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let path = file.display().to_string();
    for (address, token, kind) in [
        (there.as_str(), "good", ProviderErrorKind::Unavailable { retry_after: None }),
        (there.as_str(), "with a line end\n", ProviderErrorKind::Unauthorized),
        ("http://127.0.0.1:1/credentials", "good", ProviderErrorKind::Unauthorized),
    ] {
        std::fs::write(&file, token).unwrap();
        let variables =
            [("AWS_CONTAINER_CREDENTIALS_FULL_URI", address), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &path)];
        let (_, failure) = turn(&*connect(Vendor::Bedrock, &with_variables(&upstream.url(), &variables))).await;
        let error = failure.unwrap();
        assert_eq!(error.kind, kind, "{address} {token:?}: {}", report(&error));
    }
    assert!(upstream.requests().iter().all(|request| request.path == "/credentials"), "no model without a signature");
}

#[test]
fn credentials_are_named_or_a_mistake() {
    let data = tempfile::tempdir().unwrap();
    let told = |more: &[(&str, &str)]| {
        let settings = [&[("LLM__PROVIDER", "bedrock")][..], more].concat();
        let problems = Config::load(&app::sources(&data, &settings)).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&[]), ["llm.bedrock.api_key: is required"]);
    assert_eq!(told(&[("LLM__BEDROCK__AUTH", "aws")]), [""; 0], "those of the machine are known when they are needed");
    let half = told(&[("LLM__BEDROCK__AUTH", "aws"), ("AWS_ACCESS_KEY_ID", KEY_ID)]);
    assert!(half.len() == 1 && half[0].starts_with("llm.bedrock.auth: is \"aws\", and needs"), "{half:?}");
    let region = told(&[("LLM__BEDROCK__AUTH", "aws"), ("AWS_REGION", "eu central")]);
    assert!(region.len() == 1 && region[0].contains("AWS_REGION must be the name of a region"), "{region:?}");
    let unknown = told(&[("LLM__BEDROCK__AUTH", "iam")]);
    assert!(unknown.iter().any(|told| told.starts_with("llm.bedrock.auth: ")), "{unknown:?}");
}
