//! What an answer's head tells of where its time went.

use reqwest::Response;
use serde_json::json;

use crate::support::app::TestApp;

/// The names in `Server-Timing`, each of which has a duration.
fn timed(response: &Response) -> Vec<String> {
    let text = response.headers()["server-timing"].to_str().unwrap();
    let entries = text.split(", ").map(|entry| {
        let (name, ms) = entry.split_once(";dur=").unwrap();
        assert!(ms.parse::<f64>().unwrap() >= 0.0, "{text}");
        name.to_owned()
    });
    entries.collect()
}

#[tokio::test]
async fn server_timing_says_where_the_time_went_as_far_as_the_head_can_know() {
    let app = TestApp::demo().await;
    let body = json!({"message": "What does this workflow do?", "context_type": "workflow",
        "context": {"workflow_id": crate::support::app::LOW_STOCK}});
    assert_eq!(timed(&app.post(&body).await), ["db", "begin"], "a stream's head goes out before anything was said");
    let whole = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).header("accept", "application/json");
    let whole = whole.json(&body).send().await.unwrap();
    assert_eq!(timed(&whole), ["db", "llm_first_token", "tools", "total"]);
    let length = whole.headers()["content-length"].to_str().unwrap().parse::<usize>().unwrap();
    assert_eq!(whole.text().await.unwrap().len(), length);
    let nothing = app.http.get(app.url("/nowhere")).send().await.unwrap();
    assert_eq!(timed(&nothing), ["db", "total"]);
}

#[tokio::test]
async fn outside_of_development_server_timing_goes_to_whom_the_operator_lets() {
    let secret = "s".repeat(32);
    let hs256 = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", &*secret)];
    let sees = async |app: &TestApp, roles: &[&str], path: &str| {
        let token = app.token_of("ann", Some("acme"), roles);
        let answer = app.http.get(app.url(path)).bearer_auth(token).send().await.unwrap();
        answer.headers().contains_key("server-timing")
    };
    let app = TestApp::start(&hs256).await;
    assert!(!sees(&app, &["USER", "ADMIN"], "/v1/agent/profiles").await, "nobody by default");
    let app = TestApp::start(&[&hs256[..], &[("SERVER__TIMING_ROLES", "OPS,ADMIN")]].concat()).await;
    let rows: [(&[&str], &str, bool, &str); 4] = [
        (&["USER", "OPS"], "/v1/agent/profiles", true, "one of the roles"),
        (&["ADMIN"], "/v1/agent/conversations/none", true, "on a refusal too"),
        (&["USER"], "/v1/agent/profiles", false, "another role"),
        (&["OPS"], "/livez", false, "where nobody looks at the token"),
    ];
    for (roles, path, expected, reason) in rows {
        assert_eq!(sees(&app, roles, path).await, expected, "{reason}");
    }
}

#[tokio::test]
async fn answers_are_nobody_else_s_to_keep_and_of_the_type_they_say() {
    let app = TestApp::demo().await;
    let body = json!({"message": "hello", "context_type": "workflow", "conversation_id": "c"});
    app.post(&body).await.text().await.unwrap();
    let paths = [
        ("/v1/agent/profiles", 200),
        ("/v1/agent/conversations", 200),
        ("/v1/agent/conversations/c", 200),
        ("/v1/agent/conversations/c/export", 200),
        ("/v1/agent/conversations/c/trail", 200),
        ("/v1/agent/conversations/none", 404),
        ("/v1/agent/approvals", 200),
        ("/v1/agent/usage", 200),
        ("/v1/models", 200),
        ("/v1/copilotkit/info", 200),
        ("/api/chats", 200),
        ("/api/chats/7000", 404),
        ("/page/session", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/nowhere", 404),
    ];
    let header =
        |answer: &Response, name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    for (path, status) in paths {
        let answer = app.http.get(app.url(path)).bearer_auth(&app.token).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(header(&answer, "cache-control").as_deref(), Some("no-store"), "{path}");
        assert_eq!(header(&answer, "x-content-type-options").as_deref(), Some("nosniff"), "{path}");
    }
    let refused = app.http.post(app.url("/v1/agent/chat")).json(&body).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), header(&refused, "cache-control").as_deref()), (401, Some("no-store")));
    for path in ["/", "/page/client.js", "/openapi.json"] {
        let answer = app.http.get(app.url(path)).send().await.unwrap();
        assert_eq!(header(&answer, "cache-control").as_deref(), Some("no-cache"), "{path} is everybody's");
    }
}
