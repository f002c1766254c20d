//! Packages: a catalogue for all, installations of each tenant.

use serde_json::{Value, json};

use super::{Backend, NOW, pluck, refused};

const OWNER: &str = "owner@acme";
const INSTALL: &str = "/v1/packages/customer-support/install";
const UNINSTALL: &str = "/v1/packages/customer-support/uninstall";

impl Backend {
    async fn installed(&self, token: &str) -> Value {
        let (status, body) = self.get(token, "/v1/packages/installations").await;
        assert_eq!(status, 200, "{body}");
        body["installations"].clone()
    }
}

#[tokio::test]
async fn a_package_is_installed_uninstalled_and_installed_again() {
    let backend = Backend::start().await;
    let (_, catalogue) = backend.get("member@acme", "/v1/packages").await;
    assert_eq!(pluck(&catalogue["items"], "slug"), ["starter-agents", "customer-support", "field-service"]);
    assert_eq!(backend.installed(OWNER).await, json!({}));

    let (status, made) =
        backend.post(OWNER, INSTALL, &json!({ "version": "1.2.0", "config": { "tone": "kind" } })).await;
    let row = |status: &str, enabled: bool, config: Value| {
        json!({
            "id": made["id"], "slug": "customer-support", "version": "1.2.0", "status": status, "enabled": enabled,
            "config": config, "installed_at": NOW, "updated_at": NOW, "last_error": null, "last_error_at": null,
        })
    };
    assert_eq!((status, &made), (200, &row("installed", true, json!({ "tone": "kind" }))));
    let entry = |status: &str, enabled: bool| {
        json!({ "customer-support": {
            "id": made["id"], "status": status, "enabled": enabled, "installed_at": NOW, "updated_at": NOW,
            "last_error": null, "last_error_at": null,
        } })
    };
    assert_eq!(backend.installed("member@acme").await, entry("installed", true));
    assert_eq!(backend.installed("owner@globex").await, json!({}), "another tenant has its own");

    let answer = backend.post(OWNER, UNINSTALL, &json!({})).await;
    assert_eq!(answer, (200, row("disabled", false, json!({ "tone": "kind" }))));
    assert_eq!(backend.installed(OWNER).await, entry("disabled", false));
    let answer = backend.post(OWNER, INSTALL, &json!({})).await;
    assert_eq!(answer, (200, row("installed", true, json!({ "tone": "kind" }))), "it is the same, with its settings");

    assert_eq!(backend.post(OWNER, UNINSTALL, &json!({ "purge": true })).await.0, 200);
    assert_eq!(backend.installed(OWNER).await, json!({}));
    let (_, fresh) = backend.post(OWNER, INSTALL, &json!({})).await;
    assert_eq!(fresh["config"], json!({}));
    assert_ne!(fresh["id"], made["id"], "nothing was left of it");
}

#[tokio::test]
async fn what_cannot_be_installed_is_told() {
    let backend = Backend::start().await;
    let mismatch = (422, refused("mismatch", "package version mismatch: expected 1.2.0, requested 9.0.0"));
    let cases = [
        (OWNER, "/v1/packages/nothing/install", json!({}), (404, refused("not_found", "package not found"))),
        (OWNER, "/v1/packages/early-access/install", json!({}), (404, refused("not_found", "package not available"))),
        (OWNER, INSTALL, json!({ "version": "9.0.0" }), mismatch.clone()),
        (OWNER, UNINSTALL, json!({}), (404, refused("not_found", "package not installed"))),
        ("member@acme", INSTALL, json!({}), (403, refused("permission_denied", "this needs the role owner or admin"))),
        (
            OWNER,
            INSTALL,
            json!({ "config": { "text": "x".repeat(17_000) } }),
            (400, refused("invalid_argument", "config: must have at most 16384 bytes")),
        ),
    ];
    for (token, path, body, expected) in cases {
        assert_eq!(backend.post(token, path, &body).await, expected, "{token} {path}");
    }
    assert_eq!(backend.installed(OWNER).await, json!({}), "nothing was done");
    assert_eq!(backend.post(OWNER, INSTALL, &json!({})).await.0, 200);
    assert_eq!(backend.post(OWNER, UNINSTALL, &json!({ "version": "9.0.0" })).await, mismatch);
}
