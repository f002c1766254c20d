//! What operators write down, and the values that others put into it: templates, projections, schemas, settings, files of
//! tools and profiles, and OpenAPI documents.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use switchboard::bounded::json::{self, NodeBudget, Wanted};
use switchboard::chat::schema::Schema;
use switchboard::chat::template::{Template, ValueTemplate, Values};
use switchboard::config::catalogue::openapi::print::{Import, import};
use switchboard::config::{Config, Sources, catalogue};
use switchboard::tools::BuiltIn;
use switchboard::tools::rest::path::PathTemplate;
use switchboard::tools::rest::projection::Projection;

use super::parts;

/// A secret that no message may repeat.
const SECRET: &str = "sk-never-to-be-printed-0123456789";

/// A template before its values, or a value that somebody hostile says.
pub fn template(input: &[u8]) {
    let (text, values) = parts(input);
    let object = match serde_json::from_str(&values) {
        Ok(Value::Object(object)) => object,
        _ => json!({"said": text}).as_object().cloned().unwrap_or_default(),
    };
    let values = Values::from(&object);
    if let Ok(template) = Template::parse(&text) {
        let _ = template.render(&values);
    }
    if let Ok(value) = serde_json::from_str::<Value>(&text)
        && let Ok(template) = ValueTemplate::parse(&value)
    {
        let _ = template.fill(&values);
    }

    // What stands in a place of a prompt stays in its place.
    let said = Values::from(&object);
    if !object.contains_key("said") {
        return;
    }
    let fenced = rendered("{{ said | fenced }}", &said);
    let inner = fenced.strip_prefix("```json\n").and_then(|rest| rest.strip_suffix("\n```"));
    assert!(inner.is_some_and(|inner| !inner.contains("```")), "{fenced}");
    if object.get("said").is_some_and(Value::is_string) {
        let line = rendered("{{ said | one_line }}", &said);
        assert!(!line.contains(['\n', '\r', '`']), "{line:?}");
    }
}

fn rendered(text: &str, values: &Values<'_>) -> String {
    match Template::parse(text).and_then(|template| template.render(values)) {
        Ok(text) => text,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// A projection before the value.
pub fn projection(input: &[u8]) {
    let (text, value) = parts(input);
    let Ok(projection) = Projection::parse(&text) else { return };
    let value = serde_json::from_str(&value).unwrap_or(Value::Null);
    let wanted = projection.wanted(Wanted::All);
    let room = &mut NodeBudget::for_bytes(0, None);
    let Ok(read) = json::read(&value.to_string(), &wanted, room) else { return };
    let of = |value: &Value, room: &mut NodeBudget| projection.apply(Cow::Borrowed(value), room).ok();
    // What is left out of a reading is not looked at.
    let (some, all) = (of(&read, room), of(&value, room));
    assert!(some.is_none() || all.is_none() || some == all, "{text}");
}

/// A schema, or the path of a request, before the arguments that a model writes.
pub fn arguments(input: &[u8]) {
    let (declared, args) = parts(input);
    let args: Value = serde_json::from_str(&args).unwrap_or(Value::Null);
    if let Ok(schema) = serde_json::from_str::<Value>(&declared)
        && let Some(schema) = Schema::of_stranger(&schema)
        && let Err(mistakes) = schema.check(&args)
    {
        assert!(!mistakes.is_empty() && mistakes.len() < 20, "{} mistakes", mistakes.len());
        assert!(mistakes.iter().all(|mistake| mistake.len() < 4000), "a long mistake");
    }
    if let (Ok(path), Value::Object(args)) = (PathTemplate::parse(declared.trim()), &args)
        && let Ok(segments) = path.fill(args)
    {
        assert_eq!(segments.len(), declared.trim().matches('/').count());
        // One that ends with `/` has an empty one at its end.
        let named = segments.strip_suffix(&[String::new()][..]).filter(|_| declared.trim().ends_with('/'));
        let named = named.unwrap_or(&segments);
        assert!(named.iter().all(|segment| !matches!(segment.as_str(), "" | "." | "..")), "{segments:?}");
    }
}

/// The file of settings before lines of the environment; and the first part as files of tools and of a profile.
pub fn settings(input: &[u8]) {
    let (file, lines) = parts(input);
    let folder = Folder::new();
    folder.write("settings.toml", &file);
    let mut env: BTreeMap<String, String> = lines
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (format!("SWITCHBOARD__{key}"), value.to_owned()))
        .collect();
    env.insert("SWITCHBOARD__LLM__OPENAI__API_KEY".to_owned(), SECRET.to_owned());
    let of_file = Some(folder.path.join("settings.toml"));
    for file in [of_file, None] {
        let loaded = Config::load(&Sources { file, env: env.clone(), ..Sources::default() });
        if let Err(problems) = loaded {
            assert!(!problems.is_empty(), "a refusal without a reason");
            assert!(problems.iter().all(|problem| !problem.to_string().contains(SECRET)), "a secret is told");
        }
    }
    folder.write("tools/own.toml", &file);
    folder.write("profiles/own.toml", &file);
    let sources = Sources { dir: Some(folder.path.clone()), ..Sources::default() };
    let Ok(config) = Config::load(&Sources::default()) else { return };
    let loaded = catalogue::load(&sources.assets(), &config.llm, &catalogue::Referents::default(), |name| {
        (name != "close_ticket").then(BuiltIn::default)
    });
    assert!(loaded.err().is_none_or(|problems| !problems.is_empty()), "a refusal without a reason");
}

/// A document of an API.
pub fn openapi(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let wanted = Import { operations: Vec::new(), prefix: "p_".to_owned(), base_path: None };
    let printed = import(&text, &wanted);
    assert_eq!(import(&text, &wanted), printed);
    if let Err(reasons) = printed {
        assert!(!reasons.is_empty(), "a refusal without a reason");
    }
}

/// A folder for one input, gone behind it.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let name = format!("switchboard-fuzz-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name.replace(['(', ')'], "-"));
        Self { path }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            // Where nothing can be written, nothing is read either.
            let _ = fs::create_dir_all(parent);
        }
        let _ = fs::write(path, text);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
