//! A conversation is its owner's alone, whatever is asked of it: two tenants with two users each, and one id.

use reqwest::Method;
use serde_json::{Value, json};

use super::ask_as;
use crate::support::model::{Scripted, says};

const OWNERS: [(&str, &str); 4] = [("acme", "ann"), ("acme", "bob"), ("umbrella", "ann"), ("umbrella", "bob")];

#[tokio::test]
async fn nobody_sees_or_changes_another_owners_conversation() {
    let s = Scripted::playing((0..4).map(|nth| says(&format!("Answer {nth}.")))).await;
    let tokens = OWNERS.map(|(tenant, user)| s.app.token_of(user, Some(tenant), &[]));
    // All have a conversation of the same id, and each one of their own.
    for (nth, (tenant, user)) in OWNERS.into_iter().enumerate().take(3) {
        let message = format!("I am {user} of {tenant}");
        let body = json!({"message": message, "context_type": "workflow", "conversation_id": "shared"});
        s.app.post_as(&tokens[nth], &body).await.text().await.unwrap();
    }
    let body = json!({"message": "mine", "context_type": "workflow", "conversation_id": "own"});
    s.app.post_as(&tokens[0], &body).await.text().await.unwrap();

    let missing = |(status, body): (u16, Value)| (status, body["code"].clone()) == (404, json!("not_found"));
    for token in &tokens[1..] {
        for path in ["/own", "/own/export", "/own/trail"] {
            assert!(missing(ask_as(&s.app, token, Method::GET, path, None).await), "{path}");
        }
        let title = json!({"title": "Stolen"});
        assert!(missing(ask_as(&s.app, token, Method::PATCH, "/own", Some(&title)).await));
        assert!(missing(ask_as(&s.app, token, Method::DELETE, "/own", None).await));
    }
    for ((token, (tenant, user)), count) in tokens.iter().zip(OWNERS).zip([2, 1, 1, 0]) {
        let (_, list) = ask_as(&s.app, token, Method::GET, "", None).await;
        assert_eq!(list["items"].as_array().unwrap().len(), count, "{user} of {tenant}");
    }
    assert!(missing(ask_as(&s.app, &tokens[3], Method::GET, "/shared", None).await), "who never spoke has none");

    let renamed = ask_as(&s.app, &tokens[1], Method::PATCH, "/shared", Some(&json!({"title": "Bob's"}))).await;
    assert_eq!(renamed.0, 200);
    assert_eq!(ask_as(&s.app, &tokens[1], Method::DELETE, "/shared", None).await.0, 204);
    for nth in [0, 2] {
        let (tenant, user) = OWNERS[nth];
        let expected = format!("I am {user} of {tenant}");
        let (_, shown) = ask_as(&s.app, &tokens[nth], Method::GET, "/shared", None).await;
        assert_eq!((&shown["title"], &shown["messages"][0]["text"]), (&json!(expected), &json!(expected)));
        for (path, at) in [("/shared/export", "/runs/0/messages/0/body/text"), ("/shared/trail", "/items/0/text")] {
            let (_, body) = ask_as(&s.app, &tokens[nth], Method::GET, path, None).await;
            assert_eq!(body.pointer(at), Some(&json!(expected)), "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn whoever_has_no_token_gets_nothing() {
    let s = Scripted::playing([says("Hello.")]).await;
    s.app.say("c", "Hi").await;
    for (method, path) in [
        (Method::GET, ""),
        (Method::GET, "/c"),
        (Method::PATCH, "/c"),
        (Method::DELETE, "/c"),
        (Method::GET, "/c/export"),
        (Method::GET, "/c/trail"),
    ] {
        let url = s.app.url(&format!("/v1/agent/conversations{path}"));
        let answer = s.app.http.request(method.clone(), url).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{method} {path}");
    }
}
