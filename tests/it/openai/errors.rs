//! Errors before a run has begun: the envelope that these clients read, with the statuses that they act on.

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, playing, post, refused, streamed};
use crate::support::frames::read_until;
use crate::support::model::{says, turn};

#[tokio::test]
async fn no_token_or_a_wrong_one_is_an_invalid_key() {
    let s = playing([]).await;
    for (path, token) in [(COMPLETIONS, None), (COMPLETIONS, Some("nonsense")), ("/v1/models", None)] {
        let request = match path {
            COMPLETIONS => s.app.http.post(s.app.url(path)).json(&ask("Hi")),
            _ => s.app.http.get(s.app.url(path)),
        };
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert!(response.headers().contains_key("www-authenticate"), "{path}");
        let (status, error) = refused(response).await;
        let kind = (&error["type"], &error["code"], &error["param"]);
        assert_eq!((status, kind), (401, (&json!("invalid_request_error"), &json!("invalid_api_key"), &json!(null))));
    }
}

#[tokio::test]
async fn an_unknown_model_or_another_roles_is_not_found() {
    let s = playing([]).await;
    for model in ["gpt-4o", "chief"] {
        let mut body = streamed("Hi");
        body["model"] = json!(model);
        let (status, error) = refused(post(&s, &[], &body).await).await;
        let expected = json!({
            "message": format!("the model \"{model}\" does not exist, or you have no access to it"),
            "type": "invalid_request_error", "param": "model", "code": "model_not_found",
        });
        assert_eq!((status, error), (404, expected));
    }
}

#[tokio::test]
async fn other_paths_and_methods_keep_to_their_own_words() {
    let s = playing([]).await;
    let get = s.app.http.get(s.app.url(COMPLETIONS)).bearer_auth(&s.app.token).send().await.unwrap();
    let (status, error) = refused(get).await;
    assert_eq!((status, &error["code"]), (405, &json!("method_not_allowed")));
    let nothing = s.app.http.get(s.app.url("/v1/embeddings")).bearer_auth(&s.app.token).send().await.unwrap();
    assert_eq!(nothing.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn a_conversation_that_is_busy_may_be_asked_again_in_a_moment() {
    let s = playing([turn().text("Well").hangs(), says("Later.")]).await;
    let key = [("x-conversation-id", "c")];
    let mut first = post(&s, &key, &streamed("Hi")).await;
    read_until(&mut first, "Well").await;
    let busy = post(&s, &key, &ask("And?")).await;
    assert_eq!((busy.headers()["retry-after"].to_str().unwrap(), busy.headers().get("x-should-retry")), ("1", None));
    let (status, error) = refused(busy).await;
    assert_eq!((status, &error["type"], &error["code"]), (409, &json!("conflict_error"), &json!("conversation_busy")));
    drop(first);
    s.model.clients_gone(1).await;
    let after: Value = post(&s, &key, &ask("And now?")).await.json().await.unwrap();
    assert_eq!(after["choices"][0]["message"]["content"], "Later.");
}
