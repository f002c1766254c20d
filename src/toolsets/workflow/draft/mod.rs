//! Drafts: a workflow built action by action, over as many messages as it takes (contract section 7). The document lives in
//! the draft store; its rules are in `document`.

mod document;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::document::{Action, Document};
use super::prepare::prepare;
use super::{Kit, args, preview};
use crate::agent::ports::drafts::{Draft, DraftError};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::tools::ToolContext;
use crate::chat::ids::DraftId;
use crate::chat::tool::ToolOutput;
use crate::tools::{Tool, ToolError, parse_args};

/// 5 tries: as many calls of one turn may change a draft at the same time and still all succeed.
const SAVE_TRIES: usize = 5;

/// `start_draft`.
pub struct Start(pub Arc<Kit>);

/// `add_draft_action`.
pub struct AddAction(pub Arc<Kit>);

/// `remove_draft_action`.
pub struct RemoveAction(pub Arc<Kit>);

/// `preview_draft`.
pub struct PreviewDraft(pub Arc<Kit>);

#[derive(Deserialize)]
struct StartArgs {
    #[serde(default, deserialize_with = "args::optional_text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    entity: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    trigger_type: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    description: Option<String>,
    #[serde(default)]
    trigger_conditions: Option<Value>,
}

#[derive(Deserialize)]
struct AddArgs {
    #[serde(default, deserialize_with = "args::optional_text")]
    draft_id: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    action_type: Option<String>,
    #[serde(default)]
    action_config: Option<Value>,
    #[serde(default, deserialize_with = "args::optional_text")]
    after: Option<String>,
    #[serde(default)]
    is_active: Option<bool>,
}

#[derive(Deserialize)]
struct RemoveArgs {
    #[serde(default, deserialize_with = "args::optional_text")]
    draft_id: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    action_name: Option<String>,
}

#[derive(Deserialize)]
struct PreviewArgs {
    #[serde(default, deserialize_with = "args::optional_text")]
    draft_id: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    description: Option<String>,
}

#[async_trait]
impl Tool for Start {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kit = &*self.0;
        let args: StartArgs = parse_args(args)?;
        let name = args::required("name", args.name)?;
        args::check_name("name", &name)?;
        let entity = args::required("entity", args.entity)?;
        let trigger_type = args::required("trigger_type", args.trigger_type)?;
        let trigger_conditions = match args.trigger_conditions {
            Some(conditions) => Some(Value::Object(args::object("trigger_conditions", conditions)?)),
            None => None,
        };
        // A wrong name is an error now, not after ten actions; the draft keeps the names.
        futures::try_join!(
            kit.resolver.entity(cx.caller, &entity),
            kit.resolver.trigger_type(cx.caller, &trigger_type)
        )?;

        let document = Document {
            name: name.clone(),
            entity,
            trigger_type,
            description: args.description,
            trigger_conditions,
            actions: Vec::new(),
        };
        let body = document.to_body()?;
        let id = kit.drafts.create_draft(&cx.caller.owner, cx.conversation, &body).await?;
        let result = json!({
            "draft_id": id.to_string(),
            "status": "draft_created",
            "message": format!("Draft {name:?} created. Add its actions with add_draft_action, then call preview_draft."),
        });
        Ok(ToolOutput::ok(result.to_string()))
    }
}

#[async_trait]
impl Tool for AddAction {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kit = &*self.0;
        let args: AddArgs = parse_args(args)?;
        let id = args::required("draft_id", args.draft_id)?;
        let name = args::required("name", args.name)?;
        args::check_name("name", &name)?;
        let action_type = args::required("action_type", args.action_type)?;
        let config = args.action_config.ok_or_else(|| ToolError::BadParams("action_config is required".to_owned()))?;
        let action = Action {
            name: name.clone(),
            action_type,
            action_config: args::object("action_config", config)?,
            is_active: args.is_active.unwrap_or(true),
            after: None,
        };
        let types = kit.resolver.action_types(cx.caller).await;
        let (index, ports) =
            edit(kit, cx, &id, |document| document.add(action.clone(), args.after.as_deref(), &types)).await?;
        let result = json!({
            "status": "action_added",
            "action_name": name,
            "action_index": index,
            "output_ports": ports,
            "message": format!(
                "Action {name:?} added. A following action names it in `after`, as \"{name}\" or \"{name}:port\"."
            ),
        });
        Ok(ToolOutput::ok(result.to_string()))
    }
}

#[async_trait]
impl Tool for RemoveAction {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: RemoveArgs = parse_args(args)?;
        let id = args::required("draft_id", args.draft_id)?;
        let name = args::required("action_name", args.action_name)?;
        let message = edit(&self.0, cx, &id, |document| document.remove(&name)).await?;
        let result = json!({"status": "action_removed", "message": message});
        Ok(ToolOutput::ok(result.to_string()))
    }
}

#[async_trait]
impl Tool for PreviewDraft {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kit = &*self.0;
        let args: PreviewArgs = parse_args(args)?;
        let id = args::required("draft_id", args.draft_id)?;
        let description = args::required("description", args.description)?;
        let (_, draft) = read(kit, cx, &id).await?;
        let document = Document::from_body(draft.body)?;
        if document.actions.is_empty() {
            return Err(ToolError::Refused("the draft has no actions; add one with add_draft_action first".to_owned()));
        }

        let prepared = prepare(kit, cx.caller, document.workflow()?).await?;
        let body = prepared.body();
        let mut verdict = preview::dry_run(kit, cx.caller, None, &body).await?;
        if !preview::is_valid(&verdict) {
            // The model has not seen the assembled workflow yet, and needs it to understand the errors.
            if let Some(fields) = verdict.as_object_mut() {
                fields.insert("workflow".to_owned(), body);
            }
            return Ok(ToolOutput::ok(verdict.to_string()));
        }
        let proposed = preview::Proposed { rule: None, name: prepared.name, body, current: None };
        preview::show(kit, cx, ("preview_draft", description), proposed).await
    }
}

async fn read(kit: &Kit, cx: &ToolContext<'_>, id: &str) -> Result<(DraftId, Draft), ToolError> {
    let not_found =
        || ToolError::Refused(format!("draft {id:?} not found or expired; begin a new one with start_draft"));
    let draft_id = DraftId::parse(id).map_err(|_| not_found())?;
    match kit.drafts.draft(&cx.caller.owner, cx.conversation, draft_id).await {
        Ok(draft) => Ok((draft_id, draft)),
        Err(DraftError::NotFound) => Err(not_found()),
        Err(error) => Err(error.into()),
    }
}

/// Changes a draft's document, anew when another request saved it meanwhile.
async fn edit<T>(
    kit: &Kit,
    cx: &ToolContext<'_>,
    id: &str,
    change: impl Fn(&mut Document) -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    for _ in 0..SAVE_TRIES {
        let (draft_id, draft) = read(kit, cx, id).await?;
        let mut document = Document::from_body(draft.body)?;
        let result = change(&mut document)?;
        let changed = Draft { body: document.to_body()?, revision: draft.revision };
        match kit.drafts.save_draft(&cx.caller.owner, cx.conversation, draft_id, &changed).await {
            Ok(()) => return Ok(result),
            Err(DraftError::Changed) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(DraftError::Changed.into())
}

fn damaged(error: serde_json::Error) -> ToolError {
    ToolError::Store(StoreError::Damaged(Box::new(error)))
}
