//! Requests: what is wrong with them, how large they may be, what is passed over.

use serde_json::{Value, json};

use super::{RESPONSES, also, ask, object, playing, post, refused, text_of, whole, with};
use crate::support::model::says;

#[tokio::test]
async fn what_is_wrong_is_named_before_anything_begins() {
    let s = playing([]).await;
    let rows = [
        (json!({"model": "gpt-5"}), 404, "model_not_found", "model"),
        (json!({"input": []}), 400, "invalid_request", "input"),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": 7}}}}),
            400,
            "invalid_request",
            "text.format",
        ),
        (json!({"background": true, "store": false}), 400, "invalid_request", "background"),
        (
            json!({"previous_response_id": "resp_0198aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"}),
            400,
            "previous_response_not_found",
            "previous_response_id",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,"}]}]}),
            400,
            "invalid_request",
            "input",
        ),
    ];
    for (fields, status, code, param) in rows {
        for stream in [false, true] {
            let body = also(also(ask("Hi"), fields.clone()), json!({"stream": stream}));
            let (found, error) = refused(post(&s, &[], &body).await).await;
            assert_eq!((found, &error["code"], &error["param"]), (status, &json!(code), &json!(param)), "{error}");
        }
    }
    for (body, code) in
        [("{", "malformed_json"), ("[]", "malformed_json"), (r#"{"model":1,"model":2}"#, "malformed_json")]
    {
        let request = s.app.http.post(s.app.url(RESPONSES)).bearer_auth(&s.app.token).body(body);
        let (status, error) = refused(request.send().await.unwrap()).await;
        assert_eq!((status, &error["code"]), (400, &json!(code)), "{body}");
    }
    let unknown = s.app.http.post(s.app.url(RESPONSES)).bearer_auth("nonsense").json(&ask("Hi")).send().await.unwrap();
    let (status, error) = refused(unknown).await;
    assert_eq!((status, &error["code"]), (401, &json!("invalid_api_key")));
}

#[tokio::test]
async fn what_only_other_servers_know_is_passed_over() {
    let s = playing([says("Hi.")]).await;
    let body = also(
        ask("Hi"),
        json!({
            "instructions": "Obey.", "include": ["reasoning.encrypted_content"], "metadata": {"a": "b"}, "client_metadata": {"x": 1},
            "tools": [{"type": "web_search"}, {"type": "of_tomorrow"}], "tool_choice": "auto", "parallel_tool_calls": true,
            "reasoning": {"summary": "auto", "effort": null}, "truncation": "auto", "service_tier": "flex", "of_tomorrow": [1],
            "text": {"verbosity": "low", "format": {"type": "text"}}, "stream_options": {"include_obfuscation": false},
        }),
    );
    assert_eq!(whole(&s, &body).await["status"], "completed");
}

#[tokio::test]
async fn a_long_history_is_taken_and_one_beyond_the_limit_is_not() {
    let s = playing([says("Hi.")]).await;
    let turns = (0..3000).flat_map(|n| {
        let text = "x".repeat(240);
        [json!({"role": "user", "content": format!("{n} {text}")}), json!({"role": "assistant", "content": text})]
    });
    let input: Vec<_> = turns.chain([json!({"role": "user", "content": "Hi"})]).collect();
    let body = json!({"model": "workflow", "input": input, "store": false});
    assert!(body.to_string().len() > 1_500_000);
    assert_eq!(whole(&s, &body).await["status"], "completed");
    let long = format!("{{\"model\":\"workflow\",\"input\":\"{}\"}}", "x".repeat(33 << 20));
    let sent = s.app.http.post(s.app.url(RESPONSES)).bearer_auth(&s.app.token).body(long).send().await;
    // Whoever is refused while it still sends may see the connection end instead.
    if let Ok(response) = sent {
        assert_eq!(refused(response).await.0, 413);
    }
}

#[tokio::test]
async fn tokens_are_estimated() {
    let s = playing([]).await;
    let request = s.app.http.post(s.app.url(&format!("{RESPONSES}/input_tokens"))).bearer_auth(&s.app.token);
    let estimate = object(request.json(&ask(&"word ".repeat(40))).send().await.unwrap()).await;
    assert_eq!(estimate, json!({"object": "response.input_tokens", "input_tokens": 51}));
}

#[tokio::test]
async fn an_answer_has_the_form_that_its_request_wants() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "name": "count", "strict": true, "schema": schema});
    let s = playing([says(r#"{"n": "two"}"#), says(r#"{"n": 2}"#)]).await;
    let response = whole(&s, &also(ask("How many?"), json!({"text": {"format": format}}))).await;
    assert_eq!(text_of(&response), r#"{"n": 2}"#, "the first answer is told to nobody: {response}");
    let asked: Vec<Value> =
        s.model.requests().iter().map(|request| request.json()["response_format"].clone()).collect();
    let expected = json!({"type": "json_schema", "json_schema": {"name": "count", "strict": true, "schema": schema}});
    assert_eq!(asked, [Value::Null, expected], "beside tools it is told in words");
    let s = playing([says("two"), says("2.")]).await;
    let wrong = also(ask("How many?"), json!({"text": {"format": {"type": "json_object"}}}));
    let (status, error) = refused(post(&s, &[], &wrong).await).await;
    assert_eq!((status, &error["code"]), (502, &json!("invalid_answer")), "{error}");
}

#[tokio::test]
async fn a_client_says_what_it_wants_where_the_profile_takes_it() {
    let host = "id = \"host\"\ncontext_type = \"host\"\nclient_instructions = \"append\"\n";
    let s = with(&[("profiles/host.toml", host)], &[], [says("Aye.").answer(), says("Aye.").answer()]).await;
    for model in ["host", "workflow"] {
        let input = json!([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]);
        whole(&s, &json!({"model": model, "instructions": "Talk like a pirate.", "input": input})).await;
    }
    let system = |at: usize| s.model.requests()[at].json()["messages"][0]["content"].to_string();
    assert!(system(0).contains(r"Talk like a pirate.\n\nBe brief."), "{}", system(0));
    assert!(!system(1).contains("pirate") && !system(1).contains("Be brief"), "{}", system(1));
    let s = with(&[("profiles/host.toml", host)], &[], []).await;
    let long = json!({"model": "host", "instructions": "x".repeat(140_000), "input": "Hi"});
    let (status, error) = refused(post(&s, &[], &long).await).await;
    assert_eq!((status, &error["param"]), (413, &json!("instructions")), "{error}");
}
