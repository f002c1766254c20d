//! What is refused before a stream: one JSON shape, with the two sentences that these clients show.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{forum_with, post};
use crate::support::app::TestApp;
use crate::support::model::says;
use crate::support::process::Folder;

const NO_MESSAGE: &str = "expected JSON body with a string field `message`";
const EMPTY: &str = "message cannot be empty";

async fn error(response: reqwest::Response) -> (u16, String, String) {
    let (status, header) =
        (response.status().as_u16(), response.headers()["x-request-id"].to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
    assert_eq!(body["request_id"], header, "{body}");
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    (status, body["code"].as_str().unwrap().to_owned(), body["error"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_body_without_a_message_is_refused_in_the_words_of_the_protocol() {
    let (s, _backend) =
        forum_with("", &[("LIMITS__MESSAGE_BYTES", "1000"), ("SERVER__BODY_LIMIT_BYTES", "4000")], []).await;
    let rows = [
        (json!({}), NO_MESSAGE),
        (json!({"message": null}), NO_MESSAGE),
        (json!({"message": 7}), NO_MESSAGE),
        (json!({"message": ["x"]}), NO_MESSAGE),
        (json!({"message": ""}), EMPTY),
        (json!({"message": " \n\t"}), EMPTY),
        (json!({"message": "x", "conversation_id": 7}), "conversation_id must be a string"),
    ];
    for (body, expected) in rows {
        let refused = error(post(&s.app, &body).await).await;
        assert_eq!(refused, (422, "invalid_request".to_owned(), expected.to_owned()), "{body}");
    }
    let raw = async |text: &'static str| {
        let request = s.app.http.post(s.app.url("/chat/message")).bearer_auth(&s.app.token);
        error(request.header("content-type", "application/json").body(text).send().await.unwrap()).await
    };
    assert_eq!((raw("{").await.0, raw("[]").await.1), (400, "malformed_json".to_owned()));
    // Too long a message, and too long a body.
    for long in [json!({"message": "x".repeat(1001)}), json!({"message": "x", "more": "x".repeat(4000)})] {
        assert_eq!(error(post(&s.app, &long).await).await.0, 413);
    }
    let get =
        s.app.http.request(Method::GET, s.app.url("/chat/message")).bearer_auth(&s.app.token).send().await.unwrap();
    assert_eq!(error(get).await.0, 405);
    assert!(s.model.requests().is_empty());
}

#[tokio::test]
async fn nobody_is_answered_without_a_good_token() {
    let (s, _backend) = forum_with("", &[("AUTH__LEEWAY_S", "0")], []).await;
    let body = json!({"message": "Hi"});
    let (signed, over) = (s.app.token.as_str(), s.app.token_for("ann", None, Duration::ZERO));
    let (claims, _) = signed.rsplit_once('.').unwrap();
    let (_, signature_of_another) = over.rsplit_once('.').unwrap();
    let badly_signed = format!("{claims}.{signature_of_another}");
    let rows = [
        (None, "unauthenticated"),
        (Some("not.a.token"), "invalid_token"),
        (Some(badly_signed.as_str()), "invalid_token"),
        (Some(over.as_str()), "token_expired"),
    ];
    for (token, code) in rows {
        let request = s.app.http.post(s.app.url("/chat/message")).json(&body);
        let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        let response = request.send().await.unwrap();
        assert!(response.headers().contains_key("www-authenticate"));
        let refused = error(response).await;
        assert_eq!((refused.0, refused.1.as_str()), (401, code));
    }
    assert!(s.model.requests().is_empty());
}

#[tokio::test]
async fn it_is_off_until_a_profile_is_named_and_that_has_to_be_there() {
    let app = TestApp::demo().await;
    let refused = error(post(&app, &json!({"message": "Hi"})).await).await;
    assert_eq!((refused.0, refused.1.as_str()), (404, "not_found"));
    let checked = Folder::new().run(&["check-config"], &[("CHAT_MESSAGE__PROFILE", "nobody")]);
    assert_eq!(checked.code, 2);
    assert!(
        checked.stderr.contains("chat_message.profile: \"nobody\" is no profile's context_type"),
        "{}",
        checked.stderr
    );
}

#[tokio::test]
async fn a_tenant_can_be_demanded_and_only_a_token_names_it() {
    let secret = "a secret of the tests, long enough for HS256";
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", secret), ("AUTH__REQUIRE_TENANT", "true")];
    let (s, _backend) = forum_with("", &settings, [says("Yes.")]).await;
    let none = s.app.token_of("ann", None, &[]);
    let url = "/chat/message?org=acme&tenant=acme";
    let ask = |token: &str, tenant: &str| {
        let request = s.app.http.post(s.app.url(url)).bearer_auth(token);
        request.header("cookie", format!("tenant={tenant}")).header("x-tenant", tenant).header("tenant", tenant)
    };
    let request = ask(&none, "acme");
    let refused = error(request.json(&json!({"message": "Hi", "tenant": "acme"})).send().await.unwrap()).await;
    assert_eq!((refused.0, refused.1.as_str()), (403, "tenant_required"));
    let token = s.app.token_of("ann", Some("acme"), &[]);
    let answered = ask(&token, "other").json(&json!({"message": "Hi", "tenant": "other"})).send().await.unwrap();
    assert_eq!(answered.status(), 200);
    answered.text().await.unwrap();
    assert!(s.last_asked()[0]["content"].as_str().unwrap().contains("tenant acme"));
}
