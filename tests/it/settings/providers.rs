//! `[llm.providers.NAME]`: providers by a name of the operator's choice, in a file and in the environment.

use secrecy::ExposeSecret;
use switchboard::config::catalogue;
use switchboard::config::{Config, Sources};
use switchboard::llm::{Common, LlmConfig as Llm, Vendor};

use super::{env, problems, write};

const FILE: &str = r#"
[llm]
provider = "groq"
fallbacks = ["desk", "desk:other", "claude-eu"]

[llm.providers.groq]
vendor = "openai"
base_url = "https://api.groq.com/openai/v1"
model = "llama-3.3-70b-versatile"
stream_options = false

[llm.providers.desk]
vendor = "ollama"
base_url = "http://desk:11434"
num_ctx = 8192

[llm.providers.claude-eu]
vendor = "claude"
model = "opus"
api_key = "of the file"
"#;

/// The file `text` under these variables, which lack their common beginning.
fn sources(text: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "default.toml", text);
    let names: Vec<_> = variables.iter().map(|(name, _)| format!("SWITCHBOARD__LLM__{name}")).collect();
    let pairs: Vec<_> = names.iter().zip(variables).map(|(name, (_, value))| (name.as_str(), *value)).collect();
    let sources = Sources { dir: Some(dir.path().to_owned()), ..env(&pairs) };
    (dir, sources)
}

/// Vendor, address, model and key of a provider.
fn told(llm: &Llm, name: &str) -> (Vendor, String, String, String) {
    let section = llm.section(name).unwrap();
    let Common { base_url, model, api_key, input: _ } = section.common.clone();
    (section.vendor(), base_url, model, api_key.expose_secret().to_owned())
}

fn row(vendor: Vendor, base_url: &str, model: &str, key: &str) -> (Vendor, String, String, String) {
    (vendor, base_url.to_owned(), model.to_owned(), key.to_owned())
}

#[test]
fn a_provider_has_its_vendors_settings_under_a_name_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "key", "of a key file\n");
    let key_file = dir.path().join("key").display().to_string();
    let variables = [
        ("PROVIDERS__GROQ__API_KEY_FILE", &*key_file),
        ("PROVIDERS__DESK__NUM_CTX", "4096"),
        ("PROVIDERS__CLAUDE-EU__API_KEY", "of the environment"),
        ("PROVIDERS__LAB__VENDOR", " gemini "),
        ("PROVIDERS__LAB__API_KEY", "k"),
        ("PROVIDERS__My_vLLM__VENDOR", "openai"),
        ("PROVIDERS__My_vLLM__BASE_URL", "http://gpu:8000/v1"),
    ];
    let (_dir, sources) = sources(FILE, &variables);
    let llm = Config::load(&sources).unwrap().llm;
    let groq = "https://api.groq.com/openai/v1";
    assert_eq!(told(&llm, "groq"), row(Vendor::OpenAi, groq, "llama-3.3-70b-versatile", "of a key file"));
    assert_eq!(told(&llm, "desk"), row(Vendor::Ollama, "http://desk:11434", "qwen3:14b", ""));
    let claude = "https://api.anthropic.com";
    assert_eq!(told(&llm, "claude-eu"), row(Vendor::Claude, claude, "opus", "of the environment"));
    let gemini = "https://generativelanguage.googleapis.com";
    assert_eq!(told(&llm, "lab"), row(Vendor::Gemini, gemini, "gemini-2.5-flash", "k"), "of the environment alone");
    assert_eq!(told(&llm, "my_vllm"), row(Vendor::OpenAi, "http://gpu:8000/v1", "", ""), "no model by default");
    for (name, own) in [("groq", "stream_options: false"), ("desk", "num_ctx: 4096")] {
        assert!(format!("{:?}", llm.section(name)).contains(own), "{name}");
    }
    let models = catalogue::default_models(&llm, &mut Vec::new());
    let models: Vec<_> = models.iter().map(|model| format!("{} {}", model.provider, model.model)).collect();
    assert_eq!(models, ["groq llama-3.3-70b-versatile", "desk qwen3:14b", "desk other", "claude-eu opus"]);
}

#[test]
fn what_single_models_can_be_given_is_said_by_their_names() {
    let text = r#"
        [llm.openai]
        input = ["text", "image"]
        [llm.providers.desk]
        vendor = "ollama"
        [models."gpt-4.1"]
        input = ["text"]
        [models."desk:llama3.2-vision:11b"]
        images_max = 1
        image_max_bytes = 1000000
    "#;
    let (_dir, sources) = sources(text, &[]);
    let llm = Config::load(&sources).unwrap().llm;
    let takes = |name: &str| llm.takes(&llm.model(name).unwrap());
    assert_eq!(takes("openai:gpt-4.1").names(), ["text"]);
    assert_eq!(takes("openai:gpt-4.1-mini").names(), ["text", "image"], "another one");
    let one = takes("desk:llama3.2-vision:11b");
    assert_eq!((one.names(), one.images_max, one.image_bytes), (vec!["text", "image"], 1, 1_000_000));
    assert_eq!(takes("ollama:llama3.2-vision:11b").images_max, usize::MAX, "that of another provider");
}

#[test]
fn mistakes_in_what_is_said_of_models_have_their_places() {
    let rows = [
        ("models = 3", "models: must be a section"),
        ("[models]\nbig = 3", "models.big: must be a section"),
        (
            "[models.\"gpt-4.1\"]\ncolours = 3",
            "models.gpt-4.1.colours: unknown field `colours`, expected one of `input`, `image_max_bytes`, `image_max_side`, `images_max`, `pdf_max_bytes`, `pdfs_max`",
        ),
        ("[models.big]\nimages_max = 0", "models.big.images_max: invalid value: integer `0`, expected a nonzero usize"),
        (
            "[models.big]\ninput = [\"text\", \"sound\"]",
            "models.big.input[1]: unknown variant `sound`, expected one of `text`, `image`, `pdf`",
        ),
    ];
    for (text, expected) in rows {
        let (_dir, sources) = sources(text, &[]);
        assert_eq!(problems(&sources), [expected]);
    }
}

#[test]
fn the_environment_may_change_the_vendor() {
    let (_dir, sources) = sources(
        "[llm.providers.x]\nvendor = \"ollama\"\nbase_url = \"http://x\"",
        &[("PROVIDERS__X__VENDOR", "openai"), ("PROVIDERS__X__STREAM_OPTIONS", "false")],
    );
    let llm = Config::load(&sources).unwrap().llm;
    assert_eq!(told(&llm, "x"), row(Vendor::OpenAi, "http://x", "", ""));
}

#[test]
fn mistakes_in_providers_are_reported_by_their_place_with_all_others() {
    let file = r#"
        [llm]
        provider = "nobody"
        [llm.providers]
        seven = 7
        [llm.providers.nothing]
        api_key = "hidden"
        surprise = true
        [llm.providers.gpt]
        vendor = "gtp-hidden"
        [llm.providers.list]
        vendor = ["openai"]
        [llm.providers.groq]
        vendor = "openai"
        api_key = ["hidden"]
        stream_options = 7
        num_ctx = 7
        max_tokens_field = "both"
        [llm.providers.desk]
        vendor = "ollama"
        num_ctx = 1.5
        base_url = ["x"]
        [llm.providers.gemini]
        vendor = "gemini"
        [llm.providers."A b"]
        vendor = "gemini"
        [runs]
        max_turns = "many"
    "#;
    let (_dir, sources) = sources(
        file,
        &[
            ("PROVIDERS__DESK__SEED", "x"),
            ("PROVIDERS__DESK__VENDOR_FILE", "/no/such/file"),
            ("PROVIDERS__LAB__API_KEY", "hidden"),
            ("PROVIDERS__LAB__MODEL", "x"),
            ("PROVIDERS__WRONG__VENDOR", "hidden"),
            ("PROVIDERS__WRONG__API_KEY", "hidden"),
            ("PROVIDERS__GROQ", "x"),
            ("PROVIDERS__GROQ__ECHO_REASONING", "maybe"),
        ],
    );
    let mut found = problems(&sources);
    found.sort();
    let vendors = "one of gemini, claude, openai, ollama, bedrock, vertex";
    let name = "a provider's name has a-z 0-9 _ - and is none of the built-in ones";
    let names =
        "gemini, claude, openai, ollama, bedrock, vertex, A b, desk, gemini, gpt, groq, lab, list, nothing, wrong";
    let expected = [
        "SWITCHBOARD__LLM__PROVIDERS__DESK__SEED: is not a known setting".to_owned(),
        "SWITCHBOARD__LLM__PROVIDERS__DESK__VENDOR_FILE: is not a known setting".to_owned(),
        "SWITCHBOARD__LLM__PROVIDERS__GROQ: is not a known setting".to_owned(),
        "SWITCHBOARD__LLM__PROVIDERS__GROQ__ECHO_REASONING: must be true or false".to_owned(),
        format!("SWITCHBOARD__LLM__PROVIDERS__WRONG__VENDOR: must be {vendors}"),
        format!("llm.provider: \"nobody\" is not a provider; there are {names}"),
        format!("llm.providers.A b: {name}"),
        "llm.providers.desk.base_url: invalid type: sequence, expected a string".to_owned(),
        "llm.providers.desk.num_ctx: invalid type: floating point `1.5`, expected u32".to_owned(),
        format!("llm.providers.gemini: {name}"),
        format!("llm.providers.gpt.vendor: must be {vendors}"),
        "llm.providers.groq.api_key: must be a string".to_owned(),
        "llm.providers.groq.max_tokens_field: unknown variant `both`, expected one of `auto`, `max_tokens`, \
         `max_completion_tokens`"
            .to_owned(),
        "llm.providers.groq.num_ctx: is not a known setting".to_owned(),
        "llm.providers.groq.stream_options: invalid type: integer `7`, expected a boolean".to_owned(),
        format!("llm.providers.lab.vendor: is required: {vendors}"),
        format!("llm.providers.list.vendor: must be {vendors}"),
        format!("llm.providers.nothing.vendor: is required: {vendors}"),
        "llm.providers.seven: must be a section".to_owned(),
        "runs.max_turns: invalid type: string \"many\", expected u32".to_owned(),
    ];
    assert_eq!(found, expected);
    assert!(!found.concat().contains("hidden"), "no secret is repeated");
}

#[test]
fn a_provider_that_is_asked_is_complete() {
    let groq = "[llm]\nprovider = \"groq\"\n[llm.providers.groq]\n";
    let rows: [(&str, &[&str], &str); 5] = [
        (
            "vendor = \"openai\"\napi_key = \"k\"",
            &["llm.providers.groq.model: is required", "llm.providers.groq.base_url: is required"],
            "a key never goes to the vendor of the wire by an omission",
        ),
        ("vendor = \"openai\"\nmodel = \"m\"\nbase_url = \"http://x/v1?api-version=1\"", &[], "no key is needed"),
        ("vendor = \"claude\"", &["llm.providers.groq.api_key: is required"], "a vendor that needs a key"),
        (
            "vendor = \"gemini\"\napi_key = \"two\\nlines\"",
            &["llm.providers.groq.api_key: has characters that no http header can carry"],
            "a key that cannot be sent",
        ),
        (
            "vendor = \"x\"",
            &["llm.providers.groq.vendor: must be one of gemini, claude, openai, ollama, bedrock, vertex"],
            "only that",
        ),
    ];
    for (text, expected, reason) in rows {
        let (_dir, sources) = sources(&format!("{groq}{text}"), &[]);
        assert_eq!(problems(&sources), expected, "{reason}");
    }
    let unused = "[llm.providers.groq]\nvendor = \"openai\"";
    assert_eq!(problems(&sources(unused, &[]).1), [""; 0], "what is not asked need not be complete");
    let without_model =
        "[llm]\nprovider = \"demo\"\n[llm.providers.groq]\nvendor = \"openai\"\nbase_url = \"http://x\"";
    let (_dir, sources) = sources(without_model, &[]);
    let error = Config::load(&sources).unwrap().llm.model("groq").unwrap_err();
    assert_eq!(error.to_string(), "\"groq\" names no model, and llm.providers.groq.model is empty");
}

#[test]
fn no_key_is_in_what_the_settings_print_of_themselves() {
    let keys = [
        ("PROVIDERS__GROQ__API_KEY", "canary-1"),
        ("GEMINI__API_KEY", "canary-2"),
        ("CLAUDE__API_KEY", "canary-3"),
        ("OLLAMA__API_KEY", "canary-4"),
        ("OPENAI__API_KEY", "canary-5"),
    ];
    let (_dir, mut sources) = sources(&FILE.replace("of the file", "canary-6"), &keys);
    sources.env.insert("SWITCHBOARD__AUTH__HS256_SECRET".to_owned(), "canary-7-0123456789abcdef0123456789".to_owned());
    let config = Config::load(&sources).unwrap();
    assert_eq!(told(&config.llm, "groq").3, "canary-1");
    assert_eq!(told(&config.llm, "claude-eu").3, "canary-6");
    let printed = format!("{config:?} {config:#?}");
    assert!(printed.contains("llama-3.3-70b-versatile") && !printed.contains("canary"), "{printed}");
}

#[test]
fn the_documented_examples_are_right() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/CONFIG.md")).unwrap();
    let (_, example) = docs.split_once("```toml\n[llm]\n").unwrap();
    let example = format!("[llm]\n{}", example.split("```").next().unwrap());
    let (_dir, mut sources) = sources(&example, &[("CLAUDE__API_KEY", "k"), ("PROVIDERS__GROQ__API_KEY", "k")]);
    let llm = Config::load(&sources).unwrap().llm;
    assert_eq!(catalogue::default_models(&llm, &mut Vec::new()).len(), 4);
    assert_eq!(llm.providers.len(), 10);
    for name in llm.providers.keys() {
        sources.env.insert("SWITCHBOARD__LLM__PROVIDER".to_owned(), name.clone());
        assert_eq!(problems(&sources), [""; 0], "{name} can be asked");
    }
}
