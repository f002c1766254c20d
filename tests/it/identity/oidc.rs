//! The page's users sign in at an issuer: what `POST /page/token` makes of codes and of issuers that answer wrongly, and the whole
//! way in a browser.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;
use url::form_urlencoded::parse;

use super::issuer::{AUDIENCE, TestKey, set};
use super::{base64url, now};
use crate::support::app::{ADA, TestApp};
use crate::support::environment;
use crate::support::node;
use crate::support::upstream::{Answer, Request, Upstream};

/// The page's id at the issuer.
const CLIENT: &str = "page";
/// What the ID token has to repeat.
const NONCE: &str = "n-0S6_WzA2Mj";
/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// An issuer with users.
struct SignInIssuer {
    server: Upstream,
    state: Arc<IssuerState>,
}

struct IssuerState {
    key: TestKey,
    /// What it was shown when it gave each code: challenge, nonce, address of the page.
    codes: Mutex<HashMap<String, [String; 3]>>,
    refresh_tokens: Mutex<Vec<String>>,
    given: AtomicU64,
    /// Seconds for which its tokens are good.
    lives_s: AtomicU64,
    /// Whether this browser's user is signed in there.
    has_session: AtomicBool,
    /// What it answers when it is asked for tokens, instead of tokens.
    answer: Mutex<Option<Answer>>,
    /// How its ID tokens differ from good ones.
    changes: Mutex<Value>,
}

impl IssuerState {
    fn next(&self, what: &str) -> String {
        format!("{what}-{}", self.given.fetch_add(1, Ordering::Relaxed))
    }

    fn code(&self, shown: [String; 3]) -> String {
        let code = self.next("code");
        self.codes.lock().unwrap().insert(code.clone(), shown);
        code
    }

    fn authorize(&self, query: &HashMap<String, String>, here: &str) -> Answer {
        let mut back = Url::parse(&query["redirect_uri"]).unwrap();
        let is_silent = query.get("prompt").is_some_and(|prompt| prompt == "none");
        assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
        assert_eq!((query["client_id"].as_str(), query["scope"].as_str()), (CLIENT, "openid profile email"));
        if is_silent && !self.has_session.load(Ordering::Relaxed) {
            back.query_pairs_mut().append_pair("error", "login_required");
        } else {
            self.has_session.store(true, Ordering::Relaxed);
            let shown = ["code_challenge", "nonce", "redirect_uri"].map(|name| query[name].clone());
            back.query_pairs_mut().append_pair("code", &self.code(shown));
        }
        back.query_pairs_mut().append_pair("state", &query["state"]).append_pair("iss", here);
        Answer::status(302, "text/plain", "").header("location", back.as_str())
    }

    fn tokens(&self, form: &HashMap<String, String>, here: &str) -> Answer {
        let refused = || {
            let body = json!({"error": "invalid_grant", "error_description": "used up"});
            Answer::status(400, "application/json", body.to_string())
        };
        let nonce = if form["grant_type"] == "refresh_token" {
            let mut known = self.refresh_tokens.lock().unwrap();
            let Some(at) = known.iter().position(|token| *token == form["refresh_token"]) else { return refused() };
            known.remove(at);
            None
        } else {
            let shown = self.codes.lock().unwrap().remove(&form["code"]);
            let Some([challenge, nonce, address]) = shown else { return refused() };
            let verified = base64url(digest(&SHA256, form["code_verifier"].as_bytes()).as_ref()) == challenge;
            if !verified || address != form["redirect_uri"] {
                return refused();
            }
            Some(nonce)
        };
        let ends = now() + self.lives_s.load(Ordering::Relaxed);
        let access = json!({"iss": here, "aud": AUDIENCE, "sub": ADA, "name": "Ada L.", "iat": now(), "exp": ends,
            "jti": self.next("token")});
        let mut id = json!({"iss": here, "aud": CLIENT, "sub": ADA, "iat": now(), "exp": ends, "nonce": nonce});
        for (claim, value) in self.changes.lock().unwrap().as_object().unwrap() {
            id[claim] = value.clone();
        }
        let refresh = self.next("refresh");
        self.refresh_tokens.lock().unwrap().push(refresh.clone());
        let body = json!({"access_token": self.key.token(&access), "id_token": self.key.token(&id),
            "refresh_token": refresh, "token_type": "Bearer", "expires_in": 1});
        Answer::ok("application/json", body.to_string())
    }

    fn answer(&self, request: &Request) -> Answer {
        let here = format!("http://{}", request.header("host").unwrap());
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let query: HashMap<String, String> = parse(query.as_bytes()).into_owned().collect();
        match path {
            "/.well-known/openid-configuration" => {
                let at = |path: &str| format!("{here}/{path}");
                let document = json!({"issuer": here, "jwks_uri": at("keys"), "authorization_endpoint": at("authorize"),
                    "token_endpoint": at("token"), "end_session_endpoint": at("end")});
                Answer::ok("application/json", document.to_string())
            }
            "/keys" => set([&self.key]),
            "/authorize" => self.authorize(&query, &here),
            "/token" => {
                let form = parse(&request.body).into_owned().collect();
                self.answer.lock().unwrap().clone().unwrap_or_else(|| self.tokens(&form, &here))
            }
            // Okta ends no session without it.
            "/end" if !query.contains_key("id_token_hint") => Answer::status(400, "text/plain", "whose?"),
            "/end" => {
                self.has_session.store(false, Ordering::Relaxed);
                Answer::status(302, "text/plain", "").header("location", &query["post_logout_redirect_uri"])
            }
            _ => Answer::status(404, "text/plain", "nothing is here"),
        }
    }
}

impl SignInIssuer {
    async fn start() -> Self {
        let state = Arc::new(IssuerState {
            key: TestKey::es256("one"),
            codes: Mutex::default(),
            refresh_tokens: Mutex::default(),
            given: AtomicU64::new(0),
            lives_s: AtomicU64::new(600),
            has_session: AtomicBool::new(false),
            answer: Mutex::default(),
            changes: Mutex::new(json!({})),
        });
        let answers = state.clone();
        let server = Upstream::choosing(move |request| Some(answers.answer(request))).await;
        Self { server, state }
    }

    /// The product whose page signs its users in here, with settings on top.
    async fn app(&self, settings: &[(&str, &str)]) -> TestApp {
        let url = self.server.url();
        let mut all = vec![("AUTH__MODE", "jwks"), ("AUTH__ISSUER", url.as_str()), ("AUTH__AUDIENCE", AUDIENCE)];
        all.extend([("PAGE__OIDC_ISSUER", url.as_str()), ("PAGE__OIDC_CLIENT_ID", CLIENT)]);
        all.extend(settings);
        TestApp::start(&all).await
    }

    /// What the page shows for a new code.
    fn grant(&self) -> Value {
        let address = "http://page.example/";
        let code = self.state.code([CHALLENGE, NONCE, address].map(ToOwned::to_owned));
        json!({"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER, "redirect_uri": address,
            "nonce": NONCE})
    }

    /// How often a path was asked for.
    fn asked(&self, path: &str) -> usize {
        self.server.requests().iter().filter(|request| request.path.split('?').next() == Some(path)).count()
    }

    /// The last request for tokens.
    fn last_asked(&self) -> Request {
        self.server.requests().into_iter().rfind(|request| request.path == "/token").unwrap()
    }
}

/// Status and body of `POST /page/token`.
async fn redeem(app: &TestApp, grant: &Value) -> (u16, Value) {
    let response = app.http.post(app.url("/page/token")).json(grant).send().await.unwrap();
    let status = response.status().as_u16();
    assert!(status != 200 || response.headers()["cache-control"] == "no-store");
    (status, response.json().await.unwrap())
}

#[tokio::test]
async fn a_code_becomes_a_token_and_that_a_newer_one() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[]).await;
    let session: Value = app.http.get(app.url("/page/session")).send().await.unwrap().json().await.unwrap();
    let url = issuer.server.url();
    let expected = json!({"mode": "oidc", "issuer": url, "client_id": CLIENT, "scope": "openid profile email",
        "authorization_endpoint": format!("{url}/authorize"), "end_session_endpoint": format!("{url}/end")});
    assert_eq!(session, expected);
    let told = issuer.app(&[("PAGE__OIDC_AUDIENCE", "https://api.example")]).await;
    let session: Value = told.http.get(told.url("/page/session")).send().await.unwrap().json().await.unwrap();
    let there = format!("{url}/authorize?audience=https%3A%2F%2Fapi.example");
    assert_eq!(session["authorization_endpoint"], json!(there), "an issuer that wants to know for whom");

    let grant = issuer.grant();
    let (status, first) = redeem(&app, &grant).await;
    assert_eq!(status, 200, "{first}");
    assert!((590..=600).contains(&first["expires_in_s"].as_u64().unwrap()), "by the token, not by what is said of it");
    let asked = issuer.last_asked();
    let form: HashMap<String, String> = parse(&asked.body).into_owned().collect();
    assert_eq!((form["client_id"].as_str(), form["code_verifier"].as_str()), (CLIENT, VERIFIER));
    assert_eq!(asked.header("authorization"), None, "a public client has no secret");
    super::issuer::accepted(&app, first["token"].as_str().unwrap(), "it counts here").await;

    let (status, refused) = redeem(&app, &grant).await;
    assert_eq!((status, refused["code"].as_str()), (400, Some("sign_in_refused")), "a code counts once");

    let refresh = json!({"grant_type": "refresh_token", "refresh_token": first["refresh_token"]});
    let (status, second) = redeem(&app, &refresh).await;
    assert_eq!(status, 200, "{second}");
    assert_ne!(second["token"], first["token"]);
    let (status, _) = redeem(&app, &refresh).await;
    assert_eq!(status, 400, "so does what renews a token, at this issuer");
}

#[tokio::test]
async fn a_client_with_a_secret_shows_it_to_its_issuer_alone() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[("PAGE__OIDC_CLIENT_SECRET", "s3cret:&+")]).await;
    let (status, body) = redeem(&app, &issuer.grant()).await;
    assert_eq!(status, 200, "{body}");
    let asked = issuer.last_asked();
    // `page` and `s3cret%3A%26%2B`, as RFC 6749 wants it in a header.
    assert_eq!(asked.header("authorization"), Some("Basic cGFnZTpzM2NyZXQlM0ElMjYlMkI="));
    assert!(!String::from_utf8_lossy(&asked.body).contains("client_id"));
    let session = app.http.get(app.url("/page/session")).send().await.unwrap().text().await.unwrap();
    assert!(!session.contains("s3cret"), "{session}");
}

#[tokio::test]
async fn what_an_issuer_says_counts_only_where_it_is_for_this_page() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[]).await;
    let rows = [
        ("another issuer", json!({"iss": "https://evil.example"})),
        ("another client", json!({"aud": "other"})),
        ("several clients, and none that it was given to", json!({"aud": [CLIENT, "other"]})),
        ("given to another client", json!({"aud": [CLIENT, "other"], "azp": "other"})),
        ("another sign-in", json!({"nonce": "another"})),
        ("no sign-in", json!({"nonce": null})),
        ("long over", json!({"exp": now() - 600})),
        ("no end", json!({"exp": null})),
    ];
    for (why, changes) in rows {
        *issuer.state.changes.lock().unwrap() = changes;
        let (status, body) = redeem(&app, &issuer.grant()).await;
        assert_eq!((status, body["code"].as_str()), (400, Some("sign_in_refused")), "{why}: {body}");
        assert!(body.get("token").is_none(), "{why}");
    }
    *issuer.state.changes.lock().unwrap() = json!({"aud": [CLIENT, "other"], "azp": CLIENT});
    assert_eq!(redeem(&app, &issuer.grant()).await.0, 200, "for several, and given to this one");

    *issuer.state.changes.lock().unwrap() = json!({});
    let foreign = TestKey::es256("one");
    let claims = json!({"iss": issuer.server.url(), "aud": AUDIENCE, "sub": "eve", "exp": now() + 60});
    let id =
        issuer.state.key.token(&json!({"iss": issuer.server.url(), "aud": CLIENT, "exp": now() + 60, "nonce": NONCE}));
    let with = |token: &str| json!({"access_token": token, "id_token": id}).to_string();
    let json = "application/json";
    let rows = [
        ("signed by nobody", Answer::ok(json, with(&foreign.token(&claims))), 400, "sign_in_refused"),
        ("an opaque token", Answer::ok(json, with("opaque")), 400, "sign_in_refused"),
        ("no token", Answer::ok(json, json!({"id_token": id}).to_string()), 400, "sign_in_refused"),
        ("no ID token", Answer::ok(json, json!({"access_token": "a"}).to_string()), 400, "sign_in_refused"),
        ("no JSON", Answer::ok("text/html", "<p>hello"), 400, "sign_in_refused"),
        ("a list", Answer::ok(json, "[]"), 400, "sign_in_refused"),
        ("too much", Answer::ok(json, " ".repeat(70_000)), 503, "sign_in_unavailable"),
        ("an unknown client", Answer::status(401, json, r#"{"error":"invalid_client"}"#), 400, "sign_in_refused"),
        ("a failure", Answer::status(500, "text/plain", "no"), 503, "sign_in_unavailable"),
        (
            "a redirect",
            Answer::status(302, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            503,
            "sign_in_unavailable",
        ),
    ];
    for (why, answer, expected, code) in rows {
        *issuer.state.answer.lock().unwrap() = Some(answer);
        let (status, body) = redeem(&app, &issuer.grant()).await;
        assert_eq!((status, body["code"].as_str()), (expected, Some(code)), "{why}: {body}");
    }
}

/// Whoever has no token takes none of the memory that requests of users share.
#[tokio::test]
async fn bodies_of_strangers_are_in_no_user_s_way() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[("LIMITS__MEMORY_BYTES", "1048576")]).await;
    let (_, given) = redeem(&app, &issuer.grant()).await;
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        let head =
            "POST /page/token HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 30000\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    let body = json!({"message": "x".repeat(40_000), "context_type": "workflow"});
    let response = app.post_as(given["token"].as_str().unwrap(), &body).await;
    assert_eq!(response.status(), 200);

    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let head =
        "POST /page/token HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1048576\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400", "what is too large is not waited for");
}

#[tokio::test]
async fn only_this_page_has_codes_made_into_tokens() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[]).await;
    let post = |headers: &[(&str, &str)], body: String| {
        let request = app.http.post(app.url("/page/token")).header("content-type", "application/json").body(body);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    let grant = || issuer.grant().to_string();
    let own = format!("http://{}", app.address);
    let rows = [
        ("a page of another site", vec![("origin", "https://evil.example")], grant(), 403),
        ("a browser says so", vec![("sec-fetch-site", "cross-site")], grant(), 403),
        ("a neighbour", vec![("sec-fetch-site", "same-site")], grant(), 403),
        ("no JSON", vec![], "{".to_owned(), 400),
        ("no grant that is known", vec![], json!({"grant_type": "password"}).to_string(), 400),
        ("a part is missing", vec![], json!({"grant_type": "refresh_token"}).to_string(), 400),
        (
            "too much",
            vec![],
            json!({"grant_type": "refresh_token", "refresh_token": "r".repeat(40_000)}).to_string(),
            400,
        ),
        ("its own", vec![("origin", own.as_str()), ("sec-fetch-site", "same-origin")], grant(), 200),
    ];
    for (why, headers, body, expected) in rows {
        let response = post(&headers, body).send().await.unwrap();
        assert_eq!(response.status(), expected, "{why}");
    }
    assert_eq!(issuer.asked("/token"), 1, "the issuer is asked for good requests only");

    let pasted = TestApp::start(&[("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", super::SECRET)]).await;
    assert_eq!(redeem(&pasted, &issuer.grant()).await.0, 404, "where users paste their token");
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_is_asked_again_later() {
    let gone = Upstream::choosing(|_| Some(Answer::status(500, "text/plain", "no"))).await;
    let url = gone.url();
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", super::SECRET)];
    let of_page = [("PAGE__OIDC_ISSUER", url.as_str()), ("PAGE__OIDC_CLIENT_ID", CLIENT)];
    let app = TestApp::start(&[settings, of_page].concat()).await;
    for _ in 0..3 {
        let response = app.http.get(app.url("/page/session")).send().await.unwrap();
        assert_eq!(response.status(), 503);
        assert!(response.headers().contains_key("retry-after"));
        assert_eq!(response.json::<Value>().await.unwrap()["code"], "sign_in_unavailable");
    }
    assert_eq!(gone.requests().len(), 1, "not for each visitor");
}

#[tokio::test]
async fn a_browser_signs_in_stays_so_and_signs_out() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[]).await;
    let Some(seen) = node::run("sign-in.mjs", &["walk", &issuer.server.url()], &app).await else { return };
    if let Some(reason) = seen["skipped"].as_str() {
        environment::skip(reason);
        return;
    }
    let expected = json!({
        "asked": ["This server wants to know who you are.", true],
        "user": "Ada L.",
        "address": "#/waiting",
        "reloaded": ["Ada L.", "#/waiting"],
        "tab": "Ada L.",
        "query": "",
        "kept": [],
        "out": [true, true],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    assert_eq!(issuer.asked("/authorize"), 2, "once by the user and once for the reload; the other tab was told");
    assert_eq!(issuer.asked("/end"), 1);
}

#[tokio::test]
async fn a_browser_renews_a_token_that_ends() {
    let issuer = SignInIssuer::start().await;
    // It is renewed when half of that is over, and counts 30 s longer.
    issuer.state.lives_s.store(6, Ordering::Relaxed);
    let app = issuer.app(&[]).await;
    let Some(seen) = node::run("sign-in.mjs", &["renew", &issuer.server.url()], &app).await else { return };
    if let Some(reason) = seen["skipped"].as_str() {
        environment::skip(reason);
        return;
    }
    assert_eq!(seen, json!({"user": "Ada L.", "dialogs": 0, "wrong": []}));
    assert!(issuer.asked("/token") >= 2, "the token was about to end");
    assert_eq!(issuer.asked("/authorize"), 1, "without another way by the issuer");
}

#[tokio::test]
async fn a_browser_shows_why_nobody_is_signed_in() {
    let issuer = SignInIssuer::start().await;
    let app = issuer.app(&[]).await;
    let Some(seen) = node::run("sign-in.mjs", &["refused", &issuer.server.url()], &app).await else { return };
    if let Some(reason) = seen["skipped"].as_str() {
        environment::skip(reason);
        return;
    }
    let place = issuer.server.url().replace("http://", "");
    let expected = json!({
        "denied": format!("{place} did not sign you in: <img src=x onerror=alert(1)>"),
        "replayed": "This sign-in was not begun in this tab, or is used up.",
        "other": "Another issuer than the one that was asked has answered.",
        "pasted": true,
        "wrong": [],
    });
    assert_eq!(seen, expected);
}
