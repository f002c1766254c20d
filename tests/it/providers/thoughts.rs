//! When a model's own thoughts go back to it, and when it is asked for new ones.

use serde_json::json;
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
