//! A client tells what came of its calls, or does not.

use serde_json::json;
use switchboard::agent::ports::store::{BeginError, CLIENT_RESULTS};
use switchboard::chat::event::AgentEvent;
use switchboard::chat::input::Ask;
use switchboard::chat::message::Message;
use switchboard::runs::StartError;

use super::{Desk, calls, input, result, says, told, tool};

fn asking() -> Vec<switchboard::chat::stream::StreamEvent> {
    calls(&[("t1", "locate", json!({"city": "Ulm"})), ("t2", "print", json!({"city": "Ulm"}))])
}

/// The model has left both calls to the client.
async fn left(turns: impl IntoIterator<Item = Vec<switchboard::chat::stream::StreamEvent>>) -> Desk {
    let d = Desk::playing([asking()].into_iter().chain(turns)).await;
    let tools = [tool("locate"), tool("print")];
    assert_eq!(told(&d.say("Where?", &tools).await).last().unwrap(), "awaiting client: t1 t2");
    d
}

#[tokio::test]
async fn the_model_goes_on_with_what_the_client_says() {
    let d = left([says("At 48 north.")]).await;
    let results = vec![result("t2", "done"), result("t1", r#"{"lat": 48.40}"#)];
    let events = d.ask(input(Ask::Results(results), &[tool("locate")])).await.unwrap();
    assert_eq!(told(&events), ["end"], "no event is of the calls");
    assert_eq!(events[0], AgentEvent::TurnStarted { turn: 0 });
    let expected = [r#"{"told_by":"client","result":{"lat": 48.40}}"#, r#"{"told_by":"client","result":"done"}"#];
    assert_eq!(d.last_results(), expected);
    let (messages, tools) = d.last_asked();
    assert_eq!(tools.last().unwrap(), "locate", "the tools of this request");
    let Message::User(question) = &messages[3] else { panic!("{messages:#?}") };
    assert_eq!(question.text, CLIENT_RESULTS);
    let Message::ToolResults(placeholders) = &messages[2] else { panic!("{messages:#?}") };
    assert!(placeholders.iter().all(|result| result.content.starts_with(r#"{"status":"awaiting_client""#)));
}

#[tokio::test]
async fn the_model_may_ask_the_client_again() {
    let d = left([calls(&[("t1", "locate", json!({"city": "Bonn"}))]), says("There.")]).await;
    let both = vec![result("t1", "1"), result("t2", "2")];
    let events = d.ask(input(Ask::Results(both), &[tool("locate")])).await.unwrap();
    let Some(AgentEvent::AwaitingClient { calls, .. }) = events.last() else { panic!("{events:#?}") };
    let id = calls[0].id.as_str();
    assert_ne!(id, "t1", "the conversation has had that one");
    let events = d.ask(input(Ask::Results(vec![result(id, "3")]), &[])).await.unwrap();
    assert_eq!(told(&events), ["end"]);
    assert_eq!(d.last_results(), [r#"{"told_by":"client","result":3}"#]);
}

#[tokio::test]
async fn what_nobody_asked_for_is_refused_and_stores_nothing() {
    let d = left([says("Fine."), says("Good.")]).await;
    for (results, reason) in [
        (vec![], "nothing"),
        (vec![result("t9", "1")], "no such call"),
        (vec![result("t1", "1"), result("t1", "2")], "one twice"),
    ] {
        let refused = d.ask(input(Ask::Results(results), &[])).await;
        assert!(matches!(refused, Err(StartError::Begin(BeginError::NoSuchCall))), "{reason}: {refused:?}");
    }
    let both = || input(Ask::Results(vec![result("t1", "1"), result("t2", "2")]), &[]);
    assert_eq!(told(&d.ask(both()).await.unwrap()), ["end"]);
    let again = d.ask(both()).await;
    assert!(matches!(again, Err(StartError::Begin(BeginError::NoSuchCall))), "{again:?}");
    assert_eq!(told(&d.say("Thanks", &[]).await), ["end"]);
}

#[tokio::test]
async fn a_message_in_their_place_leaves_the_calls_without_results() {
    let d = left([says("Fine.")]).await;
    assert_eq!(told(&d.say("Never mind", &[]).await), ["end"]);
    let results = d.last_results();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result.starts_with(r#"{"status":"awaiting_client""#)), "{results:?}");
}

#[tokio::test]
async fn what_was_said_is_answered_again_with_what_the_client_said() {
    let d = left([vec![], says("At 48 north."), says("48."), says("Forty-eight.")]).await;
    let both = || input(Ask::Results(vec![result("t1", "48"), result("t2", "ok")]), &[]);
    let expected = [r#"{"told_by":"client","result":48}"#, r#"{"told_by":"client","result":"ok"}"#];
    assert_eq!(told(&d.ask(both()).await.unwrap()), ["failed: provider_rejected"]);
    assert_eq!(told(&d.ask(both()).await.unwrap()), ["end"], "the client sends them again");
    assert_eq!((d.last_results(), d.last_asked().0.len()), (expected.map(str::to_owned).to_vec(), 6));
    assert_eq!(told(&d.ask(input(Ask::Again, &[])).await.unwrap()), ["end"], "the answer is asked for again");
    assert_eq!((d.last_results(), d.last_asked().0.len()), (expected.map(str::to_owned).to_vec(), 6));
    assert_eq!(told(&d.say("In words?", &[]).await), ["end"]);
}
