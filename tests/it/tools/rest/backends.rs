//! Further backends: each request goes to the backend that its file names, with that backend's credentials alone.

use serde_json::json;
use switchboard::config::Config;

use super::{Setup, answer};
use crate::support::app::sources;
use crate::support::frames;
use crate::support::model::{says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "note"
description = "Reads a note of the application."
request = { path = "/notes/1" }

[[tool]]
name = "row"
description = "Reads a row of the application's tables."
backend = "data"
input_schema = { type = "object", properties = { owner = { type = "string" } } }
request = { path = "/rest/v1/rows", query = { owner = "eq.{{ args.owner }}" } }
[tool.resolve.owner]
path = "/rest/v1/owners"
id = "id"
name = "name"

[[tool]]
name = "search"
description = "Searches the web."
backend = "web"
request = { method = "POST", path = "/search", effect = "read" }
"#;

const DATA: &str = r#"
closing = ["mine.md"]
[[data]]
slot = "news"
backend = "web"
request = { path = "/news" }
"#;

const IMPORT: &str = "document = \"web.json\"\nbackend = \"web\"\noperations = [\"weather\"]\n";

const DOCUMENT: &str = r#"{"openapi": "3.1.0", "info": {"title": "Weather", "version": "1"}, "paths": {"/weather": {
    "get": {"operationId": "weather", "summary": "The weather.", "responses": {"200": {"description": "It."}}}}}}"#;

const KEY: &str = "key-of-the-search-service";

const SETTINGS: &str = r#"
[backends.web.headers]
X-Plan = "Plan large-plan"
[backends.data.headers]
apikey = "public-key-of-the-tables"
"#;

/// What the web service says: the request's own secrets, as a service in trouble might.
fn repeating(request: &Request) -> Option<Answer> {
    let sent: Vec<&str> = request.headers.iter().map(|(_, value)| value.as_str()).collect();
    // Many services repeat a key without the scheme before it.
    let bare: Vec<&str> = sent.iter().filter_map(|value| value.rsplit(' ').next()).collect();
    answer(&json!({"heard": sent, "bare": bare}))
}

#[tokio::test]
async fn each_backend_gets_its_own_requests_and_credentials() {
    let data = Upstream::choosing(|request| match request.path.as_str() {
        "/rest/v1/owners" => answer(&json!([{"id": 7, "name": "Ada"}])),
        _ => answer(&json!([{"id": 1}])),
    })
    .await;
    let web = Upstream::choosing(repeating).await;
    let (data_url, web_url) = (data.url(), format!("{}/api", web.url()));
    let mut setup = Setup::of(TOOLS);
    setup.tools.push("weather");
    setup.profile = DATA;
    setup.files.extend([
        ("default.toml", SETTINGS),
        ("prompts/mine.md", "News: {{ data.news }}"),
        ("openapi/web.toml", IMPORT),
        ("openapi/web.json", DOCUMENT),
    ]);
    setup.settings = vec![
        ("BACKENDS__DATA__BASE_URL", &data_url),
        ("BACKENDS__WEB__BASE_URL", &web_url),
        ("BACKENDS__WEB__CREDENTIALS", "none"),
        ("BACKENDS__WEB__API_KEY", KEY),
    ];
    let calls = turn()
        .call("c1", "note", &json!({}))
        .call("c2", "row", &json!({"owner": "Ada"}))
        .call("c3", "search", &json!({}))
        .call("c4", "weather", &json!({}));
    let (s, main) = setup.start([calls.done(), says("Done.")], |_| answer(&json!({"text": "A note"}))).await;
    let response = s.app.post(&json!({"message": "Go", "context_type": "mine"})).await;
    let frames = frames::parse(&response.text().await.unwrap());
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");

    let caller = format!("Bearer {}", s.app.token);
    let seen = |upstream: &Upstream| -> Vec<(String, Option<String>)> {
        let requests = upstream.requests().into_iter();
        requests.map(|request| (request.path.clone(), request.header("authorization").map(str::to_owned))).collect()
    };
    assert_eq!(seen(&main), [("/api/notes/1".to_owned(), Some(caller.clone()))]);
    let of_data = ["/rest/v1/owners", "/rest/v1/rows?owner=eq.7"].map(|path| (path.to_owned(), Some(caller.clone())));
    assert_eq!(seen(&data), of_data);
    let own = Some(format!("Bearer {KEY}"));
    let of_web = ["/api/news", "/api/search", "/api/weather"].map(|path| (path.to_owned(), own.clone()));
    assert_eq!(seen(&web), of_web);
    for request in data.requests() {
        assert_eq!(request.header("apikey"), Some("public-key-of-the-tables"));
    }
    for request in web.requests() {
        assert_eq!(request.header("x-plan"), Some("Plan large-plan"));
        assert!(request.headers.iter().all(|(_, value)| !value.contains(&s.app.token)), "{:?}", request.headers);
    }
    let heard: String = s.model.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(heard.contains("Bearer [redacted]"), "the service repeats what it gets");
    for secret in [KEY, "large-plan", "public-key-of-the-tables", &s.app.token] {
        assert!(!heard.contains(secret), "{secret} reached the model");
    }
}

/// What is said of a file of settings with these lines.
fn load(text: &str) -> Result<Config, Vec<String>> {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("settings.toml");
    std::fs::write(&file, text).unwrap();
    let mut sources = sources(&data, &[]);
    sources.file = Some(file);
    sources.env.insert("WEB_KEY".to_owned(), KEY.to_owned());
    Config::load(&sources).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn mistakes_in_settings_of_backends_are_told_at_once() {
    let text = r#"
backends.text = "x"
[backend]
cookie = true
[backends.Data]
base_url = "http://localhost:1"
[backends.web]
base_url = "http://ann:pass@localhost:1"
credentials = "mine"
[backends.none]
credentials = "none"
api_key = { env = "NO_SUCH_VARIABLE" }
headers = { Host = "x", "a b" = "y", "Idempotency-Key" = "z" }
[backends.fixed]
base_url = "http://localhost:1"
credentials = "static"
scope = "x"
[backends.given]
base_url = "http://localhost:1"
credentials = "client_credentials"
token_url = "http://issuer.example/token"
headers = { Authorization = "x" }
[backends.user]
base_url = "http://localhost:1"
credentials = "token_exchange"
token_url = "https://ann:pass@issuer.example/token"
client_id = "x"
client_secret = "y"
[backends.both]
base_url = "http://localhost:1"
api_key = "k"
headers = { Authorization = "x" }
"#;
    let mut expected = [
        "backends.text: must be a section",
        "backends.none.api_key: there is no variable NO_SUCH_VARIABLE",
        "backends.Data: the name of a section must be 1 to 32 of a-z 0-9 -",
        "backends.web.credentials: unknown variant `mine`, expected one of `caller`, `none`, `static`, `client_credentials`, `token_exchange`",
        "backends.fixed.credentials: \"static\" needs an api_key or a header",
        "backends.fixed.scope: is of use only with credentials = \"client_credentials\" or \"token_exchange\"",
        "backends.given.client_id: is required with these credentials",
        "backends.given.client_secret: is required with these credentials",
        "backends.given.token_url: must be an https:// address without a user, password or fragment, or http:// on this machine",
        "backends.user.token_url: must be an https:// address without a user, password or fragment, or http:// on this machine",
        "backends.given.headers.Authorization: is taken by these credentials: it is of use only with \"none\" and \"static\"",
        "backend.cookie: is of use only with auth.cookie",
        "backends.both.api_key: is of use only with credentials = \"none\" or \"static\"",
        "backends.both.headers.Authorization: must not be given beside api_key",
        "backends.none.headers.Host: belongs to the protocol",
        "backends.none.headers.Idempotency-Key: is the key of each write",
        "backends.none.headers.a b: has characters that no http header can carry",
        "backends.none.base_url: is not a URL",
        "backends.web.base_url: must not hold a user or password",
    ]
    .map(str::to_owned);
    let mut found = load(text).unwrap_err();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

/// Two issuers could have a tenant of one name each, and one's users would be given tokens for the other's.
#[test]
fn a_backend_may_name_the_tenant_only_where_tenants_have_names_of_their_own() {
    let of_issuers = |issuers: &str| {
        format!(
            r#"
[auth]
mode = "jwks"
{issuers}
[backends.ledger]
base_url = "http://localhost:1"
credentials = "client_credentials"
token_url = "https://id.example.com/token"
client_id = "x"
client_secret = "y"
scope = "rows:{{tenant}}"
audience = "{{tenant}}"
"#
        )
    };
    let issuer = |name: &str, more: &str| {
        format!("[auth.issuers.{name}]\nissuer = \"https://{name}.example.com\"\naudience = [\"a\"]\n{more}\n")
    };
    let reason = "must not name the tenant: with several issuers two tenants may have one name";
    let refused = [format!("backends.ledger.scope: {reason}"), format!("backends.ledger.audience: {reason}")];
    let (own, fixed) = ("issuer = \"https://own.example.com\"\naudience = \"a\"\n", "tenant = \"staff\"");
    let rows = [
        (issuer("one", ""), true),
        (issuer("one", fixed) + &issuer("two", "tenant = \"partners\""), true),
        (issuer("one", fixed) + &issuer("two", ""), false),
        (own.to_owned() + &issuer("one", fixed), false),
    ];
    for (issuers, is_good) in rows {
        let found = load(&of_issuers(&issuers)).err().unwrap_or_default();
        assert_eq!(found, if is_good { &[][..] } else { &refused[..] }, "{issuers}");
    }
}

#[test]
fn secrets_of_backends_come_from_elsewhere_and_are_not_printed() {
    let text = r#"
[backends.web]
base_url = "http://localhost:1"
credentials = "none"
api_key = { env = "WEB_KEY" }
headers = { X-Team = { env = "WEB_KEY", prefix = "team " } }
"#;
    let config = load(text).unwrap();
    let web = &config.backends["web"];
    assert_eq!((web.api_key.expose(), web.headers["X-Team"].expose()), (KEY, &*format!("team {KEY}")));
    assert_eq!(web.timeout_s, 30);
    assert!(!format!("{config:?}").contains(KEY));
}

#[tokio::test]
async fn a_file_can_only_name_a_backend_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("tools/more.toml", TOOLS.replace("\"data\"", "\"tables\"")),
        (
            "profiles/mine.toml",
            "id = \"mine\"\ncontext_type = \"mine\"\ninstructions = [\"workflow/role.md\"]\n".to_owned()
                + &DATA.replace("closing = [\"mine.md\"]", ""),
        ),
    ];
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let data = tempfile::tempdir().unwrap();
    let mut sources = sources(&data, &[("BACKENDS__DATA__BASE_URL", "http://localhost:1")]);
    sources.dir = Some(folder.path().to_owned());
    let config = Config::load(&sources).unwrap();
    let problems: Vec<String> = match switchboard::app::check(&config, &sources.assets()).await {
        Err(switchboard::app::StartError::Config(problems)) => problems.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    };
    let lines = [
        "tools/more.toml:10: tool[1].backend \"tables\" is no section of [backends]; there are: data",
        "tools/more.toml:21: tool[2].backend \"web\" is no section of [backends]; there are: data",
        "profiles/mine.toml:8: data[0].backend \"web\" is no section of [backends]; there are: data",
    ];
    assert_eq!(problems, lines);
}
