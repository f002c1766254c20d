//! When a model's own thoughts go back to it, and when it is asked for new ones.

use serde_json::json;
use switchboard::agent::ports::llm::MustCall;
use switchboard::chat::model::Effort;
use switchboard::llm::Vendor;

use super::models::{BEDROCK, CLAUDE, Model, VERTEX_CLAUDE};
use super::requests::Sent;
use super::scenarios::{self, Asked, Scenario};
use super::set;
use crate::support::upstream::{Answer, Request};

#[tokio::test]
async fn thoughts_that_do_not_fit_what_stands_before_them_are_left_out() {
    fn has_thoughts(request: &Request) -> bool {
        request.json()["messages"].to_string().contains("signature")
    }
    for model in [CLAUDE, VERTEX_CLAUDE, BEDROCK] {
        let sent = Sent::to_one_that(model, |request| {
            let message = "messages.1.content.0: Invalid signature in thinking block. The block is bound to a different \
                           conversation. Remove the block, or set thinking.block_binding.prefix_mismatch_behavior.";
            let error = json!({"error": {"type": "invalid_request_error", "message": message}, "message": message});
            match has_thoughts(request) {
                true => Answer::status(400, "application/json", error.to_string()),
                false => Answer::status(500, "text/plain", "seen"),
            }
        });
        let sent = sent.await;
        let scenario = scenarios::thinking(&sent.asked);
        sent.request(&scenario, &scenario.messages).await;
        let had: Vec<bool> = sent.upstream.requests().iter().map(has_thoughts).collect();
        assert_eq!(had, [true, false], "{:?}", model.vendor);
    }
}

#[tokio::test]
async fn an_older_claude_thinks_in_a_turn_that_began_with_a_thought_of_its_own() {
    const SMALL: Model = Model {
        vendor: Vendor::Claude,
        is_responses: false,
        change: |config, _| set(config, Vendor::Claude, "model = 'claude-opus-4-1'"),
    };
    for (scenario, messages, expected, reason) in [
        (scenarios::thinking as fn(&Asked) -> Scenario, 3, Some(8192), "a turn begins"),
        (scenarios::thinking, 5, Some(8192), "it goes on"),
        (scenarios::stopped, 8, None, "the stopped run's results belong to the turn, and its thoughts are gone"),
        (scenarios::interrupted, 3, Some(2048), "nobody else has answered"),
        (scenarios::interrupted, 5, None, "another model has"),
        (scenarios::interrupted, 7, None, "and had before the last answer"),
        (scenarios::fallback, 5, None, "another model began it"),
        (scenarios::fallback, 3, Some(2048), "its words are no turn that goes on"),
    ] {
        let sent = Sent::to(SMALL).await;
        let scenario = scenario(&sent.asked);
        let body = sent.request(&scenario, &scenario.messages[..messages]).await.json();
        assert_eq!(body["thinking"]["budget_tokens"].as_u64(), expected, "{reason}");
        assert_eq!(body["max_tokens"], 1000 + expected.unwrap_or(0), "{reason}");
    }
}

#[tokio::test]
async fn deepseek_gets_its_thoughts_of_every_run_back() {
    const DEEPSEEK: Model = Model {
        vendor: Vendor::Claude,
        is_responses: false,
        change: |config, _| set(config, Vendor::Claude, "model = 'deepseek-reasoner'"),
    };
    const GLM: Model = Model {
        vendor: Vendor::Claude,
        is_responses: false,
        change: |config, _| set(config, Vendor::Claude, "model = 'glm-4.6'"),
    };
    let mut sent_back = Vec::new();
    for model in [DEEPSEEK, GLM] {
        let sent = Sent::to(model).await;
        let Scenario { mut messages, .. } = scenarios::thinking(&sent.asked);
        messages.push(scenarios::user("And now?"));
        let body = sent.request(&scenarios::thinking(&sent.asked), &messages).await.json();
        let blocks = body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
        sent_back.push(blocks.flatten().filter(|block| block["type"] == "thinking").count());
    }
    assert!(sent_back[0] > 0 && sent_back[1] == 0, "{sent_back:?}: the run with them is over");
}

#[tokio::test]
async fn who_is_told_not_to_think_is_told_so_where_a_tool_has_to_be_called_too() {
    const OPUS: Model = Model {
        vendor: Vendor::Claude,
        is_responses: false,
        change: |config, _| set(config, Vendor::Claude, "model = 'claude-opus-5'"),
    };
    let sent = Sent::to(OPUS).await;
    for (effort, expected) in [(Effort::None, json!({"type": "disabled"})), (Effort::High, serde_json::Value::Null)] {
        let scenario = scenarios::one_call(&sent.asked);
        let scenario = Scenario { effort: Some(effort), must_call: MustCall::Any, ..scenario };
        let body = sent.request(&scenario, &scenario.messages[..1]).await.json();
        assert_eq!((&body["thinking"], &body["tool_choice"]["type"]), (&expected, &json!("any")));
    }
}
