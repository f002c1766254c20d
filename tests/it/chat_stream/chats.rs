//! Chats under whole numbers: found again by their owner, by nobody else, and by administrators of the tenant.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Kh, heard, hi, typed, within};
use crate::support::frames::read_until;
use crate::support::model::{says, turn};
use crate::support::upstream::Answer;

/// What the model was told of what was said, roles apart.
fn said(asked: &[Value]) -> Vec<&str> {
    asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect()
}

fn titles(list: &Value) -> Vec<&str> {
    list["chats"].as_array().unwrap().iter().map(|chat| chat["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_chat_goes_on_under_its_number_and_another_ones_number_begins_a_new_one() {
    let kh = Kh::playing([says("One."), says("Two."), says("Three."), says("Four.")]).await;
    let chat = kh.answer(&typed("First", &json!({}))).await["conversation_id"].clone();
    let again = kh.answer(&within(&chat, typed("Second", &json!({})))).await["conversation_id"].clone();
    assert_eq!(again, chat);
    assert_eq!(said(&kh.s.last_asked()), ["First", "One.", "Second"]);

    let other = kh.s.app.token_of("bob", None, &[]);
    let events = heard(kh.post_as(&other, &within(&chat, hi())).await).await;
    let theirs = super::complete(&events)["conversation_id"].clone();
    assert!(theirs.is_i64() && theirs != chat, "{theirs}");
    assert_eq!(said(&kh.s.last_asked()), ["Hi"]);
    let unknown = kh.answer(&within(&json!(987_654), hi())).await["conversation_id"].clone();
    assert!(unknown.is_i64() && unknown != chat && unknown != theirs);
    assert_eq!(kh.get(&format!("/api/chats/{chat}")).await["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_chat_shows_what_was_said_with_its_context() {
    let kh = Kh::playing([says("Hello.")]).await;
    let context = json!({"current_page": "reports", "report_id": 7});
    let chat = kh.answer(&typed("Hi", &context)).await["conversation_id"].clone();
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let messages = &kept["messages"];
    assert!(time(&kept["created_at"]) <= time(&kept["updated_at"]));
    assert!(time(&messages[0]["created_at"]) <= time(&messages[1]["created_at"]));
    let (first, second) = (messages[0]["id"].as_i64().unwrap(), messages[1]["id"].as_i64().unwrap());
    assert!(first < second);
    let expected = json!({
        "id": chat, "title": "Hi", "created_at": kept["created_at"], "updated_at": kept["updated_at"],
        "messages": [
            {"id": first, "role": "user", "content": "Hi", "context": context, "extras": null,
             "created_at": messages[0]["created_at"]},
            {"id": second, "role": "assistant", "content": "Hello.", "context": context, "extras": null,
             "created_at": messages[1]["created_at"]},
        ],
    });
    assert_eq!(kept, expected);
    let other = kh.s.app.token_of("bob", None, &[]);
    let not_found = (404, json!({"detail": "Chat not found"}));
    assert_eq!(kh.get_as(&other, &format!("/api/chats/{chat}")).await, not_found);
    assert_eq!(kh.get_as(&kh.s.app.token, "/api/chats/x").await.0, 422);
}

#[tokio::test]
async fn lists_are_by_application_newest_change_first_and_in_parts() {
    let kh = Kh::playing((0..5).map(|_| says("Yes."))).await;
    let first = kh.answer(&typed("one", &json!({}))).await["conversation_id"].clone();
    kh.answer(&typed("two", &json!({"current_page": "reports"}))).await;
    kh.answer(&typed("table", &json!({"current_page": "tablizer"}))).await;
    kh.answer(&typed("three", &json!({}))).await;
    kh.answer(&within(&first, typed("not the title", &json!({})))).await;

    let all = kh.get("/api/chats").await;
    let keys: Vec<&String> = all["chats"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "title", "created_at", "updated_at"]);
    assert_eq!(all["chats"][0]["id"], first);
    let rows: [(&str, &[&str], &str); 6] = [
        ("", &["one", "three", "two"], "the application of pages without a profile"),
        ("?app=kh", &["one", "three", "two"], "by name"),
        ("?app=tablizer", &["table"], "another one"),
        ("?app=none", &[], "one that does not exist"),
        ("?app=kh&limit=2", &["one", "three"], "the first part"),
        ("?app=kh&limit=2&offset=2", &["two"], "the rest"),
    ];
    for (query, expected, reason) in rows {
        assert_eq!(titles(&kh.get(&format!("/api/chats{query}")).await), expected, "{reason}");
    }
    for query in ["limit=101", "limit=0", "limit=x", "offset=-1"] {
        let (status, body) = kh.get_as(&kh.s.app.token, &format!("/api/chats?{query}")).await;
        let name = query.split('=').next().unwrap();
        assert_eq!((status, &body["detail"][0]["loc"]), (422, &json!(["query", name])), "{query}");
    }
    let other = kh.s.app.token_of("bob", None, &[]);
    assert_eq!(kh.get_as(&other, "/api/chats").await, (200, json!({"chats": []})));
}

#[tokio::test]
async fn a_title_is_the_beginning_of_the_first_message_for_ever() {
    let kh = Kh::playing([says("Yes."), says("Yes.")]).await;
    let long = "ü".repeat(60);
    let chat = kh.answer(&typed(&long, &json!({}))).await["conversation_id"].clone();
    kh.answer(&within(&chat, typed("Another", &json!({})))).await;
    let title = format!("{}...", "ü".repeat(50));
    assert_eq!(kh.get(&format!("/api/chats/{chat}")).await["title"], title);
    assert_eq!(titles(&kh.get("/api/chats").await), [title]);
}

#[tokio::test]
async fn administrators_see_the_chats_of_their_tenant_alone() {
    let kh = Kh::playing((0..3).map(|_| says("Yes."))).await;
    let token = |user: &str, tenant: &str, roles: &[&str]| kh.s.app.token_of(user, Some(tenant), roles);
    let mut chats = Vec::new();
    for (user, tenant) in [("ann", "t1"), ("bob@example.org", "t1"), ("cid", "t2")] {
        let events = heard(kh.post_as(&token(user, tenant, &[]), &typed(user, &json!({}))).await).await;
        chats.push(super::complete(&events)["conversation_id"].as_i64().unwrap());
    }
    let admin = token("root", "t1", &["platform_admin"]);
    let (status, all) = kh.get_as(&admin, "/api/chats/admin/all").await;
    let chat = |at: usize| all["chats"][at].clone();
    let expected = json!({
        "chats": [
            {"id": chats[1], "title": "bob@example.org", "created_at": chat(0)["created_at"],
             "updated_at": chat(0)["updated_at"], "user_id": "bob@example.org", "user_email": "bob@example.org",
             "user_name": "bob@example.org", "message_count": 2},
            {"id": chats[0], "title": "ann", "created_at": chat(1)["created_at"],
             "updated_at": chat(1)["updated_at"], "user_id": "ann", "user_email": null, "user_name": "ann",
             "message_count": 2},
        ],
        "total": 2, "limit": 50, "offset": 0,
    });
    assert_eq!((status, &all), (200, &expected));
    let (_, one) = kh.get_as(&admin, "/api/chats/admin/all?user_id=ann&limit=200").await;
    assert_eq!((titles(&one), &one["total"], &one["limit"]), (vec!["ann"], &json!(1), &json!(200)));
    let (status, ann) = kh.get_as(&admin, &format!("/api/chats/admin/{}", chats[0])).await;
    assert_eq!((status, &ann["user_id"], &ann["messages"][1]["content"]), (200, &json!("ann"), &json!("Yes.")));
    assert_eq!(kh.get_as(&admin, &format!("/api/chats/admin/{}", chats[2])).await.0, 404, "another tenant's");
    assert_eq!(kh.get_as(&admin, &format!("/api/chats/{}", chats[0])).await.0, 404, "their own list is their own");
    assert_eq!(kh.get_as(&admin, "/api/chats/admin/all?limit=201").await.0, 422);
    for roles in [&["org_admin"][..], &[]] {
        let (status, body) = kh.get_as(&token("root", "t1", roles), "/api/chats/admin/all").await;
        assert_eq!((status, body["detail"].is_string()), (403, true), "{roles:?}");
    }
}

#[tokio::test]
async fn a_long_chat_goes_on_from_its_newest_messages() {
    let turns = 55;
    let settings = [("LIMITS__HISTORY_BYTES", "6000"), ("RUNS__SUMMARY_MODEL", "off")];
    let kh = Kh::with(&[], &settings, (0..turns).map(|at| says(&format!("Answer {at}.")).answer())).await;
    let mut chat = json!(null);
    for at in 0..turns {
        let message = format!("Question {at} {}", "x".repeat(100));
        chat = kh.answer(&within(&chat, typed(&message, &json!({})))).await["conversation_id"].clone();
    }
    let asked = kh.s.last_asked();
    let said = said(&asked);
    assert!(said.len() < 100, "{}", said.len());
    assert_eq!(said[said.len() - 2], "Answer 53.");
    assert!(said[said.len() - 1].starts_with("Question 54 "));
    assert!(!said.iter().any(|said| said.starts_with("Question 0 ")), "the oldest is what is left out");
    assert_eq!(kh.get(&format!("/api/chats/{chat}")).await["messages"].as_array().unwrap().len(), 2 * turns);
}

#[tokio::test]
async fn the_list_follows_the_last_message_of_either_side() {
    let gate = Arc::new(Notify::new());
    let begun = turn().text("Slow").bytes();
    let rest = turn().text("ly.").done().bytes();
    let slow = Answer::ok("text/event-stream", begun).gated(&gate, rest);
    let kh = Kh::with(&[], &[], [slow, says("Quick.").answer()]).await;
    let mut first = kh.post(&typed("first", &json!({}))).await;
    read_until(&mut first, "Slow").await;
    kh.answer(&typed("second", &json!({}))).await;
    assert_eq!(titles(&kh.get("/api/chats").await), ["second", "first"], "the other one began later");
    gate.notify_one();
    assert!(first.text().await.unwrap().contains("complete"));
    let list = kh.get("/api/chats").await;
    assert_eq!(titles(&list), ["first", "second"], "and was answered earlier");
    let chat = kh.get(&format!("/api/chats/{}", list["chats"][0]["id"])).await;
    assert_eq!(chat["updated_at"], chat["messages"][1]["created_at"]);
}

#[tokio::test]
async fn a_number_is_the_same_however_it_is_written() {
    let kh = Kh::playing((0..4).map(|_| says("Yes."))).await;
    let chat = kh.answer(&hi()).await["conversation_id"].as_i64().unwrap();
    for written in [json!(chat), json!(chat.to_string()), json!(chat as f64)] {
        let body = within(&written, hi());
        assert_eq!(kh.answer(&body).await["conversation_id"], chat, "{written}");
    }
}

#[tokio::test]
async fn an_empty_message_is_kept_empty() {
    let kh = Kh::playing([says("Yes?")]).await;
    let chat = kh.answer(&typed("", &json!({}))).await["conversation_id"].clone();
    assert_eq!(kh.s.last_asked()[1]["content"], "(empty message)");
    assert_eq!(kh.get(&format!("/api/chats/{chat}")).await["messages"][0]["content"], "");
}

#[tokio::test]
async fn administrators_find_users_by_the_number_that_pages_know() {
    let secret = "a secret of the tests, long enough for HS256";
    let settings =
        [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", secret), ("CHAT_STREAM__USER_CLAIM", "profile.user_id")];
    let kh = Kh::with(&[], &settings, (0..3).map(|_| says("Yes.").answer())).await;
    let token = |claims: Value| {
        let mut claims = claims;
        claims["exp"] = json!(4_000_000_000_u64);
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
    };
    let ann = |number: i64| token(json!({"sub": "ann@example.org", "profile": {"user_id": number}}));
    let chat = super::complete(&heard(kh.post_as(&ann(274), &typed("ann", &json!({}))).await).await).clone();
    heard(kh.post_as(&token(json!({"sub": 27})), &typed("number", &json!({}))).await).await;
    let admin = token(json!({"sub": "root", "roles": ["platform_admin"]}));
    let found = async |query: &str| {
        let (status, list) = kh.get_as(&admin, &format!("/api/chats/admin/all{query}")).await;
        assert_eq!(status, 200, "{list}");
        let chats = list["chats"].as_array().unwrap().iter();
        let told = chats.map(|chat| (chat["title"].as_str().unwrap().to_owned(), chat["user_id"].clone()));
        (told.collect::<Vec<_>>(), list["total"].clone())
    };
    let of_ann = |number: i64| (vec![("ann".to_owned(), json!(number))], json!(1));
    let of_number = (vec![("number".to_owned(), json!(27))], json!(1));
    assert_eq!(found("?user_id=274").await, of_ann(274), "by what the page sends");
    assert_eq!(found("?user_id=ann@example.org").await, of_ann(274), "by the name in tokens");
    assert_eq!(found("?user_id=27").await, of_number, "a number that is the name in tokens");
    assert_eq!(found("?user_id=2").await, (vec![], json!(0)));
    // The claim may change; the chats are still theirs.
    let again = within(&chat["conversation_id"], hi());
    heard(kh.post_as(&ann(275), &again).await).await;
    assert_eq!(found("?user_id=275").await, of_ann(275));
    assert_eq!(found("?user_id=274").await, (vec![], json!(0)));
}
