//! The routes beside the chat, with which a page installs packages.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::companions_page::{admin, forum};
use super::forum_with;
use crate::directives::until;
use crate::support::app::TestApp;

async fn send(app: &TestApp, token: &str, method: Method, path: &str, body: &str) -> Response {
    let request = app.http.request(method, app.url(path)).bearer_auth(token).body(body.to_owned());
    request.header("content-type", "application/json").send().await.unwrap()
}

async fn asked(app: &TestApp, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let response = send(app, token, Method::POST, path, &body.to_string()).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn standing(app: &TestApp, token: &str) -> Value {
    let response = send(app, token, Method::GET, "/marketplace/installations/status", "").await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_package_is_installed_by_those_who_may() {
    let (s, _backend) = forum(&[("DIRECTIVES__READER_ROLES", "admin")], []).await;
    let (admin, member) = (admin(&s), s.app.token_of("bob", Some("acme"), &["member"]));
    let order = json!({"slug": " starter-agents ", "version": "", "config": null, "unknown": 1});
    let (status, refused) = asked(&s.app, &member, "/marketplace/install", &order).await;
    assert_eq!((status, &refused["ok"], &refused["code"]), (403, &json!(false), &json!("role_required")));
    assert!(refused["error"].is_string() && refused["request_id"].is_string(), "{refused}");

    let (status, body) = asked(&s.app, &admin, "/marketplace/install", &order).await;
    let id = body["directive_id"].clone();
    let expected = json!({
        "ok": true, "installation_id": null, "status": "requested", "directive_id": id, "directive_status": "requested",
        "directive_created": true, "enqueued": true, "tenant": "acme",
        "package": {"slug": "starter-agents", "version": null},
    });
    assert_eq!((status, &body), (200, &expected));
    let done = until(&s.app, &admin, &id, "succeeded").await;
    assert_eq!(done["payload"], json!({"slug": "starter-agents"}), "what is blank, or of no use, is left out");
    let now = standing(&s.app, &member).await;
    let entry = json!({
        "id": "id-starter-agents", "status": "installed", "enabled": true, "installed_at": null, "updated_at": null,
        "last_error": null, "last_error_at": null,
    });
    assert_eq!(now, json!({"ok": true, "tenant": "acme", "installation_status": {"starter-agents": entry}}));
}

#[tokio::test]
async fn a_package_that_was_refused_says_so_and_can_be_tried_again() {
    let (s, _backend) = forum(&[], []).await;
    let admin = admin(&s);
    let order = json!({"slug": "field-service"});
    let both = tokio::join!(
        asked(&s.app, &admin, "/marketplace/install", &order),
        asked(&s.app, &admin, "/marketplace/install", &order)
    );
    let ids = [&both.0.1["directive_id"], &both.1.1["directive_id"]];
    assert_eq!((both.0.0, both.1.0), (200, 200));
    until(&s.app, &admin, ids[0], "failed").await;
    let now = standing(&s.app, &admin).await;
    let entry = &now["installation_status"]["field-service"];
    assert_eq!((&entry["status"], &entry["enabled"]), (&json!("failed"), &json!(false)), "{now}");
    assert!(entry["last_error"].as_str().unwrap().contains("Your plan does not have this package"), "{now}");
    assert!(entry["last_error_at"].is_string(), "{now}");
    let (_, again) = asked(&s.app, &admin, "/marketplace/install", &order).await;
    assert_eq!(again["directive_created"], true);
    assert_ne!(&again["directive_id"], ids[0]);
    let other = s.app.token_of("eve", Some("other"), &["admin"]);
    let elsewhere = standing(&s.app, &other).await;
    assert_eq!(elsewhere["installation_status"].get("field-service"), None, "{elsewhere}");
}

#[tokio::test]
async fn orders_without_a_package_are_refused() {
    let (s, backend) = forum(&[], []).await;
    let admin = admin(&s);
    let rows = [
        ("{}", 400, "missing required param: slug", "none"),
        (r#"{"slug": "  "}"#, 400, "missing required param: slug", "a blank one"),
        (r#"{"slug": 7}"#, 400, "missing required param: slug", "a number"),
        ("[]", 400, "the body must be an object with slug", "a list"),
        (r#"{"slug": "a", "config": {"password": "x"}}"#, 422, "password is the name of a secret", "a secret"),
    ];
    for path in ["/marketplace/install", "/marketplace/uninstall"] {
        for (body, status, words, reason) in rows {
            if path.ends_with("uninstall") && status == 422 {
                continue;
            }
            let response = send(&s.app, &admin, Method::POST, path, body).await;
            assert_eq!(response.status(), status, "{reason}");
            let problem: Value = response.json().await.unwrap();
            assert_eq!(problem["ok"], false, "{reason}");
            assert!(problem["error"].as_str().unwrap().contains(words), "{reason}: {problem}");
        }
    }
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test]
async fn routes_that_no_setting_names_are_not_there() {
    let (s, _backend) = forum_with("", &[], []).await;
    let token = admin(&s);
    for (method, path) in [
        (Method::POST, "/marketplace/install"),
        (Method::POST, "/marketplace/uninstall"),
        (Method::GET, "/marketplace/installations/status"),
    ] {
        let response = send(&s.app, &token, method, path, r#"{"slug": "a"}"#).await;
        assert_eq!(response.status(), 404, "{path}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!((&problem["ok"], &problem["code"]), (&json!(false), &json!("not_found")), "{path}");
    }
}
