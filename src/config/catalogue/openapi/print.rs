//! Imported operations as the text of a `tools/*.toml`, to be edited.

use serde_json::Value;

use super::document::{ALL, Document};
use super::names::Names;
use super::operation::{self, Imported};
use crate::tools::backend::Verb;

/// The arguments of `switchboard import-openapi`.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// The operations: `operationId`s, `METHOD /path`, or `*`; none are all.
    pub operations: Vec<String>,
    /// What stands before the name of every tool.
    pub prefix: String,
    /// What stands before every path; `None`: the path of the document's first server.
    pub base_path: Option<String>,
}

/// A file of tools, and notes about the operations, and parts of them, that were left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Printed {
    /// The text of the file.
    pub text: String,
    /// `METHOD /path: why it was left out`.
    pub notes: Vec<String>,
}

/// The operations of the document in `text` as a file of tools.
///
/// # Errors
/// The mistakes in the document, or in the operations that were named; in words for the operator.
pub fn import(text: &str, wanted: &Import) -> Result<Printed, Vec<String>> {
    let document = Document::parse(text).map_err(|reason| vec![format!("the document {reason}")])?;
    let base_path = wanted.base_path.clone().unwrap_or_else(|| document.base_path());
    let all = [ALL.to_owned()];
    let operations = if wanted.operations.is_empty() { all.as_slice() } else { wanted.operations.as_slice() };
    let (mut tools, mut notes, mut mistakes, mut taken) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut names = Names::new(&wanted.prefix);
    for name in operations {
        let found = document.select(name);
        if found.is_empty() && name != ALL {
            mistakes.push(format!("{name:?} is not in the document"));
        }
        for operation in found {
            let key = operation.key();
            if taken.contains(&key) {
                continue;
            }
            match operation::import(&document, &operation, &base_path, &mut names) {
                Ok(imported) => {
                    let note = |reason| format!("{key}: an optional part was left out: {reason}");
                    notes.extend(imported.left_out.iter().map(note));
                    tools.push(imported);
                }
                Err(reason) if name == ALL => notes.push(format!("{key} was left out: {reason}")),
                Err(reason) => mistakes.push(format!("{name:?} cannot be a tool: {reason}")),
            }
            taken.push(key);
        }
    }
    if mistakes.is_empty() { Ok(Printed { text: print(&tools), notes }) } else { Err(mistakes) }
}

/// The text of a file of `tools`.
fn print(tools: &[Imported]) -> String {
    let tools: Vec<String> = tools.iter().map(tool).collect();
    tools.join("\n")
}

fn tool(tool: &Imported) -> String {
    let Imported {
        name,
        description,
        input_schema,
        verb,
        path,
        query,
        headers,
        body,
        content_type,
        accept,
        left_out: _,
    } = tool;
    let mut lines = vec![
        "[[tool]]".to_owned(),
        format!("name = {}", quoted(name)),
        format!("description = {}", quoted(description)),
        format!("input_schema = {}", block(input_schema)),
    ];
    if *verb != Verb::Get {
        lines.push("approval = \"user\"".to_owned());
    }
    lines.extend([
        "[tool.request]".to_owned(),
        format!("method = {}", quoted(verb.name())),
        format!("path = {}", quoted(path)),
    ]);
    // Without them every argument that is not in the path would go there.
    let fields = |fields: &[(String, String)]| {
        let fields = fields.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)));
        let fields: Vec<String> = fields.collect();
        if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
    };
    if !query.is_empty() || !verb.has_body() {
        lines.push(format!("query = {}", fields(query)));
    }
    if !headers.is_empty() {
        lines.push(format!("headers = {}", fields(headers)));
    }
    if let Some(content_type) = content_type {
        lines.push(format!("content_type = {}", quoted(content_type)));
    }
    if let Some(accept) = accept {
        lines.push(format!("accept = {}", quoted(accept)));
    }
    match (verb.has_body(), body) {
        (false, None) => {}
        (true, None) => lines.push("body = false".to_owned()),
        (_, Some(Value::Object(template))) => {
            let template = template
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
            lines.push(format!("body = {}", fields(&template.collect::<Vec<_>>())));
        }
        (_, Some(other)) => lines.push(format!("body = {}", quoted(other.as_str().unwrap_or_default()))),
    }
    lines.join("\n") + "\n"
}

/// A text of one line. What JSON writes is TOML too, but for one sign.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// JSON in a text of several lines.
fn block(value: &Value) -> String {
    let json = serde_json::to_string_pretty(value).unwrap_or_default();
    match json.contains("'''") || json.contains('\u{7f}') {
        true => quoted(&json),
        false => format!("'''\n{json}'''"),
    }
}
