//! Calls that ask for a role: somebody who has it lets them through or turns them down, and only the user goes on.

use serde_json::json;

use super::{HELD, World, approve, assert_made, id, problem, reject};
use crate::support::frames::{data, names};
use crate::support::model::{Script, calls, says};

const ZOE: &str = "22222222-2222-4222-8222-222222222222";

fn refunding() -> Script {
    calls("c1", "refund", &json!({"amount": 12.5}))
}

const REFUNDED: &str = r#"POST /v1/refunds {"amount":12.5}"#;

#[tokio::test]
async fn somebody_with_the_role_lets_a_call_through_and_its_user_goes_on() {
    let w = World::playing([refunding(), says("Paid.")]).await;
    let frames = w.say("Refund it").await;
    assert_eq!(names(&frames), HELD);
    let shown = data(&frames, "approval_request");
    assert_eq!((&shown["needs"], &shown["role"]), (&json!("role"), &json!("chief")));
    let (ada, chief) = (w.s.app.token.clone(), w.s.app.token_of(ZOE, None, &["chief"]));

    let early = w.decide_as(&ada, id(shown), &approve()).await;
    assert_eq!(problem(early).await, (403, "role_required".to_owned()));

    assert_eq!(w.waiting(&chief).await, [id(shown)]);
    let granted = w.decide_as(&chief, id(shown), &json!({"decision": "approve", "digest": shown["digest"]})).await;
    assert_eq!(granted.status(), 200);
    let granted: serde_json::Value = granted.json().await.unwrap();
    let seen = json!([granted["kind"], granted["state"], granted["tool"], granted["arguments"], granted["user_id"]]);
    assert_eq!(seen, json!(["call", "granted", "refund", {"amount": 12.5}, crate::support::app::ADA]));
    assert_eq!(w.writes(), [""; 0], "a grant makes no call: nobody has the user's token but the user");
    assert_eq!(w.waiting(&chief).await, [""; 0]);
    let again = w.decide_as(&chief, id(shown), &reject()).await;
    assert_eq!(problem(again).await, (409, "already_decided".to_owned()));

    assert_made(&w.decide(shown, &approve()).await, true);
    assert_eq!(w.writes(), [REFUNDED]);
    assert_eq!(w.backend.requests()[0].header("authorization"), Some(format!("Bearer {ada}").as_str()));
}

#[tokio::test]
async fn somebody_with_the_role_turns_a_call_down_and_the_model_hears_of_it() {
    let w = World::playing([refunding(), says("I see.")]).await;
    let shown = w.held("Refund it").await;
    let chief = w.s.app.token_of(ZOE, None, &["chief"]);
    let refused = w.decide_as(&chief, id(&shown), &json!({"decision": "reject", "comment": "too dear"})).await;
    assert_eq!(refused.json::<serde_json::Value>().await.unwrap()["state"], json!("rejected"));
    let late = w.decide_as(&w.s.app.token, id(&shown), &approve()).await;
    assert_eq!(problem(late).await, (409, "already_decided".to_owned()));
    w.say("And now?").await;
    let told = "And now?\n\n[Decision on a waiting call: the call of refund was turned down by somebody who may, and was not \
                made. Their words: \"too dear\"]";
    assert_eq!(w.told(), told);
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn a_user_with_the_role_needs_nobody_else() {
    let w = World::playing([refunding(), says("Paid.")]).await;
    let shown = w.held("Refund it").await;
    let ada = w.s.app.token_of(crate::support::app::ADA, None, &["chief"]);
    let made = w.decide_as(&ada, id(&shown), &approve()).await;
    assert_made(&crate::support::frames::parse(&made.text().await.unwrap()), true);
    assert_eq!(w.writes(), [REFUNDED]);
}

#[tokio::test]
async fn a_user_without_the_role_may_take_the_call_back() {
    let w = World::playing([refunding(), says("All right.")]).await;
    let shown = w.held("Refund it").await;
    let frames = w.decide(&shown, &reject()).await;
    assert_eq!(names(&frames), ["message_start", "content_chunk", "message_complete"]);
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn whoever_may_not_decide_does_not_see_it() {
    let w = World::playing([refunding()]).await;
    let shown = w.held("Refund it").await;
    let strangers = [
        (w.s.app.token_of(ZOE, None, &["USER", "Chief"]), "another user with other roles"),
        (w.s.app.token_of(ZOE, Some("other"), &["chief"]), "the role in another tenant"),
        (w.s.app.token_of(crate::support::app::ADA, Some("other"), &["chief"]), "the same name in another tenant"),
    ];
    for (stranger, reason) in &strangers {
        assert_eq!(w.waiting(stranger).await, [""; 0], "{reason}");
        let (status, _) = w.get_as(stranger, &format!("/v1/agent/approvals/{}", id(&shown))).await;
        assert_eq!(status, 404, "{reason}");
        for decision in [approve(), reject()] {
            let refused = w.decide_as(stranger, id(&shown), &decision).await;
            assert_eq!(problem(refused).await, (404, "not_found".to_owned()), "{reason}");
        }
    }
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&shown)]);
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn a_tool_that_asks_for_a_role_by_now_needs_it() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7}))]).await;
    let shown = w.held("Close 7").await;
    let stricter = super::TOOLS.replace("approval = \"user\"", "approval = \"role:chief\"");
    let w = w.restarted(async |data| super::write(data, "tools/tickets.toml", &stricter)).await;
    let refused = w.decide_as(&w.s.app.token, id(&shown), &approve()).await;
    assert_eq!(problem(refused).await, (403, "role_required".to_owned()));
    assert_eq!(w.writes(), [""; 0]);
}

/// Refunds that somebody else than whoever asked has to let through.
fn four_eyes() -> String {
    super::TOOLS.replace("approval = \"role:chief\"", "approval = \"role:chief\"\nnot_requester = true")
}

#[tokio::test]
async fn nobody_lets_their_own_call_through_where_somebody_else_has_to() {
    let w = World::playing([refunding(), says("Paid.")]).await;
    let w = w.restarted(async |data| super::write(data, "tools/tickets.toml", &four_eyes())).await;
    let shown = w.held("Refund it").await;
    assert_eq!((&shown["role"], &shown["not_requester"]), (&json!("chief"), &json!(true)), "clients can say it");
    let own_chief = w.s.app.token_of(crate::support::app::ADA, None, &["chief"]);
    let refused = w.decide_as(&own_chief, id(&shown), &approve()).await;
    assert_eq!(problem(refused).await, (403, "own_request".to_owned()), "a role of one's own is of no use");
    let (_, list) = w.get_as(&own_chief, "/v1/agent/approvals").await;
    assert_eq!(list["items"][0]["not_requester"], json!(true), "lists say who may: {list}");
    let (_, one) = w.get_as(&own_chief, &format!("/v1/agent/approvals/{}", id(&shown))).await;
    assert_eq!((&one["state"], &one["not_requester"]), (&json!("pending"), &json!(true)));
    assert_eq!(w.writes(), [""; 0]);

    let zoe = w.s.app.token_of(ZOE, None, &["chief"]);
    assert_eq!(w.decide_as(&zoe, id(&shown), &approve()).await.status(), 200);
    assert_made(&w.decide(&shown, &approve()).await, true);
    assert_eq!(w.writes(), [REFUNDED]);
}

#[tokio::test]
async fn whoever_asked_may_still_take_their_call_back() {
    let w = World::playing([refunding(), says("All right.")]).await;
    let w = w.restarted(async |data| super::write(data, "tools/tickets.toml", &four_eyes())).await;
    let shown = w.held("Refund it").await;
    let frames = w.decide(&shown, &reject()).await;
    assert_eq!(names(&frames), ["message_start", "content_chunk", "message_complete"]);
}

#[tokio::test]
async fn a_tool_that_asks_for_somebody_else_by_now_needs_them() {
    let w = World::playing([refunding(), says("Paid.")]).await;
    let shown = w.held("Refund it").await;
    let w = w.restarted(async |data| super::write(data, "tools/tickets.toml", &four_eyes())).await;
    let chief = w.s.app.token_of(crate::support::app::ADA, None, &["chief"]);
    let refused = w.decide_as(&chief, id(&shown), &approve()).await;
    assert_eq!(problem(refused).await, (403, "own_request".to_owned()));
    // Whoever let it through before that was somebody else.
    let zoe = w.s.app.token_of(ZOE, None, &["chief"]);
    assert_eq!(w.decide_as(&zoe, id(&shown), &approve()).await.status(), 200);
    assert_made(&w.decide(&shown, &approve()).await, true);
    assert_eq!(w.writes(), [REFUNDED]);
}
