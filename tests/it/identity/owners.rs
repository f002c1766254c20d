//! A conversation belongs to a tenant's user: the same id of somebody else is another conversation.

use serde_json::json;

use super::SECRET;
use crate::support::app::TestApp;
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
    let tokens = owners.map(|(tenant, user)| s.app.token_of(user, tenant, &[]));
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

#[tokio::test]
async fn a_conversation_outlives_the_process_and_keeps_its_owner() {
    let s = Scripted::playing(["One.", "Two.", "Three."].map(says)).await;
    let say = |message: &'static str| json!({"message": message, "context_type": "workflow", "conversation_id": "c"});
    s.app.chat(&say("first")).await;
    let Scripted { app, model } = s;
    let base_url = format!("{}/v1", model.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())];
    let app = TestApp::start_in(app.stop().await, &settings).await;
    app.chat(&say("second")).await;
    let stranger = app.token_of("somebody-else", None, &[]);
    assert!(app.post_as(&stranger, &say("third")).await.text().await.unwrap().contains("Three."));

    let said = |nth: usize| -> Vec<String> {
        let request = model.requests()[nth].json();
        let messages = request["messages"].as_array().unwrap().iter().skip(1);
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said(1), ["first", "One.", "second"]);
    assert_eq!(said(2), ["third"]);
}
