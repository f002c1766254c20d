//! The parameters of an operation: in its path, in the query, in headers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::document::Operation;
use super::super::refs;
use super::super::schema::Writer;
use super::shape::Shape;
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
    /// What its values may be.
    shape: Shape<'d>,
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
        let parameter = match Parameter::read(root, name, value).and_then(|parameter| parameter.fitting(kind)) {
            Ok(parameter) => parameter,
            // What nobody has to send takes no operation away.
            Err(reason) if kind != "path" && !is_required(value) => {
                arguments.left_out.push(reason);
                continue;
            }
            Err(reason) => return Err(reason),
        };
        match kind {
            "path" => {
                in_path.insert(name, parameter.add(writer, arguments, true)?);
            }
            "query" => parameter.in_query(writer, arguments, &mut query)?,
            "header" => parameter.in_header(writer, arguments, &mut headers)?,
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

fn is_required(parameter: &Value) -> bool {
    parameter.get("required") == Some(&Value::Bool(true))
}

impl<'d> Parameter<'d> {
    fn read(root: &'d Value, name: &'d str, value: &'d Value) -> Result<Self, String> {
        let content = value.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
        let (schema, is_json) = match content {
            None => (value.get("schema"), false),
            Some((kind, media)) if super::body::is_json(kind) => (media.get("schema"), true),
            Some((kind, _)) => return Err(format!("its parameter {name:?} is {kind}")),
        };
        Ok(Self { name, value, schema, shape: Shape::of(root, schema), is_json, is_required: is_required(value) })
    }

    /// Itself, where its values can be written where it stands.
    ///
    /// # Errors
    /// Why they cannot be.
    fn fitting(self, kind: &str) -> Result<Self, String> {
        let Self { name, shape, is_json, .. } = &self;
        match kind {
            "path" if *is_json || !matches!(self.style(), "" | "simple") || !shape.is_single => {
                Err(format!("its path has the parameter {name:?}, which is no single value"))
            }
            "query" if !is_json => match self.style() {
                "" | "form" if shape.is_object && self.explodes() == Some(false) => {
                    Err(format!("its parameter {name:?} has the style \"form\" and is not exploded"))
                }
                "" | "form" | "deepObject" if shape.is_object && shape.fields.is_empty() => {
                    Err(format!("its parameter {name:?} is an object of unknown fields"))
                }
                "" | "form" | "deepObject" if shape.is_object => {
                    match shape.fields.iter().find(|field| field.contains(['\'', '\\', '{', '}'])) {
                        Some(field) => Err(format!("its parameter {name:?} has the field {field:?}")),
                        None => Ok(self),
                    }
                }
                "" | "form" | "deepObject" => Ok(self),
                "spaceDelimited" | "pipeDelimited" if !shape.is_object => Ok(self),
                style if shape.is_object || shape.is_list => {
                    Err(format!("its parameter {name:?} has the style {style:?}"))
                }
                _ => Ok(self),
            },
            "header" if !is_ours(name) && !names_a_secret(name) => {
                if !is_header_name(name) {
                    return Err(format!("its header {name:?} has no name of a header"));
                }
                match *is_json || shape.is_object && !shape.is_single {
                    true => Err(format!("its header {name:?} is no single value")),
                    false => Ok(self),
                }
            }
            _ => Ok(self),
        }
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

    fn style(&self) -> &str {
        self.value.get("style").and_then(Value::as_str).unwrap_or_default()
    }

    fn explodes(&self) -> Option<bool> {
        self.value.get("explode").and_then(Value::as_bool)
    }

    fn in_query(
        &self,
        writer: &mut Writer<'d>,
        arguments: &mut Arguments,
        query: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let argument = placeholder(&self.add(writer, arguments, self.is_required)?);
        let Shape { is_list, is_object, is_single, ref fields } = self.shape;
        let name = self.name.to_owned();
        if self.is_json {
            query.push((name, format!("{{{{ {argument}|tojson if {argument} is defined }}}}")));
            return Ok(());
        }
        let is_deep = self.style() == "deepObject";
        if is_object {
            let name = |field: &str| if is_deep { format!("{name}[{field}]") } else { field.to_owned() };
            query.extend(fields.iter().map(|field| (name(field), format!("{{{{ {argument}['{field}'] }}}}"))));
        }
        let joined_by = match (self.style(), self.explodes()) {
            ("spaceDelimited", None | Some(false)) => Some(" "),
            ("pipeDelimited", None | Some(false)) => Some("|"),
            ("" | "form", Some(false)) => Some(","),
            (_, _) => None,
        };
        // What else it may be is written in its own way.
        let unless = if is_object { format!(" if {argument} is not mapping") } else { String::new() };
        match joined_by.filter(|_| is_list) {
            Some(by) if is_single || is_object => {
                let list = format!("{argument}|join('{by}') if {argument} is sequence and {argument}");
                query.push((name, format!("{{{{ {list} else {argument}{unless} }}}}")));
            }
            Some(by) => query.push((name, format!("{{{{ {argument}|join('{by}') if {argument} }}}}"))),
            None if is_deep && is_list => {
                query.push((format!("{name}[]"), format!("{{{{ {argument} if {argument} is sequence }}}}")));
                if is_single {
                    let is_other = format!("{argument} is not sequence and {argument} is not mapping");
                    query.push((name, format!("{{{{ {argument} if {is_other} }}}}")));
                }
            }
            None if is_list || is_single => query.push((name, format!("{{{{ {argument}{unless} }}}}"))),
            None => {}
        }
        Ok(())
    }

    fn in_header(
        &self,
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
        let argument = placeholder(&self.add(writer, arguments, self.is_required)?);
        let (list, single) =
            (format!("{argument}|join(',') if {argument}"), format!("{argument} if {argument} is not none"));
        let template = match self.shape {
            Shape { is_list: true, is_single: false, .. } => list,
            Shape { is_list: true, .. } => format!("{list} is sequence and {argument} else {single}"),
            Shape { .. } => single,
        };
        headers.push((self.name.to_owned(), format!("{{{{ {template} }}}}")));
        Ok(())
    }
}
