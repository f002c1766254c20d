//! Answers that are no success: every row of `tests/fixtures/transcripts/http_errors.json` is judged as it says, and
//! what the vendor wrote reaches the log but not the user.

use serde_json::{Value, json};
use switchboard::agent::ports::llm::ProviderErrorKind;
use switchboard::llm::Vendor;

use super::{config, connect, fixture, provider, report, set, turn};
use crate::support::upstream::{Answer, Upstream};

#[tokio::test]
async fn every_recorded_error_says_whether_and_when_to_try_again() {
    let rows = fixture("transcripts/http_errors.json");
    let rows = rows.as_array().unwrap();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    for row in rows {
        let vendor = Vendor::parse(row["provider"].as_str().unwrap()).unwrap();
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
        let own = format!("LLM provider error: {}", error.kind.words());
        assert_eq!(error.to_string(), own, "the user gets our own words");
    }
}

#[tokio::test]
async fn an_error_has_the_kind_that_tells_the_operator_what_to_do() {
    use ProviderErrorKind as Kind;
    let huge = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(200_000));
    let cases = [
        ("claude", 401, r#"{"error":{"type":"authentication_error"}}"#, Kind::Unauthorized),
        ("claude", 404, r#"{"error":{"type":"not_found_error","message":"model: x"}}"#, Kind::ModelNotFound),
        ("claude", 400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8"}}"#, Kind::ContextTooLong),
        ("claude", 413, r#"{"error":{"type":"request_too_large"}}"#, Kind::ContextTooLong),
        ("openai", 400, r#"{"error":{"code":"context_length_exceeded"}}"#, Kind::ContextTooLong),
        ("openai", 400, r#"{"error":{"code":"content_filter"}}"#, Kind::ContentFiltered),
        ("openai", 402, "", Kind::QuotaExceeded),
        ("openai", 422, r#"{"detail":[{"msg":"no"}]}"#, Kind::Rejected),
        ("openai", 302, "", Kind::Rejected),
        // 400s that are something better known.
        (
            "claude",
            400,
            r#"{"error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
            Kind::QuotaExceeded,
        ),
        (
            "claude",
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
            Kind::ContentFiltered,
        ),
        (
            "gemini",
            400,
            r#"{"error":{"status":"INVALID_ARGUMENT","message":"Unable to submit request because the input token count is 32825 but model only supports up to 32768."}}"#,
            Kind::ContextTooLong,
        ),
        (
            "gemini",
            400,
            r#"{"error":{"status":"INVALID_ARGUMENT","message":"Request payload size exceeds the limit: 314572800 bytes."}}"#,
            Kind::ContextTooLong,
        ),
        (
            "gemini",
            499,
            r#"{"error":{"code":499,"message":"The operation was cancelled.","status":"CANCELLED"}}"#,
            Kind::Unavailable { retry_after: None },
        ),
        (
            "openai",
            400,
            r#"{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens."}}"#,
            Kind::ContextTooLong,
        ),
        (
            "ollama",
            429,
            r#"{"error":"you (x) have reached your weekly usage limit, upgrade for higher limits: https://ollama.com/upgrade"}"#,
            Kind::QuotaExceeded,
        ),
        (
            "claude",
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Kind::QuotaExceeded,
        ),
        (
            "claude",
            400,
            r#"{"error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000"}}"#,
            Kind::ContextTooLong,
        ),
        (
            "openai",
            400,
            r#"{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096.","code":400}}"#,
            Kind::ContextTooLong,
        ),
        (
            "openai",
            400,
            r#"{"object":"error","message":"Input length (9000 tokens) exceeds the maximum allowed length (4096 tokens).","code":400}"#,
            Kind::ContextTooLong,
        ),
        ("openai", 400, r#"{"message":"the name exceeds the maximum allowed length of 64"}"#, Kind::Rejected),
        ("openai", 400, r#"{"error":{"code":"model_not_found"}}"#, Kind::ModelNotFound),
        ("openai", 400, r#"{"message":"Invalid model: x","type":"invalid_model","code":"1500"}"#, Kind::ModelNotFound),
        (
            "openai",
            400,
            r#"{"error":{"message":"Model Not Exist","code":"invalid_request_error"}}"#,
            Kind::ModelNotFound,
        ),
        (
            "openai",
            400,
            r#"{"error":{"message":"/chat/completions: Invalid model name passed in model=x.","code":"400"}}"#,
            Kind::ModelNotFound,
        ),
        (
            "openai",
            400,
            r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***."}"#,
            Kind::Unauthorized,
        ),
        // Other statuses that mislead.
        (
            "openai",
            403,
            r#"{"error":{"code":403,"message":"x requires moderation on Y. Your input was flagged for \"violence\"."}}"#,
            Kind::ContentFiltered,
        ),
        ("openai", 429, r#"{"error":{"type":"exceeded_current_quota_error"}}"#, Kind::QuotaExceeded),
        (
            "openai",
            429,
            r#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day."}}"#,
            Kind::QuotaExceeded,
        ),
        (
            "openai",
            429,
            r#"{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 45000.","code":"rate_limit_exceeded"}}"#,
            Kind::ContextTooLong,
        ),
        (
            "openai",
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-x on tokens per min (TPM): Limit 9, Used 8, Requested 2."}}"#,
            Kind::RateLimited { retry_after: None },
        ),
        (
            "openai",
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing it"}}"#,
            Kind::ContextTooLong,
        ),
        (
            "openai",
            500,
            r#"{"error":"no memory for a context size of 131072"}"#,
            Kind::Unavailable { retry_after: None },
        ),
        ("openai", 500, r#"{"error":"context deadline exceeded"}"#, Kind::Unavailable { retry_after: None }),
        // A gateway whose servers are all busy.
        ("openai", 503, r#"{"error":{"code":"model_not_found"}}"#, Kind::Unavailable { retry_after: None }),
        ("openai", 503, &huge, Kind::Unavailable { retry_after: None }),
        ("gemini", 400, r#"{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}"#, Kind::Unauthorized),
        (
            "gemini",
            429,
            r#"{"error":{"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#,
            Kind::QuotaExceeded,
        ),
        ("vertex", 401, r#"{"error":{"code":401,"status":"UNAUTHENTICATED"}}"#, Kind::Unauthorized),
        ("vertex", 403, r#"{"error":{"code":403,"status":"PERMISSION_DENIED"}}"#, Kind::Unauthorized),
        ("vertex", 404, r#"[{"error":{"code":404,"status":"NOT_FOUND"}}]"#, Kind::ModelNotFound),
        (
            "vertex",
            429,
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#,
            Kind::RateLimited { retry_after: None },
        ),
        ("ollama", 404, r#"{"error":"model 'x' not found"}"#, Kind::ModelNotFound),
        ("ollama", 400, r#"{"error":"the input length exceeds the context length"}"#, Kind::ContextTooLong),
        ("bedrock", 403, r#"{"message":"You don't have access to the model."}"#, Kind::Unauthorized),
        ("bedrock", 404, r#"{"message":"Could not resolve the model."}"#, Kind::ModelNotFound),
        ("bedrock", 400, r#"{"message":"The provided model identifier is invalid."}"#, Kind::ModelNotFound),
        ("bedrock", 400, r#"{"message":"Input is too long for requested model."}"#, Kind::ContextTooLong),
        ("bedrock", 400, r#"{"message":"1 validation error detected"}"#, Kind::Rejected),
        ("bedrock", 429, r#"{"message":"Too many requests"}"#, Kind::RateLimited { retry_after: None }),
        ("bedrock", 429, r#"{"message":"Too many tokens per day"}"#, Kind::QuotaExceeded),
        ("bedrock", 424, r#"{"message":"x","code":"ModelErrorException"}"#, Kind::ModelFault),
    ];
    for (name, status, body, kind) in cases {
        let vendor = Vendor::parse(name).unwrap();
        // A redirect is not followed: the second request would be unexpected.
        let answer = Answer::status(status, "application/json", body).header("location", "/elsewhere");
        let upstream = Upstream::script([answer]).await;
        let (_, failure) = turn(&*provider(vendor, &upstream.url())).await;
        let error = failure.unwrap();
        assert_eq!(error.kind, kind, "{name} {status} {body:.100}");
        assert!(report(&error).len() < 1000, "a vendor's words are shortened");
    }
}

#[tokio::test]
async fn a_vendor_s_words_reach_the_log_in_one_line_and_without_the_key() {
    let key = "sk-0123456789abcdefghijklmnopqrstuvwxyz";
    let inside = |message: &str| json!({"error": {"message": message}}).to_string();
    let straddling = format!("{} {key}", "x".repeat(470));
    let page = "<html>\r\n<body>\n\tBad gateway\u{1b}[0m\n</body>\n</html>";
    let sse = |message: &str| Answer::ok("text/event-stream", format!("data: {}\n\n", inside(message)));
    let cases = [
        (Answer::status(400, "application/json", inside(&straddling)), key, "x [secret]", "it straddles the cut"),
        (sse(&straddling), key, "x [secret]", "inside a stream"),
        (
            Answer::status(502, "text/html", page),
            key,
            ": http 502: <html> <body> Bad gateway [0m </body> </html>",
            "a page",
        ),
        (Answer::status(500, "text/plain", "no ollama here"), "ollama", "no ollama here", "a word is no secret"),
    ];
    for (answer, key, words, why) in cases {
        let upstream = Upstream::script([answer.header("x-request-id", &format!("req {key}"))]).await;
        let mut config = config(&upstream.url());
        set(&mut config, Vendor::OpenAi, &format!("api_key = {key:?}"));
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
        let error = failure.unwrap();
        assert!(report(&error).ends_with(words), "{why}: {}", report(&error));
        let id = if key == "ollama" { "req ollama" } else { "req [secret]" };
        assert!(error.request_id.is_none_or(|found| found == id), "{why}");
    }
    // A key may also come as an own header, with its scheme before it.
    let upstream = Upstream::script([Answer::status(400, "text/plain", format!("wrong key {key}"))]).await;
    let mut config = config(&upstream.url());
    set(&mut config, Vendor::OpenAi, &format!("extra_headers.Authorization = 'Bearer {key}'"));
    let (_, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
    assert_eq!(failure.unwrap().detail.to_string(), "http 400: wrong key [secret]");
}

#[tokio::test]
async fn a_redirect_says_where_to() {
    let cases = [
        ("https://api.example.com/v1/chat/completions?key=x", "https://api.example.com/v1/chat/completions"),
        ("https://user:word@example.com:8443/#a", "https://example.com:8443/"),
        ("/v2", "UPSTREAM/v2"),
        ("//example.com/v2", "http://example.com/v2"),
    ];
    for (location, place) in cases {
        let answer = Answer::status(308, "text/plain", "").header("location", location);
        let upstream = Upstream::script([answer]).await;
        let (_, failure) = turn(&*provider(Vendor::OpenAi, &upstream.url())).await;
        let place = place.replace("UPSTREAM", &upstream.url());
        let words = format!("http 308: redirected to {place}; set base_url to where the API is");
        assert_eq!(failure.unwrap().detail.to_string(), words);
    }
}
