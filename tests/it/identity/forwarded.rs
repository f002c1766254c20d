//! Users whom a front end names behind one token: each is one of their own, and one who cannot be verified is nobody.

use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::{hs256, now, signed, token};
use crate::support::app::TestApp;

/// What the front end signs with.
const THEIRS: &str = "the secret of a front end, long enough too";

const HEADER: &str = "x-openwebui-user-jwt";

fn named(changes: Value, secret: &str) -> String {
    let mut claims =
        json!({"sub": "u-1", "email": "ada@example.com", "iss": "open-webui", "iat": now(), "exp": now() + 60});
    for (claim, value) in changes.as_object().unwrap() {
        claims[claim] = value.clone();
    }
    let key = EncodingKey::from_secret(secret.as_bytes());
    token(&json!({"alg": "HS256", "typ": "JWT"}), &claims, &key, Algorithm::HS256)
}

/// A token of the connection.
fn connection() -> String {
    signed(&json!({"sub": "webui", "roles": ["USER"], "iat": now(), "exp": now() + 60}))
}

/// A GET of the conversations.
async fn list(app: &TestApp, bearer: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = app.http.get(app.url("/v1/agent/conversations")).bearer_auth(bearer);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Opens and begins a conversation.
async fn says(app: &TestApp, bearer: &str, user: Option<&str>, conversation: &str) {
    let body = json!({"model": "workflow", "messages": [{"role": "user", "content": "hi"}]});
    let mut request = app.http.post(app.url("/v1/chat/completions")).bearer_auth(bearer).json(&body);
    request = request.header("x-openwebui-chat-id", conversation);
    if let Some(user) = user {
        request = request.header(HEADER, user);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
}

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn one_connection_serves_many_users_apart() {
    let app = hs256(&[("AUTH__FORWARDED__SECRET", THEIRS)]).await;
    let bearer = connection();
    let [ada, bob] = ["u-1", "u-2"].map(|sub| named(json!({"sub": sub}), THEIRS));
    says(&app, &bearer, Some(&ada), "of-ada").await;
    says(&app, &bearer, Some(&bob), "of-bob").await;
    says(&app, &bearer, None, "of-nobody").await;
    let rows = [(Some(&ada), "of-ada"), (Some(&bob), "of-bob"), (None, "of-nobody")];
    for (user, expected) in rows {
        let headers: Vec<_> = user.map(|user| (HEADER, user.as_str())).into_iter().collect();
        let (status, found) = list(&app, &bearer, &headers).await;
        assert_eq!((status, ids(&found)), (200, vec![expected]));
    }
    // A user of the server's own, with the same name, and one of another connection.
    for sub in ["u-1", "other"] {
        let own = signed(&json!({"sub": sub, "iat": now(), "exp": now() + 60}));
        let headers: &[(&str, &str)] = if sub == "other" { &[(HEADER, &ada)] } else { &[] };
        assert_eq!(ids(&list(&app, &own, headers).await.1), [""; 0], "{sub}");
    }
    let forged = signed(&json!({"sub": "webui\u{1f}u-1", "iat": now(), "exp": now() + 60}));
    assert_eq!(list(&app, &forged, &[]).await.0, 401, "no token names one of a connection's");
}

#[tokio::test]
async fn one_who_cannot_be_verified_is_refused_and_not_taken_for_the_connection() {
    let app = hs256(&[("AUTH__FORWARDED__SECRET", THEIRS)]).await;
    let bearer = connection();
    let good = named(json!({}), THEIRS);
    let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1LTEifQ.".to_owned();
    let rows: [(&str, String, &str); 8] = [
        (HEADER, named(json!({}), "another secret, which is long enough too"), "signed by another"),
        (HEADER, named(json!({"exp": now() - 3600}), THEIRS), "over"),
        (HEADER, named(json!({"iat": now() + 3600, "exp": now() + 7200}), THEIRS), "of the future"),
        (HEADER, named(json!({"iss": "somebody"}), THEIRS), "of another issuer"),
        (HEADER, named(json!({"sub": ""}), THEIRS), "of no user"),
        (HEADER, none, "not signed"),
        (HEADER, "nonsense".to_owned(), "none at all"),
        ("x-openwebui-user-id", "u-1".to_owned(), "named without a signature"),
    ];
    for (header, value, reason) in rows {
        let (status, problem) = list(&app, &bearer, &[(header, &value)]).await;
        assert_eq!((status, &problem["code"]), (401, &json!("unauthenticated")), "{reason}: {problem}");
        assert!(!problem.to_string().contains(&value), "{reason}: it is not repeated");
    }
    let twice = [(HEADER, good.as_str()), (HEADER, good.as_str())];
    assert_eq!(list(&app, &bearer, &twice).await.0, 401, "twice");
    assert_eq!(list(&app, &bearer, &[(HEADER, &good)]).await.0, 200);
    let nobody = app.http.get(app.url("/v1/agent/conversations")).header(HEADER, &good).send().await.unwrap();
    assert_eq!(nobody.status(), 401, "it opens nothing by itself");
}

#[tokio::test]
async fn users_may_be_those_whose_own_tokens_name_the_same() {
    let settings = [
        ("AUTH__FORWARDED__SECRET", THEIRS),
        ("AUTH__FORWARDED__USER_CLAIM", "email"),
        ("AUTH__FORWARDED__SAME_USERS", "true"),
    ];
    let app = hs256(&settings).await;
    says(&app, &connection(), Some(&named(json!({}), THEIRS)), "c").await;
    let own = signed(&json!({"sub": "ada@example.com", "iat": now(), "exp": now() + 60}));
    assert_eq!(ids(&list(&app, &own, &[]).await.1), ["c"]);
}

#[tokio::test]
async fn without_a_secret_the_header_says_nothing() {
    let app = hs256(&[]).await;
    says(&app, &connection(), Some("nonsense"), "c").await;
    assert_eq!(ids(&list(&app, &connection(), &[]).await.1), ["c"]);
}
