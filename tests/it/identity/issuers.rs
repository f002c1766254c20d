//! Several issuers: each speaks for its own users and for nobody else's.

use reqwest::Method;
use serde_json::{Value, json};

use super::issuer::{AUDIENCE, TestIssuer, TestKey, accepted, judged, refused};
use super::{SECRET, key_path, private_key, token};
use crate::conversations::ask_as;
use crate::support::app::TestApp;

/// Two issuers with a key of the same id each.
struct Two {
    one: TestIssuer,
    of_one: TestKey,
    two: TestIssuer,
    of_two: TestKey,
}

impl Two {
    async fn new() -> Self {
        let (of_one, of_two) = (TestKey::es256("k"), TestKey::es256("k"));
        let (one, two) = (TestIssuer::publishing([&of_one]).await, TestIssuer::publishing([&of_two]).await);
        Self { one, of_one, two, of_two }
    }

    /// The product that believes both, with settings on top.
    async fn app(&self, settings: &[(&str, &str)]) -> TestApp {
        let (one, two, keys) = (self.one.url(), self.two.url(), format!("{}/keys", self.two.url()));
        let audiences = format!("other,{AUDIENCE}");
        let mut all = vec![
            ("AUTH__MODE", "jwks"),
            ("AUTH__JWKS_COOLDOWN_S", "3600"),
            ("AUTH__ISSUERS__ONE__ISSUER", one.as_str()),
            ("AUTH__ISSUERS__ONE__AUDIENCE", AUDIENCE),
            ("AUTH__ISSUERS__TWO__ISSUER", two.as_str()),
            ("AUTH__ISSUERS__TWO__JWKS_URL", keys.as_str()),
            ("AUTH__ISSUERS__TWO__AUDIENCE", audiences.as_str()),
        ];
        all.extend(settings);
        TestApp::start(&all).await
    }
}

/// How many conversations a token sees after it has begun one with the id `shared`.
async fn conversations_of(app: &TestApp, token: &str) -> usize {
    let body = json!({"message": "Which rules do we have?", "context_type": "workflow", "conversation_id": "shared"});
    let response = app.post_as(token, &body).await;
    assert_eq!(response.status(), 200);
    response.text().await.unwrap();
    let (_, shown) = ask_as(app, token, Method::GET, "/shared", None).await;
    shown["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count()
}

#[tokio::test]
async fn the_issuer_is_chosen_by_the_tokens_iss_and_by_nothing_else() {
    let it = Two::new().await;
    let app = it.app(&[]).await;
    accepted(&app, &it.one.good(&it.of_one), "one's own").await;
    accepted(&app, &it.two.good(&it.of_two), "two's own, one of several audiences").await;
    let claims_of_one = |changes| it.one.claims(&changes);
    let rows = [
        (it.of_two.token(&claims_of_one(json!({}))), "signed by two, said to be of one"),
        (it.of_one.token(&it.two.claims(&json!({}))), "signed by one, said to be of two"),
        (it.of_one.token(&claims_of_one(json!({"iss": null}))), "of nobody"),
        (it.of_one.token(&claims_of_one(json!({"iss": ""}))), "of an empty name"),
        (it.of_one.token(&claims_of_one(json!({"iss": format!("{}/", it.one.url())}))), "a slash more"),
        (it.of_one.token(&claims_of_one(json!({"iss": [it.one.url(), it.two.url()]}))), "of both"),
        (it.of_one.token(&claims_of_one(json!({"iss": "one"}))), "by the name in the settings"),
        (it.of_one.token(&claims_of_one(json!({"aud": "other"}))), "two's audience is not one's"),
        (it.of_one.token_with(&json!({"iss": it.one.url()}), &it.two.claims(&json!({}))), "by the header"),
    ];
    for (token, reason) in rows {
        refused(&app, &token, reason).await;
    }
    assert_eq!((it.one.fetches(), it.two.fetches()), (1, 1));
}

#[tokio::test]
async fn a_user_of_one_issuer_is_nobody_of_the_other() {
    let it = Two::new().await;
    let (url, hs256) = ("https://own.example.com", SECRET);
    let fixed = ("AUTH__ISSUERS__TWO__TENANT", "acme");
    let app = it.app(&[("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", hs256), ("AUTH__ISSUER", url), fixed]).await;
    let same = |issuer: &TestIssuer, key: &TestKey| key.token(&issuer.claims(&json!({"sub": "ann", "tenant": "acme"})));
    let own = app.token_of("ann", Some("acme"), &[]);
    let tokens = [own, same(&it.one, &it.of_one), same(&it.two, &it.of_two)];
    for token in &tokens {
        assert_eq!(conversations_of(&app, token).await, 1, "nobody else has spoken in it");
    }
    assert_eq!(conversations_of(&app, &tokens[0]).await, 2, "but they themselves");
    let of_another_tenant = it.of_two.token(&it.two.claims(&json!({"sub": "ann", "tenant": "umbrella"})));
    assert_eq!(
        conversations_of(&app, &of_another_tenant).await,
        2,
        "a fixed tenant is what it is, whatever is claimed"
    );

    // What stands between an issuer's name and its tenants cannot be claimed.
    for forged in ["one\u{1f}acme", "two\u{1f}acme", "\u{1f}", "one\u{1f}"] {
        let token = app.token_of("ann", Some(forged), &[]);
        refused(&app, &token, &format!("{forged:?}")).await;
        let token = it.of_one.token(&it.one.claims(&json!({"sub": "ann", "tenant": forged})));
        refused(&app, &token, &format!("{forged:?} of a named issuer")).await;
    }
    // Without the separator it is a tenant of its own.
    let alike = app.token_of("ann", Some("oneacme"), &[]);
    assert_eq!(conversations_of(&app, &alike).await, 1);
}

#[tokio::test]
async fn each_issuer_has_rules_of_its_own() {
    let it = Two::new().await;
    let app = it
        .app(&[
            ("AUTH__ISSUERS__ONE__TENANT_CLAIM", "org.id"),
            ("AUTH__ISSUERS__ONE__ROLES_CLAIM", "realm_access.roles"),
            ("AUTH__ISSUERS__ONE__TYP", "at+jwt"),
            ("AUTH__ISSUERS__ONE__LEEWAY_S", "0"),
            ("AUTH__ISSUERS__TWO__LEEWAY_S", "600"),
        ])
        .await;
    let at = json!({"typ": "at+jwt"});
    let of_one = |changes: Value| it.of_one.token_with(&at, &it.one.claims(&changes));
    let admin = async |token: &str| {
        let url = app.url("/api/chats/admin/all");
        app.http.get(url).bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    let roles = |roles: Value| of_one(json!({"realm_access": {"roles": roles}, "org": {"id": "acme"}}));
    assert_eq!(admin(&roles(json!(["platform_admin"]))).await, 200, "as Keycloak names roles");
    assert_eq!(admin(&roles(json!(["USER"]))).await, 403);
    assert_eq!(admin(&of_one(json!({"roles": ["platform_admin"]}))).await, 403, "not the claim of that issuer");
    assert_eq!(
        admin(&it.of_two.token(&it.two.claims(&json!({"roles": ["platform_admin"]})))).await,
        200,
        "but of the other"
    );
    let flat = of_one(json!({"realm_access.roles": ["platform_admin"]}));
    assert_eq!(admin(&flat).await, 200, "a claim of that very name goes first");
    refused(&app, &roles(json!(7)), "roles that are no list").await;
    refused(&app, &of_one(json!({"org": {"id": true}})), "a tenant that is neither text nor number").await;
    accepted(&app, &of_one(json!({"org": "acme"})), "no tenant").await;

    for (typ, good) in [
        (json!("at+jwt"), true),
        (json!("AT+JWT"), true),
        (json!("application/at+jwt"), true),
        (json!("JWT"), false),
        (json!("at+jwt2"), false),
        (json!(""), false),
        (json!(null), false),
    ] {
        let token = it.of_one.token_with(&json!({"typ": typ}), &it.one.claims(&json!({})));
        assert_eq!(judged(&app, &token).await.0 == 200, good, "typ {typ}");
    }
    accepted(&app, &it.of_two.token_with(&json!({"typ": "anything"}), &it.two.claims(&json!({}))), "not asked for")
        .await;
    let late = super::now() - 300;
    let told = judged(&app, &of_one(json!({"exp": late}))).await;
    assert_eq!(told, (401, "token_expired".to_owned()));
    accepted(&app, &it.of_two.token(&it.two.claims(&json!({"exp": late}))), "clocks may differ more there").await;
}

#[tokio::test]
async fn an_issuers_key_may_stand_in_a_file() {
    let path = key_path("rs256-public.pem");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display();
    let generate = format!(
        "openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out {dir}/ec.pem &&
         openssl pkey -in {dir}/ec.pem -pubout -out {dir}/ec-public.pem"
    );
    let made = std::process::Command::new("sh").args(["-c", &generate]).status();
    let ec = match made {
        Ok(status) if status.success() => format!("{dir}/ec-public.pem"),
        Ok(_) | Err(_) => return crate::support::environment::skip("openssl is not installed"),
    };
    let app = TestApp::start(&[
        ("AUTH__MODE", "jwks"),
        ("AUTH__ISSUERS__RSA__ISSUER", "https://rsa.example.com"),
        ("AUTH__ISSUERS__RSA__AUDIENCE", AUDIENCE),
        ("AUTH__ISSUERS__RSA__PUBLIC_KEY_FILE", &path),
        ("AUTH__ISSUERS__EC__ISSUER", "https://ec.example.com"),
        ("AUTH__ISSUERS__EC__AUDIENCE", AUDIENCE),
        ("AUTH__ISSUERS__EC__PUBLIC_KEY_FILE", &ec),
    ])
    .await;
    use jsonwebtoken::{Algorithm, EncodingKey};
    let claims = |issuer: &str| json!({"iss": issuer, "aud": AUDIENCE, "sub": "u", "exp": super::now() + 60});
    let pem = std::fs::read(folder.path().join("ec.pem")).unwrap();
    let (rsa, ec) = (private_key(), EncodingKey::from_ec_pem(&pem).unwrap());
    let (of_rsa, of_ec) = (claims("https://rsa.example.com"), claims("https://ec.example.com"));
    accepted(&app, &token(&json!({"alg": "RS256", "kid": "any"}), &of_rsa, &rsa, Algorithm::RS256), "RS256").await;
    accepted(&app, &token(&json!({"alg": "ES256"}), &of_ec, &ec, Algorithm::ES256), "ES256").await;
    refused(&app, &token(&json!({"alg": "PS256"}), &of_rsa, &rsa, Algorithm::PS256), "a file is for RS256").await;
    refused(&app, &token(&json!({"alg": "ES256"}), &of_rsa, &ec, Algorithm::ES256), "the other's key").await;
}
