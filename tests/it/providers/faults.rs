//! What goes wrong on the way: silence, refused connections, clients that leave, servers that keep the socket open or
//! send what nobody should send.

use std::time::Duration;

use futures::StreamExt;
use switchboard::agent::ports::llm::{ChatRequest, MustCall, ProviderErrorKind, SentFiles, SystemPrompt};
use switchboard::chat::message::{Message, ModelOrigin, UserMessage};
use switchboard::chat::model::ModelChoice;
use switchboard::chat::stream::StreamEvent;
use switchboard::llm::{self, Vendor};
use tokio::net::TcpListener;

use super::{config, connect, provider, report, set, some_model, turn};
use crate::support::upstream::{Answer, End, Upstream};

const SSE: &str = "text/event-stream";
const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up_after_the_idle_time() {
    let upstream = Upstream::script([Answer::ok(SSE, HELLO).ending(End::Hang)]).await;
    let mut config = config(&upstream.url());
    config.idle_timeout_s = 1;
    let (turn, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
    assert_eq!(turn.message.text(), "hello");
    assert_eq!(failure.unwrap().kind, ProviderErrorKind::TimedOut);
    upstream.clients_gone(1).await;
}

#[tokio::test]
async fn a_model_that_never_begins_is_given_up_after_the_first_byte_time() {
    for body in ["", HELLO] {
        let answer = Answer::ok(SSE, "").later(Duration::from_secs(60), body);
        let upstream = Upstream::script([answer]).await;
        let mut config = config(&upstream.url());
        config.first_byte_timeout_s = 1;
        config.idle_timeout_s = 0;
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
        assert_eq!(failure.unwrap().kind, ProviderErrorKind::TimedOut);
    }
}

#[tokio::test]
async fn a_limit_beyond_all_clocks_is_no_limit() {
    let upstream = Upstream::script([Answer::ok(SSE, format!("{HELLO}{STOP}"))]).await;
    let mut config = config(&upstream.url());
    config.first_byte_timeout_s = u64::MAX;
    config.idle_timeout_s = u64::MAX;
    let (turn, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(turn.message.text(), "hello");
}

#[tokio::test]
async fn comments_keep_a_silent_model_alive() {
    let mut answer = Answer::ok(SSE, HELLO);
    for _ in 0..6 {
        answer = answer.later(Duration::from_millis(300), ": still thinking\n\n");
    }
    let upstream = Upstream::script([answer.later(Duration::ZERO, STOP)]).await;
    let mut config = config(&upstream.url());
    config.idle_timeout_s = 1;
    let (turn, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(turn.message.text(), "hello");
}

#[tokio::test]
async fn a_refused_connection_means_unavailable_for_every_vendor() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for vendor in Vendor::ALL {
        let (_, failure) = turn(&*provider(vendor, &url)).await;
        let error = failure.unwrap();
        assert_eq!(error.kind, ProviderErrorKind::Unavailable { retry_after: None });
        assert!(!report(&error).contains("/chat/completions"), "no address in the log line");
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let upstream = Upstream::script([Answer::ok(SSE, HELLO).ending(End::Hang)]).await;
    let provider = provider(Vendor::OpenAi, &upstream.url());
    let system = SystemPrompt { instructions: "".into(), client: String::new(), context: String::new() };
    let messages = [Message::User(UserMessage::new("hello"))];
    let model = ModelChoice::from_model(some_model(), Some(100));
    let request = ChatRequest {
        system: &system,
        messages: &messages,
        files: SentFiles::default(),
        tools: &[],
        may_call: true,
        must_call: MustCall::No,
        format: None,
        model: &model,
        deadline: None,
    };
    let mut stream = provider.stream_chat(request).await.unwrap();
    assert!(matches!(stream.events.next().await, Some(Ok(StreamEvent::Text(text))) if text == "hello"));
    drop(stream);
    upstream.clients_gone(1).await;
}

#[tokio::test]
async fn a_server_that_keeps_the_socket_open_after_done_does_not_hold_up_the_answer() {
    let answer = Answer::ok(SSE, format!("{HELLO}{STOP}data: [DONE]\n\n")).ending(End::Hang);
    let upstream = Upstream::script([answer]).await;
    let (turn, failure) = turn(&*provider(Vendor::OpenAi, &upstream.url())).await;
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(turn.message.text(), "hello");
}

#[tokio::test]
async fn what_cannot_be_read_is_malformed_and_what_came_before_it_stays() {
    let cases: [(Vec<u8>, &str); 4] = [
        (b"data: {\"choices\":[}\n\n".to_vec(), "not JSON"),
        (b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n".to_vec(), "not UTF-8"),
        (b"data: {\"choices\":7}\n\n".to_vec(), "not the promised shape"),
        (vec![b'x'; (16 << 20) + 1], "longer than any event"),
    ];
    for (bad, why) in cases {
        let body = [HELLO.as_bytes(), &bad, STOP.as_bytes()].concat();
        let upstream = Upstream::script([Answer::ok(SSE, body)]).await;
        let (turn, failure) = turn(&*provider(Vendor::OpenAi, &upstream.url())).await;
        assert_eq!(failure.unwrap().kind, ProviderErrorKind::Malformed, "{why}");
        assert_eq!(turn.message.text(), "hello", "{why}");
    }
}

#[tokio::test]
async fn a_success_that_is_no_stream_says_what_it_is() {
    use ProviderErrorKind as Kind;
    let completion = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let long = format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "x".repeat(100_000));
    let bare = r#"{"code":"InvalidApiKey","message":"No such key"}"#;
    let json = "application/json";
    let unavailable = Kind::Unavailable { retry_after: None };
    let table = [
        // Both are refused at once, whatever may still come.
        (
            Answer::ok("text/html; charset=utf-8", "<html>").ending(End::Hang),
            Kind::Malformed,
            "the answer is text/html, not an event stream",
        ),
        (
            Answer::ok(SSE, "\u{1f}").header("content-encoding", "gzip").ending(End::Hang),
            Kind::Malformed,
            "the answer is encoded as gzip, which was not asked for",
        ),
        (Answer::ok(json, completion), Kind::Malformed, "the answer is application/json, not an event stream"),
        (Answer::ok(json, long), Kind::Malformed, "the answer is application/json, not an event stream"),
        (Answer::ok(SSE, completion), Kind::Malformed, "the answer is json, not an event stream"),
        (
            Answer::ok("text/plain", "no healthy upstream"),
            Kind::Malformed,
            "the answer is text/plain, not an event stream",
        ),
        (Answer::ok(json, bare), Kind::Unauthorized, "No such key"),
        (Answer::ok(json, r#"{"detail":"Not Found"}"#), unavailable, "Not Found"),
        (Answer::ok(json, r#"{"error":{"code":503,"message":"busy"}}"#), unavailable, "busy"),
    ];
    for vendor in [Vendor::OpenAi, Vendor::Claude, Vendor::Gemini] {
        for (answer, kind, words) in &table {
            let upstream = Upstream::script([answer.clone()]).await;
            let (_, failure) = turn(&*provider(vendor, &upstream.url())).await;
            let error = failure.unwrap();
            assert_eq!((error.kind, error.detail.to_string().as_str()), (*kind, *words), "{vendor:?}");
        }
    }
    let frames = "application/vnd.amazon.eventstream";
    let page = "the answer is not an event stream: it does not begin with a frame";
    let of_frames = [
        (Answer::ok("text/html", "<html>"), Kind::Malformed, "the answer is text/html, not an event stream"),
        (Answer::ok(frames, "<html>"), Kind::Malformed, page),
        (Answer::ok("text/plain", "no healthy upstream"), Kind::Malformed, page),
        (Answer::ok(json, completion), Kind::Malformed, "the answer is application/json, not an event stream"),
        (Answer::ok(frames, completion), Kind::Malformed, "the answer is json, not an event stream"),
        (
            Answer::ok(json, r#"{"message":"Missing Authentication Token"}"#),
            unavailable,
            "Missing Authentication Token",
        ),
        (Answer::ok(frames, ""), Kind::Truncated, "the stream ended without its terminal marker"),
    ];
    for (answer, kind, words) in of_frames {
        let upstream = Upstream::script([answer]).await;
        let (turn, failure) = turn(&*provider(Vendor::Bedrock, &upstream.url())).await;
        let error = failure.unwrap();
        assert_eq!((error.kind, error.detail.to_string().as_str(), turn.message.text().as_str()), (kind, words, ""));
    }
    // Servers say anything of a good stream.
    for answer in
        [Answer::ok(json, ""), Answer::ok("text/plain", ""), Answer::ok(SSE, "").header("content-encoding", "identity")]
    {
        let answer = answer.later(Duration::ZERO, format!("{HELLO}{STOP}"));
        let upstream = Upstream::script([answer]).await;
        let (turn, failure) = turn(&*provider(Vendor::OpenAi, &upstream.url())).await;
        assert!(failure.is_none(), "{failure:?}");
        assert_eq!(turn.message.text(), "hello");
    }
}

#[tokio::test]
async fn without_a_limit_for_its_first_byte_ollama_has_none_at_all() {
    let line = |line: &str| format!("{line}\n");
    let answer = Answer::ok("application/x-ndjson", line(r#"{"message":{"content":"he"}}"#));
    let rest = line(r#"{"message":{"content":"llo"},"done":true}"#);
    let upstream = Upstream::script([answer.later(Duration::from_millis(1500), rest)]).await;
    let mut config = config(&upstream.url());
    config.first_byte_timeout_s = 0;
    config.idle_timeout_s = 1;
    let (turn, failure) = turn(&*connect(Vendor::Ollama, &config)).await;
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(turn.message.text(), "hello");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off_at_its_cap() {
    let comment = format!(": {}\n", "x".repeat(1 << 20));
    let upstream = Upstream::script([Answer::ok(SSE, comment.repeat(70)).cut(|| 1 << 20)]).await;
    let (_, failure) = turn(&*provider(Vendor::OpenAi, &upstream.url())).await;
    assert_eq!(failure.unwrap().kind, ProviderErrorKind::Malformed);
}

#[test]
fn a_wrong_address_provider_or_key_is_refused_before_the_first_request() {
    let table = [
        ("base_url = 'localhost:8000'", "openai", "llm.openai.base_url is not an http or https address"),
        ("base_url = ''", "openai", "llm.openai.base_url is not an http or https address"),
        ("base_url = 'file:///etc'", "openai", "llm.openai.base_url is not an http or https address"),
        ("", "opnai", "\"opnai\" is not a provider"),
        ("api_key = \"a\\nb\"", "openai", "llm.openai.api_key has characters that no http header can carry"),
    ];
    for (text, provider, message) in table {
        let mut config = llm::LlmConfig::default();
        set(&mut config, Vendor::OpenAi, text);
        let origin = ModelOrigin { provider: provider.to_owned(), model: "m".to_owned() };
        let error = llm::connect(&origin, &config).err().unwrap();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_key_is_never_printed() {
    let mut config = llm::LlmConfig::default();
    set(&mut config, Vendor::Claude, "api_key = 'sk-secret'");
    assert!(!format!("{config:?}").contains("sk-secret"));
}
