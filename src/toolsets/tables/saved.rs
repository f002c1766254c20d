//! Stored configurations as the backend has them: one, all, and the backend's own validation.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::config::{TableConfig, text};
use super::config_id;
use super::problem::to_values;
use super::stored::{by_id, by_name};
use super::validate::problems;
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::backend::{Backend, Request};
use crate::tools::names::as_uuid;
use crate::tools::pages::Page;
use crate::tools::{Tool, ToolError, parse_args};

/// `get_table_config`: one configuration, by id or by name.
pub struct OneConfig {
    /// The REST API.
    pub backend: Arc<Backend>,
}

#[derive(Deserialize)]
struct OneArgs {
    #[serde(default, deserialize_with = "optional_text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    name: Option<String>,
}

#[async_trait]
impl Tool for OneConfig {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: OneArgs = parse_args(args)?;
        let on_screen = config_id::on_screen(cx);
        if let Some(id) = args.id.as_deref().and_then(as_uuid) {
            return Ok(output(by_id(&self.backend, cx, &id).await?));
        }
        let Some(name) = args.name.as_deref().or(args.id.as_deref()) else {
            let Some(id) = on_screen else {
                return Err(ToolError::BadParams("give the configuration's id or name".to_owned()));
            };
            return Ok(output(by_id(&self.backend, cx, &id).await?));
        };
        match by_name(&self.backend, cx, name).await {
            Ok(found) => Ok(output(found)),
            Err(error) if error.is_not_found() => {
                let Some(id) = on_screen else { return Err(error.into()) };
                let found = by_id(&self.backend, cx, &id).await?;
                Ok(ToolOutput::ok(with_note(found, name).to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_all_or_nothing(&self) -> bool {
        true
    }
}

fn output(found: Map<String, Value>) -> ToolOutput {
    ToolOutput::ok(Value::Object(found).to_string())
}

/// Adds a note at the top: the configuration is another one than the name in the request.
fn with_note(found: Map<String, Value>, name: &str) -> Value {
    let note = format!("no configuration is named {name:?}; this is the one on the user's screen");
    let mut noted = Map::from_iter([("note".to_owned(), json!(note))]);
    noted.extend(found);
    Value::Object(noted)
}

/// `list_table_configs`: all configurations, without their documents.
pub struct AllConfigs {
    /// The REST API.
    pub backend: Arc<Backend>,
}

#[async_trait]
impl Tool for AllConfigs {
    async fn call(&self, _: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let all = self.backend.call(cx.caller, Request::get(["v1", "data", "configs", "all"])).await?;
        // An empty list is nothing at all in some encoders.
        let entries = if all.is_null() { Vec::new() } else { Page::parse(all)?.items };
        Ok(ToolOutput::ok(without_documents(entries).to_string()))
    }
}

/// The list without each entry's `config`: a few of these fill a model's window, and `get_table_config` has them.
fn without_documents(mut entries: Vec<Value>) -> Value {
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        entry.shift_remove("config");
    }
    Value::Array(entries)
}

/// `validate_table_config`: the backend's verdict, then ours.
pub struct ValidateConfig {
    /// The REST API.
    pub backend: Arc<Backend>,
}

#[derive(Deserialize)]
struct ValidateArgs {
    config: Value,
    #[serde(default, deserialize_with = "optional_text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
}

#[async_trait]
impl Tool for ValidateConfig {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: ValidateArgs = parse_args(args)?;
        let config = match TableConfig::parse(&args.config) {
            Ok(config) => config,
            Err(problem) => return Ok(invalid(&[problem])),
        };
        let found = problems(&config);
        let body = validation_body(args.name, args.description, config);
        let verdict = self.backend.call(cx.caller, Request::post(["v1", "data", "validate"], &body)).await?;
        if !found.is_empty() {
            return Ok(invalid(&found));
        }
        // The backend says "valid" with an empty 204, of which a model would see nothing.
        let verdict = if verdict.is_null() { json!({ "valid": true }) } else { verdict };
        Ok(ToolOutput::ok(verdict.to_string()))
    }
}

/// The whole create body, which is what the backend validates. The name is not the question, so one is made up when none
/// is given.
fn validation_body(name: Option<String>, description: Option<String>, config: TableConfig) -> Value {
    let title =
        text(config.root(), "title").filter(|title| super::validate::label_problems(Some(title), None).is_empty());
    let name = name.or_else(|| title.map(str::to_owned)).unwrap_or_else(|| "unnamed table".to_owned());
    json!({ "name": name, "description": description.unwrap_or_default(), "config": config.into_value() })
}

/// The answer about a configuration that is not valid. It is no error: the tool did what it is for.
pub fn invalid(problems: &[super::problem::Problem]) -> ToolOutput {
    ToolOutput::ok(json!({ "valid": false, "errors": to_values(problems) }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_leaves_the_documents_out() {
        let all =
            vec![json!({ "id": "1", "name": "orders", "config": { "title": "O" }, "is_system": false }), json!("odd")];
        assert_eq!(without_documents(all), json!([{ "id": "1", "name": "orders", "is_system": false }, "odd"]));
    }

    #[test]
    fn a_validation_sends_the_whole_create_body() {
        for (name, title, expected, reason) in [
            (Some("orders_table"), "Orders", "orders_table", "the given name"),
            (None, "Orders", "Orders", "else the title"),
            (None, "O", "unnamed table", "else, when the title is no valid name, one that is"),
        ] {
            let config = TableConfig::parse(&json!({ "title": title })).expect("an object");
            assert_eq!(
                validation_body(name.map(str::to_owned), None, config),
                json!({ "name": expected, "description": "", "config": { "title": title } }),
                "{reason}"
            );
        }
    }

    #[test]
    fn another_configuration_than_the_named_one_has_a_note_at_the_top() {
        assert_eq!(
            with_note(Map::from_iter([("id".to_owned(), json!("1"))]), "Orders").to_string(),
            r#"{"note":"no configuration is named \"Orders\"; this is the one on the user's screen","id":"1"}"#
        );
    }
}
