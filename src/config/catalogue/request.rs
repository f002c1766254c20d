//! `request` of an entry in `tools/*.json`: the one REST call that a tool without a handler makes.

use serde_json::{Map, Value};

use crate::chat::tool::Effect;
use crate::config::Problem;
use crate::tools::backend::Verb;
use crate::tools::rest::path::PathTemplate;
use crate::tools::rest::{Arguments, RestRequest};

/// The call that `entry` of the tool `tool` in the file at `path` describes; `None` when something is wrong with it,
/// all of which is noted. Read by hand, so that each mistake is found and has the tool's name.
pub(super) fn request(
    path: &str,
    tool: &str,
    entry: Value,
    schema: &Value,
    problems: &mut Vec<Problem>,
) -> Option<RestRequest> {
    let mut wrong = |reason: String| problems.push(Problem::new(path, format!("{tool}: request{reason}")));
    let Value::Object(mut entry) = entry else {
        wrong(" must be an object".to_owned());
        return None;
    };
    let verb = verb(&mut entry).map_err(&mut wrong);
    let template = template(&mut entry).map_err(&mut wrong);
    let effect = effect(&mut entry).map_err(&mut wrong);
    for key in entry.keys() {
        wrong(format!(" must not have the key {key:?}"));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in template.iter().flat_map(PathTemplate::names) {
        if !properties.is_some_and(|properties| properties.contains_key(name)) {
            wrong(format!(".path: {{{name}}} is not among the properties of input_schema"));
        }
    }
    let (verb, path, effect) = (verb.ok()?, template.ok()?, effect.ok()?);
    let effect = effect.unwrap_or(match verb {
        Verb::Get => Effect::Read,
        Verb::Post | Verb::Put | Verb::Patch | Verb::Delete => Effect::Write,
    });
    Some(RestRequest { verb, path, effect, arguments: Arguments::of(schema) })
}

fn verb(entry: &mut Map<String, Value>) -> Result<Verb, String> {
    let method = entry.shift_remove("method");
    let named = |verb: &Verb| method.as_ref().and_then(Value::as_str) == Some(verb.name());
    let all = || Verb::ALL.map(Verb::name).join(", ");
    Verb::ALL.into_iter().find(named).ok_or_else(|| format!(".method must be one of {}", all()))
}

fn template(entry: &mut Map<String, Value>) -> Result<PathTemplate, String> {
    let path = entry.shift_remove("path");
    let path = path.as_ref().and_then(Value::as_str).ok_or(".path must be text")?;
    PathTemplate::parse(path).map_err(|error| format!(".path {error}"))
}

fn effect(entry: &mut Map<String, Value>) -> Result<Option<Effect>, String> {
    let Some(effect) = entry.shift_remove("effect") else { return Ok(None) };
    match effect.as_str() {
        Some("read") => Ok(Some(Effect::Read)),
        Some("write") => Ok(Some(Effect::Write)),
        Some(_) | None => Err(".effect must be read or write".to_owned()),
    }
}
