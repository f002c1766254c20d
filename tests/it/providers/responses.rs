//! A model that is asked for responses, through the whole product: its turns and tools, its reasoning between them, its ends and
//! failures. What was sent is checked by `support::response`: every call answered, nothing left to the server's memory.

use serde_json::{Value, json};

use crate::openai;
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{self, Scripted};
use crate::support::response::{Script, calls, input, says, turn};
use crate::support::upstream::{Answer, Upstream};

/// A tool of the profile that is asked.
const TOOL: &str = "discover_trigger_types";

const WIRE: (&str, &str) = ("LLM__OPENAI__WIRE", "responses");

/// Tries again at once.
const AT_ONCE: (&str, &str) = ("LLM__RETRY__BASE_MS", "0");

async fn playing(turns: impl IntoIterator<Item = Script>) -> Scripted {
    Scripted::with(&[WIRE, AT_ONCE], turns.into_iter().map(Script::answer)).await
}

/// The items of each request so far, checked.
fn asked(s: &Scripted) -> Vec<Vec<Value>> {
    s.model.requests().iter().map(input).collect()
}

/// The kinds of items, messages by their roles.
fn kinds(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["role"].as_str().or(item["type"].as_str()).unwrap()).collect()
}

/// The code of the error that ended a run; none where it ended well.
fn code(frames: &[frames::Frame]) -> Value {
    frames.last().unwrap().data["code"].clone()
}

#[tokio::test]
async fn a_run_says_calls_and_answers() {
    let first = turn().text("One moment.").call("call_a", TOOL, &json!({})).done();
    let s = playing([first, says("There are three.")]).await;
    let told = s.app.say("c", "Which triggers?").await;
    let mut names = frames::names(&told);
    names.dedup();
    let [start, text] = ["message_start", "content_chunk"];
    assert_eq!(names, [start, text, "tool_call_start", "tool_call_result", start, text, "message_complete"]);
    assert_eq!(frames::text(&told), "One moment.There are three.");
    let result = json!({"tool_use_id": "call_a", "name": TOOL, "is_error": false});
    assert_eq!(*frames::data(&told, "tool_call_result"), result);

    assert!(s.model.requests().iter().all(|request| request.path == "/v1/responses"));
    let second = asked(&s).pop().unwrap();
    assert_eq!(kinds(&second), ["system", "user", "assistant", "function_call", "function_call_output"]);
    assert_eq!((&second[1]["content"], &second[2]["content"]), (&json!("Which triggers?"), &json!("One moment.")));
    let call = json!({"type": "function_call", "call_id": "call_a", "name": TOOL, "arguments": "{}"});
    assert_eq!(second[3], call);
    assert!(second[4]["output"].as_str().is_some_and(|output| !output.is_empty()), "{}", second[4]);
}

#[tokio::test]
async fn reasoning_goes_back_before_the_calls_it_led_to_within_its_run() {
    let look =
        turn().thinks("Look.", "gAAAAAB1==").call("a", TOOL, &json!({})).call("b", TOOL, &json!({"x": 1})).done();
    let once_more = turn().thinks("", "gAAAAAB2==").text("Once more.").call("c", TOOL, &json!({})).done();
    let s = playing([look, once_more, turn().thinks("Well.", "gAAAAAB3==").text("Done.").done(), says("Bye.")]).await;
    let told = s.app.say("c", "Which triggers?").await;
    assert_eq!((frames::text(&told), code(&told)), ("Once more.Done.".to_owned(), Value::Null));
    let written = format!("{told:?}");
    assert!(!written.contains("gAAAAAB") && !written.contains("Look."), "{written}");

    let first_step = ["system", "user", "reasoning", "function_call", "function_call"];
    let [_, second, third] = asked(&s).try_into().unwrap();
    assert_eq!(kinds(&second), [&first_step[..], &["function_call_output"; 2]].concat());
    let sealed =
        |text: &str, summary: Value| json!({"type": "reasoning", "summary": summary, "encrypted_content": text});
    assert_eq!(second[2], sealed("gAAAAAB1==", json!([{"type": "summary_text", "text": "Look."}])));
    let second_step = ["reasoning", "assistant", "function_call", "function_call_output"];
    assert_eq!(kinds(&third), [&first_step[..], &["function_call_output"; 2], &second_step].concat());
    assert_eq!(third[7], sealed("gAAAAAB2==", json!([{"type": "summary_text", "text": ""}])));
    assert_eq!(third[..second.len()], second, "what was sent stays the beginning of what is sent next");

    // The next run begins with what was said and done, and not with what was thought of it.
    s.app.say("c", "Thank you.").await;
    let next = asked(&s).pop().unwrap();
    assert_eq!(next.iter().filter(|item| item["type"] == "function_call").count(), 3);
    assert_eq!(next.last().unwrap()["content"], "Thank you.");
    assert!(!next.iter().any(|item| item["type"] == "reasoning"), "{next:#?}");
}

#[tokio::test]
async fn nobody_else_reads_the_reasoning_and_it_comes_back_to_its_own_model() {
    let refusal = || Answer::status(503, "application/json", r#"{"error":{"message":"no"}}"#);
    let begins = turn().thinks("Look.", "gAAAAAB1==").call("a", TOOL, &json!({})).done().answer();
    let ours = Upstream::script([begins, refusal(), says("Back again.").answer()]).await;
    let others = Upstream::script([model::calls("b", TOOL, &json!({})).answer()]).await;
    let (url, other_url) = (format!("{}/v1", ours.url()), format!("{}/v1", others.url()));
    let app = TestApp::start(&[
        WIRE,
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", &*url),
        ("LLM__PROVIDERS__OTHER__VENDOR", "openai"),
        ("LLM__PROVIDERS__OTHER__BASE_URL", &*other_url),
        ("LLM__PROVIDERS__OTHER__MODEL", "m"),
        ("LLM__FALLBACKS", "other"),
        ("LLM__RETRY__ATTEMPTS", "1"),
        ("LLM__BREAKER__FAILURES", "0"),
    ])
    .await;
    let told = app.say("c", "Which triggers?").await;
    assert_eq!(frames::text(&told), "Back again.");

    let taken_over = String::from_utf8(others.requests()[0].body.clone()).unwrap();
    assert!(!taken_over.contains("gAAAAAB") && !taken_over.contains("Look."), "{taken_over}");
    let back = input(&ours.requests()[2]);
    let first = ["system", "user", "reasoning", "function_call", "function_call_output"];
    assert_eq!(kinds(&back), [&first[..], &["function_call", "function_call_output"]].concat());
    assert_eq!(back[2]["encrypted_content"], "gAAAAAB1==");
}

#[tokio::test]
async fn a_client_that_may_see_thinking_sees_the_summary_and_asks_for_it_by_an_effort() {
    let answers = [turn().thinks("First I think.", "gAAAAAB1==").text("Then I speak.").done().answer()];
    let s = openai::with(&[], &[WIRE], answers).await;
    let body = json!({"model": "open", "messages": [{"role": "user", "content": "Hello"}], "reasoning_effort": "low"});
    let response = s.app.http.post(s.app.url(openai::COMPLETIONS)).bearer_auth(&s.app.token).json(&body).send().await;
    let told: Value = response.unwrap().json().await.unwrap();
    let message = &told["choices"][0]["message"];
    let seen = (&message["reasoning_content"], &message["content"]);
    assert_eq!(seen, (&json!("First I think."), &json!("Then I speak.")), "{told}");
    let usage = &told["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(10), &json!(5)));
    let request = s.model.requests()[0].json();
    let reasoning = json!({"effort": "low", "summary": "auto"});
    assert_eq!((&request["reasoning"], &request["include"]), (&reasoning, &json!(["reasoning.encrypted_content"])));
}

#[tokio::test]
async fn an_answer_in_a_form_is_bound_to_it() {
    let s = openai::with(
        &[],
        &[WIRE, ("LLM__OPENAI__RESPONSE_FORMAT", "full")],
        [says("Ulm").answer(), says(r#"{"city":"Ulm"}"#).answer()],
    )
    .await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "place", "schema": schema}});
    let body = json!({
        "model": "open", "messages": [{"role": "user", "content": "Where?"}], "response_format": format,
    });
    let response = s.app.http.post(s.app.url(openai::COMPLETIONS)).bearer_auth(&s.app.token).json(&body).send().await;
    let told: Value = response.unwrap().json().await.unwrap();
    assert_eq!(told["choices"][0]["message"]["content"], r#"{"city":"Ulm"}"#, "{told}");
    let bound = json!({"format": {"type": "json_schema", "name": "place", "schema": schema, "strict": false}});
    let requests = s.model.requests();
    assert_eq!(requests.len(), 2, "what does not fit is asked for again");
    assert!(requests.iter().all(|request| request.json()["text"] == bound), "{}", requests[0].json());
}

#[tokio::test]
async fn an_answer_that_ends_too_early_says_why() {
    let rows = [
        (turn().refuses("I can't help with that.").done(), "I can't help with that.", Value::Null),
        (turn().text("Once upon").incomplete("max_output_tokens"), "Once upon", json!("max_tokens")),
        (turn().text("Well,").incomplete("content_filter"), "Well,", json!("content_filtered")),
        (turn().text("Well,").incomplete("some_day"), "Well,", json!("provider_truncated")),
    ];
    for (script, text, expected) in rows {
        let s = playing([script]).await;
        let told = s.app.say("c", "Question").await;
        assert_eq!((frames::text(&told).as_str(), code(&told)), (text, expected));
    }
}

/// What may go wrong in a stream, the code that a client sees of it, and whether it may pass.
fn failures() -> Vec<(Script, &'static str, bool)> {
    let event = |data: Value| turn().raw(&format!("event: error\ndata: {data}\n\n"));
    let limit = "Rate limit reached. Please try again in 1ms.";
    vec![
        (turn().fails("server_error", "An error occurred."), "provider_unavailable", true),
        (turn().fails("rate_limit_exceeded", limit), "provider_rate_limited", true),
        (turn().fails("rate_limit_exceeded", "Please try again in 21s."), "provider_rate_limited", false),
        (turn().fails("insufficient_quota", "You exceeded your quota."), "provider_quota_exceeded", false),
        (turn().fails("context_length_exceeded", "Too long."), "context_too_long", false),
        (turn().fails("invalid_prompt", "Your prompt was flagged."), "content_filtered", false),
        (
            event(json!({"type": "error", "code": "server_error", "message": "x", "param": null})),
            "provider_unavailable",
            true,
        ),
        (
            event(json!({"type": "error", "code": "rate_limit_exceeded", "message": limit})),
            "provider_rate_limited",
            true,
        ),
        (
            event(json!({"type": "error", "error": {"type": "invalid_request_error", "code": null, "message": "x"}})),
            "provider_rejected",
            false,
        ),
        (turn().raw("data: {\"type\":\"response.output_text.delta\",\"delta\":\n\n"), "provider_malformed", true),
        (turn().raw("data: [DONE]\n\n"), "provider_truncated", true),
        (turn(), "provider_truncated", true),
        (turn().breaks(), "provider_truncated", true),
    ]
}

#[tokio::test]
async fn a_failure_before_the_first_token_is_tried_again_where_it_may_pass() {
    for (nth, (script, expected, passes)) in failures().into_iter().enumerate() {
        let answers = [script, says("Here.")].into_iter().take(if passes { 2 } else { 1 });
        let s = playing(answers).await;
        let told = s.app.say("c", "Question").await;
        let expected = if passes { Value::Null } else { json!(expected) };
        assert_eq!(code(&told), expected, "{nth}: {told:?}");
        let bodies: Vec<Vec<u8>> = s.model.requests().into_iter().map(|request| request.body).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{nth}: the same question");
    }
}

#[tokio::test]
async fn a_failure_after_the_first_token_ends_the_run_and_no_tool_runs() {
    for (nth, (script, expected, _)) in failures().into_iter().enumerate() {
        // Its beginning is said twice, which says nothing.
        let begun = turn().text("Half an ans").call("call_a", TOOL, &json!({}));
        let s = playing([begun.then(script)]).await;
        let told = s.app.say("c", "Question").await;
        assert_eq!((frames::text(&told), code(&told)), ("Half an ans".to_owned(), json!(expected)), "{nth}");
        assert!(!frames::names(&told).contains(&"tool_call_result"), "{nth}: {told:?}");
    }
}

/// How OpenAI refuses a parameter.
fn refused(param: Option<&str>, code: Option<&str>, message: &str) -> Answer {
    let error = json!({"message": message, "type": "invalid_request_error", "param": param, "code": code});
    Answer::status(400, "application/json", json!({"error": error}).to_string())
}

#[tokio::test]
async fn what_a_model_refuses_to_be_asked_is_left_out_from_then_on() {
    let sealed = refused(Some("include"), None, "Encrypted content is not supported with this model.");
    let summary = refused(
        Some("reasoning.summary"),
        Some("unsupported_value"),
        "Your organization must be verified to generate reasoning summaries.\nPlease go to your settings.",
    );
    let temperature =
        refused(Some("temperature"), None, "Unsupported parameter: 'temperature' is not supported with this model.");
    let answers = [sealed, summary, temperature, says("Here.").answer(), says("Again.").answer()];
    let settings = [WIRE, ("LLM__OPENAI__MODEL", "our-deployment")];
    let s = openai::with(&[], &settings, answers).await;
    for text in ["Here.", "Again."] {
        let body = json!({
            "model": "open", "messages": [{"role": "user", "content": "Hello"}], "reasoning_effort": "low", "temperature": 0.5,
        });
        let response =
            s.app.http.post(s.app.url(openai::COMPLETIONS)).bearer_auth(&s.app.token).json(&body).send().await;
        let told: Value = response.unwrap().json().await.unwrap();
        assert_eq!(told["choices"][0]["message"]["content"], text, "{told}");
    }
    let asks = |request: &Value| {
        let reasoning = &request["reasoning"];
        assert_eq!(reasoning["effort"], "low", "{request}");
        [!request["include"].is_null(), !reasoning["summary"].is_null(), !request["temperature"].is_null()]
    };
    let asked: Vec<[bool; 3]> = s.model.requests().iter().map(|request| asks(&request.json())).collect();
    let less = [[true, true, true], [false, true, true], [false, false, true], [false, false, false]];
    assert_eq!(asked, [&less[..], &[[false, false, false]]].concat(), "and it is not asked for again");
}

#[tokio::test]
async fn a_refused_effort_becomes_less_from_then_on() {
    let effort =
        || refused(Some("reasoning.effort"), Some("unsupported_value"), "Unsupported value: 'high' is not supported.");
    let settings = [WIRE, ("LLM__OPENAI__MODEL", "our-deployment")];
    let s = openai::with(&[], &settings, [effort(), effort(), says("Here.").answer(), says("Again.").answer()]).await;
    for text in ["Here.", "Again."] {
        let body = json!({
            "model": "open", "messages": [{"role": "user", "content": "Hello"}], "reasoning_effort": "high",
        });
        let response =
            s.app.http.post(s.app.url(openai::COMPLETIONS)).bearer_auth(&s.app.token).json(&body).send().await;
        let told: Value = response.unwrap().json().await.unwrap();
        assert_eq!(told["choices"][0]["message"]["content"], text, "{told}");
    }
    let asked: Vec<Value> =
        s.model.requests().iter().map(|request| request.json()["reasoning"]["effort"].clone()).collect();
    assert_eq!(asked, ["high", "medium", "low", "low"]);
}

#[tokio::test]
async fn reasoning_that_cannot_be_opened_any_more_is_left_out_once() {
    let message = "The encrypted content gAAA...MQ== could not be verified. Reason: Encrypted content organization_id did not \
                   match the target organization.";
    let other_key = || refused(None, Some("invalid_encrypted_content"), message);
    let thinks = turn().thinks("Look.", "gAAAAAB1==").call("a", TOOL, &json!({})).done().answer();
    let goes_on = turn().thinks("On.", "gAAAAAB2==").call("b", TOOL, &json!({})).done().answer();
    let s = Scripted::with(&[WIRE, AT_ONCE], [thinks, other_key(), goes_on, other_key(), says("Done.").answer()]).await;
    let told = s.app.say("c", "Which triggers?").await;
    assert_eq!((frames::text(&told), code(&told)), ("Done.".to_owned(), Value::Null));
    let sealed: Vec<usize> =
        asked(&s).iter().map(|items| items.iter().filter(|item| item["type"] == "reasoning").count()).collect();
    assert_eq!(sealed, [0, 1, 0, 2, 0], "each time it is tried first, since the next may be of the new key");
    assert!(s.model.requests().iter().all(|request| !request.json()["include"].is_null()));
}

#[tokio::test]
async fn any_other_refusal_is_an_error_and_asked_once() {
    for (param, code_of_it) in
        [(Some("input[1].content"), None), (Some("max_output_tokens"), Some("integer_below_min_value"))]
    {
        let s = Scripted::with(&[WIRE, AT_ONCE], [refused(param, code_of_it, "No.")]).await;
        let told = s.app.say("c", "Question").await;
        assert_eq!((frames::names(&told), code(&told)), (vec!["message_start", "error"], json!("provider_rejected")));
    }
}

#[tokio::test]
async fn a_name_that_no_tool_has_and_arguments_that_are_none_are_told_to_the_model() {
    let first = turn().call("a", "no_such_tool", &json!({})).call_raw("b", TOOL, "{\"cut").done();
    let s = playing([first, calls("c", TOOL, &json!({})), says("Done.")]).await;
    let told = s.app.say("c", "Which triggers?").await;
    let results: Vec<&Value> =
        told.iter().filter(|frame| frame.event == "tool_call_result").map(|frame| &frame.data["is_error"]).collect();
    assert_eq!((results, code(&told)), (vec![&json!(true), &json!(true), &json!(false)], Value::Null));
    let arguments: Vec<Value> = asked(&s)[1]
        .iter()
        .filter(|item| item["type"] == "function_call")
        .map(|item| item["arguments"].clone())
        .collect();
    assert_eq!(arguments, [json!("{}"), json!("{}")], "what is no object is sent as an empty one");
}
