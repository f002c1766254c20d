//! A profile's own models: what its file says of them, what it leaves to the settings, and what is said about mistakes.

use switchboard::agent::offer::menu::{Menu, Offer};
use switchboard::chat::message::ModelOrigin;
use switchboard::chat::model::{Effort, ModelChoice};
use switchboard::config::{Config, Sources, catalogue};
use switchboard::tools::BuiltIn;

use super::{env, problems_of_files, write};

const PROFILE: &str = r#"
id = "mine"
context_type = "mine"
instructions = ["workflow/role.md"]
tools = []
"#;

/// A server that asks Claude, then its own OpenAI-like one, and has a key for Gemini.
const SETTINGS: [(&str, &str); 6] = [
    ("SWITCHBOARD__LLM__PROVIDER", "claude"),
    ("SWITCHBOARD__LLM__FALLBACKS", "openai:small"),
    ("SWITCHBOARD__LLM__MAX_TOKENS", "1000"),
    ("SWITCHBOARD__LLM__CLAUDE__API_KEY", "k"),
    ("SWITCHBOARD__LLM__CLAUDE__MODEL", "opus"),
    ("SWITCHBOARD__LLM__GEMINI__API_KEY", "k"),
];

/// The settings `settings` with a profile that has `model`.
fn with_profile(settings: &[(&str, &str)], model: &str) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "profiles/mine.toml", format!("{PROFILE}\n{model}"));
    let sources = Sources { dir: Some(dir.path().to_owned()), ..env(settings) };
    (dir, sources)
}

fn menu(settings: &[(&str, &str)], model: &str) -> Menu {
    let (_dir, sources) = with_profile(settings, model);
    let config = Config::load(&sources).unwrap();
    let profiles =
        catalogue::load(&sources.assets(), &config.llm, &catalogue::Referents::default(), |_| Some(BuiltIn::default()))
            .unwrap()
            .profiles;
    profiles.of_type("mine").unwrap().models.clone()
}

fn origins(names: &[&str]) -> Vec<ModelOrigin> {
    let origin = |name: &&str| {
        let (provider, model) = name.split_once(':').unwrap();
        ModelOrigin { provider: provider.to_owned(), model: model.to_owned() }
    };
    names.iter().map(origin).collect()
}

fn choice(models: &[&str]) -> ModelChoice {
    ModelChoice { models: origins(models), max_tokens: Some(1000), temperature: None, effort: None }
}

#[test]
fn a_profile_says_what_it_wants_and_leaves_the_rest_to_the_settings() {
    let full = r#"
        [model]
        use = "gemini:gemini-2.5-flash"
        fallbacks = ["claude", "gemini:models/gemini-2.5-flash", "openai:gpt:4"]
        temperature = 1
        max_tokens = 2000
        effort = "max"
    "#;
    let all = ModelChoice {
        models: origins(&["gemini:gemini-2.5-flash", "claude:opus", "openai:gpt:4"]),
        max_tokens: Some(2000),
        temperature: Some(1.0),
        effort: Some(Effort::Max),
    };
    let rows = [
        ("", choice(&["claude:opus", "openai:small"]), "nothing"),
        ("[model]", choice(&["claude:opus", "openai:small"]), "an empty section"),
        ("[model]\nuse = \"gemini:x\"", choice(&["gemini:x", "openai:small"]), "another model, the same fallbacks"),
        ("[model]\nuse = \"openai:small\"", choice(&["openai:small"]), "a fallback comes first"),
        ("[model]\nfallbacks = [\"gemini:x\"]", choice(&["claude:opus", "gemini:x"]), "other fallbacks"),
        ("[model]\nfallbacks = []", choice(&["claude:opus"]), "no fallbacks"),
        ("[model]\nuse = \"demo\"", choice(&["demo:rules-1"]), "the demo model never fails"),
        (full, all, "everything"),
    ];
    for (model, expected, reason) in rows {
        assert_eq!(menu(&SETTINGS, model), Menu::only(expected), "{reason}");
    }
    let without_keys = menu(&[], "[model]\ntemperature = 0.5");
    let demo = ModelChoice { max_tokens: None, temperature: Some(0.5), ..choice(&["demo:rules-1"]) };
    assert_eq!(without_keys, Menu::only(demo), "the demo model where nothing else is set");
}

#[test]
fn what_requests_may_choose_is_listed_by_names_of_the_profiles_own() {
    let menu = menu(
        &SETTINGS,
        r#"
        [model.request]
        models = { fast = "gemini:flash", best = ["claude:opus", "openai:gpt"], rules = "demo" }
        temperature = true
        max_tokens = true
        effort = false
        "#,
    );
    let offer = |name: &str, models: &[&str]| Offer { name: name.to_owned(), models: origins(models) };
    let offered = vec![
        offer("best", &["claude:opus", "openai:gpt"]),
        offer("fast", &["gemini:flash"]),
        offer("rules", &["demo:rules-1"]),
    ];
    let choice = choice(&["claude:opus", "openai:small"]);
    assert_eq!(menu, Menu { choice, offered, temperature: true, effort: false, max_tokens: true });
}

#[tokio::test]
async fn every_mistake_of_a_profiles_models_is_reported_with_its_file() {
    let model = r#"
        [model]
        use = "claud"
        fallbacks = ["demo", "gemini:"]
        temperature = 2.5
        max_tokens = 0
        effort = "huge"
        top_p = 1

        [model.request]
        models = { "a b" = "gemini:x", none = [], who = "groq:x", seven = 7 }
        temperature = "yes"
        length = true
    "#;
    let (_dir, sources) = with_profile(&SETTINGS, model);
    let providers = "there are gemini, claude, openai, ollama, bedrock, vertex";
    let name = "must be such a name, or a list of them in order of trying";
    let expected = [
        "11: model.temperature must be a number from 0 to 2".to_owned(),
        format!("12: model.max_tokens must be a whole number from 1 to {}", u32::MAX),
        "13: model.effort must be one of: none, low, medium, high, max".to_owned(),
        format!("9: model.use \"claud\" is not a provider; {providers}"),
        format!("10: model.fallbacks \"demo\" is not a provider; {providers}"),
        "10: model.fallbacks \"gemini:\" names no model".to_owned(),
        "14: model.top_p is not a known key".to_owned(),
        "18: model.request.temperature must be true or false".to_owned(),
        "17: model.request.models.a b a name in requests is 1 to 64 of A-Z a-z 0-9 . _ : -".to_owned(),
        format!("17: model.request.models.none {name}"),
        format!("17: model.request.models.seven {name}"),
        format!("17: model.request.models.who \"groq\" is not a provider; {providers}"),
        "19: model.request.length is not a known key".to_owned(),
    ];
    assert_eq!(problems_of_files(&sources).await, expected.map(|line| format!("profiles/mine.toml:{line}")));
}

#[tokio::test]
async fn each_thing_a_profile_cannot_have_is_named() {
    let newer = [&SETTINGS[..], &[("SWITCHBOARD__LLM__CLAUDE__VERSION", "2026-10-21")]].concat();
    let refused = "is refused by version \"2026-10-21\" of the API, see llm.claude.version";
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str], &'a str);
    let rows: [Row<'_>; 14] = [
        (&SETTINGS, "model = 7", &["7: model must be a table"], "no section"),
        (
            &SETTINGS,
            "[model]\nuse = 7",
            &["8: model.use must be a name such as \"claude\" or \"claude:claude-haiku-4-5\""],
            "no name",
        ),
        (&SETTINGS, "[model]\nfallbacks = [7]", &["8: model.fallbacks must be a list of texts"], "a list of others"),
        (&SETTINGS, "[model]\nrequest = 7", &["8: model.request must be a table"], "no section of requests"),
        (&SETTINGS, "[model]\ntemperature = nan", &["8: model.temperature must be a number from 0 to 2"], "no number"),
        (
            &SETTINGS,
            "[model]\nuse = \"demo\"\nfallbacks = [\"claude\"]",
            &["9: model.fallbacks needs another model before it; the demo model never fails"],
            "fallbacks of the demo model",
        ),
        (&[], "[model]\nuse = \"ollama\"", &[], "a server that needs no key"),
        (
            &[],
            "[model]\nuse = \"claude\"\nfallbacks = [\"claude:x\"]\n[model.request]\nmodels = { x = \"gemini\" }",
            &[
                "7: model asks \"claude\", but llm.claude.api_key is required",
                "7: model asks \"gemini\", but llm.gemini.api_key is required",
            ],
            "providers without a key, each once",
        ),
        (
            &[("SWITCHBOARD__LLM__OLLAMA__BASE_URL", "nowhere")],
            "[model]\nuse = \"ollama\"",
            &["7: model asks \"ollama\", but llm.ollama.base_url is not a URL"],
            "an address that the settings alone would not use",
        ),
        (
            &newer,
            "[model]\ntemperature = 0",
            &[&format!("8: model.temperature {refused}")],
            "a version that refuses it",
        ),
        (
            &newer,
            "[model]\nuse = \"gemini\"\ntemperature = 0\n[model.request]\nmodels = { x = [\"claude\", \"claude:y\"] }",
            &[&format!("9: model.temperature {refused}")],
            "among those a request may name",
        ),
        (
            &newer,
            "[model.request]\ntemperature = true",
            &[&format!("8: model.request.temperature {refused}")],
            "or set",
        ),
        (&newer, "[model]\nuse = \"gemini\"\ntemperature = 0", &[], "another model is asked"),
        (&SETTINGS, "[model]\ntemperature = 2", &[], "the version that takes it"),
    ];
    for (settings, model, expected, reason) in rows {
        let (_dir, sources) = with_profile(settings, model);
        let expected: Vec<_> = expected.iter().map(|line| format!("profiles/mine.toml:{line}")).collect();
        assert_eq!(problems_of_files(&sources).await, expected, "{reason}");
    }
}

#[tokio::test]
async fn the_example_in_the_shipped_profiles_is_right() {
    for path in ["profiles/workflow.toml", "profiles/tables.toml"] {
        let shipped = std::fs::read_to_string(format!("{}/config/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (before, rest) = shipped.split_once("\n# [model]").unwrap();
        let (example, after) = rest.split_once("\n\n").unwrap_or((rest, ""));
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), path, format!("{before}\n[model]{}\n\n{after}", example.replace("\n# ", "\n")));
        let sources = Sources { dir: Some(dir.path().to_owned()), ..env(&SETTINGS) };
        assert_eq!(problems_of_files(&sources).await, [""; 0], "{path}");
    }
}
