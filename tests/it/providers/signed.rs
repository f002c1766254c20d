//! Models on Bedrock asked with the credentials of AWS: each request is signed, and nothing else says who asks.

use switchboard::config::Config;

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
        assert_eq!(signed.verify("bedrock", "eu-central-1"), Ok(()), "{model}");
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
    let unknown = told(&[("LLM__BEDROCK__AUTH", "iam")]);
    assert!(unknown.iter().any(|told| told.starts_with("llm.bedrock.auth: ")), "{unknown:?}");
}
