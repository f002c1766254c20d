//! `preview_workflow`, and what every preview does: the backend's dry run, then the change is recorded and displayed.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::prepare::prepare;
use super::reader::RuleReader;
use super::{Kit, WHAT, args, reader};
use crate::agent::ports::tools::ToolContext;
use crate::chat::artifact::Artifact;
use crate::chat::caller::Caller;
use crate::chat::preview::{Change, Save};
use crate::chat::tool::ToolOutput;
use crate::tools::backend::{BackendError, Request};
use crate::tools::{Tool, ToolError, parse_args, previews};

/// `preview_workflow`.
pub struct PreviewWorkflow(pub Arc<Kit>);

#[derive(Deserialize)]
struct Args {
    workflow: Value,
    #[serde(default, deserialize_with = "args::optional_text")]
    description: Option<String>,
    #[serde(default, deserialize_with = "args::optional_text")]
    workflow_id: Option<String>,
}

#[async_trait]
impl Tool for PreviewWorkflow {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kit = &*self.0;
        let args: Args = parse_args(args)?;
        let description = args::required("description", args.description)?;
        let rule = match args.workflow_id {
            Some(wanted) => Some(kit.resolver.rule(cx.caller, &wanted).await?),
            None => None,
        };
        let prepared = prepare(kit, cx.caller, args.workflow).await?;
        let (body, current) = match &rule {
            Some(rule) => {
                // Without its edges the rule cannot be compared with, but it can be saved over.
                let read = reader::to_be_changed(&kit.backend, cx.caller, rule).await;
                let (saved, current) = read.map_err(with_rights_hint)?;
                (prepared.body_over(&saved), current)
            }
            None => (prepared.body(), None),
        };
        let verdict = dry_run(kit, cx.caller, rule.as_deref(), &body).await?;
        if !is_valid(&verdict) {
            return Ok(ToolOutput::ok(verdict.to_string()));
        }
        show(kit, cx, ("preview_workflow", description), Proposed { rule, name: prepared.name, body, current }).await
    }
}

/// The backend's opinion of saving `body`, as a new rule or over `rule`: `{valid, errors?, action_count, edge_count}`.
///
/// # Errors
/// When the backend refuses the body as a whole, or the caller; when its answer is no verdict.
pub async fn dry_run(kit: &Kit, caller: &Caller, rule: Option<&str>, body: &Value) -> Result<Value, ToolError> {
    let request = match rule {
        Some(rule) => Request::put(["v1", "workflow", "rules", rule, "full"], body),
        None => Request::post(["v1", "workflow", "rules", "full"], body),
    };
    let verdict = kit.backend.call(caller, request.query("dry_run", "true")).await.map_err(with_rights_hint)?;
    match verdict.get("valid") {
        Some(Value::Bool(_)) => Ok(verdict),
        _ => Err(BackendError::Shape("no verdict on the workflow".to_owned()).into()),
    }
}

/// Whether a dry run went well.
pub fn is_valid(verdict: &Value) -> bool {
    verdict.get("valid").and_then(Value::as_bool) == Some(true)
}

/// A validated change.
pub struct Proposed {
    /// The rule that it replaces; `None` for a new one.
    pub rule: Option<String>,
    /// The workflow's name.
    pub name: String,
    /// The body of the save.
    pub body: Value,
    /// The rule as it is, in the shape of `body`.
    pub current: Option<Value>,
}

/// Records a validated change of `tool` and shows it to the user; the model learns that it has been sent.
///
/// # Errors
/// When it could not be recorded; then its user sees nothing.
pub async fn show(
    kit: &Kit,
    cx: &ToolContext<'_>,
    (tool, description): (&str, String),
    proposed: Proposed,
) -> Result<ToolOutput, ToolError> {
    let Proposed { rule, name, body, current } = proposed;
    let save = match &rule {
        Some(rule) => Save::replace(["v1", "workflow", "rules", rule, "full"]),
        None => Save::create(["v1", "workflow", "rules", "full"]),
    };
    let change = Change { what: WHAT.to_owned(), existing_id: rule, name, save, body, current };
    let base = previews::base(reader::NAME, &RuleReader(kit.backend.clone()), change.current.as_ref());
    let id = kit.recorder.record(cx, tool, &change, &base).await?.to_string();

    let mut payload = json!({
        "description": description,
        "workflow": change.body,
        "is_update": change.existing_id.is_some(),
    });
    if let Some(rule) = change.existing_id {
        payload["workflow_id"] = json!(rule);
    }
    payload["preview_id"] = json!(id);
    let content = json!({
        "status": "preview_sent",
        "message": "Preview sent to user for approval. Nothing is saved yet: the user accepts or rejects it on their screen. \
                    Do not call create_workflow or update_workflow now; summarise the change and wait.",
        "preview_id": id,
    });
    let artifact = Artifact { kind: "workflow_preview".into(), payload };
    Ok(ToolOutput { artifacts: vec![artifact], ..ToolOutput::ok(content.to_string()) })
}

/// The error with a word on what a 403 means here, since the model cannot do anything about it.
pub fn with_rights_hint(error: BackendError) -> ToolError {
    match error {
        error if error.is_forbidden() => ToolError::Refused(format!(
            "{error} (the backend does not let this user do it; if it gives no other reason, administrator rights are \
             needed; tell the user)"
        )),
        other => ToolError::Backend(other),
    }
}
