//! What is said about mistakes: all of them at once, each with its key and a reason, none with a secret.

use switchboard::config::{Config, Sources};
use switchboard::llm::Vendor;

use super::{env, lines, problems, write};

#[test]
fn every_mistake_of_every_layer_is_reported_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = r#"
surprise = 1
limits = 7

[server]
bind = "0.0.0.0:8080"
cors_allowed_origins = ["https://app.example.com", "app.example.com", "https://app.example.com/path"]
keep_alive_s = "often"
colour = "blue"

[auth]
hs256_secret = 7
leeway_s = 9223372036854775807

[llm]
provider = "gpt"
fallbacks = ["claude"]
max_tokens = -1

[llm.ollama]
num_ctx = 1.5

[backend]
mode = "http"
base_url = "ftp://backend.example.com"

[store]
url = "mysql://user@db.example.com/switchboard"
max_connections = 0

[events]
url = "nats://localhost"

[log]
level = "info,switchboard=loud"
format = "xml"

[weather]
city = "Oslo"
"#;
    write(dir.path(), "default.toml", file);
    let mut sources = env(&[
        ("SWITCHBOARD__RUNS__MAX_TURNS", "many"),
        ("SWITCHBOARD__RUNS__MAX_TOOL_CALLS", "-1"),
        ("SWITCHBOARD__LLM__CLAUDE__MODELL", "x"),
        ("SWITCHBOARD__LLM__OPENAI__STREAM_OPTIONS", "yes"),
        ("SWITCHBOARD__LLM", "claude"),
        ("SWITCHBOARD__AUTH__ISSUER_FILE", "/no/such/file"),
    ]);
    sources.dir = Some(dir.path().to_owned());
    let mut found = problems(&sources);
    found.sort();
    let expected = [
        "SWITCHBOARD__AUTH__ISSUER_FILE: /no/such/file cannot be read: No such file or directory (os error 2)",
        "SWITCHBOARD__LLM: is not a known setting",
        "SWITCHBOARD__LLM__CLAUDE__MODELL: is not a known setting",
        "SWITCHBOARD__LLM__OPENAI__STREAM_OPTIONS: must be true or false",
        "SWITCHBOARD__RUNS__MAX_TURNS: must be a whole number",
        "auth.hs256_secret: must be a string",
        "auth.leeway_s: must be at most 3600",
        "backend.base_url: must begin with http:// or https://",
        "events.url: must be \"local\" or begin with redis:// or rediss://",
        "limits: must be a section",
        "llm.claude.api_key: is required",
        "llm.max_tokens: invalid value: integer `-1`, expected u32",
        "llm.ollama.num_ctx: invalid type: floating point `1.5`, expected u32",
        "llm.provider: \"gpt\" is not a provider; there are gemini, claude, openai, ollama, bedrock, vertex",
        "log.format: unknown variant `xml`, expected `text` or `json`",
        "log.level: is not a log filter: error parsing level filter: expected one of \"off\", \"error\", \"warn\", \
         \"info\", \"debug\", \"trace\", or a number 0-5",
        "runs.max_tool_calls: invalid value: integer `-1`, expected u32",
        "server.bind: auth.mode is \"dev\", which hands out tokens and therefore only listens on loopback; \
         set auth.mode or bind to 127.0.0.1",
        "server.colour: is not a known setting",
        "server.cors_allowed_origins: \"app.example.com\" is not an origin such as \"https://app.example.com\"",
        "server.cors_allowed_origins: \"https://app.example.com/path\" is not an origin such as \
         \"https://app.example.com\"",
        "server.keep_alive_s: invalid type: string \"often\", expected u64",
        "store.max_connections: must be at least 1",
        "store.url: must begin with sqlite: or postgres://",
        "surprise: is not a known setting",
        "weather: is not a known setting",
    ];
    assert_eq!(found, expected);
}

#[test]
fn each_setting_that_contradicts_another_is_named() {
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let too_long = "9223372036854775807";
    let rows: [Row<'_>; 34] = [
        (&[("AUTH__MODE", "hs256")], &["auth.hs256_secret: must have at least 32 bytes"]),
        (
            &[("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", "31 bytes are one byte too few..")],
            &["auth.hs256_secret: must have at least 32 bytes"],
        ),
        (&[("AUTH__MODE", "rs256")], &["auth.rs256_public_key_file: is required with auth.mode \"rs256\""]),
        (
            &[("AUTH__MODE", "rs256"), ("AUTH__RS256_PUBLIC_KEY_FILE", "/no/such.pem")],
            &["auth.rs256_public_key_file: /no/such.pem cannot be used: No such file or directory (os error 2)"],
        ),
        (
            &[("AUTH__MODE", "rs256"), ("AUTH__RS256_PUBLIC_KEY_FILE", "/dev/null")],
            &["auth.rs256_public_key_file: /dev/null holds no public key in PEM form"],
        ),
        (
            &[("AUTH__MODE", "jwks")],
            &[
                "auth.audience: is required with auth.mode \"jwks\": its issuer makes tokens for others too",
                "auth.issuer: is required",
            ],
        ),
        (
            &[("AUTH__MODE", "jwks"), ("AUTH__AUDIENCE", "a"), ("AUTH__ISSUER", "http://id.example.com")],
            &["auth.issuer: must begin with https://, but on this machine"],
        ),
        (
            &[
                ("AUTH__MODE", "jwks"),
                ("AUTH__AUDIENCE", "a"),
                ("AUTH__ISSUER", "any"),
                ("AUTH__JWKS_URL", "https://user@id.example.com/keys"),
            ],
            &["auth.jwks_url: must not hold a user or password"],
        ),
        (&[("AUTH__JWKS_REFRESH_S", "0")], &["auth.jwks_refresh_s: must be 1 to 86400"]),
        (&[("AUTH__JWKS_COOLDOWN_S", "0")], &["auth.jwks_cooldown_s: must be 1 to 3600"]),
        (&[("AUTH__JWKS_STALE_S", "604801")], &["auth.jwks_stale_s: must be 1 to 604800"]),
        (
            &[("AUTH__ISSUERS__ONE__ISSUER", "https://id.example.com"), ("AUTH__ISSUERS__ONE__AUDIENCE", "a")],
            &[
                "auth.issuer: is required beside auth.issuers, unless auth.mode is \"jwks\": who speaks for a token is chosen by its issuer",
            ],
        ),
        (
            &[("AUTH__ISSUER", "https://id.example.com"), ("AUTH__ISSUERS__ONE__ISSUER", "https://id.example.com")],
            &[
                "auth.issuers.one.audience: is required: an issuer makes tokens for others too",
                "auth.issuers.one.issuer: is that of auth.issuer already",
            ],
        ),
        (
            &[
                ("AUTH__MODE", "jwks"),
                ("AUTH__ISSUERS__A__ISSUER", "https://id.example.com"),
                ("AUTH__ISSUERS__A__AUDIENCE", "a"),
                ("AUTH__ISSUERS__B__ISSUER", "https://id.example.com"),
                ("AUTH__ISSUERS__B__AUDIENCE", "a"),
                ("AUTH__ISSUERS__B__PUBLIC_KEY_FILE", "/no/such.pem"),
                ("AUTH__ISSUERS__C_D__ISSUER", "https://other.example.com"),
                ("AUTH__ISSUERS__C_D__AUDIENCE", "a"),
                ("AUTH__ISSUERS__C_D__JWKS_URL", "ftp://other.example.com"),
            ],
            &[
                "auth.issuers.b.public_key_file: /no/such.pem cannot be used: No such file or directory (os error 2)",
                "auth.issuers.b.issuer: is that of auth.issuers.a already",
                "auth.issuers.c_d.jwks_url: must begin with https://",
                "auth.issuers.c_d: an issuer's name must be 1 to 32 of a-z 0-9 -",
            ],
        ),
        (
            &[("AUTH__SESSION__COOKIE", "_app_key")],
            &["auth.session.exchange_url: is required with auth.session.cookie"],
        ),
        (
            &[("AUTH__SESSION__EXCHANGE_URL", "https://app.example.com/token")],
            &["auth.session.cookie: is required with auth.session.exchange_url"],
        ),
        (
            &[
                ("AUTH__COOKIE", "token"),
                ("AUTH__SESSION__COOKIE", "a b;"),
                ("AUTH__SESSION__EXCHANGE_URL", "http://app.example.com/token"),
                ("AUTH__SESSION__CSRF_HEADER", "x csrf"),
                ("AUTH__SESSION__CACHE_S", "301"),
                ("AUTH__SESSION__TIMEOUT_S", "0"),
            ],
            &[
                "auth.session.cookie: has characters that no name of a cookie has",
                "auth.session.exchange_url: must begin with https://, but on this machine",
                "auth.session.csrf_header: is no name of an http header",
                "auth.session.cache_s: must be at most 300",
                "auth.session.timeout_s: must be 1 to 60",
                "auth.session.cookie: must be empty beside auth.cookie: one cookie says who calls",
            ],
        ),
        (
            &[("AUTH__SESSION__CSRF_HEADER", "Content-Type"), ("BACKEND__COOKIE", "true")],
            &[
                "auth.session.csrf_header: must be a header of the pages' own: this one proves nothing",
                "backend.cookie: is of use only with auth.cookie",
            ],
        ),
        (&[("AUTH__SESSION__CSRF_HEADER", "")], &["auth.session.csrf_header: is no name of an http header"]),
        (
            &[
                ("AUTH__SESSION__COOKIE", "__Host-app"),
                ("AUTH__SESSION__EXCHANGE_URL", "https://u:p@app.example.com/token"),
            ],
            &["auth.session.exchange_url: must not hold a user or password"],
        ),
        (
            &[
                ("AUTH__SESSION__COOKIE", "__Host-app"),
                ("AUTH__SESSION__EXCHANGE_URL", "http://127.0.0.1:4000/token"),
                ("AUTH__SESSION__CSRF_HEADER", "X-XSRF-Token"),
                ("AUTH__SESSION__CACHE_S", "0"),
            ],
            &[],
        ),
        (&[("AUTH__LEEWAY_S", "3601")], &["auth.leeway_s: must be at most 3600"]),
        (&[("LLM__PROVIDER", "claude")], &["llm.claude.api_key: is required"]),
        (
            &[("LLM__PROVIDER", "gemini"), ("LLM__GEMINI__MODEL", " "), ("LLM__GEMINI__BASE_URL", "gemini")],
            &["llm.gemini.model: is required", "llm.gemini.base_url: is not a URL", "llm.gemini.api_key: is required"],
        ),
        (&[("LLM__PROVIDER", "gemini"), ("LLM__GEMINI__API_KEY", "  ")], &["llm.gemini.api_key: is required"]),
        (
            &[("LLM__GEMINI__API_KEY", "k"), ("LLM__GEMINI__BASE_URL", "gemini"), ("LLM__CLAUDE__BASE_URL", "x")],
            &["llm.gemini.base_url: is not a URL"],
        ),
        (
            &[("LLM__PROVIDER", "openai"), ("LLM__OPENAI__API_KEY", "two\nlines")],
            &["llm.openai.api_key: has characters that no http header can carry"],
        ),
        (
            &[("LLM__PROVIDER", "claude"), ("LLM__CLAUDE__API_KEY", "k"), ("LLM__CLAUDE__VERSION", "ä\n")],
            &["llm.claude.version: has characters that no http header can carry"],
        ),
        (&[("BACKEND__MODE", "http")], &["backend.base_url: is not a URL"]),
        (
            &[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", "https://u:p@example.com")],
            &["backend.base_url: must not hold a user or password"],
        ),
        (
            &[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", "https://example.com/?a=b")],
            &["backend.base_url: must not have a query or fragment"],
        ),
        (&[("STORE__URL", "data/test.db")], &["store.url: must begin with sqlite: or postgres://"]),
        (
            &[("SERVER__BIND", "[::]:8080")],
            &["server.bind: auth.mode is \"dev\", which hands out tokens and therefore \
           only listens on loopback; set auth.mode or bind to 127.0.0.1"],
        ),
        // Times without end are allowed wherever a time may be long.
        (
            &[("LLM__FIRST_BYTE_TIMEOUT_S", too_long), ("LLM__IDLE_TIMEOUT_S", too_long), ("RUNS__WALL_S", too_long)],
            &[],
        ),
    ];
    for (settings, expected) in rows {
        let variables: Vec<_> =
            settings.iter().map(|(key, value)| (format!("SWITCHBOARD__{key}"), (*value).to_owned())).collect();
        let sources = Sources { env: variables.into_iter().collect(), ..Sources::default() };
        assert_eq!(problems(&sources), *expected, "{settings:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_or_parsed_is_named_with_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let rows: [(&str, Option<&[u8]>, &str); 4] = [
        ("missing.toml", None, "cannot be read: No such file or directory (os error 2)"),
        ("binary.toml", Some(b"\xff\xfe"), "cannot be read: stream did not contain valid UTF-8"),
        ("broken.toml", Some(b"[runs]\nmax_turns = 5\nwall_s = = 5\n"), "line 3: "),
        ("twice.toml", Some(b"[runs]\nmax_turns = 5\n[runs]\n"), "line 3: "),
    ];
    for (name, text, expected) in rows {
        if let Some(text) = text {
            write(dir.path(), name, text);
        }
        let found = problems(&Sources { file: Some(path(name)), ..Sources::default() });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{}: {expected}", path(name).display())), "{found:?}");
    }
    let found = problems(&Sources { dir: Some(path("nowhere")), ..Sources::default() });
    assert_eq!(found, [format!("{}: is not a folder", path("nowhere").display())]);
}

#[test]
fn no_problem_repeats_a_secret() {
    const CANARY: &str = "canary-5ecret";
    let dir = tempfile::tempdir().unwrap();
    let values = [
        format!("[\"{CANARY}\"]"),
        format!("{{ value = \"{CANARY}\" }}"),
        format!("\"{CANARY}"),
        CANARY.to_owned(),
        format!("\"\\q{CANARY}\""),
        format!("\"\"\"{CANARY}"),
    ];
    let mut keys = vec!["auth.hs256_secret".to_owned()];
    keys.extend(Vendor::ALL.map(|vendor| format!("llm.{}.api_key", vendor.name())));
    for (key, value) in keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))) {
        write(dir.path(), "default.toml", format!("{key} = {value}\n"));
        let found = problems(&Sources { dir: Some(dir.path().to_owned()), ..Sources::default() });
        assert!(!found.is_empty(), "{key} = {value}");
        assert!(!found.concat().contains(CANARY), "{found:?}");
    }
    let url = format!("ftp://user:{CANARY}@example.com/?key={CANARY}");
    let not_a_url = format!("//user:{CANARY}@example.com");
    let rows = [
        ("AUTH__MODE", "hs256", "AUTH__HS256_SECRET", CANARY),
        ("BACKEND__MODE", "http", "BACKEND__BASE_URL", &url),
        ("BACKEND__MODE", "http", "BACKEND__BASE_URL", &not_a_url),
        ("LLM__PROVIDER", "openai", "LLM__OPENAI__BASE_URL", &url),
        ("LLM__PROVIDER", "ollama", "LLM__OLLAMA__BASE_URL", &not_a_url),
        ("LLM__PROVIDER", "openai", "LLM__OPENAI__API_KEY", "canary-5ecret\nmore"),
        ("LLM__PROVIDER", "openai", "STORE__URL", &url),
        ("LLM__PROVIDER", "openai", "EVENTS__URL", &url),
    ];
    for (mode, chosen, key, value) in rows {
        let names = [format!("SWITCHBOARD__{mode}"), format!("SWITCHBOARD__{key}")];
        let found = problems(&env(&[(&names[0], chosen), (&names[1], value)]));
        assert_eq!(found.len(), 1, "{key}: {found:?}");
        assert!(!found.concat().contains(CANARY), "{found:?}");
    }
}

#[test]
fn an_amount_of_money_is_what_it_says_or_a_mistake() {
    let rows = [
        ("0", Ok(None), "no limit"),
        ("8.2", Ok(Some(8_200_000_000)), "a little less as a number of the machine"),
        ("0.000000001", Ok(Some(1)), "the smallest"),
        ("0.0000000009", Err(()), "less than can be counted would be nothing at all"),
        ("-1.0", Err(()), "less than nothing"),
    ];
    for (text, expected, reason) in rows {
        let sources = env(&[("SWITCHBOARD__LIMITS__USD_PER_TENANT_MONTH", text)]);
        let budget = Config::load(&sources).map(|config| config.limits.budget().cost_per_tenant_month);
        let told = budget.map(|cost| cost.map(|cost| cost.nano_usd)).map_err(|problems| lines(&problems).concat());
        let expected =
            expected.map_err(|()| "limits.usd_per_tenant_month: must be 0 or a number from 0.000000001".to_owned());
        assert_eq!(told, expected, "{reason}");
    }
}
