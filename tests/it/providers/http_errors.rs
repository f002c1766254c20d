//! Answers that are no success: every row of `tests/fixtures/transcripts/http_errors.json` is judged as it says, and
//! what the vendor wrote reaches the log but not the user.

use serde_json::{Value, json};
use switchboard::agent::ports::llm::ProviderErrorKind;

use super::{VENDORS, fixture, provider, report, turn};
use crate::support::upstream::{Answer, Upstream};

#[tokio::test]
async fn every_recorded_error_says_whether_and_when_to_try_again() {
    let rows = fixture("transcripts/http_errors.json");
    let rows = rows.as_array().unwrap();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    for row in rows {
        let vendor = VENDORS.iter().find(|(name, _)| row["provider"] == *name).unwrap().1;
        let body = match &row["body"] {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
        let mut answer = Answer::status(status, "application/json", body);
        for (name, value) in row["headers"].as_object().unwrap() {
            answer = answer.header(name, value.as_str().unwrap());
        }
        let upstream = Upstream::script([answer]).await;
        let (_, failure) = turn(&*provider(vendor, &upstream.url())).await;
        let error = failure.unwrap();
        let retry_after = match error.kind {
            ProviderErrorKind::RateLimited { retry_after } | ProviderErrorKind::Unavailable { retry_after } => {
                retry_after
            }
            _ => None,
        };
        let observed = json!({
            "retryable": error.retryable,
            "retry_after_ms": retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap()),
            "message_contains": row["expected"]["message_contains"],
        });
        assert_eq!(observed, row["expected"], "{row:#}");
        let words = row["expected"]["message_contains"].as_str().unwrap();
        assert!(report(&error).contains(words), "{} does not say {words}", report(&error));
        assert_eq!(error.to_string(), error.kind.public_message(), "the user gets our own words");
    }
}

#[tokio::test]
async fn an_error_has_the_kind_that_tells_the_operator_what_to_do() {
    use ProviderErrorKind as Kind;
    let huge = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(200_000));
    let cases = [
        ("anthropic", 401, r#"{"error":{"type":"authentication_error"}}"#, Kind::Unauthorized),
        ("anthropic", 404, r#"{"error":{"type":"not_found_error","message":"model: x"}}"#, Kind::ModelNotFound),
        ("anthropic", 400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8"}}"#, Kind::ContextTooLong),
        ("anthropic", 413, r#"{"error":{"type":"request_too_large"}}"#, Kind::ContextTooLong),
        ("openai", 400, r#"{"error":{"code":"context_length_exceeded"}}"#, Kind::ContextTooLong),
        ("openai", 400, r#"{"error":{"code":"content_filter"}}"#, Kind::ContentFiltered),
        ("openai", 402, "", Kind::QuotaExceeded),
        ("openai", 422, r#"{"detail":[{"msg":"no"}]}"#, Kind::Rejected),
        ("openai", 302, "", Kind::Rejected),
        ("openai", 503, &huge, Kind::Unavailable { retry_after: None }),
        ("gemini", 400, r#"{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}"#, Kind::Unauthorized),
        (
            "gemini",
            429,
            r#"{"error":{"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#,
            Kind::QuotaExceeded,
        ),
        ("ollama", 404, r#"{"error":"model 'x' not found"}"#, Kind::ModelNotFound),
        ("ollama", 400, r#"{"error":"the input length exceeds the context length"}"#, Kind::ContextTooLong),
    ];
    for (name, status, body, kind) in cases {
        let vendor = VENDORS.iter().find(|(folder, _)| *folder == name).unwrap().1;
        // A redirect is not followed: the second request would be unexpected.
        let answer = Answer::status(status, "application/json", body).header("location", "/elsewhere");
        let upstream = Upstream::script([answer]).await;
        let (_, failure) = turn(&*provider(vendor, &upstream.url())).await;
        let error = failure.unwrap();
        assert_eq!(error.kind, kind, "{name} {status} {body:.100}");
        assert!(report(&error).len() < 1000, "a vendor's words are shortened");
    }
}
