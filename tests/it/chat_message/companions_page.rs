//! What pages in Node do besides chatting: packages, and a user who is known by a cookie alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use super::opened::{Opened, is_at_rest, texts};
use crate::support::app::ADA;
use crate::support::model::{Script, Scripted, says};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;
use crate::tools::rest::{Setup, answer};

const TOOLS: &str = r#"
[[tool]]
name = "install_package"
description = "Installs a package."
roles = ["owner", "admin"]
request = { method = "POST", path = "/packages/{slug}/install" }
[tool.input_schema]
type = "object"
required = ["slug"]
additionalProperties = false
properties = { slug = { type = "string" }, version = { type = "string" }, config = { type = "object" } }
[tool.directive]
name = "package.install"
runs_as = "service"
idempotent = true
wait_s = 0
key = "{{ args.slug }}"

[[tool]]
name = "uninstall_package"
description = "Removes a package."
roles = ["owner", "admin"]
request = { method = "POST", path = "/packages/{slug}/uninstall" }
[tool.input_schema]
type = "object"
required = ["slug"]
additionalProperties = false
properties = { slug = { type = "string" }, version = { type = "string" }, purge = { type = "boolean" } }
[tool.directive]
name = "package.uninstall"
runs_as = "service"
idempotent = true
wait_s = 0
key = "{{ args.slug }}"

[[tool]]
name = "list_installations"
description = "Lists what is installed."
request = { path = "/installations" }
result = { projection = "installations" }
input_schema = { type = "object", additionalProperties = false, properties = {} }
"#;

/// An application with packages, of which it installs all but `field-service`.
fn packages() -> impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static {
    let installed = Mutex::new(BTreeMap::<String, Value>::new());
    move |request| {
        let mut installed = installed.lock().unwrap();
        let path = request.path.strip_prefix("/api/").unwrap();
        match path.split('/').collect::<Vec<_>>()[..] {
            ["installations"] => answer(&json!({"installations": &*installed})),
            ["packages", "field-service", "install"] => {
                let words = json!({"error": "Your plan does not have this package"});
                Some(Answer::status(422, "application/json", words.to_string()))
            }
            ["packages", slug, "install"] => {
                let row = json!({"id": format!("id-{slug}"), "status": "installed", "enabled": true});
                installed.insert(slug.to_owned(), row.clone());
                answer(&row)
            }
            ["packages", slug, "uninstall"] => {
                installed.remove(slug);
                answer(&json!({"done": true}))
            }
            _ => None,
        }
    }
}

/// The product over that application.
pub async fn forum(more: &[(&str, &str)], turns: impl IntoIterator<Item = Script>) -> (Scripted, Upstream) {
    let mut setup = Setup::of(TOOLS);
    setup.settings = [
        &[
            ("CHAT_MESSAGE__PROFILE", "mine"),
            ("CHAT_MESSAGE__INSTALL", "package.install"),
            ("CHAT_MESSAGE__UNINSTALL", "package.uninstall"),
            ("CHAT_MESSAGE__INSTALLATIONS", "list_installations"),
            ("BACKEND__SERVICE__MODE", "token"),
            ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
            ("DIRECTIVES__POLL_MS", "100"),
        ],
        more,
    ]
    .concat();
    setup.start(turns, packages()).await
}

pub fn admin(s: &Scripted) -> String {
    s.app.token_of(ADA, Some("acme"), &["admin"])
}

/// The requests of a page to this path.
fn sent<'a>(shown: &'a Value, path: &str) -> Vec<&'a Value> {
    shown["requests"].as_array().unwrap().iter().filter(|request| request["path"] == path).collect()
}

const STATUS: &str = "/marketplace/installations/status";

#[tokio::test]
async fn the_install_buttons_of_the_chat_end_as_installed_or_with_the_backends_words() {
    let (s, _backend) = forum(&[], []).await;
    let Some(mut page) = Opened::at(&s.app.url(""), &admin(&s), &json!({"csrf": "a token"})) else { return };
    page.presses("Install starter agents").await;
    let shown = page.until(json!({"packages": ["Installed", "", ""]})).await;
    let order = &sent(&shown, "/marketplace/install")[0];
    assert_eq!(order["body"], json!({"slug": "starter-agents"}));
    assert_eq!(order["headers"], json!({"content-type": "application/json", "x-csrf-token": "a token"}));
    let polls = sent(&shown, STATUS);
    assert_eq!(polls[0]["headers"], json!({"accept": "application/json"}));

    page.presses("Install field service agents").await;
    let refused = "Your plan does not have this package";
    let ended = eventually("the button says how it ended", async || {
        let shown = page.does(&json!({"until": {}})).await;
        let text = shown["packages"][2].as_str().unwrap().to_owned();
        (text != "Installing…").then_some((shown, text))
    });
    let (shown, text) = ended.await;
    assert!(text.contains(refused), "{text}");
    assert!(sent(&shown, STATUS).len() - polls.len() <= 2, "{shown:#}");
    // With agents there is nothing to install.
    let options = json!({"props": {"agents": [{"id": "a1", "name": "One"}]}});
    let Some(mut page) = Opened::at(&s.app.url(""), &admin(&s), &options) else { return };
    assert_eq!(page.until(json!({})).await["packages"], json!([]));
}

#[tokio::test]
async fn the_marketplace_installs_uninstalls_and_installs_again() {
    let (s, backend) = forum(&[], []).await;
    let packages = json!([{"slug": "starter-agents", "name": "Starter", "version": "1.0.0"}]);
    let options = json!({"page": "marketplace", "props": {"packages": packages}, "pace": 0.2});
    let Some(mut page) = Opened::at(&s.app.url(""), &admin(&s), &options) else { return };
    let writes = || {
        let all = backend.requests().into_iter().filter(|request| request.method == "POST");
        all.map(|request| request.path).collect::<Vec<_>>()
    };
    let (installs, uninstalls) = ("/api/packages/starter-agents/install", "/api/packages/starter-agents/uninstall");
    page.presses("Install Starter").await;
    page.until(json!({"packages": ["Installed"]})).await;
    page.presses("Uninstall Starter").await;
    page.until(json!({"packages": [""]})).await;
    eventually("it is uninstalled", async || (writes().len() == 2).then_some(())).await;
    page.presses("Install Starter").await;
    let shown = page.until(json!({"packages": ["Installed"]})).await;
    assert_eq!(writes(), [installs, uninstalls, installs]);
    let bodies = |path: &str| sent(&shown, path).into_iter().map(|request| request["body"].clone()).collect::<Vec<_>>();
    let order = json!({"slug": "starter-agents", "version": "1.0.0"});
    assert_eq!(bodies("/marketplace/install"), [order.clone(), order]);
    assert_eq!(bodies("/marketplace/uninstall"), [json!({"slug": "starter-agents", "purge": false})]);
}

#[tokio::test]
async fn a_page_with_nothing_but_its_cookie_and_its_token_against_forgeries_works() {
    let token = Arc::new(OnceLock::<String>::new());
    let of_session = Arc::clone(&token);
    let application = Upstream::choosing(move |request| {
        let known =
            request.header("cookie") == Some("forum_key=abc") && request.header("x-csrf-token") != Some("wrong");
        match known {
            true => answer(&json!({"access_token": of_session.get().unwrap()})),
            false => Some(Answer::status(403, "application/json", "{}")),
        }
    })
    .await;
    let exchange = format!("{}/session/token", application.url());
    let settings = [("AUTH__SESSION__COOKIE", "forum_key"), ("AUTH__SESSION__EXCHANGE_URL", exchange.as_str())];
    let (s, backend) = forum(&settings, [says("Hello.")]).await;
    token.set(admin(&s)).unwrap();

    let cookies = ["forum_key=abc; HttpOnly; SameSite=Lax; Path=/", "theme=dark"];
    let options = json!({"csrf": "a token", "cookies": cookies});
    let Some(mut page) = Opened::at(&s.app.url(""), "", &options) else { return };
    let ended = page.asks("Hi").await;
    assert!(is_at_rest(&ended), "{ended:#}");
    assert_eq!(texts(&ended), ["Hi", "Hello."]);
    page.presses("Install starter agents").await;
    page.until(json!({"packages": ["Installed", "", ""]})).await;
    for request in s.model.requests().iter().chain(&backend.requests()) {
        assert_eq!((request.header("cookie"), request.header("x-csrf-token")), (None, None), "{request:?}");
    }
    let exchanges = application.requests();
    assert!(!exchanges.is_empty());
    assert!(exchanges.iter().all(|request| request.header("cookie") == Some("forum_key=abc")), "{exchanges:?}");

    for options in [json!({"cookies": cookies}), json!({"cookies": cookies, "csrf": "wrong"})] {
        let Some(mut page) = Opened::at(&s.app.url(""), "", &options) else { return };
        let refused = page.asks("Hi").await;
        let error = refused["error"].as_str().unwrap();
        assert!(error.starts_with("Chat request failed (403): ") && error.contains("csrf_failed"), "{error}");
    }
    assert_eq!(s.model.requests().len(), 1);
}
