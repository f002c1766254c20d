//! The stream of a turn, as the loop reads it.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};

use super::{Dialogue, WORKFLOW};
use crate::agent::ports::llm::{ChatRequest, LlmProvider};
use crate::chat::message::{Message, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::stream::{CallSlot, FinishReason, StreamEvent};
use crate::demo::model::DemoModel;

async fn streamed(text: &str) -> Vec<StreamEvent> {
    let dialogue = Dialogue::on(WORKFLOW, Some(json!({ "workflow_id": "w" })));
    let messages = [Message::User(UserMessage::new(text))];
    let model = ModelChoice::from_model(DemoModel::new().origin().clone(), Some(100));
    let (system, tools) = (&dialogue.system, dialogue.tools.as_slice());
    let request = ChatRequest { system, messages: &messages, tools, may_call: true, model: &model, deadline: None };
    let demo = DemoModel::new().with_pace(Duration::ZERO);
    let stream = demo.stream_chat(request).await.expect("the demo model always answers");
    stream.events.map(|event| event.expect("the demo model's stream never fails")).collect().await
}

#[tokio::test]
async fn parallel_calls_come_in_slots_of_their_own_and_the_terminal_event_comes_last() {
    let mut text = String::new();
    let mut calls: Vec<(CallSlot, String, String)> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let mut ends = 0;
    for event in streamed("list the rules and explain this workflow").await {
        assert_eq!(ends, 0, "nothing follows the terminal event");
        match event {
            StreamEvent::Text(piece) => {
                assert!(calls.is_empty(), "text comes before the calls");
                text.push_str(&piece);
            }
            StreamEvent::ToolCallStarted { slot, id, name } => {
                ids.push(id.expect("the demo model names its calls"));
                calls.push((slot, name, String::new()));
            }
            StreamEvent::ToolCallInput { slot, json } => {
                let call = calls.iter_mut().find(|call| call.0 == slot).expect("a started call");
                call.2.push_str(&json);
            }
            StreamEvent::Finished { reason, usage } => {
                assert_eq!(reason, FinishReason::Stop);
                assert!(usage.is_some_and(|usage| usage.input_tokens > 0 && usage.output_tokens > 0));
                ends += 1;
            }
            StreamEvent::Thinking(_) | StreamEvent::Replay { .. } => panic!("the demo model does not think"),
            StreamEvent::Used(_) => panic!("the demo model counts in the end"),
        }
    }
    let calls: Vec<(CallSlot, String, Value)> = calls
        .into_iter()
        .map(|(slot, name, json)| (slot, name, serde_json::from_str(&json).expect("arguments are JSON")))
        .collect();
    assert_eq!(text, "Let me look these up.\n\n");
    assert_eq!(
        calls,
        [
            (CallSlot(0), "list_workflow_rules".to_owned(), json!({})),
            (CallSlot(1), "get_workflow_rule".to_owned(), json!({ "workflow_id": "w" })),
        ]
    );
    assert!(ids.iter().all(|id| id.starts_with("toolu_demo_")), "{ids:?}");
    assert_ne!(ids.first(), ids.last());
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn text_is_written_at_a_readable_pace() {
    let dialogue = Dialogue::on(WORKFLOW, None);
    let messages = [Message::User(UserMessage::new("thanks"))];
    let model = ModelChoice::from_model(DemoModel::new().origin().clone(), Some(100));
    let (system, tools) = (&dialogue.system, dialogue.tools.as_slice());
    let request = ChatRequest { system, messages: &messages, tools, may_call: true, model: &model, deadline: None };
    let begun = std::time::Instant::now();
    let stream = DemoModel::new().stream_chat(request).await.expect("the demo model always answers");
    assert_eq!(stream.events.count().await, 2);
    assert!(begun.elapsed() >= Duration::from_millis(15), "took {:?}", begun.elapsed());
}
