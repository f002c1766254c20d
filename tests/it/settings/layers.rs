//! Where a setting comes from: the built-in defaults, then a file, then the environment.

use secrecy::ExposeSecret;
use switchboard::config::{Config, Sources};
use switchboard::llm::{self, VendorConfig};
use switchboard::{http, store};

use super::{env, problems, write};

fn of<'a>(config: &'a Config, provider: &str) -> &'a VendorConfig {
    config.llm.section(provider).unwrap()
}

fn load(sources: &Sources) -> Config {
    Config::load(sources).unwrap()
}

#[test]
fn the_file_of_defaults_says_what_each_module_defaults_to() {
    let config = load(&Sources::default());
    assert_eq!(format!("{:?}", config.server), format!("{:?}", http::ServerConfig::default()));
    assert_eq!(format!("{:?}", config.auth), format!("{:?}", http::auth::AuthConfig::default()));
    assert_eq!(format!("{:?}", config.llm), format!("{:?}", llm::LlmConfig::default()));
    assert_eq!(config.store, store::StoreConfig::default());
}

#[test]
fn later_layers_win_and_leave_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "default.toml", "[runs]\nmax_turns = 5\nwall_s = 50\n[llm.ollama]\nmodel = \"of the folder\"\n");
    write(dir.path(), "other.toml", "[runs]\nmax_turns = 6\n");
    let values = |sources: &Sources| {
        let config = load(sources);
        (config.runs.max_turns, config.runs.wall_s, of(&config, "ollama").common.model.clone())
    };
    let built_in = (20, 600, "qwen3:14b".to_owned());
    assert_eq!(values(&Sources::default()), built_in);

    let mut sources = Sources { dir: Some(dir.path().to_owned()), ..Sources::default() };
    assert_eq!(values(&sources), (5, 50, "of the folder".to_owned()), "the folder's file over the defaults");

    sources.env = env(&[("SWITCHBOARD__RUNS__MAX_TURNS", " 7 ")]).env;
    assert_eq!(values(&sources), (7, 50, "of the folder".to_owned()), "the environment over the file");

    sources.file = Some(dir.path().join("other.toml"));
    assert_eq!(values(&sources), (7, 600, built_in.2.clone()), "a named file stands in for the folder's");
    sources.env.clear();
    assert_eq!(values(&sources), (6, 600, built_in.2), "and over the defaults");
}

#[test]
fn variables_are_read_as_the_type_that_the_setting_has() {
    let config = load(&env(&[
        ("SWITCHBOARD__SERVER__CORS_ALLOWED_ORIGINS", " https://a.example.com, http://localhost:3000 ,,"),
        ("SWITCHBOARD__LLM__OPENAI__STREAM_OPTIONS", "false"),
        ("SWITCHBOARD__LIMITS__MESSAGE_BYTES", "0"),
        ("SWITCHBOARD__LLM__OLLAMA__MODEL", "12"),
        ("SWITCHBOARD__log__FORMAT", "json"),
        ("SWITCHBOARD_SERVER_BIND", "not ours"),
        ("PATH", "/bin"),
    ]));
    assert_eq!(config.server.cors_allowed_origins, ["https://a.example.com", "http://localhost:3000"]);
    assert!(format!("{:?}", of(&config, "openai")).contains("stream_options: false"));
    assert_eq!(config.limits.message_bytes, 0);
    assert_eq!(of(&config, "ollama").common.model, "12", "a text stays a text");
    assert_eq!(config.log.format, switchboard::config::LogFormat::Json);
    let none = load(&env(&[("SWITCHBOARD__SERVER__CORS_ALLOWED_ORIGINS", "")]));
    assert_eq!(none.server.cors_allowed_origins, [""; 0], "an empty text is an empty list");
}

#[test]
fn a_text_can_come_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "secret", "  0123456789abcdef0123456789abcdef\n");
    let path = dir.path().join("secret").display().to_string();
    let config = load(&env(&[("SWITCHBOARD__AUTH__HS256_SECRET_FILE", &path), ("OPENAI_API_KEY_FILE", &path)]));
    assert_eq!(config.auth.hs256_secret.expose_secret(), "0123456789abcdef0123456789abcdef");
    assert_eq!(of(&config, "openai").common.api_key.expose_secret(), "0123456789abcdef0123456789abcdef");
    // Settings whose own names end in `_file` name a file and are not read from it.
    let config = load(&env(&[("SWITCHBOARD__AUTH__DEV_SECRET_FILE", &path)]));
    assert_eq!(config.auth.dev_secret_file, path);
    write(dir.path(), "marked", "\u{feff}0123456789abcdef0123456789abcdef\r\n");
    let marked = dir.path().join("marked").display().to_string();
    let config = load(&env(&[("SWITCHBOARD__AUTH__HS256_SECRET_FILE", &marked)]));
    assert_eq!(
        config.auth.hs256_secret.expose_secret(),
        "0123456789abcdef0123456789abcdef",
        "with a mark of its encoding"
    );

    let rows = [
        ("SWITCHBOARD__RUNS__MAX_TURNS_FILE", "is not a known setting", "a number cannot come from a file"),
        ("SWITCHBOARD__AUTH__NOTHING_FILE", "is not a known setting", "neither can what does not exist"),
        ("SWITCHBOARD__AUTH__HS256_SECRET_FILE", "cannot be read", "no such file"),
        ("GEMINI_API_KEY_FILE", "cannot be read", "nor for the usual variables"),
    ];
    for (name, words, reason) in rows {
        let found = problems(&env(&[(name, "/no/such/file")]));
        assert_eq!(found.len(), 1, "{reason}: {found:?}");
        assert!(found[0].starts_with(name) && found[0].contains(words), "{reason}: {found:?}");
    }
}

#[test]
fn what_an_image_says_stands_below_the_file() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "default.toml", "[server]\nbind = '127.0.0.1:1'\n");
    let variables =
        [("SWITCHBOARD_DEFAULT__SERVER__BIND", "127.0.0.1:2"), ("SWITCHBOARD_DEFAULT__SERVER__DRAIN_S", "7")];
    let of_image = env(&variables);
    let config = load(&Sources { dir: Some(dir.path().to_owned()), ..of_image.clone() });
    assert_eq!((config.server.bind.as_str(), config.server.drain_s), ("127.0.0.1:1", 7));
    let mut over = of_image;
    over.env.insert("SWITCHBOARD__SERVER__BIND".to_owned(), "127.0.0.1:3".to_owned());
    assert_eq!(load(&over).server.bind, "127.0.0.1:3");
    let found = problems(&env(&[("SWITCHBOARD_DEFAULT__SERVER__BINDS", "x")]));
    assert_eq!(found, ["SWITCHBOARD_DEFAULT__SERVER__BINDS: is not a known setting"]);
}

#[test]
fn the_usual_variables_fill_a_key_that_nothing_nearer_fills() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "default.toml", "[llm.claude]\napi_key = \"of the file\"\n");
    write(dir.path(), "key", "of a key file");
    let key_file = dir.path().join("key").display().to_string();
    let mut sources = env(&[
        ("GEMINI_API_KEY", "usual gemini"),
        ("ANTHROPIC_API_KEY", "usual claude"),
        ("OPENAI_API_KEY", ""),
        ("OPENAI_API_KEY_FILE", &key_file),
    ]);
    let keys = |sources: &Sources| {
        let config = load(sources);
        ["gemini", "claude", "openai"].map(|name| of(&config, name).common.api_key.expose_secret().to_owned())
    };
    assert_eq!(keys(&sources), ["usual gemini", "usual claude", "of a key file"]);
    sources.dir = Some(dir.path().to_owned());
    assert_eq!(keys(&sources), ["usual gemini", "of the file", "of a key file"], "the file is nearer");
    sources.env.insert("SWITCHBOARD__LLM__GEMINI__API_KEY".to_owned(), "our own".to_owned());
    assert_eq!(keys(&sources), ["our own", "of the file", "of a key file"], "our own variable is nearest");
}

#[test]
fn headers_and_fields_of_the_operator_s_choice_have_any_key_but_one_that_requests_have_anyway() {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources { dir: Some(dir.path().to_owned()), ..env(&[("SWITCHBOARD__LLM__PROVIDER", "openai")]) };
    let file = "[llm.openai]\nextra_headers = { X-Title = 'T' }\nextra_body.provider.order = ['anthropic']\n";
    write(dir.path(), "default.toml", file);
    let openai = format!("{:?}", of(&load(&sources), "openai"));
    assert!(openai.contains("extra_headers: {\"X-Title\": "), "{openai}");
    assert!(openai.contains(r#"extra_body: {"provider": Object {"order": Array [String("anthropic")]}}"#), "{openai}");
    for (file, problem) in [
        ("extra_body.model = 'x'", "llm.openai.extra_body.model: is a field that the request has already"),
        ("extra_headers.Accept = 'x'", "llm.openai.extra_headers.Accept: is a header that the request has already"),
        ("extra_headers.x = 7", "llm.openai.extra_headers.x: must be a string"),
        ("extra_headers = 'x'", "llm.openai.extra_headers: must be a section"),
    ] {
        write(dir.path(), "default.toml", format!("[llm.openai]\n{file}\n"));
        assert_eq!(problems(&sources), [problem]);
    }
}
