//! Each credential goes to whom it is for, and turns up nowhere else: those of every kind of backend, what issuers give for them, a
//! service's own, the secrets of a subscriber and the caller's token, in a header and in a cookie. The real binary runs with all its
//! logs on. Tools and commands are called at each backend, by a model and over HTTP, well and badly, and whoever is asked repeats all
//! that it was sent.
//!
//! The control: each secret is found at those who are meant to get it, and the places of the repeated ones are found in what was kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::canary::{Piece, contains, files};
use crate::support::model::{calls, says};
use crate::support::process::{Folder, Serving};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;
use crate::tools::mcp;

const MODEL_KEY: &str = "canary-model-key-51c0d2";
const MAIN_SERVICE: &str = "canary-service-of-main-a07e11";
const SHELF_KEY: &str = "canary-key-of-shelf-b3f9c4";
const SHELF_HEADER: &str = "canary-header-of-shelf-6d2e80";
const YARD_HEADER: &str = "canary-header-of-yard-93ab57";
const YARD_SERVICE: &str = "canary-service-of-yard-e4c66f";
const LEDGER_SECRET: &str = "canary-secret-of-ledger-17bd39";
const VAULT_SECRET: &str = "canary-secret-of-vault-c85f02";
const CREW_SECRET: &str = "canary-secret-of-crew-2a90e7";
const BROKEN_SECRET: &str = "canary-secret-of-broken-f61d8b";
const HOOK_SECRET: &str = "Y2FuYXJ5LW9mLWEtc3Vic2NyaWJlci0wMQ==";
const HOOK_SECRET_BEFORE: &str = "Y2FuYXJ5LW9mLWEtc3Vic2NyaWJlci0wMg==";

/// Of another application on the same site.
const OTHER_COOKIE: &str = "canary-cookie-of-another-40d9a1";

/// What stands before the number of a token that the issuer gives.
const LEDGER_TOKEN: &str = "canary-issued-for-ledger-";
const VAULT_TOKEN: &str = "canary-issued-for-vault-";
const CREW_TOKEN: &str = "canary-issued-for-crew-";

/// The backends. `broken` is one whose issuer gives nothing.
const BACKENDS: [&str; 7] = ["main", "shelf", "yard", "ledger", "vault", "crew", "broken"];

/// What stands where a secret was repeated.
const TAKEN_OUT: &str = "[redacted]";

/// All that a request has.
fn text(request: &Request) -> String {
    format!("{} {:?} {}", request.path, request.headers, String::from_utf8_lossy(&request.body))
}

/// A backend repeats what it was sent, in good answers and bad ones. One token is taken no more.
fn backend(request: &Request) -> Answer {
    if request.path == "/mcp" {
        let tools = json!([mcp::tool("look", "Looks.", true)]);
        return mcp::answer(request, &tools, &|id, _| mcp::text(id, &text(request))).1;
    }
    let heard = json!({"id": "x", "error": text(request), "echo": text(request)}).to_string();
    let status = match request.path.as_str() {
        _ if request.header("authorization").is_some_and(|value| value.ends_with(&format!("{LEDGER_TOKEN}0"))) => 401,
        "/fail" => 422,
        _ => 200,
    };
    Answer::status(status, "application/json", heard)
}

/// An issuer numbers its tokens, and repeats in its refusals what it was sent.
fn issuer() -> impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static {
    let given = std::sync::atomic::AtomicUsize::new(0);
    move |request| {
        let prefix = match request.path.as_str() {
            "/ledger" => LEDGER_TOKEN,
            "/vault" => VAULT_TOKEN,
            "/crew" => CREW_TOKEN,
            _ => {
                let heard = json!({"error": "invalid_client", "error_description": text(request)});
                return Some(Answer::status(401, "application/json", heard.to_string()));
            }
        };
        let number = given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let token = json!({
            "access_token": format!("{prefix}{number}"), "token_type": "Bearer", "expires_in": 3600,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        });
        Some(Answer::ok("application/json", token.to_string()))
    }
}

/// A model that calls the tool which the newest message names.
fn model(request: &Request) -> Option<Answer> {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let newest = messages.last().unwrap();
    Some(match newest["role"] == "tool" {
        true => says("So it is.").answer(),
        false => calls("c1", newest["content"].as_str().unwrap(), &json!({})).answer(),
    })
}

/// Four tools of each backend: a read and a command, each also of what is refused.
fn tools() -> String {
    let of = |name: &str| {
        let backend = if name == "main" { String::new() } else { format!("backend = {name:?}\n") };
        let runs_as = if name == "vault" { "caller" } else { "service" };
        let read = |tool: &str, path: &str| {
            format!(
                "[[tool]]\nname = \"{tool}_{name}\"\ndescription = \"Looks.\"\n{backend}\
                 request = {{ method = \"GET\", path = \"/{path}\" }}\n"
            )
        };
        let command = |tool: &str, path: &str| {
            format!(
                "[[tool]]\nname = \"{tool}_{name}\"\ndescription = \"Does.\"\n{backend}\
                 request = {{ method = \"PUT\", path = \"/{path}\" }}\n\
                 [tool.directive]\nname = \"canary.{tool}_{name}\"\nruns_as = \"{runs_as}\"\n\
                 subject = {{ type = \"canary\", id = \"{name}\" }}\n\
                 [[tool.directive.signal]]\nname = \"canary.done\"\npayload = \"{{echo: echo}}\"\n"
            )
        };
        [read("look", "look"), read("miss", "fail"), command("do", "do"), command("spoil", "fail")].concat()
    };
    BACKENDS.map(of).concat()
}

const TOOLS: [&str; 4] = ["look", "miss", "do", "spoil"];

fn profile() -> String {
    let names = BACKENDS.iter().flat_map(|backend| TOOLS.map(|tool| format!("\"{tool}_{backend}\"")));
    let names = names.collect::<Vec<_>>().join(", ");
    format!(
        "id = \"mine\"\ncontext_type = \"mine\"\ninstructions = [\"workflow/role.md\"]\ntools = [{names}]\nsources = [\"shelf\"]\n"
    )
}

/// Those who are asked, by name.
struct Parties {
    backends: Vec<(&'static str, Upstream)>,
    issuer: Upstream,
    model: Upstream,
    hook: Upstream,
}

impl Parties {
    async fn start() -> Self {
        let mut backends = Vec::new();
        for name in BACKENDS {
            backends.push((name, Upstream::choosing(|request| Some(backend(request))).await));
        }
        let refused = std::sync::atomic::AtomicBool::new(false);
        let hook = move |request: &Request| {
            let status = if refused.swap(true, std::sync::atomic::Ordering::Relaxed) { 200 } else { 500 };
            Some(Answer::status(status, "text/plain", text(request)))
        };
        Self {
            backends,
            issuer: Upstream::choosing(issuer()).await,
            model: Upstream::choosing(model).await,
            hook: Upstream::choosing(hook).await,
        }
    }

    fn url(&self, backend: &str) -> String {
        self.backends.iter().find(|(name, _)| *name == backend).unwrap().1.url()
    }

    /// Each with all that it was sent.
    fn heard(&self) -> Vec<(&'static str, String)> {
        let others = [("issuer", &self.issuer), ("model", &self.model), ("hook", &self.hook)];
        let all = self.backends.iter().map(|(name, upstream)| (*name, upstream)).chain(others);
        let heard = |upstream: &Upstream| upstream.requests().iter().map(text).collect::<Vec<_>>().join("\n");
        all.map(|(name, upstream)| (name, heard(upstream))).collect()
    }

    fn settings(&self) -> String {
        let issuer = self.issuer.url();
        let of_issuer = |name: &str, secret: &str| {
            format!("token_url = \"{issuer}/{name}\"\nclient_id = \"{name}\"\nclient_secret = \"{secret}\"\n")
        };
        [
            format!("[backend.service]\nmode = \"token\"\ntoken = \"{MAIN_SERVICE}\"\n"),
            format!("[backends.shelf]\nbase_url = \"{}\"\ncredentials = \"static\"\n", self.url("shelf")),
            format!("api_key = \"{SHELF_KEY}\"\nheaders = {{ X-Shelf = \"{SHELF_HEADER}\" }}\n"),
            format!("[mcp.shelf]\nbackend = \"shelf\"\nurl = \"{}/mcp\"\n", self.url("shelf")),
            format!("[backends.yard]\nbase_url = \"{}\"\ncredentials = \"none\"\n", self.url("yard")),
            format!("headers = {{ X-Yard = \"{YARD_HEADER}\" }}\n"),
            format!("[backends.yard.service]\nmode = \"token\"\ntoken = \"{YARD_SERVICE}\"\n"),
            format!("[backends.ledger]\nbase_url = \"{}\"\ncredentials = \"client_credentials\"\n", self.url("ledger")),
            of_issuer("ledger", LEDGER_SECRET),
            format!("[backends.vault]\nbase_url = \"{}\"\ncredentials = \"token_exchange\"\n", self.url("vault")),
            of_issuer("vault", VAULT_SECRET),
            format!("[backends.crew]\nbase_url = \"{}\"\n", self.url("crew")),
            "[backends.crew.service]\nmode = \"client_credentials\"\n".to_owned(),
            of_issuer("crew", CREW_SECRET),
            format!("[backends.broken]\nbase_url = \"{}\"\ncredentials = \"token_exchange\"\n", self.url("broken")),
            of_issuer("broken", BROKEN_SECRET),
            "[backends.broken.service]\nmode = \"client_credentials\"\n".to_owned(),
            of_issuer("broken", BROKEN_SECRET),
            "[signals]\nretry_base_ms = 20\nemit_roles = [\"operator\"]\n".to_owned(),
            format!("[signals.subscribers.log]\nurl = \"{}/hook\"\nevents = [\"*\"]\n", self.hook.url()),
            format!("secret = \"whsec_{HOOK_SECRET}\"\nprevious_secret = \"whsec_{HOOK_SECRET_BEFORE}\"\n"),
            "[directives]\noperator_roles = [\"operator\"]\n".to_owned(),
        ]
        .concat()
    }
}

/// Each secret, and who may be sent it.
fn canaries(token: &str) -> Vec<(String, Vec<&'static str>)> {
    let basic = |name: &str, secret: &str| STANDARD.encode(format!("{name}:{secret}"));
    let of_caller = vec!["main", "crew", "issuer"];
    // Claims and signature by themselves too: half a token is not to be written either.
    let of_token = [token].into_iter().chain(token.split('.').skip(1)).map(|part| (part.to_owned(), of_caller.clone()));
    let plain = [
        (MODEL_KEY, vec!["model"]),
        (MAIN_SERVICE, vec!["main"]),
        (SHELF_KEY, vec!["shelf"]),
        (SHELF_HEADER, vec!["shelf"]),
        (YARD_HEADER, vec!["yard"]),
        (YARD_SERVICE, vec!["yard"]),
        (LEDGER_TOKEN, vec!["ledger"]),
        (VAULT_TOKEN, vec!["vault"]),
        (CREW_TOKEN, vec!["crew"]),
        // These are keys of what is sent, or stand in another form there.
        (LEDGER_SECRET, vec![]),
        (VAULT_SECRET, vec![]),
        (CREW_SECRET, vec![]),
        (BROKEN_SECRET, vec![]),
        (OTHER_COOKIE, vec![]),
        (HOOK_SECRET, vec![]),
        (HOOK_SECRET_BEFORE, vec![]),
    ];
    let of_issuer =
        [("ledger", LEDGER_SECRET), ("vault", VAULT_SECRET), ("crew", CREW_SECRET), ("broken", BROKEN_SECRET)];
    let of_issuer = of_issuer.map(|(name, secret)| (basic(name, secret), vec!["issuer"]));
    let plain = plain.map(|(secret, who)| (secret.to_owned(), who));
    plain.into_iter().chain(of_issuer).chain(of_token).collect()
}

struct Story {
    http: reqwest::Client,
    served: Serving,
    token: String,
    /// Whether the token goes in a cookie, beside another one.
    by_cookie: bool,
    pieces: Vec<Piece>,
}

impl Story {
    async fn ask(&mut self, path: &str, body: Option<&Value>) -> Vec<u8> {
        let url = self.served.url(path);
        let request = match body {
            None => self.http.get(url),
            Some(body) => self.http.post(url).json(body),
        };
        let cookies = format!("other={OTHER_COOKIE}; app={}", self.token);
        let request = match self.by_cookie {
            true => request.header("cookie", cookies).header("sec-fetch-site", "same-origin"),
            false => request.bearer_auth(&self.token),
        };
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), format!("{:?}", response.headers()));
        let body = response.bytes().await.unwrap().to_vec();
        assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
        self.pieces.push((format!("the answer of {path}"), [headers.into_bytes(), body.clone()].concat()));
        body
    }

    /// How many items this list has.
    async fn count(&self, path: &str) -> usize {
        let response = self.http.get(self.served.url(path)).bearer_auth(&self.token).send().await.unwrap();
        let listed: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        listed["items"].as_array().unwrap_or_else(|| panic!("{path}: {listed}")).len()
    }
}

/// All values of all tables, as text; virtual ones keep theirs in others.
async fn rows(path: &std::path::Path) -> Vec<u8> {
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'");
    let tables: Vec<String> =
        tables.fetch_all(&mut connection).await.unwrap().iter().map(|row| row.get::<String, _>(0)).collect();
    let mut all = Vec::new();
    for table in tables {
        let columns = sqlx::query(AssertSqlSafe(format!("SELECT name FROM pragma_table_info('{table}')")));
        for column in columns.fetch_all(&mut connection).await.unwrap() {
            let column: String = column.get(0);
            let values = format!("SELECT CAST(\"{column}\" AS BLOB) FROM \"{table}\" WHERE \"{column}\" IS NOT NULL");
            for value in sqlx::query(AssertSqlSafe(values)).fetch_all(&mut connection).await.unwrap() {
                all.extend(value.get::<Vec<u8>, _>(0));
                all.push(b'\n');
            }
        }
    }
    connection.close().await.unwrap();
    all
}

// Whoever is asked answers while a process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_credential_goes_to_whom_it_is_for_and_turns_up_nowhere_else() {
    let parties = Parties::start().await;
    let folder = Folder::new();
    folder.write("config/tools/canary.toml", &tools());
    folder.write("config/profiles/mine.toml", &profile());
    folder.write("config/default.toml", &parties.settings());
    let (model_url, main_url) = (format!("{}/v1", parties.model.url()), parties.url("main"));
    let settings = [
        ("AUTH__MODE", "hs256"),
        ("AUTH__HS256_SECRET", "a-secret-of-tokens-that-is-long-enough"),
        ("AUTH__COOKIE", "app"),
        ("BACKEND__COOKIE", "true"),
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", &model_url),
        ("LLM__OPENAI__API_KEY", MODEL_KEY),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", &main_url),
        ("STORE__URL", "sqlite://data/canary.db"),
        ("METRICS__PATH", "true"),
        ("LOG__LEVEL", "trace"),
    ];
    let token = folder.token_with(&["--user", "ann", "--tenant", "acme", "--role", "operator"], &settings);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut s =
        Story { http, served: folder.serve(&settings), token: token.clone(), by_cookie: false, pieces: Vec::new() };

    let ways = [false, true].into_iter().flat_map(|by_cookie| BACKENDS.map(|backend| (by_cookie, backend)));
    for (by_cookie, backend) in ways {
        s.by_cookie = by_cookie;
        let of_server = (backend == "shelf").then(|| "shelf__look".to_owned());
        for tool in TOOLS.map(|tool| format!("{tool}_{backend}")).into_iter().chain(of_server) {
            let body = json!({"message": tool, "context_type": "mine", "conversation_id": backend});
            let said = s.ask("/v1/agent/chat", Some(&body)).await;
            assert!(contains(&said, "So it is."), "{tool}: {}", String::from_utf8_lossy(&said));
        }
        for tool in ["do", "spoil"] {
            s.ask("/v1/agent/directives", Some(&json!({"name": format!("canary.{tool}_{backend}")}))).await;
        }
        s.ask(&format!("/v1/agent/conversations/{backend}/trail?limit=100"), None).await;
        s.ask(&format!("/v1/agent/conversations/{backend}"), None).await;
        s.ask(&format!("/v1/agent/conversations/{backend}/export"), None).await;
        s.ask(&format!("/v1/agent/timeline?subject_type=canary&subject_id={backend}&of=tenant"), None).await;
    }
    s.by_cookie = false;
    s.ask("/v1/agent/signals", Some(&json!({"name": "canary.told", "payload": {"n": 1}}))).await;
    eventually("all is done and told", async || {
        for path in ["directives?of=tenant&status=requested", "directives?of=tenant&status=running"] {
            if s.count(&format!("/v1/agent/{path}")).await > 0 {
                return None;
            }
        }
        (s.count("/v1/agent/deliveries?status=pending").await == 0).then_some(())
    })
    .await;
    for path in [
        "/v1/agent/directives?of=tenant&limit=100",
        "/v1/agent/signals?of=tenant&limit=500",
        "/v1/agent/deliveries?limit=100",
        "/metrics",
    ] {
        s.ask(path, None).await;
    }
    let succeeded = s.count("/v1/agent/directives?of=tenant&status=succeeded&limit=100").await;
    let failed = s.count("/v1/agent/directives?of=tenant&status=failed&limit=100").await;
    assert_eq!((succeeded, failed), (24, 32), "of each backend four and four, and none where there is no token");
    let Story { mut served, mut pieces, .. } = s;
    served.terminate();
    assert_eq!(served.ended().await, Some(0));
    pieces.extend(served.lines.try_iter().map(|line| ("standard output".to_owned(), line.into_bytes())));
    files(folder.path(), &mut pieces);
    pieces.push(("the rows".to_owned(), rows(&folder.path().join("data/canary.db")).await));

    let (heard, canaries) = (parties.heard(), canaries(&token));
    let mut hits = Vec::new();
    for (secret, meant) in &canaries {
        for (what, bytes) in &pieces {
            if contains(bytes, secret) {
                let text = String::from_utf8_lossy(bytes);
                let line = text.lines().find(|line| line.contains(secret)).unwrap_or("(in binary)");
                hits.push(format!("{what}: {secret}: {}", line.chars().take(600).collect::<String>()));
            }
        }
        for (who, text) in &heard {
            match (meant.contains(who), text.contains(secret)) {
                (true, true) | (false, false) => {}
                (true, false) => hits.push(format!("the control: {who} was never sent {secret}")),
                (false, true) => hits.push(format!("{who} was sent {secret}")),
            }
        }
    }
    assert!(hits.is_empty(), "{} hits:\n{}", hits.len(), hits.join("\n"));
    let kept = ["the rows", "/trail", "/signals", "/directives", "/export", "/timeline"];
    let is_in = |what: &str| pieces.iter().any(|(name, bytes)| name.contains(what) && contains(bytes, TAKEN_OUT));
    let missing: Vec<&str> = kept.into_iter().filter(|what| !is_in(what)).collect();
    assert_eq!(missing, [""; 0], "the control: {TAKEN_OUT} is to be found there");
    let told = &heard.iter().find(|(who, _)| *who == "hook").unwrap().1;
    assert!(told.contains("canary.done") && told.contains(TAKEN_OUT), "the control: what was told had repeated ones");
    let log = pieces.iter().find(|(name, _)| name.contains("stderr.log")).unwrap();
    for word in ["TRACE", "no token for a backend"] {
        assert!(contains(&log.1, word), "the control: the log says {word}");
    }
}
