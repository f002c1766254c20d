//! The parameters of an operation: in its path, in the query, in headers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::document::Operation;
use super::super::refs;
use super::super::schema::Writer;
use super::{Arguments, described, placeholder};
use crate::config::catalogue::request::{is_header_name, is_ours};
use crate::store::names_a_secret;

/// 200 parameters of one operation.
const MOST: usize = 200;

/// The parameters by their location.
pub(super) struct Parameters {
    /// The path, its placeholders named after arguments.
    pub(super) path: String,
    /// The query, each a template.
    pub(super) query: Vec<(String, String)>,
    /// The headers, each a template.
    pub(super) headers: Vec<(String, String)>,
}

/// One parameter of the document.
struct Parameter<'d> {
    name: &'d str,
    value: &'d Value,
    /// Its schema; nothing where it says none.
    schema: Option<&'d Value>,
    /// Whether its value is sent as JSON text.
    is_json: bool,
    is_required: bool,
}

/// The parameters of `operation`, those that it shares with its path included.
///
/// # Errors
/// Why one of them cannot be an argument.
pub(super) fn read<'d>(
    root: &'d Value,
    operation: &Operation<'d>,
    writer: &mut Writer<'d>,
    arguments: &mut Arguments,
) -> Result<Parameters, String> {
    let list = |of: &'d Value| of.get("parameters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // An operation's own parameter replaces that of its path.
    let mut found: Vec<((&str, &str), &'d Value)> = Vec::new();
    for value in list(operation.item).iter().chain(list(operation.value)) {
        let value = refs::target(root, value)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let (Some(name), Some(kind)) = (text("name"), text("in")) else {
            return Err("it has a parameter without a name or a place".to_owned());
        };
        match found.iter_mut().find(|(known, _)| *known == (kind, name)) {
            Some((_, known)) => *known = value,
            None => found.push(((kind, name), value)),
        }
        if found.len() > MOST {
            return Err(format!("it has more than {MOST} parameters"));
        }
    }
    let mut in_path = BTreeMap::new();
    let (mut query, mut headers) = (Vec::new(), Vec::new());
    for ((kind, name), value) in found {
        let parameter = Parameter::read(name, value)?;
        match kind {
            "path" => {
                in_path.insert(name, parameter.in_path(root, writer, arguments)?);
            }
            "query" => parameter.in_query(root, writer, arguments, &mut query)?,
            "header" => parameter.in_header(root, writer, arguments, &mut headers)?,
            "cookie" if parameter.is_required => return Err(format!("it needs the cookie {name:?}")),
            "cookie" => {}
            other => return Err(format!("its parameter {name:?} stands in {other:?}")),
        }
    }
    Ok(Parameters { path: path(operation.path, &in_path, arguments), query, headers })
}

/// The document's path with its placeholders named after arguments. One that no parameter describes is text.
fn path(path: &str, names: &BTreeMap<&str, String>, arguments: &mut Arguments) -> String {
    let mut written = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let argument = match names.get(name) {
            Some(argument) => argument.clone(),
            None => arguments.add(name, serde_json::json!({"type": "string"}), true),
        };
        written.push_str(&format!("{before}{{{argument}}}"));
        rest = after;
    }
    written + rest
}

impl<'d> Parameter<'d> {
    fn read(name: &'d str, value: &'d Value) -> Result<Self, String> {
        let content = value.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
        let (schema, is_json) = match content {
            None => (value.get("schema"), false),
            Some((kind, media)) if super::body::is_json(kind) => (media.get("schema"), true),
            Some((kind, _)) => return Err(format!("its parameter {name:?} is {kind}")),
        };
        let is_required = value.get("required") == Some(&Value::Bool(true));
        Ok(Self { name, value, schema, is_json, is_required })
    }

    /// Its argument.
    fn add(&self, writer: &mut Writer<'d>, arguments: &mut Arguments, is_required: bool) -> Result<String, String> {
        let schema = match self.schema {
            Some(schema) => writer.write(schema)?,
            None => serde_json::json!({"type": "string"}),
        };
        let schema = described(schema, self.value.get("description"));
        Ok(arguments.add(self.name, schema, is_required))
    }

    fn type_of(&self, root: &'d Value) -> Option<&'d str> {
        match refs::target(root, self.schema?).ok()?.get("type")? {
            // `null` among several says nothing of how the others are written.
            Value::Array(types) => types.iter().filter_map(Value::as_str).find(|name| *name != "null"),
            name => name.as_str(),
        }
    }

    fn style(&self) -> &str {
        self.value.get("style").and_then(Value::as_str).unwrap_or_default()
    }

    fn in_path(&self, root: &'d Value, writer: &mut Writer<'d>, arguments: &mut Arguments) -> Result<String, String> {
        let is_plain = !self.is_json && matches!(self.style(), "" | "simple");
        if !is_plain || matches!(self.type_of(root), Some("array" | "object")) {
            return Err(format!("its path has the parameter {:?}, which is no single value", self.name));
        }
        self.add(writer, arguments, true)
    }

    fn in_query(
        &self,
        root: &'d Value,
        writer: &mut Writer<'d>,
        arguments: &mut Arguments,
        query: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let argument = placeholder(&self.add(writer, arguments, self.is_required)?);
        let name = self.name.to_owned();
        let explodes = self.value.get("explode").and_then(Value::as_bool);
        let joined = |by: &str| format!("{{{{ {argument}|join('{by}') if {argument} }}}}");
        let whole = format!("{{{{ {argument} }}}}");
        match (self.is_json, self.type_of(root), self.style()) {
            (true, _, _) => query.push((name, format!("{{{{ {argument}|tojson if {argument} is defined }}}}"))),
            (false, Some("array"), "" | "form") => {
                query.push((name, if explodes == Some(false) { joined(",") } else { whole }));
            }
            (false, Some("array"), "spaceDelimited") => query.push((name, joined(" "))),
            (false, Some("array"), "pipeDelimited") => query.push((name, joined("|"))),
            (false, Some("object"), "deepObject") => {
                self.fields(root, &argument, |field| format!("{name}[{field}]"), query)?;
            }
            (false, Some("object"), "" | "form") if explodes != Some(false) => {
                self.fields(root, &argument, str::to_owned, query)?;
            }
            (false, Some("object") | Some("array"), style) => {
                return Err(format!("its parameter {name:?} has the style {style:?}"));
            }
            (false, _, _) => query.push((name, whole)),
        }
        Ok(())
    }

    /// Each field of an object as a parameter of its own.
    fn fields(
        &self,
        root: &'d Value,
        argument: &str,
        name: impl Fn(&str) -> String,
        query: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let schema = self.schema.and_then(|schema| refs::target(root, schema).ok());
        let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let Some(properties) = properties else {
            return Err(format!("its parameter {:?} is an object of unknown fields", self.name));
        };
        for field in properties.keys() {
            if field.contains(['\'', '\\']) {
                return Err(format!("its parameter {:?} has the field {field:?}", self.name));
            }
            query.push((name(field), format!("{{{{ {argument}['{field}'] }}}}")));
        }
        Ok(())
    }

    fn in_header(
        &self,
        root: &'d Value,
        writer: &mut Writer<'d>,
        arguments: &mut Arguments,
        headers: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        // Those are ours to send, and a document only repeats that they are there.
        if is_ours(self.name) {
            return match self.name.eq_ignore_ascii_case("cookie") && self.is_required {
                true => Err("it needs a cookie".to_owned()),
                false => Ok(()),
            };
        }
        // A model may repeat any part of a schema, and an argument is displayed, stored and logged.
        if names_a_secret(self.name) {
            return match self.is_required {
                true => {
                    Err(format!("it needs the header {:?}, which looks like a secret that no model may say", self.name))
                }
                false => Ok(()),
            };
        }
        if !is_header_name(self.name) {
            return Err(format!("its header {:?} has no name of a header", self.name));
        }
        let kind = self.type_of(root);
        if self.is_json || kind == Some("object") {
            return Err(format!("its header {:?} is no single value", self.name));
        }
        let argument = placeholder(&self.add(writer, arguments, self.is_required)?);
        let template = match kind {
            Some("array") => format!("{{{{ {argument}|join(',') if {argument} }}}}"),
            Some(_) | None => format!("{{{{ {argument} if {argument} is not none }}}}"),
        };
        headers.push((self.name.to_owned(), template));
        Ok(())
    }
}
