//! Addresses that are made of a model's arguments: whatever an argument says, the request stays on the backend's origin,
//! below the template's path, with as many parts as the template has, and the value arrives whole or not at all.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard::config::{Config, Sources};
use switchboard::llm::Vendor;
use url::form_urlencoded;

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Script, says, turn};
use crate::support::tickets::write;
use crate::support::upstream::{Answer, Request, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "segment"
description = "x"
input_schema = { type = "object", properties = { v = {} } }
[tool.request]
path = "/v1/things/{v}/leaf"

[[tool]]
name = "part"
description = "x"
input_schema = { type = "object", properties = { v = {} } }
[tool.request]
path = "/v1/parts/a-{v}.json"

[[tool]]
name = "query"
description = "x"
input_schema = { type = "object", properties = { v = {} } }
[tool.request]
path = "/v1/find"
query = { q = "{{ args.v }}" }

[[tool]]
name = "header"
description = "x"
input_schema = { type = "object", properties = { v = {} } }
[tool.request]
path = "/v1/tagged"
query = {}
headers = { x-tag = "{{ args.v }}" }

[[tool]]
name = "body"
description = "x"
input_schema = { type = "object", properties = { v = {} } }
[tool.request]
method = "POST"
path = "/v1/notes"
effect = "read"

[[tool]]
name = "resolved"
description = "x"
input_schema = { type = "object", properties = { v = { type = "string" } } }
[tool.resolve.v]
path = "/v1/people"
id = "id"
name = "name"
[tool.request]
path = "/v1/people/{v}/leaf"
"#;

/// An operation of somebody's API.
const API: &str = r#"
openapi: 3.1.0
paths:
  /v1/pets/{petId}/leaf:
    get:
      operationId: pet
      summary: Reads a pet.
      parameters:
        - {name: petId, in: path, required: true, schema: {type: string}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: near, in: query, schema: {type: string}}
"#;

const PROFILE: &str = r#"
id = "addresses"
context_type = "addresses"
tools = ["segment", "part", "query", "header", "body", "resolved", "pet", "get_workflow_rule", "get_table_config", "get_alert_detail"]
"#;

/// What an attacker writes in the place of a thing's name; `trap` is another origin without its scheme.
fn payloads(trap: &str) -> Vec<String> {
    let port = trap.rsplit(':').next().unwrap();
    let hosts = [trap.to_owned(), format!("localhost:{port}"), format!("[::1]:{port}"), format!("2130706433:{port}")];
    let shapes = [
        "//{}",
        "///{}",
        "////{}/x",
        "/\\{}",
        "\\\\{}",
        "\\/{}",
        "@{}",
        "x@{}",
        "user:pass@{}",
        ":@{}",
        "http://{}",
        "https://{}",
        "HTTP:{}",
        "http:\\\\{}",
        "http:/{}",
        "ws://{}",
        "//x@{}",
        "/%09/{}",
        "/\t/{}",
        "/\n/{}",
        "%2f%2f{}",
        "%5c%5c{}",
        ".{}",
        "?@{}",
        "#@{}",
        "/..//{}",
        "..//{}",
        "\r\nHost: {}\r\n\r\n",
        "x HTTP/1.1\r\nHost: {}\r\n\r\nGET /",
        "／／{}",
        "＠{}",
    ];
    let spelt = hosts.iter().flat_map(|host| shapes.iter().map(move |shape| shape.replace("{}", host)));
    let alone = [
        // upwards
        "..",
        ".",
        "...",
        "../",
        "../..",
        "../../../../etc/passwd",
        "..\\..\\x",
        "..;/x",
        "..%2f",
        "%2e%2e",
        "%2e%2e%2f%2e%2e%2fadmin",
        "%252e%252e%252f",
        ".%2e",
        "%2E.",
        "..%00",
        "..%0d%0a",
        "..\t",
        ".\t.",
        ".\n.",
        "\u{2024}\u{2024}/x",
        "．．／x",
        "..%c0%af",
        "..%u2215",
        "a/../../b",
        "/..",
        "./../x",
        "x/..",
        "x/.",
        "%2e",
        ".%00.",
        // ends of a path
        "?",
        "#",
        "?x=1",
        "#x",
        "7?admin=true",
        "7#frag",
        "7;v=1",
        "7&x=1",
        "7=1",
        "?#",
        "%3f",
        "%23",
        "%3Fadmin%3D1",
        "x?y#z",
        "7/",
        // slashes
        "/",
        "//",
        "\\",
        "\\\\",
        "a/b",
        "a\\b",
        "%2f",
        "%5c",
        "%252f",
        "a%2fb",
        "∕",
        "⁄",
        "／",
        "＼",
        // what breaks lines
        "\r",
        "\n",
        "\r\n",
        "a\rb",
        "a\nb",
        "a\r\nx-evil: 1",
        "%0d%0a",
        "%0d%0ax-evil:%201",
        "\u{85}",
        "\u{2028}",
        "\u{2029}",
        "\u{b}\u{c}",
        // what ends texts
        "\0",
        "a\0b",
        "%00",
        "a%00b",
        "\u{1}",
        "\u{7f}",
        "\u{1b}[0m",
        "\u{feff}",
        "\u{202e}x",
        "\u{200b}",
        "\u{fffd}",
        // templates and formats
        "{v}",
        "{{ user }}",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "${user}",
        "%s%n",
        "$(id)",
        "`id`",
        "|id",
        ";id",
        "'\"<>",
        "' OR 1=1 --",
        // schemes
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "gopher://x",
        "mailto:x",
        "about:blank",
        "blob:x",
        // blanks and plain values
        "",
        " ",
        "\t",
        "a b",
        " a",
        "a ",
        "+",
        "%20",
        "%",
        "%%",
        "%zz",
        "ü",
        "日本",
        "🐟",
        "e\u{301}",
        "7",
        "-1",
        "null",
        "true",
        "[]",
        "*",
        "~",
        "^",
    ];
    let long = ["x".repeat(1025), "../".repeat(2000), "%2e%2e%2f".repeat(500), "🐟".repeat(300)];
    spelt.chain(alone.map(str::to_owned)).chain(long).collect()
}

/// The text of an encoded part.
fn decoded(part: &str) -> String {
    let form = format!("v={}", part.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(form.as_bytes()).next().unwrap().1.into_owned()
}

/// What a request carried of the model's argument.
fn carried(request: &Request) -> String {
    let path = request.path.strip_prefix("/api/v1/").unwrap_or_else(|| panic!("outside: {}", request.path));
    let raw = request.path.bytes().all(|b| b.is_ascii_graphic() && !b"\\<>\"`{}#".contains(&b));
    assert!(raw, "not encoded: {:?}", request.path);
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let parts: Vec<&str> = path.split('/').collect();
    match (&*request.method, &parts[..], query) {
        ("GET", ["things" | "people" | "pets", part, "leaf"], None) => decoded(part),
        ("GET", ["parts", part], None) => {
            let whole = decoded(part);
            whole.strip_prefix("a-").and_then(|rest| rest.strip_suffix(".json")).unwrap().to_owned()
        }
        ("GET", ["find"], Some(query)) => {
            assert!(!query.contains('&'), "{query}");
            let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
            assert_eq!((pairs.len(), &*pairs[0].0), (1, "q"), "{query}");
            pairs[0].1.to_string()
        }
        ("GET", ["tagged"], None) => request.header("x-tag").unwrap_or_default().to_owned(),
        ("POST", ["notes"], None) => request.json()["v"].as_str().unwrap().to_owned(),
        other => panic!("another request: {other:?}"),
    }
}

/// What the server itself sends, and the one header that a tool may set.
const HEADERS: [&str; 9] = [
    "accept",
    "authorization",
    "content-type",
    "content-length",
    "host",
    "user-agent",
    "x-request-id",
    "x-tag",
    "x-trace",
];

/// A conversation in which the model makes `calls` in one turn; the ids of those that failed.
async fn said(app: &TestApp) -> Vec<String> {
    let frames = app.chat(&json!({"message": "Go", "context_type": "addresses"})).await;
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
    let failed =
        frames.iter().filter(|frame| frame.event == "tool_call_result" && frame.data["is_error"] == json!(true));
    failed.map(|frame| frame.data["tool_use_id"].as_str().unwrap().to_owned()).collect()
}

struct Wire {
    app: TestApp,
    backend: Upstream,
    trap: Upstream,
    _model: Upstream,
}

/// The product whose model plays `turns`, and whose backend knows people of the ids in `payloads`, called `n0`, `n1`, ….
async fn start(trap: Upstream, payloads: &[String], turns: Vec<Script>) -> Wire {
    let data = tempfile::tempdir().unwrap();
    write(&data, "tools/addresses.toml", TOOLS);
    write(&data, "openapi/pets.yaml", API);
    write(&data, "openapi/pets.toml", "document = \"pets.yaml\"\noperations = [\"pet\"]\n");
    write(&data, "profiles/addresses.toml", PROFILE);
    let people: Vec<Value> =
        payloads.iter().enumerate().map(|(n, id)| json!({"id": id, "name": format!("n{n}")})).collect();
    let people = Value::from(people).to_string();
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let backend = Upstream::choosing(move |request| {
        let body = if request.path == "/api/v1/people" { people.clone() } else { "{\"ok\":true}".to_owned() };
        Some(Answer::ok("application/json", body))
    })
    .await;
    let (model_url, backend_url) = (format!("{}/v1", model.url()), format!("{}/api", backend.url()));
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", model_url.as_str()),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", backend_url.as_str()),
        ("RUNS__MAX_TOOL_CALLS", "0"),
    ];
    Wire { app: TestApp::start_in(data, &settings).await, backend, trap, _model: model }
}

/// So many payloads go into one turn.
const AT_ONCE: usize = 25;

#[tokio::test]
async fn an_argument_fills_its_place_and_leads_nowhere_else() {
    let trap = Upstream::choosing(|_| Some(Answer::ok("application/json", "{}"))).await;
    let payloads = payloads(trap.url().strip_prefix("http://").unwrap());
    let distinct: BTreeSet<&String> = payloads.iter().collect();
    assert!(distinct.len() >= 200, "{} payloads", distinct.len());
    let tools = ["segment", "part", "query", "header", "body", "pet"];
    let turns = payloads.chunks(AT_ONCE).enumerate().flat_map(|(chunk, payloads)| {
        let asked = payloads.iter().enumerate().fold(turn(), |turn, (n, payload)| {
            let n = chunk * AT_ONCE + n;
            let turn = tools.iter().fold(turn, |turn, tool| {
                let args = match *tool {
                    "pet" => json!({"petId": payload}),
                    _ => json!({"v": payload}),
                };
                turn.call(&format!("{tool}.{n}"), tool, &args)
            });
            turn.call(&format!("resolved.{n}"), "resolved", &json!({"v": format!("n{n}")}))
        });
        [asked.done(), says("Done.")]
    });
    let wire = start(trap, &payloads, turns.collect()).await;
    let mut seen = 0;
    for (chunk, some) in payloads.chunks(AT_ONCE).enumerate() {
        let failed = said(&wire.app).await;
        let requests = wire.backend.requests().split_off(seen);
        seen += requests.len();
        let arrived: Vec<Request> = requests.into_iter().filter(|request| request.path != "/api/v1/people").collect();
        let mut arrived = arrived.iter();
        for (n, payload) in some.iter().enumerate() {
            let n = chunk * AT_ONCE + n;
            for tool in tools.iter().chain(&["resolved"]) {
                if failed.contains(&format!("{tool}.{n}")) {
                    continue;
                }
                let request = arrived.next().unwrap_or_else(|| panic!("{tool} {payload:?} did not arrive"));
                let expected = if *tool == "header" { payload.trim() } else { payload.as_str() };
                assert_eq!(carried(request), expected, "{tool}: {}", request.path);
                for (name, _) in &request.headers {
                    assert!(HEADERS.contains(&name.as_str()), "{tool} {payload:?}: {name}");
                }
                assert_eq!(request.header("host"), wire.backend.url().strip_prefix("http://"), "{tool} {payload:?}");
            }
            assert!(!failed.contains(&format!("query.{n}")) && !failed.contains(&format!("body.{n}")), "{payload:?}");
        }
        assert_eq!(arrived.next().map(|request| &request.path), None, "one request for each call");
    }
    assert_eq!(wire.trap.connections(), 0, "{:?}", wire.trap.requests());
}

#[tokio::test]
async fn the_shipped_tools_stay_below_the_root_too() {
    let trap = Upstream::choosing(|_| Some(Answer::ok("application/json", "{}"))).await;
    let payloads = payloads(trap.url().strip_prefix("http://").unwrap());
    let turns = payloads.chunks(AT_ONCE).flat_map(|payloads| {
        let asked = payloads.iter().enumerate().fold(turn(), |turn, (n, payload)| {
            turn.call(&format!("r{n}"), "get_workflow_rule", &json!({"workflow_id": payload}))
                .call(&format!("i{n}"), "get_table_config", &json!({"id": payload}))
                .call(&format!("n{n}"), "get_table_config", &json!({"name": payload}))
                .call(&format!("a{n}"), "get_alert_detail", &json!({"alert_id": payload, "id": payload}))
        });
        [asked.done(), says("Done.")]
    });
    let wire = start(trap, &[], turns.collect()).await;
    for _ in payloads.chunks(AT_ONCE) {
        said(&wire.app).await;
    }
    let is_payload = |part: &str| payloads.iter().any(|payload| payload.trim() == decoded(part).trim());
    let mut named = 0;
    for request in wire.backend.requests() {
        let (path, _) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let parts: Vec<&str> = path.split('/').collect();
        let is_known = match &parts[..] {
            ["", "api", "v1", "data", "name" | "id", name] => {
                assert!(is_payload(name), "{name} arrives whole, but for blanks around it");
                named += 1;
                true
            }
            ["", "api", "v1", "data", "configs", "all"] => true,
            ["", "api", "v1", "workflow", "rules" | "alerts"] => true,
            ["", "api", "v1", "workflow", "rules" | "alerts", id] | ["", "api", "v1", "workflow", "rules", id, _] => {
                uuid::Uuid::parse_str(id).is_ok() || is_payload(id)
            }
            _ => false,
        };
        assert!(is_known, "{}", request.path);
        assert_eq!(request.header("host"), wire.backend.url().strip_prefix("http://"));
    }
    assert!(named > 100, "{named}");
    assert_eq!(wire.trap.connections(), 0, "{:?}", wire.trap.requests());
}

#[test]
fn an_address_of_a_setting_has_no_user_and_no_other_scheme() {
    let of_vendors = Vendor::ALL.map(|vendor| {
        let name = vendor.name();
        let own = if vendor == Vendor::Vertex { "project = \"acme-1\"\n" } else { "" };
        (format!("[llm.{name}]\napi_key = \"k\"\n{own}base_url = "), name)
    });
    let others = [
        ("[backend]\nmode = \"http\"\nbase_url = ".to_owned(), "demo"),
        ("[embeddings]\nmodel = \"m\"\nbase_url = ".to_owned(), "demo"),
        ("[mcp.peer]\nurl = ".to_owned(), "demo"),
    ];
    let rows = [
        ("http://127.0.0.1:1/api", true, "a plain one"),
        ("https://api.example.com", true, "with TLS"),
        ("http://user@api.example.com", false, "a user"),
        ("http://user:secret@api.example.com", false, "a password"),
        ("http://:secret@api.example.com", false, "a password alone"),
        ("ftp://api.example.com", false, "another scheme"),
        ("file:///etc/passwd", false, "a file"),
        ("javascript:alert(1)", false, "no address"),
        ("//api.example.com", false, "no scheme"),
        ("api.example.com", false, "no scheme, and no slashes"),
        ("http://", false, "no host"),
        ("http://[::1", false, "half an address"),
        ("http://api.example.com/#x", false, "a fragment"),
    ];
    for (section, provider) in others.into_iter().chain(of_vendors) {
        for (address, is_good, reason) in rows {
            let dir = tempfile::tempdir().unwrap();
            let text = format!("{section}\"{address}\"\n");
            std::fs::write(dir.path().join("default.toml"), &text).unwrap();
            let env = [("SWITCHBOARD__LLM__PROVIDER".to_owned(), provider.to_owned())].into();
            let loaded = Config::load(&Sources { env, dir: Some(dir.path().to_owned()), ..Sources::default() });
            let said: Vec<String> = loaded.err().unwrap_or_default().iter().map(ToString::to_string).collect();
            assert_eq!(said.is_empty(), is_good, "{text}: {reason}: {said:?}");
            assert!(!said.iter().any(|line| line.contains("secret")), "{said:?}");
        }
    }
}
