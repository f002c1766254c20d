//! A conversation belongs to a tenant's user: the same id of somebody else is another conversation.

use serde_json::json;

use super::{SECRET, claims_with, signed};
use crate::support::model::{Scripted, says};

#[tokio::test]
async fn each_user_of_each_tenant_sees_only_their_own_conversation() {
    let owners = [
        (Some("acme"), "ada"),
        (Some("acme"), "bob"),
        (Some("umbrella"), "ada"),
        (Some("umbrella"), "bob"),
        (None, "ada"),
        // Read without its border this is the first one.
        (Some("acm"), "eada"),
        (Some("ACME"), "ada"),
        (None, "acme:ada"),
    ];
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", SECRET)];
    let answers = (0..2 * owners.len()).map(|nth| says(&format!("Answer {nth}.")).answer());
    let s = Scripted::with(&settings, answers).await;
    let tokens = owners.map(|(tenant, user)| signed(&claims_with(json!({"sub": user, "tenant": tenant}))));
    for message in ["first", "second"] {
        for (token, owner) in tokens.iter().zip(owners) {
            let message = format!("{message} of {owner:?}");
            let body = json!({"message": message, "context_type": "workflow", "conversation_id": "shared"});
            let response = s.app.post_as(token, &body).await;
            assert_eq!(response.status(), 200);
            let text = response.text().await.unwrap();
            assert!(text.ends_with("event: message_complete\ndata: {}\n\n"), "{text}");
        }
    }
    let asked = s.asked();
    for (nth, owner) in owners.into_iter().enumerate() {
        let said = asked[owners.len() + nth].iter().skip(1).map(|message| message["content"].as_str().unwrap());
        let expected = [format!("first of {owner:?}"), format!("Answer {nth}."), format!("second of {owner:?}")];
        assert_eq!(said.collect::<Vec<_>>(), expected, "{owner:?}");
    }
}
