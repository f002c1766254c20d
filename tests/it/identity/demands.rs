//! What settings can demand of tokens, and what is said of settings that demand little.

use crate::support::app::TestApp;
use crate::support::process::Folder;

const HS256: [(&str, &str); 2] = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef")];

#[tokio::test]
async fn a_token_without_a_tenant_is_refused_where_one_is_demanded() {
    for (demanded, expected) in [("true", 403), ("false", 200)] {
        let app = TestApp::start(&[&HS256[..], &[("AUTH__REQUIRE_TENANT", demanded)]].concat()).await;
        let status = async |token: String| {
            let asked = app.http.get(app.url("/v1/agent/profiles")).bearer_auth(token).send().await.unwrap();
            asked.status().as_u16()
        };
        assert_eq!(status(app.token_of("ann", None, &[])).await, expected, "without");
        assert_eq!(status(app.token_of("ann", Some(""), &[])).await, expected, "an empty one is none");
        assert_eq!(status(app.token_of("ann", Some("acme"), &[])).await, 200, "with one");
    }
}

#[test]
fn addresses_that_the_demo_leaves_unused_are_told() {
    let folder = Folder::new();
    let (backend, ollama) =
        (("BACKEND__BASE_URL", "https://api.example"), ("LLM__OLLAMA__BASE_URL", "http://gpu:11434"));
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let rows: [Row<'_>; 4] = [
        (&[], &[]),
        (&[backend], &["WARNING: backend.base_url is of no use with backend.mode \"demo\""]),
        (&[backend, ollama], &["WARNING: backend.base_url", "WARNING: llm.ollama is filled in"]),
        (&[backend, ("BACKEND__MODE", "http"), ollama, ("LLM__PROVIDER", "ollama")], &[]),
    ];
    for (settings, expected) in rows {
        let ended = folder.run(&["check-config"], settings);
        let told: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!((ended.code, told.len()), (0, expected.len()), "{settings:?}: {told:?}");
        assert!(told.iter().zip(expected).all(|(told, expected)| told.starts_with(expected)), "{told:?}");
    }
}

#[test]
fn settings_that_accept_tokens_for_others_are_told_loudly_and_can_be_forbidden() {
    let folder = Folder::new();
    let check = |more: &[(&str, &str)]| folder.run(&["check-config"], &[&HS256[..], more].concat());
    let warned = |key: &str, whose: &str| {
        format!(
            "WARNING: auth.{key} is empty with auth.mode \"hs256\": a token {whose} is accepted if it is signed with the same \
             key\n"
        )
    };
    let (audience, issuer) = (("AUTH__AUDIENCE", "us"), ("AUTH__ISSUER", "https://issuer.example"));
    let both = warned("audience", "made for somebody else") + &warned("issuer", "of another issuer");
    let rows: [(&[(&str, &str)], String); 3] =
        [(&[], both), (&[audience], warned("issuer", "of another issuer")), (&[audience, issuer], String::new())];
    for (settings, expected) in rows {
        let ended = check(settings);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "the configuration is good\n"), "{settings:?}");
        assert_eq!(ended.stderr, expected, "{settings:?}");
    }
    let serving = folder.serve(&HS256);
    assert!(folder.stderr().contains("WARNING: auth.audience is empty"), "{}", folder.stderr());
    drop(serving);

    let demanded = ("AUTH__REQUIRE_AUDIENCE", "true");
    let ended = check(&[demanded]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_eq!(ended.stderr, "configuration: auth.audience: is required with auth.require_audience\n");
    assert_eq!(check(&[demanded, audience, issuer]).code, 0);
    let dev = folder.run(&["check-config"], &[("AUTH__REQUIRE_TENANT", "true")]);
    assert_eq!(dev.code, 2, "the tokens of dev name no tenant");
}
