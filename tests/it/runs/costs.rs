//! What a run tells of its tokens, and of its cost where the operator has said what models cost.

use serde_json::{Value, json};

use super::{body, header, run_in};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Upstream;

/// The product with these settings in its file.
async fn priced(file: &str, turns: Vec<crate::support::model::Script>) -> Scripted {
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir(data.path().join("config")).unwrap();
    std::fs::write(data.path().join("config/default.toml"), file).unwrap();
    let model = Upstream::script(turns.into_iter().map(|turn| turn.answer())).await;
    let base_url = format!("{}/v1", model.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url), ("LLM__OPENAI__MODEL", "m.1")];
    Scripted { app: TestApp::start_in(data, &settings).await, model }
}

/// `usage` of the run and of its document, which are the same.
async fn usage(s: &Scripted) -> Value {
    let ask = s.app.http.post(s.app.url("/v1/agent/chat")).bearer_auth(&s.app.token);
    let answer = ask.header("accept", "application/json").json(&body("How many?")).send().await.unwrap();
    let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let id = document["run_id"].as_str().unwrap();
    let run = run_in(&s.app, id, document["state"].as_str().unwrap()).await;
    assert_eq!(run["usage"], document["usage"]);
    run["usage"].clone()
}

#[tokio::test]
async fn a_run_costs_what_its_turns_cost() {
    let two = || vec![calls("1", "discover_trigger_types", &json!({})), says("Three.")];
    // Each turn has 10 tokens of input and 5 of output.
    let rows = [
        ("[prices.\"openai:m.1\"]\ninput = 1.5\noutput = 8", Some(0.00011), "both turns"),
        ("[prices.\"m.1\"]\ninput = 0\noutput = 0", Some(0.0), "nothing is a price too"),
        ("[prices.other]\ninput = 1\noutput = 8", None, "nobody knows what this one costs"),
        ("", None, "nobody knows what anything costs"),
    ];
    for (file, cost, reason) in rows {
        let s = priced(file, two()).await;
        let mut expected = json!({"input_tokens": 20, "output_tokens": 10});
        if let Some(cost) = cost {
            expected["cost_usd"] = json!(cost);
        }
        assert_eq!(usage(&s).await, expected, "{reason}");
    }
}

#[tokio::test]
async fn what_was_cached_and_thought_is_told_where_there_is_any() {
    let counts = json!({
        "prompt_tokens": 1000, "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 600}, "completion_tokens_details": {"reasoning_tokens": 4},
    });
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let end = format!("data: {finish}\n\ndata: {}\n\ndata: [DONE]\n\n", json!({"choices": [], "usage": counts}));
    let file = "[prices.\"m.1\"]\ninput = 3\noutput = 15\ncached_input = 0.3";
    let s = priced(file, vec![turn().text("Three.").raw(&end)]).await;
    let expected = json!({
        "input_tokens": 1000, "output_tokens": 10, "cached_input_tokens": 600, "reasoning_tokens": 4,
        "cost_usd": 0.00153,
    });
    assert_eq!(usage(&s).await, expected);
}

#[tokio::test]
async fn a_run_that_failed_has_cost_what_it_said() {
    let file = "[prices.\"m.1\"]\ninput = 1\noutput = 1";
    let s = priced(file, vec![calls("1", "discover_trigger_types", &json!({})), turn().text("Half").finish("length")])
        .await;
    let response = s.app.post(&body("How many?")).await;
    let id = header(&response, "x-run-id");
    response.text().await.unwrap();
    let run = run_in(&s.app, &id, "failed").await;
    assert_eq!(run["usage"], json!({"input_tokens": 20, "output_tokens": 10, "cost_usd": 0.00003}));
}

#[tokio::test]
async fn what_a_stream_has_cost_that_broke_off_is_not_known() {
    let file = "[prices.\"m.1\"]\ninput = 1\noutput = 1";
    let s = priced(file, vec![calls("1", "discover_trigger_types", &json!({})), turn().text("Half")]).await;
    let response = s.app.post(&body("How many?")).await;
    let id = header(&response, "x-run-id");
    response.text().await.unwrap();
    let run = run_in(&s.app, &id, "failed").await;
    assert_eq!(run["usage"], json!({"input_tokens": 10, "output_tokens": 5}), "the sum of the others would look whole");
}
