//! Who reads what is not their own is in the record, and the record itself is for one role of one tenant.

use serde_json::{Value, json};

use super::{OTTO, READABLE, record, told};
use crate::support::app::TestApp;

async fn status(app: &TestApp, token: &str, path: &str) -> u16 {
    app.http.get(app.url(path)).bearer_auth(token).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_record_is_for_the_role_that_the_settings_name_and_of_its_own_tenant() {
    let app = TestApp::start(&[READABLE]).await;
    for (tenant, roles, expected, reason) in [
        (Some("acme"), &["auditor"][..], 200, "the role"),
        (Some("acme"), &["platform_admin", "ADMIN"][..], 403, "others"),
        (Some("acme"), &[][..], 403, "none"),
    ] {
        let token = app.token_of("u", tenant, roles);
        assert_eq!(status(&app, &token, "/v1/agent/audit").await, expected, "{reason}");
    }
    let auditor = app.token_of(OTTO, Some("umbrella"), &["auditor"]);
    let response = app.http.get(app.url("/v1/agent/audit")).bearer_auth(auditor).send().await.unwrap();
    let body: Value = response.json().await.unwrap();
    let expected = [json!(["tenant:umbrella", OTTO, "/v1/agent/audit"])];
    assert_eq!(told(body["items"].as_array().unwrap(), &["chain", "actor", "subject"]), expected, "no line of acme");

    for wrong in ["?limit=0", "?limit=1001", "?limit=x", "?cursor=x", "?cursor=-1", "?limit=1&limit=2"] {
        let token = app.token_of("u", Some("acme"), &["auditor"]);
        assert_eq!(status(&app, &token, &format!("/v1/agent/audit{wrong}")).await, 400, "{wrong}");
    }

    let app = TestApp::start(&[]).await;
    for roles in [&["auditor"][..], &[""][..]] {
        let token = app.token_of("u", Some("acme"), roles);
        assert_eq!(status(&app, &token, "/v1/agent/audit").await, 403, "without the setting it is nobody's");
    }
}

#[tokio::test]
async fn reads_of_administrators_are_lines_and_their_role_is_a_setting() {
    let settings = [READABLE, ("SERVER__ADMIN_ROLE", "boss"), ("SERVER__USAGE_ROLE", "boss")];
    let app = TestApp::start(&settings).await;
    let boss = app.token_of("b", Some("acme"), &["boss"]);
    let before = app.token_of("p", Some("acme"), &["platform_admin"]);
    let paths = ["/api/chats/admin/all?user_id=ann", "/api/chats/admin/7", "/v1/agent/usage?of=tenant"];
    for (path, expected) in paths.iter().zip([200, 404, 200]) {
        assert_eq!(status(&app, &before, path).await, 403, "{path}: the role has another name");
        assert_eq!(status(&app, &boss, path).await, expected, "{path}");
    }
    assert_eq!(status(&app, &boss, "/v1/agent/usage").await, 200, "one's own is no line");
    let expected = [
        json!(["read", "b", "ann", "/api/chats/admin/all"]),
        json!(["read", "b", "", "/api/chats/admin/7"]),
        json!(["read", "b", "", "/v1/agent/usage?of=tenant"]),
    ];
    assert_eq!(told(&record(&app, Some("acme")).await, &["act", "actor", "user", "subject"]), expected);

    let nobody = TestApp::start(&[("SERVER__ADMIN_ROLE", "")]).await;
    let token = nobody.token_of("b", Some("acme"), &["platform_admin", ""]);
    assert_eq!(status(&nobody, &token, "/api/chats/admin/all").await, 403, "an empty name is nobody's");
}
