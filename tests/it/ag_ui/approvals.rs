//! Calls that wait for a person are interrupts: all of a thread are answered together, or none is.

use serde_json::{Value, json};

use super::front_end_tools::offering;
use super::{World, finished, input, resuming, says, usage, v1};
use crate::support::model::{Script, calls, says as answers, turn};

const RESULT: &str = r#"{"ok":true}"#;
const TURNED_DOWN: &str = r#"{"error":"this call was turned down, it was not made"}"#;

fn closes(id: &str, ticket: u32) -> Script {
    calls(id, "close_ticket", &json!({"id": ticket}))
}

/// The interrupts with which a run ended.
fn interrupts(told: &[Value]) -> Vec<Value> {
    let outcome = &told.last().unwrap()["outcome"];
    assert_eq!(outcome["type"], "interrupt", "{told:#?}");
    outcome["interrupts"].as_array().unwrap().clone()
}

fn resolved(interrupt: &Value, payload: Value) -> Value {
    json!({"interruptId": interrupt["id"], "status": "resolved", "payload": payload})
}

fn cancelled(interrupt: &Value) -> Value {
    json!({"interruptId": interrupt["id"], "status": "cancelled"})
}

/// The client's thread after a call that waits.
fn after_call() -> Value {
    input(json!([
        {"id": "u1", "role": "user", "content": "Close 7"},
        {"id": "a1", "role": "assistant", "toolCalls": [
            {"id": "c", "type": "function", "function": {"name": "close_ticket", "arguments": "{\"id\":7}"}}]},
    ]))
}

fn error(code: &str, message: &str) -> Value {
    json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "RUN_ERROR", "message": message, "code": code},
    ])
}

fn result(nth: u32, call: &str, content: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": format!("R.r{nth}"), "toolCallId": call, "content": content,
        "role": "tool"})
}

#[tokio::test]
async fn a_call_that_waits_interrupts_and_an_approval_makes_it_as_it_was_shown() {
    let world = World::playing([closes("c", 7), answers("Closed.")]).await;
    let told = world.run(&v1(says("Close 7"))).await;
    let shown = interrupts(&told)[0].clone();
    let (id, expires, digest) = (&shown["id"], &shown["expiresAt"], &shown["metadata"]["digest"]);
    assert!(id.is_string() && expires.as_str().unwrap().ends_with('Z') && digest.as_str().unwrap().len() == 64);
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs", "protocolVersion": "1.0"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "close_ticket", "parentMessageId": "R.m1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"id\":7}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "usage": usage(1), "outcome": {
            "type": "interrupt",
            "interrupts": [{
                "id": id,
                "reason": "tool_call",
                "toolCallId": "c",
                "message": "close_ticket waits for your approval",
                "responseSchema": {
                    "type": "object",
                    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string"}},
                    "required": ["approved"],
                },
                "expiresAt": expires,
                "metadata": {"tool": "close_ticket", "arguments": {"id": 7}, "digest": digest, "needs": "user"},
            }],
        }},
    ]);
    assert_eq!(json!(told), expected);
    assert_eq!(world.writes(), [""; 0]);

    let yes = json!([resolved(&shown, json!({"approved": true}))]);
    let told = world.run(&resuming(after_call(), yes)).await;
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        result(1, "c", RESULT),
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "STEP_STARTED", "stepName": "turn-1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m2", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m2", "delta": "Closed."},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m2"},
        {"type": "STEP_FINISHED", "stepName": "turn-1"},
        finished(1),
    ]);
    assert_eq!(json!(told), expected);
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"]);
}

#[tokio::test]
async fn a_refusal_and_a_person_who_went_away_let_nothing_through() {
    let no = |shown: &Value| resolved(shown, json!({"approved": false, "comment": "Not mine"}));
    for reason in ["refused", "cancelled"] {
        let answer = |shown: &Value| if reason == "refused" { no(shown) } else { cancelled(shown) };
        let world = World::playing([closes("c", 7), answers("All right.")]).await;
        let shown = interrupts(&world.run(&says("Close 7")).await)[0].clone();
        let told = world.run(&resuming(after_call(), json!([answer(&shown)]))).await;
        assert_eq!(told[1], result(1, "c", TURNED_DOWN), "{reason}");
        assert_eq!(told.last(), Some(&finished(1)), "{reason}");
        assert_eq!(world.writes(), [""; 0], "{reason}");
        let words = world.s.last_asked().pop().unwrap()["content"].as_str().unwrap().to_owned();
        assert_eq!(words.contains("Not mine"), reason == "refused", "{reason}: {words}");
    }
}

#[tokio::test]
async fn calls_that_wait_together_are_decided_together_and_seen_as_one_run() {
    let both = turn().call("c", "close_ticket", &json!({"id": 7})).call("d", "close_ticket", &json!({"id": 8})).done();
    let world = World::playing([both, answers("7 is closed."), answers("8 stays.")]).await;
    let shown = interrupts(&world.run(&says("Close 7 and 8")).await);
    let [seven, eight] = shown.as_slice() else { panic!("{shown:#?}") };

    let words = "Nothing was done yet, since a decision is needed first: close_ticket waits for your approval; \
                 close_ticket waits for your approval.";
    let both_open = error("open_interrupts", words);
    let yes = resolved(seven, json!({"approved": true}));
    let told = world.run(&resuming(after_call(), json!([yes]))).await;
    assert_eq!(json!(told), both_open, "one of two");
    let told = world.run(&says("Never mind")).await;
    assert_eq!(json!(told), both_open, "no answer at all");
    assert_eq!((world.writes(), world.s.asked().len()), (Vec::<String>::new(), 1), "nothing was decided");

    let answer = json!([resolved(eight, json!({"approved": false})), yes]);
    let told = world.run(&resuming(after_call(), answer)).await;
    // The second run of ours is named in no header.
    let second = told[11]["messageId"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        result(1, "c", RESULT),
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "STEP_STARTED", "stepName": "turn-1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m2", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m2", "delta": "7 is closed."},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m2"},
        {"type": "STEP_FINISHED", "stepName": "turn-1"},
        {"type": "TOOL_CALL_RESULT", "messageId": format!("{second}.r1"), "toolCallId": "d", "content": TURNED_DOWN,
         "role": "tool"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TEXT_MESSAGE_START", "messageId": format!("{second}.m2"), "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": format!("{second}.m2"), "delta": "8 stays."},
        {"type": "TEXT_MESSAGE_END", "messageId": format!("{second}.m2")},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        finished(2),
    ]);
    assert_eq!(json!(told), expected);
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"]);
}

#[tokio::test]
async fn decisions_that_come_together_are_answered_once() {
    let both = turn().call("c", "close_ticket", &json!({"id": 7})).call("d", "close_ticket", &json!({"id": 8})).done();
    let settings = [("RUNS__DECISIONS_S", "600")];
    let world = World::answering(&settings, [both, answers("7 is closed, 8 stays.")].map(Script::answer)).await;
    let shown = interrupts(&world.run(&says("Close 7 and 8")).await);
    let answer =
        json!([resolved(&shown[0], json!({"approved": true})), resolved(&shown[1], json!({"approved": false}))]);
    let told = world.run(&resuming(after_call(), answer)).await;
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        result(1, "c", RESULT),
        result(2, "d", TURNED_DOWN),
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "STEP_STARTED", "stepName": "turn-1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m3", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m3", "delta": "7 is closed, 8 stays."},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m3"},
        {"type": "STEP_FINISHED", "stepName": "turn-1"},
        finished(1),
    ]);
    assert_eq!(json!(told), expected);
    assert_eq!((world.writes(), world.s.asked().len()), (vec!["POST /v1/tickets/7/close {}".to_owned()], 2));
}

#[tokio::test]
async fn an_operator_may_have_open_interrupts_told_in_a_text() {
    let settings = [("SERVER__AG_UI_OPEN_INTERRUPTS", "text")];
    let world = World::answering(&settings, [closes("c", 7).answer()]).await;
    let shown = interrupts(&world.run(&says("Close 7")).await);
    let told = world.run(&says("Never mind")).await;
    let words = "Nothing was done yet, since a decision is needed first: close_ticket waits for your approval.";
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "TEXT_MESSAGE_START", "messageId": "theirs.open", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "theirs.open", "delta": words},
        {"type": "TEXT_MESSAGE_END", "messageId": "theirs.open"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs",
         "outcome": {"type": "interrupt", "interrupts": shown}},
    ]);
    assert_eq!(json!(told), expected, "also for a client that may never have heard of them");
}

#[tokio::test]
async fn a_decision_that_cannot_be_taken_says_why_and_decides_nothing() {
    let refund = calls("c", "refund", &json!({"amount": 5}));
    let world = World::playing([refund, answers("No refund."), answers("Hello.")]).await;
    let shown = interrupts(&world.run(&says("Refund 5")).await)[0].clone();
    let id = shown["id"].as_str().unwrap();
    let unknown = json!({"id": "0190a0b0-0000-7000-8000-000000000000"});
    let yes = |interrupt: &Value| resolved(interrupt, json!({"approved": true}));
    let role = "somebody with the role chief has to approve this call first";
    let told = world.run(&resuming(after_call(), json!([yes(&shown)]))).await;
    assert_eq!(json!(told), error("role_required", role));
    let no = resolved(&shown, json!({"approved": false}));
    let told = world.run(&resuming(after_call(), json!([no, yes(&unknown)]))).await;
    let words = "There is no interrupt 0190a0b0-0000-7000-8000-000000000000 in this thread";
    assert_eq!(json!(told), error("unknown_interrupt", words));

    let eve = world.s.app.token_of("eve", None, &["USER"]);
    let theirs = world.post_as(&eve, "/v1/ag-ui/tickets", &resuming(after_call(), json!([no]))).await;
    let words = format!("There is no interrupt {id} in this thread");
    assert_eq!(json!(super::told(theirs).await), error("unknown_interrupt", &words), "another user's");
    let mut elsewhere = resuming(after_call(), json!([no]));
    elsewhere["threadId"] = json!("t2");
    let told = world.run(&elsewhere).await;
    assert_eq!(told[1]["code"], "unknown_interrupt", "another thread's");

    let told = world.run(&resuming(after_call(), json!([cancelled(&shown)]))).await;
    assert_eq!(told[1], result(1, "c", TURNED_DOWN), "whoever lacks the role can still let it go");

    let again = world.run(&resuming(after_call(), json!([no]))).await;
    let nothing = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs"},
    ]);
    assert_eq!(json!(again), nothing, "the same answer again changes nothing");
    let told = world.run(&resuming(after_call(), json!([yes(&shown)]))).await;
    assert_eq!(json!(told), error("already_decided", &format!("{id} has been decided already")));
    let told = world.run(&resuming(says("Hi"), json!([no]))).await;
    assert_eq!(told.last(), Some(&finished(1)), "what is asked besides is answered");
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test]
async fn a_decision_with_a_key_is_carried_out_once() {
    let world = World::playing([closes("c", 7), answers("Closed.")]).await;
    let shown = interrupts(&world.run(&says("Close 7")).await)[0].clone();
    let body = resuming(after_call(), json!([resolved(&shown, json!({"approved": true}))]));
    let app = &world.s.app;
    let post = || {
        let request = app.http.post(app.url("/v1/ag-ui/tickets")).bearer_auth(&app.token);
        request.header("idempotency-key", "k").json(&body).send()
    };
    let first = post().await.unwrap().text().await.unwrap();
    let again = post().await.unwrap().text().await.unwrap();
    assert_eq!(first, again);
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"]);
}

#[tokio::test]
async fn a_call_waits_in_its_thread_however_many_of_others_wait_for_the_same_role() {
    let many = (0..101).fold(turn(), |turn, nth| turn.call(&format!("m{nth}"), "refund", &json!({"amount": nth})));
    let turns = [calls("c", "refund", &json!({"amount": 5})), many.done(), answers("Paid.")];
    let world =
        World::answering(&[("RUNS__MAX_TOOL_CALLS", "0"), ("LIMITS__APPROVALS", "0")], turns.map(Script::answer)).await;
    let ada = world.s.app.token_of("ada", None, &["chief"]);
    let eve = world.s.app.token_of("eve", None, &["USER"]);
    let asked = super::told(world.post_as(&ada, "/v1/ag-ui/tickets", &says("Refund 5")).await).await;
    let theirs = super::told(world.post_as(&eve, "/v1/ag-ui/tickets", &says("Refund all")).await).await;
    let (own, theirs) = (interrupts(&asked), interrupts(&theirs));
    assert_eq!((own.len(), theirs.len()), (1, 101));
    let told = super::told(world.post_as(&ada, "/v1/ag-ui/tickets", &says("Hi")).await).await;
    assert_eq!(told.last().unwrap()["code"], "open_interrupts", "it is still open");
    let yes = json!([resolved(&own[0], json!({"approved": true}))]);
    let told = super::told(world.post_as(&ada, "/v1/ag-ui/tickets", &resuming(after_call(), yes)).await).await;
    assert_eq!((&told[2], told.last()), (&result(1, "c", RESULT), Some(&finished(1))));
    assert_eq!(world.writes(), [r#"POST /v1/refunds {"amount":5}"#]);
}

#[tokio::test]
async fn calls_left_to_the_client_come_before_the_next_decision() {
    let both = turn().call("c", "close_ticket", &json!({"id": 7})).call("d", "close_ticket", &json!({"id": 8})).done();
    let paints = calls("p", "paint", &json!({"color": "red"}));
    let world = World::playing([both, paints, answers("It is red."), answers("8 is closed.")]).await;
    let shown = interrupts(&world.run(&says("Close 7 and 8")).await);
    let all = shown.iter().map(|interrupt| resolved(interrupt, json!({"approved": true}))).collect();
    let told = world.run(&v1(offering(resuming(after_call(), all)))).await;
    let end = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "usage": usage(1),
        "outcome": {"type": "success", "pendingToolCallIds": ["p"]}});
    assert_eq!(told.last(), Some(&end), "the client's turn has come");
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"], "the other decision is not taken yet");
    let painted = input(json!([{"id": "t1", "role": "tool", "toolCallId": "p", "content": "painted"}]));
    let told = world.run(&offering(painted)).await;
    assert_eq!(interrupts(&told), shown[1..], "what waits is named again behind the answer");
    assert!(told.iter().any(|event| event["delta"] == "It is red."), "{told:#?}");
    let last = json!([resolved(&shown[1], json!({"approved": true}))]);
    assert_eq!(world.run(&resuming(after_call(), last)).await.last(), Some(&finished(1)));
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}", "POST /v1/tickets/8/close {}"]);
}

#[tokio::test]
async fn a_request_with_a_key_finds_its_runs_although_calls_wait_by_then() {
    let both = turn().call("c", "close_ticket", &json!({"id": 7})).call("d", "close_ticket", &json!({"id": 8})).done();
    let world = World::playing([both, closes("e", 9), answers("Done.")]).await;
    let app = &world.s.app;
    let post = async |key: &str, body: &Value| {
        let request = app.http.post(app.url("/v1/ag-ui/tickets")).bearer_auth(&app.token);
        request.header("idempotency-key", key).json(body).send().await.unwrap().text().await.unwrap()
    };
    let asks = says("Close 7 and 8");
    let first = post("k", &asks).await;
    assert_eq!(post("k", &asks).await, first, "the run that made them wait");
    let shown = interrupts(&super::events(&first));
    let decisions = shown.iter().rev().map(|interrupt| resolved(interrupt, json!({"approved": true}))).collect();
    let decides = resuming(after_call(), decisions);
    let first = post("l", &decides).await;
    assert_eq!(post("l", &decides).await, first, "both runs, in the order in which they were asked");
    assert_eq!(interrupts(&super::events(&first)).len(), 1, "a new call waits behind them");
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}", "POST /v1/tickets/8/close {}"]);
}

#[tokio::test]
async fn nobody_lets_their_own_call_through_where_somebody_else_has_to() {
    let tools = super::TOOLS.replace("approval = \"role:chief\"", "approval = \"role:USER\"\nnot_requester = true");
    let refund = calls("c", "refund", &json!({"amount": 5})).answer();
    let world = World::with_tools(&tools, &[], [refund, answers("Paid.").answer()]).await;
    let shown = interrupts(&world.run(&says("Refund 5")).await)[0].clone();
    assert_eq!(shown["metadata"]["not_requester"], json!(true));
    assert_eq!(shown["message"], json!("refund waits for the approval of somebody else with the role USER"));
    let yes = || json!([resolved(&shown, json!({"approved": true}))]);
    let told = world.run(&resuming(after_call(), yes())).await;
    let words = "somebody else with the role USER has to approve this call first";
    assert_eq!(json!(told), error("own_request", words), "Ada has the role");
    assert_eq!(world.writes(), [""; 0]);

    let zoe = world.s.app.token_of("zoe", None, &["USER"]);
    let url = world.s.app.url(&format!("/v1/agent/approvals/{}", shown["id"].as_str().unwrap()));
    let granted =
        world.s.app.http.post(url).bearer_auth(zoe).json(&json!({"decision": "approve"})).send().await.unwrap();
    assert_eq!(granted.status(), 200);
    world.run(&resuming(after_call(), yes())).await;
    assert_eq!(world.writes(), [r#"POST /v1/refunds {"amount":5}"#]);
}

#[tokio::test]
async fn a_call_of_a_tool_that_changed_interrupts_again() {
    let world = World::playing([closes("c", 7), answers("Closed.")]).await;
    let shown = interrupts(&world.run(&says("Close 7")).await)[0].clone();
    let world = world.restarted_with(&super::TOOLS.replacen("Closes a ticket.", "Closes a ticket for good.", 1)).await;
    let yes = |shown: &Value| resuming(after_call(), json!([resolved(shown, json!({"approved": true}))]));
    let again = interrupts(&world.run(&yes(&shown)).await);
    assert!(again.len() == 1 && again[0]["id"] != shown["id"], "{again:#?}");
    assert_eq!(again[0]["toolCallId"], json!("c"), "the call that the client knows");
    assert_ne!(again[0]["metadata"]["digest"], shown["metadata"]["digest"]);
    assert_eq!(world.writes(), [""; 0]);
    world.run(&yes(&again[0])).await;
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"]);
}
