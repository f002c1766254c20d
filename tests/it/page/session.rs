//! `GET /page/session`: who is signed in without a token, and who is not.

use serde_json::{Value, json};

use crate::support::app::{ADA, TestApp};

/// Names and values.
type Headers<'a> = &'a [(&'a str, &'a str)];

/// What the product says to a request with these headers.
async fn session(app: &TestApp, headers: Headers<'_>) -> Value {
    let mut request = app.http.get(app.url("/page/session"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.json().await.unwrap()
}

#[tokio::test]
async fn in_development_the_page_is_signed_in() {
    let app = TestApp::demo().await;
    let mut session = session(&app, &[]).await;
    let token = session.as_object_mut().unwrap().remove("token").unwrap();
    assert_eq!(session, json!({"mode": "dev", "expires_in_s": 43_200, "user": ADA}));
    let profiles = app.http.get(app.url("/v1/agent/profiles")).bearer_auth(token.as_str().unwrap());
    assert_eq!(profiles.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn only_a_browser_on_this_machine_is_signed_in() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().to_str().unwrap();
    let app = TestApp::start(&[("WORKSPACE__ROOT", root), ("WORKSPACE__USER", "local")]).await;
    let port = app.address.port();
    let own = format!("127.0.0.1:{port}");
    let (origin, https, elsewhere) =
        (format!("http://{own}"), format!("https://{own}"), format!("evil.example:{port}"));
    let rows: [(&str, Headers<'_>, &str); 32] = [
        ("the page's own request", &[("host", &own), ("sec-fetch-site", "same-origin")], "dev"),
        ("an address that was typed", &[("host", &own), ("sec-fetch-site", "none")], "dev"),
        ("by its name", &[("host", "localhost:8080")], "dev"),
        ("names have no case", &[("host", "LocalHost:8080")], "dev"),
        ("without a port", &[("host", "localhost")], "dev"),
        ("IPv6", &[("host", "[::1]:8080")], "dev"),
        ("IPv6 without a port", &[("host", "[::1]")], "dev"),
        ("its own origin", &[("host", &own), ("origin", &origin)], "dev"),
        ("another origin", &[("host", &own), ("origin", "http://evil.example")], "token"),
        ("another scheme", &[("host", &own), ("origin", &https)], "token"),
        ("no origin at all, said so", &[("host", &own), ("origin", "null")], "token"),
        ("another name that leads here", &[("host", &elsewhere), ("sec-fetch-site", "same-origin")], "token"),
        ("a name that begins like ours", &[("host", "localhost.evil.example")], "token"),
        ("a name that ends like ours", &[("host", "evil.localhost:8080")], "token"),
        ("an address that looks like ours", &[("host", "127.0.0.1.evil.example:80")], "token"),
        ("all addresses", &[("host", "0.0.0.0:8080")], "token"),
        ("a port that is none", &[("host", "localhost:80a")], "token"),
        ("another site's page", &[("host", &own), ("sec-fetch-site", "cross-site")], "token"),
        ("a neighbour of the same site", &[("host", &own), ("sec-fetch-site", "same-site")], "token"),
        ("a proxy that says for whom", &[("host", &own), ("x-forwarded-for", "203.0.113.7")], "token"),
        ("a proxy that says what it was asked", &[("host", &own), ("x-forwarded-host", "chat.example")], "token"),
        ("a proxy that says how it was asked", &[("host", &own), ("x-forwarded-proto", "https")], "token"),
        ("a proxy that says who asks", &[("host", &own), ("x-real-ip", "203.0.113.7")], "token"),
        ("a proxy that says at which port it was asked", &[("host", &own), ("x-forwarded-port", "443")], "token"),
        ("a proxy that says for which user", &[("host", &own), ("x-forwarded-user", "ada")], "token"),
        ("a proxy that says what it took away", &[("host", &own), ("x-forwarded-prefix", "/a")], "token"),
        ("a proxy that says that it is one", &[("host", &own), ("via", "1.1 proxy")], "token"),
        ("Cloudflare, who connects", &[("host", &own), ("cf-connecting-ip", "203.0.113.7")], "token"),
        ("Cloudflare, which request", &[("host", &own), ("cf-ray", "230b030023ae2822-SJC")], "token"),
        ("Akamai", &[("host", &own), ("true-client-ip", "203.0.113.7")], "token"),
        ("an empty word of one", &[("host", &own), ("x-forwarded-for", "")], "token"),
        ("a proxy by the standard", &[("host", &own), ("forwarded", "for=203.0.113.7")], "token"),
    ];
    for (why, headers, mode) in rows {
        let session = session(&app, headers).await;
        assert_eq!(session["mode"], mode, "{why}");
        assert_eq!(session.get("token").is_some(), mode == "dev", "{why}");
        // The local user of editors is known by the same.
        let mut request = app.http.get(app.url("/api/dialogs"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let expected = if mode == "dev" { 200 } else { 401 };
        assert_eq!(request.send().await.unwrap().status(), expected, "{why}");
    }
}

#[tokio::test]
async fn with_tokens_of_somebody_else_one_is_pasted() {
    let app = TestApp::start(&[("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", &"s".repeat(32))]).await;
    assert_eq!(session(&app, &[]).await, json!({"mode": "token"}));
    // The page knows that without asking; where some are signed in, it asks.
    for (app, is_said) in [(app, true), (TestApp::demo().await, false)] {
        let index = app.http.get(app.url("/")).send().await.unwrap().text().await.unwrap();
        assert_eq!(index.contains("<meta name=\"sign-in\" content=\"token\">"), is_said);
    }
}
