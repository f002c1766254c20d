//! Secrets that are taken out and texts that stay, row by row, and properties of every text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::redact;
use super::text::clean;

fn redacted(mut value: Value) -> Value {
    redact(&mut value);
    value
}

#[test]
fn values_of_secret_fields_are_taken_out() {
    let gone = ["password", "Password", "user_password", "newPassword2", "pwd", "apiKey", "x-api-key", "API_KEY"];
    let gone = gone.into_iter().chain(["client_secret", "access_token", "refreshToken", "token", "Authorization"]);
    for name in gone.chain(["Set-Cookie", "private_key", "privatekey", "credentials", "aws_secret_access_key", "jwt"]) {
        for value in [json!("x"), json!(1234), json!(["x"]), json!({ "x": 1 })] {
            assert_eq!(redacted(json!({ "a": [{ name: value }] })), json!({ "a": [{ name: "[redacted]" }] }), "{name}");
        }
    }
    let stays = ["input_tokens", "max_tokens", "tokenizer", "secretary", "passwordless", "key", "next_page_token"];
    for name in stays.into_iter().chain(["author", "cookie_banner", "token_count", "nextToken"]) {
        let value = json!({ name: 7, "b": { name: "seven" } });
        assert_eq!(redacted(value.clone()), value, "{name}");
    }
    let nothing = json!({ "password": null, "has_password": true, "token": "" });
    assert_eq!(redacted(nothing.clone()), nothing, "there is nothing to hide");
}

#[test]
fn pieces_of_text_that_look_like_secrets_are_taken_out() {
    // Written in parts, so that scanners for secrets find none here.
    let jwt = ["eyJhbGciOiJub25lIn0", "eyJzdWIiOiJhbm4ifQ", "c2ln"].join(".");
    let key = ["sk", "ant", "api03", "abcdefghijkl"].join("-");
    let hub = ["ghp", "0123456789abcdefABCD"].join("_");
    let cloud = ["AKIA", "ABCDEFGHIJKLMNO7"].concat();
    let pem = |kind: &str| format!("-----BEGIN {kind}-----\nMII\n-----END {kind}-----");
    let rows = [
        (
            "curl -H 'Authorization: Bearer abc.def-123'".to_owned(),
            "curl -H 'Authorization: [redacted]'",
            "a header's line",
        ),
        (
            "it said Bearer abcDEF123 twice".to_owned(),
            "it said Bearer [redacted] twice",
            "a scheme with its credentials",
        ),
        ("BASIC dXNlcjpwYXNz".to_owned(), "BASIC [redacted]", "in any letters"),
        (format!("<{jwt}>"), "<[redacted]>", "a web token"),
        (format!("key {key}, and"), "key [redacted], and", "a model service's key"),
        (hub, "[redacted]", "nothing but a key"),
        (format!("id={cloud}"), "id=[redacted]", "a cloud's key"),
        (format!("a {} b", pem("RSA PRIVATE KEY")), "a [redacted] b", "a private key"),
        ("x -----BEGIN PRIVATE KEY-----\nMII".to_owned(), "x [redacted]", "that was cut off"),
        (
            "postgres://ann:hun:ter@2@db/x?a=b".to_owned(),
            "postgres://ann:[redacted]@db/x?a=b",
            "a password in an address",
        ),
        ("?page=2&access_token=abc&x=1".to_owned(), "?page=2&access_token=[redacted]&x=1", "a parameter"),
        (
            "{\"password\": \"hunter2\", \"cut".to_owned(),
            "{\"password\": \"[redacted]\", \"cut",
            "json that was cut off",
        ),
        ("password='hunter 2' x".to_owned(), "password='[redacted]' x", "quoted"),
        ("Cookie: a=b; c=d\nnext".to_owned(), "Cookie: [redacted]\nnext", "all of a header"),
    ];
    for (text, expected, reason) in rows {
        assert_eq!(redacted(json!(text)), json!(expected), "{reason}");
    }
}

#[test]
fn what_only_sounds_like_a_secret_stays() {
    let rows = [
        ("", "nothing"),
        ("The password must have 8 characters; password: see below", "a sentence about passwords"),
        ("Bearer authentication is required", "a sentence about a scheme"),
        ("the bearer of good news, basic understanding", "words"),
        ("max_tokens=5 input_tokens: 12", "counts"),
        ("sk-learn-is-a-library-for-python", "a word with hyphens"),
        ("task-1234567890123456789", "the end of a word"),
        ("ann@example.com https://example.com/a:b@c ftp://ann@host/", "addresses without a password"),
        ("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "a certificate is public"),
        ("eyJ is how they begin. eyJhbGciOiJub25lIn0.x", "half a web token"),
        ("Züge \u{1F600} -----", "other characters"),
        ("{ \"b\" : 1.0, \"a\" : \"x\" }", "json without secrets keeps its look"),
        ("password=", "no value"),
    ];
    for (text, reason) in rows {
        assert_eq!(redacted(json!(text)), json!(text), "{reason}");
    }
}

#[test]
fn secrets_in_json_inside_texts_are_taken_out() {
    let inner = json!({ "ok": true, "token": "abc", "note": "Bearer abc12345" }).to_string();
    let outer = json!({ "result": inner }).to_string();
    let expected = json!({ "ok": true, "token": "[redacted]", "note": "Bearer [redacted]" }).to_string();
    assert_eq!(redacted(json!(inner)), json!(expected));
    assert_eq!(redacted(json!(outer)), json!(json!({ "result": expected }).to_string()), "and in texts in those");
}

#[test]
fn whole_words_of_names_decide() {
    let gone = [
        ("tokens", "more than one"),
        ("apiKeys", "more than one"),
        ("clientSecretValue", "a word behind that says nothing"),
        ("passwordConfirm", "the same again"),
        ("passwordConfirmation", "the same again"),
        ("secret_key_base", "a framework's own word"),
        ("webhook_secret_v2", "a version"),
        ("sessionId", "who has it is signed in"),
        ("sid", "the same in short"),
        ("otp", "a code for once"),
        ("card_pin", "a short word as a word"),
        ("pin", "a short word alone"),
        ("signature", "a proof"),
        ("X-Hub-Signature-256", "a proof in a header"),
        ("x-auth", "a custom header"),
        ("auth", "the same in short"),
        ("access_tokens", "tokens that are no count"),
    ];
    for (name, reason) in gone {
        assert_eq!(redacted(json!({ name: "x" })), json!({ name: "[redacted]" }), "{name}: {reason}");
    }
    let stays = [
        ("input_tokens", "a count"),
        ("tokenCount", "a count"),
        ("max_tokens", "a limit"),
        ("author", "longer than auth"),
        ("authority", "longer than auth"),
        ("pinned", "longer than pin"),
        ("spin", "ends like pin"),
        ("design", "has sign in it"),
        ("signed", "a date or a flag"),
        ("sidebar", "begins like sid"),
        ("consider", "has sid in it"),
        ("id", "an id"),
        ("order_number", "a number"),
        ("function_signature", "code"),
    ];
    for (name, reason) in stays {
        let value = json!({ name: "x1234", "text": format!("{name}: economy1 {name}=economy1") });
        assert_eq!(redacted(value.clone()), value, "{name}: {reason}");
    }
}

#[test]
fn a_pair_of_a_secret_name_and_its_value_is_one_field() {
    let rows = [
        (json!([{"name": "Authorization", "value": "x"}]), json!([{"name": "Authorization", "value": "[redacted]"}])),
        (json!({"key": "password", "value": 7}), json!({"key": "password", "value": "[redacted]"})),
        (json!({"value": {"a": 1}, "b": 1.5, "key": "pin"}), json!({"value": "[redacted]", "b": 1.5, "key": "pin"})),
        (json!({"name": "Accept", "value": "x"}), json!({"name": "Accept", "value": "x"})),
    ];
    for (value, expected) in rows {
        assert_eq!(redacted(value.clone()), expected, "a value");
        let (text, cleaned) = (value.to_string(), expected.to_string());
        assert_eq!(redacted(json!(text)), json!(cleaned), "a text");
        let (within, cleaned_within) = (format!("got {text}, then"), format!("got {cleaned}, then"));
        assert_eq!(redacted(json!(within)), json!(cleaned_within), "between words");
        let quote = |text: &str| json!(text).to_string().trim_matches('"').to_owned();
        assert_eq!(redacted(json!(quote(&within))), json!(quote(&cleaned_within)), "quoted between words");
    }
}

#[test]
fn secrets_in_prose_and_commands_are_taken_out() {
    let hub = ["ghp", "x"].join("_");
    let text = |text: &str| text.to_owned();
    let hook = ["https://hooks.slack.com", "services"].join("/");
    let rows = [
        (text("password: LEAK11abc"), "password: [redacted]", "a digit"),
        (text("api_key: LEAK12abc999"), "api_key: [redacted]", "a digit"),
        (text("password: leakleak, x"), "password: [redacted], x", "eight characters"),
        (text("headers: X-Api-Key: LEAK34abc"), "headers: X-Api-Key: [redacted]", "a name behind a name"),
        (
            text(r#"x {\"password\": \"a\\\"b\", \"n\": 1.10} y"#),
            r#"x {\"password\": \"[redacted]\", \"n\": 1.10} y"#,
            "quoted json",
        ),
        (text(r#"x \"pin\": 1234, y"#), r#"x \"pin\": \"[redacted]\", y"#, "a piece of quoted json"),
        (text("Bearer\tLEAK4abc"), "Bearer\t[redacted]", "a tab"),
        (text("Bearer\nLEAK4abc"), "Bearer\n[redacted]", "a line's end"),
        (text("Bearer LEAK4"), "Bearer [redacted]", "short, with a digit"),
        (text("bearer leakleakleakleak"), "bearer [redacted]", "longer than words are"),
        (text("https://TOKEN:x-oauth-basic@host/a"), "https://[redacted]@host/a", "the user is the token"),
        (format!("https://{hub}@host"), "https://[redacted]@host", "a token alone"),
        (text("postgres://u:pa/ss@h/db"), "postgres://u:[redacted]@h/db", "a password with a slash"),
        (text("curl -u ann:hunter https://h:80/"), "curl -u ann:[redacted] https://h:80/", "a user's password"),
        (text("curl --user 'ann:hun ter' x"), "curl --user 'ann:[redacted]' x", "in quotes"),
        (text("login --password hunter --x"), "login --password [redacted] --x", "an option"),
        (text("login --token=abc"), "login --token=[redacted]", "an option with a sign"),
        (text("<a><password>hunter</password></a>"), "<a><password>[redacted]</password></a>", "an element"),
        (
            text("Authorization: Digest username=\"a\", response=\"b\"\nnext"),
            "Authorization: [redacted]\nnext",
            "to the line's end",
        ),
        (text("x \"Authorization: Digest a\" y"), "x \"Authorization: [redacted]\" y", "to the end of its quotes"),
        (text("export SECRET=sauce"), "export SECRET=[redacted]", "a variable of a process"),
        (text("user[password]=a&b=c"), "user[password]=[redacted]&b=c", "a form"),
        (text("a\\nBearer abcd1234"), "a\\nBearer [redacted]", "behind a line's end that is written out"),
        (format!("at {hook}/T0/B0/xyz."), "at https://hooks.slack.com/services/[redacted].", "a hook's address"),
        (["whsec", "0123456789abcdef"].join("_"), "[redacted]", "signs hooks"),
        (["npm", "0123456789abcdef"].join("_"), "[redacted]", "a registry's"),
        (["hf", "abcdefghijklmnopqrst"].join("_"), "[redacted]", "a hub's, without digits"),
        (["gsk", "0123456789abcdef"].join("_"), "[redacted]", "a model service's"),
        (["SG", "0123456789", "abcdef"].join("."), "[redacted]", "a mailer's"),
        (["xapp", "1", "A012345678"].join("-"), "[redacted]", "a chat's"),
        (["dop", "v1", "0123456789abcdef"].join("_"), "[redacted]", "a cloud's"),
    ];
    for (text, expected, reason) in rows {
        assert_eq!(redacted(json!(text)), json!(expected), "{reason}");
    }
}

#[test]
fn words_numbers_and_code_stay() {
    let rows = [
        ("The basic Principle12 of bearer Bonds1234 is token=economy; secret=sauce.", "words of a sentence"),
        ("Basic JavaScript and Basic HTTP, bearer token-based.", "words that are joined"),
        ("0190f3e2-7c1b-7abc-8def-0123456789ab order 4711-0815 id=abc123", "ids"),
        ("https://example.com:8080/@user/a?b=c@d http://[::1]:80/ git@example.com:a/b", "ordinary addresses"),
        ("fn login(token: &str) -> Option<Token> { self.token == token }", "code"),
        ("const password = readPassword(); token = self.token; secret: Secret::new(x)", "code that names secrets"),
        ("password=$PASSWORD curl -H \"Authorization-Mode: x\" docker run -u 1000:1000", "where a value comes from"),
        ("use --password to set it; <password> is a place", "a sentence about an option"),
        ("npm_config_registry_path npm_lifecycle_event", "names that begin like keys"),
        ("[WARN] {x} [1, 2 {\"a\": 1.10, \"a\": 2} \"", "brackets that are no json"),
    ];
    for (text, reason) in rows {
        assert_eq!(redacted(json!(text)), json!(text), "{reason}");
    }
}

#[test]
fn what_stands_beside_a_secret_stays_byte_by_byte() {
    let text =
        r#"{ "n": 12345678901234567890123, "p": 1.10, "a":1,"a":2, "u": "\u00e9\/", "token" : "abc", "pin": 1234 }"#;
    let cleaned = r#"{ "n": 12345678901234567890123, "p": 1.10, "a":1,"a":2, "u": "\u00e9\/", "token" : "[redacted]", "pin": "[redacted]" }"#;
    for (before, after) in [("", ""), ("got ", " then"), (" [", "]")] {
        let (text, cleaned) = (format!("{before}{text}{after}"), format!("{before}{cleaned}{after}"));
        assert_eq!(redacted(json!(text)), json!(cleaned), "{before:?}");
    }
    let cut_off = r#"{"n": 1.10, "credentials": {"user": "a", "x": ["#;
    assert_eq!(redacted(json!(cut_off)), json!(r#"{"n": 1.10, "credentials": "[redacted]""#), "json that was cut off");
}

#[test]
fn quoting_ends_however_deep_it_is() {
    let mut text = json!({ "a": { "password": "hunter2", "n": 1 } }).to_string();
    for depth in 0..14 {
        let cleaned = redacted(json!(text));
        let cleaned = cleaned.as_str().unwrap();
        assert!(!cleaned.contains("hunter2") && cleaned.contains("[redacted]"), "quoted {depth} times");
        let mut inner: Value = serde_json::from_str(cleaned).unwrap();
        while let Value::String(text) = &inner {
            inner = serde_json::from_str(text).unwrap();
        }
        assert_eq!(inner, json!({ "a": { "password": "[redacted]", "n": 1 } }), "quoted {depth} times");
        text = json!(text).to_string();
    }
    for begin in [
        "[",
        "{\"a\":",
        "{\"",
        "\\\"",
        "[\"",
        "['",
        "{\\\"",
        "://a:b/",
        "\"",
        "eyJ",
        "token:",
        "<pin>",
        "\\",
        "Bearer ",
        "\"value\":{",
    ] {
        let long = begin.repeat(20_000);
        let once = redacted(json!(long));
        assert_eq!(redacted(once.clone()), once, "{begin} without an end");
    }
    let mut value = json!("x");
    for _ in 0..300 {
        value = json!([value]);
    }
    assert!(
        redacted(value).to_string().ends_with(&format!("\"[redacted]\"{}", "]".repeat(160))),
        "deeper than is read"
    );
}

/// Pieces that mean something to whoever looks for secrets, and some that mean nothing.
fn pieces() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "password",
        "token",
        "\"pin\"",
        "name",
        "\"name\":\"token\"",
        "\"value\":",
        "Authorization",
        "Bearer ",
        "basic ",
        "://",
        "@",
        ":",
        "=",
        ",",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "\\",
        "\\\"",
        "\\n",
        "\n",
        " ",
        "<",
        ">",
        "</",
        "--",
        "-u ",
        "abc123",
        "x",
        "leakleakleak",
        "é",
        "1.10",
        "null",
        "&",
        "?",
        "/",
        "[redacted]",
        "sk-",
        "https",
        "(",
        ")",
        "$",
        ".",
    ]);
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_password_behind_a_user_is_found_at_once_and_code_is_left() {
    let rows = [
        ("-u :password:[://password", "-u :[redacted]"),
        ("-u ada:password:[x", "-u ada:[redacted]"),
        ("-u module::password[0]", "-u module::password[0]"),
        ("-u read_user():x", "-u read_user():x"),
    ];
    for (text, expected) in rows {
        assert_eq!(clean(text, 160), expected);
        assert_eq!(clean(expected, 160), expected, "again");
    }
}

/// Any value of such texts.
fn values() -> impl Strategy<Value = Value> {
    let name = proptest::sample::select(vec!["password", "name", "value", "a", "pin"]);
    pieces().prop_map(Value::String).prop_recursive(3, 12, 4, move |inner| {
        let fields = proptest::collection::vec((name.clone(), inner.clone()), 0..4);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            fields.prop_map(|fields| json!(fields.into_iter().collect::<BTreeMap<_, _>>())),
            inner.prop_map(|value| Value::String(value.to_string())),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_cleaned_stays_as_it_is(value in values()) {
        let once = redacted(value);
        prop_assert_eq!(redacted(once.clone()), once);
    }

    #[test]
    fn json_in_a_text_stays_json(value in values()) {
        let cleaned = redacted(json!(value.to_string()));
        prop_assert!(serde_json::from_str::<Value>(cleaned.as_str().unwrap()).is_ok(), "{}", cleaned);
    }

    #[test]
    fn a_text_cleans_as_the_value_in_it(value in values()) {
        let cleaned = redacted(json!(json!({ "a": value }).to_string()));
        let cleaned: Value = serde_json::from_str(cleaned.as_str().unwrap()).unwrap();
        prop_assert_eq!(cleaned, redacted(json!({ "a": value })));
    }

    #[test]
    fn a_text_without_words_of_secrets_stays(text in "([a-m é\\n{}\\[\\]\"'\\\\,.=0-9-]|: )*") {
        // Letters of which no name of a secret can be made.
        prop_assert!(matches!(clean(&text, 160), Cow::Borrowed(same) if same == text));
    }
}
