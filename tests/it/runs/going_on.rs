//! `POST …/continue`, and answering an earlier message again or otherwise.

use serde_json::{Value, json};

use super::{background, body, hanging, header, post, problem, read_until, run, run_in, scripted};
use crate::support::frames;
use crate::support::model::{Scripted, says, turn};

/// What the newest request told the model, without the system prompt.
fn said(s: &Scripted) -> Vec<String> {
    s.last_asked()[1..].iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_broken_answer_is_continued_from_what_was_said() {
    let s = scripted([turn().text("Half a").breaks().answer(), says(" thought.").answer()]).await;
    let first = s.app.post(&background("Think")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    run_in(&s.app, &id, "failed").await;
    let second = post(&s.app, &format!("/v1/agent/runs/{id}/continue"), &[], &json!({})).await;
    assert_eq!((second.status().as_u16(), header(&second, "x-conversation-id").as_str()), (200, "c"));
    let second_id = header(&second, "x-run-id");
    assert_eq!(frames::text(&frames::parse(&second.text().await.unwrap())), " thought.");
    assert_eq!(run(&s.app, &second_id).await["continues"], json!(id));
    let said = said(&s);
    assert_eq!(said[..2], ["Think", "Half a"]);
    assert!(said[2].starts_with("[Your previous answer was interrupted."), "{said:?}");
}

#[tokio::test]
async fn a_run_that_said_nothing_is_answered_again() {
    let broken = turn().breaks().answer();
    let s = Scripted::with(&[("LLM__RETRY__ATTEMPTS", "1")], [broken, says("Here I am.").answer()]).await;
    let first = s.app.post(&body("Hello?")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    run_in(&s.app, &id, "failed").await;
    // An empty body says nothing about how.
    let url = s.app.url(&format!("/v1/agent/runs/{id}/continue"));
    let second = s.app.http.post(url).bearer_auth(&s.app.token).send().await.unwrap();
    assert_eq!(frames::text(&frames::parse(&second.text().await.unwrap())), "Here I am.");
    assert_eq!(said(&s), ["Hello?"]);
}

#[tokio::test]
async fn a_live_run_and_one_with_an_answer_cannot_be_continued() {
    let s = scripted([says("Done.").answer(), hanging("On")]).await;
    let first = s.app.post(&body("One")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    run_in(&s.app, &id, "completed").await;
    let answer = post(&s.app, &format!("/v1/agent/runs/{id}/continue"), &[], &json!({})).await;
    assert_eq!(problem(answer).await, (409, "not_continuable".to_owned()));

    let mut live = s.app.post(&background("Two")).await;
    let id = header(&live, "x-run-id");
    read_until(&mut live, "On").await;
    let answer = post(&s.app, &format!("/v1/agent/runs/{id}/continue"), &[], &json!({})).await;
    assert_eq!(answer.status(), 409);
}

#[tokio::test]
async fn the_last_message_is_answered_again_on_a_branch_of_its_own() {
    let s = Scripted::playing([says("Red."), says("Blue."), says("As you like.")]).await;
    s.app.chat(&body("A colour?")).await;
    let again = json!({"regenerate": true, "context_type": "workflow", "conversation_id": "c"});
    assert_eq!(frames::text(&s.app.chat(&again).await), "Blue.");
    assert_eq!(said(&s), ["A colour?"], "the first answer is on another branch");
    s.app.chat(&body("Good")).await;
    assert_eq!(said(&s), ["A colour?", "Blue.", "Good"], "and the newest one goes on");
}

#[tokio::test]
async fn a_message_is_edited_by_branching_before_it() {
    let s = Scripted::playing([says("Hello."), says("Seven."), says("Eight.")]).await;
    let first = s.app.post(&body("Hi")).await;
    let first_id = header(&first, "x-run-id");
    first.text().await.unwrap();
    s.app.chat(&body("Three and four?")).await;
    let mut edited = body("Four and four?");
    edited["parent_message_id"] = json!(format!("{first_id}.1"));
    assert_eq!(frames::text(&s.app.chat(&edited).await), "Eight.");
    assert_eq!(said(&s), ["Hi", "Hello.", "Four and four?"]);
}

#[tokio::test]
async fn the_first_message_is_edited_by_branching_from_the_root() {
    let s = Scripted::playing([says("Hello."), says("Good day.")]).await;
    s.app.chat(&body("Hi")).await;
    let mut edited = body("Good morning");
    edited["parent_message_id"] = json!("root");
    s.app.chat(&edited).await;
    assert_eq!(said(&s), ["Good morning"]);
}

#[tokio::test]
async fn what_cannot_be_branched_from_or_answered_again_is_told() {
    let s = Scripted::playing([says("Hello.")]).await;
    let first = s.app.post(&body("Hi")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    let rows: [(Value, &str); 7] = [
        (json!({"parent_message_id": format!("{id}.9")}), "a number that the run has not"),
        (json!({"parent_message_id": "0198c0de-0000-7000-8000-000000000000.0"}), "an unknown run"),
        (json!({"parent_message_id": "x"}), "no id"),
        (json!({"parent_message_id": 5}), "no text"),
        (json!({"regenerate": true}), "a new message, and an earlier one again"),
        (json!({"regenerate": "yes"}), "neither true nor false"),
        (json!({"regenerate": true, "message": "", "conversation_id": "empty"}), "nothing was said there"),
    ];
    for (extra, reason) in rows {
        let mut body = body("Hi again");
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assert_eq!(problem(s.app.post(&body).await).await, (400, "invalid_request".to_owned()), "{reason}");
    }
}
