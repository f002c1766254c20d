//! Streams: whole transcripts.

use serde_json::json;

use super::{COMPLETIONS, ask, content, delta, finished, frames, opening, playing, post, streamed, usage, with};
use crate::support::frames::read_until;
use crate::support::model::{says, turn};

#[tokio::test]
async fn a_plain_answer_is_its_role_its_text_one_reason_the_tokens_and_done() {
    let s = playing([turn().text("Good ").text("morning").done()]).await;
    let response = post(&s, &[], &streamed("Hi")).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    assert!(!header("x-conversation-id").is_empty());
    let expected = [
        opening(),
        delta(json!({"content": "Good "})),
        delta(json!({"content": "morning"})),
        finished("stop"),
        json!({"choices": [], "usage": usage(1)}),
        json!("[DONE]"),
    ];
    assert_eq!(frames(response).await, expected);
}

#[tokio::test]
async fn tokens_are_told_where_they_are_asked_for() {
    let s = playing([says("Hi.")]).await;
    let mut body = ask("Hi");
    body["stream"] = json!(true);
    let expected = [opening(), delta(json!({"content": "Hi."})), finished("stop"), json!("[DONE]")];
    assert_eq!(frames(post(&s, &[], &body).await).await, expected);
}

#[tokio::test]
async fn a_tool_of_the_server_is_never_shown_and_turns_are_paragraphs() {
    let first = turn().text("Let me look.").call("t1", "discover_trigger_types", &json!({})).done();
    let s = playing([first, says("There are three.")]).await;
    let expected = [
        opening(),
        delta(json!({"content": "Let me look."})),
        delta(json!({"content": "\n\n"})),
        delta(json!({"content": "There are three."})),
        finished("stop"),
        json!({"choices": [], "usage": usage(2)}),
        json!("[DONE]"),
    ];
    assert_eq!(frames(post(&s, &[], &streamed("How many?")).await).await, expected);
    assert!(s.last_asked().iter().any(|message| message["tool_call_id"] == "t1"), "it was run all the same");
}

const THINKS: &str = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n";

#[tokio::test]
async fn reasoning_is_told_beside_the_text_where_the_profile_shows_it() {
    for (model, shown) in [("open", true), ("workflow", false)] {
        let s = playing([turn().raw(THINKS).text("Yes.").done()]).await;
        let mut body = streamed("Hi");
        body["model"] = json!(model);
        let told = frames(post(&s, &[], &body).await).await;
        assert_eq!(told.contains(&delta(json!({"reasoning_content": "Hm."}))), shown, "{told:#?}");
        assert_eq!(content(&told), "Yes.", "never in the text");
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_off_or_filtered_ends_with_that_reason() {
    for (reason, expected) in [("length", "length"), ("content_filter", "content_filter")] {
        let s = playing([turn().text("Half").finish(reason)]).await;
        let told = frames(post(&s, &[], &streamed("Hi")).await).await;
        assert_eq!(
            told[told.len() - 3..],
            [finished(expected), json!({"choices": [], "usage": usage(1)}), json!("[DONE]")]
        );
        assert_eq!(content(&told), "Half");
    }
}

#[tokio::test]
async fn a_run_that_fails_in_mid_stream_ends_with_an_error_and_no_done() {
    let s = playing([turn().text("Half").breaks()]).await;
    let told = frames(post(&s, &[], &streamed("Hi")).await).await;
    assert_eq!(told[..2], [opening(), delta(json!({"content": "Half"}))]);
    let error = &told[2]["error"];
    assert_eq!(
        (told.len(), &error["type"], &error["code"], &error["param"]),
        (3, &json!("server_error"), &json!("provider_truncated"), &json!(null))
    );
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
}

#[tokio::test]
async fn a_preview_is_told_in_words() {
    let s = with(&[], &[("LLM__PROVIDER", "demo")], []).await;
    let question = "Create a workflow that sends an email to manager@example.com when an order is created";
    let text = content(&frames(post(&s, &[], &streamed(question)).await).await);
    let list = s.app.http.get(s.app.url("/v1/agent/approvals")).bearer_auth(&s.app.token).send().await.unwrap();
    let list: serde_json::Value = list.json().await.unwrap();
    let id = list["items"][0]["approval_id"].as_str().unwrap();
    let here = s.app.url("");
    let page = format!("on this server's page, {here}/#/waiting, or at {here}/v1/agent/previews/{id}/decision.");
    assert!(
        text.contains(&format!("\n\nA change is ready and not saved yet: accept or reject it {page}\n\n")),
        "{text}"
    );
}

#[tokio::test]
async fn what_waits_is_linked_where_people_reach_the_server() {
    let settings = [("LLM__PROVIDER", "demo"), ("SERVER__PUBLIC_URL", "https://chat.example.com/")];
    let s = with(&[], &settings, []).await;
    let question = "Create a workflow that sends an email to manager@example.com when an order is created";
    let text = content(&frames(post(&s, &[], &streamed(question)).await).await);
    let page =
        "on this server's page, https://chat.example.com/#/waiting, or at https://chat.example.com/v1/agent/previews/";
    assert!(text.contains(page), "{text}");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_run() {
    let s = playing([turn().text("Well").hangs()]).await;
    let mut response = post(&s, &[], &streamed("Hi")).await;
    read_until(&mut response, "Well").await;
    drop(response);
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let s = with(&[], &[("SERVER__KEEP_ALIVE_S", "1")], [turn().text("Well").hangs().answer()]).await;
    let mut response = post(&s, &[], &streamed("Hi")).await;
    read_until(&mut response, ": keep-alive\n\n: keep-alive\n\n").await;
}

#[tokio::test]
async fn a_browser_may_send_what_the_official_client_sends() {
    let s = with(&[], &[("SERVER__CORS_ALLOWED_ORIGINS", "https://a.example")], []).await;
    let headers = "authorization,content-type,x-stainless-arch,x-stainless-retry-count,x-conversation-id";
    let preflight = s
        .app
        .http
        .request(reqwest::Method::OPTIONS, s.app.url(COMPLETIONS))
        .header("origin", "https://a.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", headers);
    let allowed = preflight.send().await.unwrap().headers()["access-control-allow-headers"].clone();
    assert_eq!(allowed, headers);
}
