//! `preview_table_config`: validates a configuration and shows it to the user, who alone can let it be saved.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::WHAT;
use super::config::{TableConfig, text};
use super::config_id;
use super::reader::{self, ConfigReader};
use super::saved::invalid;
use super::stored::by_id;
use super::validate::{label_problems, problems};
use crate::agent::ports::tools::ToolContext;
use crate::chat::artifact::Artifact;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Change, Save};
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::backend::{Backend, BackendError};
use crate::tools::previews::{self, Recorder};
use crate::tools::{Tool, ToolError, parse_args};

/// The tool's name.
const TOOL: &str = "preview_table_config";

/// The artifact's kind.
const KIND: &str = "table_config_preview";

/// The handler.
pub struct PreviewConfig {
    /// The REST API, for the configuration that is updated.
    pub backend: Arc<Backend>,
    /// The recorder of previews.
    pub recorder: Recorder,
}

#[derive(Deserialize)]
struct Args {
    config: Value,
    description_of_changes: String,
    #[serde(default)]
    new: Option<bool>,
    #[serde(default, deserialize_with = "optional_text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
}

#[async_trait]
impl Tool for PreviewConfig {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        if args.description_of_changes.trim().is_empty() {
            return Err(ToolError::BadParams("description_of_changes: say what changes".to_owned()));
        }
        let existing_id = self.existing_id(&args, cx).await?;
        let existing_id = existing_id.as_deref();
        let config = match TableConfig::parse(&args.config) {
            Ok(config) => config,
            Err(problem) => return Ok(invalid(&[problem])),
        };

        let mut found = problems(&config);
        found.extend(label_problems(args.name.as_deref(), args.description.as_deref()));
        if !found.is_empty() {
            return Ok(invalid(&found));
        }

        let stored = match existing_id {
            Some(id) => Some(by_id(&self.backend, cx, id).await),
            None => None,
        };
        let (label, stored) = match (stored, args.name) {
            (Some(stored), None) => {
                let stored = stored?;
                (stored_label(&stored, args.description)?, Some(stored))
            }
            // What cannot be read can still be saved over, under a name that is given.
            (Some(stored), Some(name)) => (Label { name, description: args.description }, stored.ok()),
            (None, name) => {
                let title = || text(config.root(), "title").unwrap_or_default().trim().to_owned();
                let description = Some(args.description.unwrap_or_default());
                (Label { name: name.unwrap_or_else(title), description }, None)
            }
        };
        // A name taken from the title was not looked at yet.
        let found = label_problems(Some(&label.name), None);
        if !found.is_empty() {
            return Ok(invalid(&found));
        }
        let change = change(existing_id, label, config, stored.as_ref());
        let base = previews::base(reader::NAME, &ConfigReader(self.backend.clone()), change.current.as_ref());
        let id = self.recorder.record(cx, TOOL, &change, &base).await?;
        Ok(sent(args.description_of_changes, change, id))
    }
}

impl PreviewConfig {
    /// The configuration that is to be replaced; `None` for a new one. The open one is meant when no `id` says otherwise,
    /// but not under a name that it does not have: whoever names something else wants something else.
    async fn existing_id(&self, args: &Args, cx: &ToolContext<'_>) -> Result<Option<String>, ToolError> {
        let is_new = args.new == Some(true);
        if let Some(given) = &args.id {
            if is_new {
                return Err(ToolError::BadParams(
                    "new: a new configuration has no id; leave one of them out".to_owned(),
                ));
            }
            return Ok(Some(config_id::named(given, &self.backend, cx).await?));
        }
        let Some(open) = config_id::on_screen(cx).filter(|_| !is_new) else {
            return Ok(None);
        };
        let Some(name) = &args.name else {
            return Ok(Some(open));
        };
        let stored = by_id(&self.backend, cx, &open).await?;
        let is_its_own = text(&stored, "name").is_some_and(|own| own.trim() == name);
        Ok(is_its_own.then_some(open))
    }
}

/// What a configuration is stored under. A description of `None` is left as it is.
#[derive(Debug, PartialEq, Eq)]
struct Label {
    name: String,
    description: Option<String>,
}

/// The stored object's label, for an update that names none.
fn stored_label(stored: &Map<String, Value>, description: Option<String>) -> Result<Label, ToolError> {
    let Some(name) = text(stored, "name") else {
        return Err(BackendError::Shape("a stored configuration without a name".to_owned()).into());
    };
    let description = description.or_else(|| text(stored, "description").map(str::to_owned));
    Ok(Label { name: name.to_owned(), description })
}

fn change(existing_id: Option<&str>, label: Label, config: TableConfig, stored: Option<&Map<String, Value>>) -> Change {
    let mut body = Map::from_iter([("name".to_owned(), json!(label.name))]);
    if let Some(description) = &label.description {
        body.insert("description".to_owned(), json!(description));
    }
    body.insert("config".to_owned(), config.into_value());
    let save = match existing_id {
        Some(id) => Save::replace(["v1", "data", id]),
        None => Save::create(["v1", "data"]),
    };
    let body = Value::Object(body);
    Change {
        what: WHAT.to_owned(),
        existing_id: existing_id.map(str::to_owned),
        name: label.name,
        save,
        current: stored.map(|stored| reader::as_body(stored, &body)),
        body,
    }
}

/// The model's answer and the client's artifact for a recorded preview.
fn sent(description_of_changes: String, change: Change, id: PreviewId) -> ToolOutput {
    let config = change.body.get("config").cloned().unwrap_or_default();
    let mut payload = Map::from_iter([
        ("description".to_owned(), json!(description_of_changes)),
        ("config".to_owned(), config),
        ("is_update".to_owned(), json!(change.existing_id.is_some())),
    ]);
    if let Some(existing_id) = &change.existing_id {
        payload.insert("config_id".to_owned(), json!(existing_id));
    }
    payload.insert("name".to_owned(), json!(change.name));
    payload.insert("preview_id".to_owned(), json!(id.to_string()));
    let content = json!({
        "status": "preview_sent",
        "message": "The preview is on the user's screen. Nothing is saved until the user accepts it there.",
        "preview_id": id.to_string(),
    });
    let artifact = Artifact { kind: KIND.into(), payload: Value::Object(payload) };
    ToolOutput { artifacts: vec![artifact], ..ToolOutput::ok(content.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(name: &str, description: Option<&str>) -> Label {
        Label { name: name.to_owned(), description: description.map(str::to_owned) }
    }

    #[test]
    fn an_update_without_a_name_keeps_the_stored_label() {
        let stored = json!({ "id": "1", "name": "orders", "description": "all of them", "config": {} });
        let stored = stored.as_object().expect("an object");
        for (given, expected, reason) in [
            (None, label("orders", Some("all of them")), "both are kept"),
            (Some("open ones"), label("orders", Some("open ones")), "the description given wins"),
        ] {
            assert_eq!(stored_label(stored, given.map(str::to_owned)).ok(), Some(expected), "{reason}");
        }
        assert_eq!(
            stored_label(&Map::new(), None).map_err(|error| error.to_string()).err().as_deref(),
            Some("the backend's answer has an unexpected shape: a stored configuration without a name")
        );
    }

    #[test]
    fn the_change_holds_exactly_what_the_save_sends() {
        let config = TableConfig::parse(&json!({ "title": "Orders" })).expect("an object");
        let stored =
            json!({ "id": "id-1", "name": "old", "description": "all of them", "config": {}, "is_system": false });
        assert_eq!(
            change(Some("id-1"), label("orders", None), config, stored.as_object()),
            Change {
                what: "table configuration".to_owned(),
                existing_id: Some("id-1".to_owned()),
                name: "orders".to_owned(),
                save: Save::replace(["v1", "data", "id-1"]),
                body: json!({ "name": "orders", "config": { "title": "Orders" } }),
                current: Some(json!({ "name": "old", "config": {} })),
            }
        );
    }

    #[test]
    fn the_artifact_has_its_keys_in_the_protocols_order() {
        let id = PreviewId::fresh();
        for (existing_id, expected, reason) in [
            (
                Some("id-1"),
                format!(
                    r#"{{"description":"wider","config":{{"title":"O"}},"is_update":true,"config_id":"id-1","name":"orders","preview_id":"{id}"}}"#
                ),
                "an update",
            ),
            (
                None,
                format!(
                    r#"{{"description":"wider","config":{{"title":"O"}},"is_update":false,"name":"orders","preview_id":"{id}"}}"#
                ),
                "a new one",
            ),
        ] {
            let config = TableConfig::parse(&json!({ "title": "O" })).expect("an object");
            let output = sent("wider".to_owned(), change(existing_id, label("orders", None), config, None), id);
            let payloads: Vec<(&str, String)> =
                output.artifacts.iter().map(|artifact| (&*artifact.kind, artifact.payload.to_string())).collect();
            assert_eq!(payloads, [(KIND, expected)], "{reason}");
        }
    }
}
