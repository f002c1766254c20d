//! Who may come in: tokens, pages, and where clients learn who gives tokens.

use serde_json::{Value, json};

use super::{error, forms, post, request};
use crate::openai::with;

#[tokio::test]
async fn without_a_good_token_a_client_reads_who_gives_one() {
    let settings = [("SERVER__PUBLIC_URL", "https://chat.example.com/")];
    let s = with(&[], &settings, []).await;
    let message = request("tools/list", json!({}), forms());
    let (nobody, broken) = (None, Some("Bearer nonsense"));
    for (path, token) in [("/mcp", nobody), ("/mcp", broken), ("/mcp/open", nobody)] {
        let mut sent = s.app.http.post(s.app.url(path)).json(&message);
        if let Some(token) = token {
            sent = sent.header("authorization", token);
        }
        let response = sent.send().await.unwrap();
        let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
        let metadata =
            format!("resource_metadata=\"https://chat.example.com/.well-known/oauth-protected-resource{path}\"");
        assert!(challenge.starts_with("Bearer ") && challenge.ends_with(&metadata), "{challenge}");
        assert_eq!(error(response).await.0, 401);
    }
}

#[tokio::test]
async fn the_document_needs_no_token_and_names_the_issuers() {
    let settings = [
        ("SERVER__PUBLIC_URL", "https://chat.example.com"),
        ("AUTH__MODE", "hs256"),
        ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef"),
        ("AUTH__ISSUER", "https://id.example.com"),
        ("AUTH__SCOPES", "api://switchboard/chat,openid"),
    ];
    let s = with(&[], &settings, []).await;
    let rows = [("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/open", "/mcp/open")];
    for (path, resource) in rows {
        let url = s.app.url(&format!("/.well-known/oauth-protected-resource{path}"));
        let response = s.app.http.get(url).header("origin", "https://anywhere.example").send().await.unwrap();
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        let document: Value = response.json().await.unwrap();
        let expected = json!({
            "resource": format!("https://chat.example.com{resource}"),
            "authorization_servers": ["https://id.example.com"],
            "scopes_supported": ["api://switchboard/chat", "openid"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Switchboard",
        });
        assert_eq!(document, expected);
    }
}

#[tokio::test]
async fn pages_of_foreign_sites_stay_outside() {
    let settings = [
        ("SERVER__PUBLIC_URL", "https://chat.example.com"),
        ("SERVER__CORS_ALLOWED_ORIGINS", "https://friend.example"),
    ];
    let s = with(&[], &settings, []).await;
    let own = format!("http://{}", s.app.address);
    let rows = [
        (own.as_str(), 200),
        ("https://chat.example.com", 200),
        ("https://friend.example", 200),
        ("https://evil.example", 403),
        ("null", 403),
    ];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (origin, expected) in rows {
        let sent = s.app.http.post(s.app.url("/mcp")).bearer_auth(&s.app.token).header("origin", origin);
        assert_eq!(sent.json(&message).send().await.unwrap().status(), expected, "{origin}");
    }
    // A name of somebody else's that is made to lead here.
    let sent = s.app.http.post(s.app.url("/mcp")).bearer_auth(&s.app.token).header("host", "evil.example");
    assert_eq!(sent.header("origin", "http://evil.example").json(&message).send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn a_token_for_somebody_else_is_none() {
    let of = |audience: &'static str| {
        [
            ("AUTH__MODE", "hs256"),
            ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef"),
            ("AUTH__ISSUER", "https://id.example.com"),
            ("AUTH__AUDIENCE", audience),
        ]
    };
    let (mine, other) = (
        with(&[], &of("https://chat.example.com/mcp"), []).await,
        with(&[], &of("https://other.example.com"), []).await,
    );
    let message = request("tools/list", json!({}), forms());
    assert_eq!(post(&mine.app, &mine.app.token, "/mcp", &message).await.status(), 200);
    let (status, error) = error(post(&mine.app, &other.app.token, "/mcp", &message).await).await;
    assert_eq!((status, &error["data"]["code"]), (401, &json!("invalid_token")));
}
