//! Requests: how they are let in, what is wrong with them, how large they may be, what is passed over.

use serde_json::{Value, json};

use super::{HOST, MESSAGES, also, ask, message, playing, post, refused, text_of, user, whole, with};
use crate::support::model::says;

#[tokio::test]
async fn both_keys_are_taken_with_any_version_and_at_both_addresses() {
    let rows = [
        ("authorization", "2026-10-21", ""),
        ("authorization", "2023-06-01", "?beta=true"),
        ("x-api-key", "2023-06-01", ""),
        ("x-api-key", "2026-10-21", "?beta=true"),
        ("x-api-key", "", ""),
    ];
    let s = playing(rows.map(|_| says("Hi."))).await;
    for (header, version, query) in rows {
        let key = if header == "x-api-key" { s.app.token.clone() } else { format!("Bearer {}", s.app.token) };
        let mut request = s.app.http.post(s.app.url(&format!("{MESSAGES}{query}"))).header(header, key);
        if !version.is_empty() {
            request = request.header("anthropic-version", version).header("anthropic-beta", "of-tomorrow");
        }
        assert_eq!(
            text_of(&message(request.json(&ask("Hi")).send().await.unwrap()).await),
            "Hi.",
            "{header} {version}"
        );
    }
}

#[tokio::test]
async fn a_key_counts_where_clients_send_one_and_not_beside_a_token() {
    let s = playing([]).await;
    let with_keys = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = s.app.http.post(s.app.url(path)).json(&ask("Hi"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    };
    let wrong = [("authorization", "Bearer nonsense"), ("x-api-key", &*s.app.token)];
    let twice = [("x-api-key", &*s.app.token), ("x-api-key", &*s.app.token)];
    for headers in [&wrong[..], &twice, &[("x-api-key", "nonsense")], &[("x-api-key", "")], &[]] {
        let (status, kind, _) = refused(with_keys(MESSAGES, headers).await).await;
        assert_eq!((status, kind.as_str()), (401, "authentication_error"), "{headers:?}");
    }
    assert_eq!(with_keys("/v1/agent/chat", &[("x-api-key", &*s.app.token)]).await.status(), 401);
}

#[tokio::test]
async fn what_is_wrong_is_named_before_anything_begins() {
    let s = playing([]).await;
    let image = json!([{"type": "text", "text": "What is this?"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR"}}]);
    let rows = [
        (json!({"model": "claude"}), 404, "not_found_error", "claude"),
        (json!({"model": "chief"}), 404, "not_found_error", "chief"),
        (json!({"messages": []}), 400, "invalid_request_error", "messages"),
        (
            json!({"messages": [user(json!("Hi")), {"role": "assistant", "content": "Well,"}]}),
            400,
            "invalid_request_error",
            "messages",
        ),
        (json!({"messages": [user(image)]}), 400, "invalid_request_error", "base64"),
        (
            json!({"messages": [user(json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]))]}),
            400,
            "invalid_request_error",
            "calls of this server",
        ),
        (json!({"messages": [user(json!("x".repeat(140_000)))]}), 413, "request_too_large", "messages"),
        (json!({"output_config": {"format": {"type": "xml"}}}), 400, "invalid_request_error", "output_config.format"),
    ];
    for (fields, status, kind, words) in rows {
        for stream in [false, true] {
            let body = also(also(ask("Hi"), fields.clone()), json!({"stream": stream}));
            let (found, its_kind, said) = refused(post(&s, &[], &body).await).await;
            assert_eq!((found, its_kind.as_str(), said.contains(words)), (status, kind, true), "{said}");
        }
    }
    for body in ["{", "[]", r#"{"model":1,"model":2}"#] {
        let request = s.app.http.post(s.app.url(MESSAGES)).bearer_auth(&s.app.token).body(body);
        assert_eq!(refused(request.send().await.unwrap()).await.0, 400, "{body}");
    }
}

#[tokio::test]
async fn what_only_other_servers_know_is_passed_over_and_told() {
    let s = playing([says("Hi.")]).await;
    let body = also(
        ask("Hi"),
        json!({
            "metadata": {"user_id": "{\"device_id\":\"d\",\"session_id\":\"s\"}"}, "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
            "thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}, "stop_sequences": ["END"],
            "top_k": 5, "service_tier": "auto", "of_tomorrow": [1], "tools": [{"type": "of_tomorrow_20270101", "name": "x"}],
        }),
    );
    let response = post(&s, &[], &body).await;
    assert_eq!(
        response.headers()["x-switchboard-ignored"],
        "tools, stop_sequences, top_k, context_management, thinking, max_tokens"
    );
    assert_eq!(text_of(&message(response).await), "Hi.");
    let strict = post(&s, &[("prefer", "handling=strict")], &also(ask("Hi"), json!({"stop_sequences": ["END"]}))).await;
    let (status, _, words) = refused(strict).await;
    assert_eq!((status, words.contains("stop_sequences")), (400, true), "{words}");
}

#[tokio::test]
async fn wishes_reach_the_model_where_its_profile_lets_them() {
    let s = playing([says("Hi.")]).await;
    let wishes = json!({"model": "open", "temperature": 0.5, "thinking": {"type": "enabled", "budget_tokens": 9000}});
    let response = post(&s, &[], &also(ask("Hi"), wishes)).await;
    assert_eq!(response.headers().get("x-switchboard-ignored"), None);
    let asked = s.model.requests()[0].json();
    assert_eq!((&asked["temperature"], &asked["reasoning_effort"]), (&json!(0.5), &json!("medium")));
}

#[tokio::test]
async fn a_long_history_is_taken_and_one_beyond_the_limit_is_not() {
    let s = playing([says("Hi.")]).await;
    let turns = (0..3000).flat_map(|n| {
        let text = "x".repeat(240);
        [
            json!({"role": "user", "content": format!("{n} {text}")}),
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
        ]
    });
    let messages: Vec<_> = turns.chain([user(json!("Hi"))]).collect();
    let body = also(ask("Hi"), json!({"messages": messages}));
    assert!(body.to_string().len() > 1_500_000);
    assert_eq!(whole(&s, &body).await["stop_reason"], "end_turn");
    let count = s.app.http.post(s.app.url(&format!("{MESSAGES}/count_tokens"))).bearer_auth(&s.app.token).json(&body);
    assert!(message(count.send().await.unwrap()).await["input_tokens"].as_u64().unwrap() > 300_000);
    let long = format!("{{\"model\":\"workflow\",\"messages\":\"{}\"}}", "x".repeat(33 << 20));
    let sent = s.app.http.post(s.app.url(MESSAGES)).bearer_auth(&s.app.token).body(long).send().await;
    // Whoever is refused while it still sends may see the connection end instead.
    if let Ok(response) = sent {
        let (status, kind, _) = refused(response).await;
        assert_eq!((status, kind.as_str()), (413, "request_too_large"));
    }
}

#[tokio::test]
async fn what_is_another_number_in_each_request_reaches_no_model() {
    let s = with(&[HOST], &[], [says("Hi.").answer(), says("Hi.").answer()]).await;
    for nth in 0..2 {
        let billing = format!("x-anthropic-billing-header: cc_version=2.1.36; cch={nth};");
        let system = json!([{"type": "text", "text": billing}, {"type": "text", "text": "You are Claude Code."}]);
        whole(&s, &also(ask("Hi"), json!({"model": "host", "system": system}))).await;
    }
    let asked = s.model.requests().iter().map(|request| request.json().to_string()).collect::<Vec<_>>();
    assert!(asked[0].contains("You are Claude Code.") && !asked[0].contains("billing"), "{}", asked[0]);
    assert_eq!(asked[0], asked[1], "a vendor finds it in its cache");
}

#[tokio::test]
async fn tokens_are_estimated() {
    let s = playing([]).await;
    let body = json!({"model": "workflow", "system": "Be brief.", "messages": [user(json!("word ".repeat(40)))]});
    let request =
        s.app.http.post(s.app.url(&format!("{MESSAGES}/count_tokens?beta=true"))).header("x-api-key", &s.app.token);
    let estimate: Value = message(request.json(&body).send().await.unwrap()).await;
    assert_eq!(estimate, json!({"input_tokens": 61}));
}
