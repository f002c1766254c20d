//! `create_table_config` and `update_table_config`: they never save. They tell the model that its change is saved
//! already, because the user accepted its preview, or that a preview must come first.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::WHAT;
use super::config::TableConfig;
use super::config_id;
use super::problem::Problem;
use super::validate::{label_problems, problems};
use crate::agent::ports::previews::PreviewStore;
use crate::agent::ports::tools::ToolContext;
use crate::chat::preview::{Change, Decided};
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::backend::Backend;
use crate::tools::{Tool, ToolError, parse_args};

/// `create_table_config`.
pub struct CreateConfig {
    /// What the user has accepted.
    pub previews: Arc<dyn PreviewStore>,
}

/// `update_table_config`.
pub struct UpdateConfig {
    /// The REST API, which finds a configuration by its name.
    pub backend: Arc<Backend>,
    /// What the user has accepted.
    pub previews: Arc<dyn PreviewStore>,
}

#[derive(Deserialize)]
struct CreateArgs {
    name: String,
    config: Value,
    #[serde(default, deserialize_with = "optional_text")]
    description: Option<String>,
}

#[derive(Deserialize)]
struct UpdateArgs {
    #[serde(default, deserialize_with = "optional_text")]
    id: Option<String>,
    config: Value,
}

#[async_trait]
impl Tool for CreateConfig {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: CreateArgs = parse_args(args)?;
        let mut found = label_problems(Some(args.name.trim()), args.description.as_deref());
        let wanted = Wanted {
            existing_id: None,
            name: Some(args.name.trim()),
            description: args.description.as_deref(),
            config: checked(&args.config, &mut found)?,
        };
        answer(&wanted, self.previews.as_ref(), cx).await
    }
}

#[async_trait]
impl Tool for UpdateConfig {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: UpdateArgs = parse_args(args)?;
        let id = match args.id {
            Some(given) => Some(config_id::named(&given, &self.backend, cx).await?),
            None => config_id::on_screen(cx),
        };
        let Some(id) = id else {
            return Err(ToolError::BadParams("id: name the configuration to update".to_owned()));
        };
        let config = checked(&args.config, &mut Vec::new())?;
        let wanted = Wanted { existing_id: Some(&id), name: None, description: None, config };
        answer(&wanted, self.previews.as_ref(), cx).await
    }
}

/// The document in `argument`, valid.
///
/// # Errors
/// All problems, those that were `found` already first, as one sentence for the model.
fn checked(argument: &Value, found: &mut Vec<Problem>) -> Result<Value, ToolError> {
    let config = match TableConfig::parse(argument) {
        Ok(config) => {
            found.extend(problems(&config));
            config.into_value()
        }
        Err(problem) => {
            found.push(problem);
            Value::Null
        }
    };
    if found.is_empty() {
        return Ok(config);
    }
    let sentences: Vec<String> = found.iter().map(Problem::sentence).collect();
    Err(ToolError::Refused(format!("the configuration is not valid: {}", sentences.join("; "))))
}

/// What the model wants to save. A name or description of `None` is left as it is.
struct Wanted<'a> {
    existing_id: Option<&'a str>,
    name: Option<&'a str>,
    description: Option<&'a str>,
    config: Value,
}

async fn answer(
    wanted: &Wanted<'_>,
    previews: &dyn PreviewStore,
    cx: &ToolContext<'_>,
) -> Result<ToolOutput, ToolError> {
    let accepted = previews.accepted_changes(&cx.caller.owner, cx.conversation).await?;
    let Some(saved_id) = already_saved(wanted, &accepted) else {
        let message = "nothing was saved: show the change with preview_table_config first; it is saved when the user \
                       accepts that preview";
        return Err(ToolError::Refused(message.to_owned()));
    };
    Ok(ToolOutput::ok(json!({ "status": "already_saved", "config_id": saved_id }).to_string()))
}

/// The id under which exactly this was saved, judged by the newest accepted change (`accepted` is newest first) of the
/// same object: an older one has been overwritten since.
fn already_saved<'a>(wanted: &Wanted<'_>, accepted: &'a [(Change, Decided)]) -> Option<Option<&'a str>> {
    let is_same_object = |change: &Change, decided: &Decided| match wanted.existing_id {
        Some(id) => change.existing_id.as_deref() == Some(id) || decided.saved_id.as_deref() == Some(id),
        None => change.existing_id.is_none() && change.body.get("name").and_then(Value::as_str) == wanted.name,
    };
    let (change, decided) = accepted
        .iter()
        .filter(|(change, _)| change.what == WHAT)
        .find(|(change, decided)| is_same_object(change, decided))?;
    let is_same_description =
        wanted.description.is_none_or(|text| change.body.get("description") == Some(&json!(text)));
    let is_same = change.body.get("config") == Some(&wanted.config) && is_same_description;
    is_same.then_some(decided.saved_id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ids::PreviewId;
    use crate::chat::preview::{Save, Verdict};

    fn accepted(existing_id: Option<&str>, saved_id: &str, title: &str) -> (Change, Decided) {
        let change = Change {
            what: WHAT.to_owned(),
            existing_id: existing_id.map(str::to_owned),
            name: "orders".to_owned(),
            save: Save::create(["v1", "data"]),
            body: json!({ "name": "orders", "description": "all", "config": { "title": title, "width": 1 } }),
            current: None,
        };
        let decided = Decided {
            preview: PreviewId::fresh(),
            what: WHAT.to_owned(),
            name: "orders".to_owned(),
            verdict: Verdict::Accept,
            comment: None,
            saved_id: Some(saved_id.to_owned()),
            may_be_saved: false,
        };
        (change, decided)
    }

    #[test]
    fn only_what_the_newest_accepted_preview_holds_is_saved_already() {
        // Newest first: created as A, then updated to B.
        let history = [accepted(Some("id-1"), "id-1", "B"), accepted(None, "id-1", "A")];
        for (existing_id, name, description, title, expected, reason) in [
            (None, Some("orders"), None, "A", Some(Some("id-1")), "the created one, no description given"),
            (None, Some("orders"), Some("all"), "A", Some(Some("id-1")), "the created one, whole"),
            (None, Some("orders"), Some("few"), "A", None, "another description"),
            (None, Some("sales"), None, "A", None, "another name is another object"),
            (Some("id-1"), None, None, "B", Some(Some("id-1")), "the updated one"),
            (Some("id-1"), None, None, "A", None, "overwritten since"),
            (Some("id-2"), None, None, "B", None, "another object"),
        ] {
            // Keys in another order: the same document.
            let config = json!({ "width": 1, "title": title });
            let wanted = Wanted { existing_id, name, description, config };
            assert_eq!(already_saved(&wanted, &history), expected, "{reason}");
        }
    }

    #[test]
    fn an_update_of_what_was_just_created_is_saved_already() {
        let wanted = Wanted {
            existing_id: Some("id-1"),
            name: None,
            description: None,
            config: json!({ "title": "A", "width": 1 }),
        };
        assert_eq!(already_saved(&wanted, &[accepted(None, "id-1", "A")]), Some(Some("id-1")));
    }
}
