//! `create_workflow`, `update_workflow`, `validate_workflow`. None of them saves: a change is saved when its user accepts its
//! preview. The first two only report to the model whether it is saved.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::prepare::{Prepared, prepare};
use super::{Kit, WHAT, args, preview};
use crate::agent::ports::tools::ToolContext;
use crate::chat::preview::{Change, Decided};
use crate::chat::tool::ToolOutput;
use crate::tools::{Tool, ToolError, parse_args};

/// `create_workflow`.
pub struct Create(pub Arc<Kit>);

/// `update_workflow`.
pub struct Update(pub Arc<Kit>);

/// `validate_workflow`.
pub struct Validate(pub Arc<Kit>);

#[derive(Deserialize)]
struct Args {
    workflow: Value,
    #[serde(default, deserialize_with = "args::optional_text")]
    workflow_id: Option<String>,
}

#[async_trait]
impl Tool for Create {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let prepared = prepare(&self.0, cx.caller, args.workflow).await?;
        already_saved(&self.0, cx, None, &prepared).await
    }
}

#[async_trait]
impl Tool for Update {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let wanted = args::required("workflow_id", args.workflow_id)?;
        let rule = self.0.resolver.rule(cx.caller, &wanted).await?;
        let prepared = prepare(&self.0, cx.caller, args.workflow).await?;
        already_saved(&self.0, cx, Some(&rule), &prepared).await
    }
}

#[async_trait]
impl Tool for Validate {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let prepared = prepare(&self.0, cx.caller, args.workflow).await?;
        let verdict = preview::dry_run(&self.0, cx.caller, None, &prepared.body()).await?;
        Ok(ToolOutput::ok(verdict.to_string()))
    }
}

async fn already_saved(
    kit: &Kit,
    cx: &ToolContext<'_>,
    rule: Option<&str>,
    prepared: &Prepared,
) -> Result<ToolOutput, ToolError> {
    let accepted = kit.previews.accepted_changes(&cx.caller.owner, cx.conversation).await?;
    let Some((change, decided)) = last_saved(&accepted, rule, prepared) else {
        return Err(ToolError::Refused(
            "nothing was saved: a workflow is saved when the user accepts its preview; call preview_workflow with this \
             workflow and a description (and workflow_id for an update), then wait for the user"
                .to_owned(),
        ));
    };
    let id = decided.saved_id.as_ref().or(change.existing_id.as_ref());
    let result = json!({
        "status": "already_saved",
        "workflow_id": id,
        "message": "The user accepted the preview of exactly this workflow, which saved it. Nothing is left to do.",
    });
    Ok(ToolOutput::ok(result.to_string()))
}

/// The accepted change that saved what the call says; `accepted` is newest first. For a rule, even one that the change created,
/// that is its newest change or none: an older one has been overwritten since. An update keeps what it does not mention, so
/// over what was saved it changes nothing.
fn last_saved<'a>(
    accepted: &'a [(Change, Decided)],
    rule: Option<&str>,
    prepared: &Prepared,
) -> Option<&'a (Change, Decided)> {
    let is_rule = |(change, decided): &&(Change, Decided)| match (rule, &change.existing_id) {
        (None, existing) => existing.is_none(),
        (Some(rule), Some(existing)) => existing == rule,
        (Some(rule), None) => decided.saved_id.as_deref() == Some(rule),
    };
    let mut of_rule = accepted.iter().filter(|(change, _)| change.what == WHAT).filter(is_rule);
    match rule {
        Some(_) => of_rule.next().filter(|(change, _)| prepared.body_over(&change.body) == change.body),
        None => of_rule.find(|(change, _)| prepared.body() == change.body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ids::PreviewId;
    use crate::chat::preview::{Save, Verdict};

    fn accepted(what: &str, existing: Option<&str>, body: Value) -> (Change, Decided) {
        let existing_id = existing.map(str::to_owned);
        let (what, name) = (what.to_owned(), "W".to_owned());
        let change = Change {
            what: what.clone(),
            existing_id,
            name: name.clone(),
            save: Save::create(["rules"]),
            body,
            current: None,
        };
        let saved_id = Some("saved".into());
        let (preview, verdict) = (PreviewId::fresh(), Verdict::Accept);
        let decided = Decided { preview, what, name, verdict, comment: None, saved_id, may_be_saved: false };
        (change, decided)
    }

    #[test]
    fn only_the_accepted_change_itself_counts_as_saved() {
        let rows = [
            (WHAT, None, None, 1, true, "the created workflow"),
            (WHAT, None, None, 2, false, "another body"),
            (WHAT, Some("r1"), None, 1, false, "an update is no creation"),
            (WHAT, Some("r1"), Some("r1"), 1, true, "the updated rule"),
            (WHAT, Some("r1"), Some("r2"), 1, false, "another rule"),
            (WHAT, None, Some("saved"), 1, true, "an update of what was just created, without a change"),
            ("table configuration", None, None, 1, false, "not a workflow"),
        ];
        for (what, existing, rule, body, expected, reason) in rows {
            let (change, decided) = accepted(what, existing, json!({"v": 1, "name": "W"}));
            let prepared = Prepared::from_text(&json!({"name": "W", "v": body}));
            assert_eq!(last_saved(&[(change, decided)], rule, &prepared).is_some(), expected, "{reason}");
        }
    }

    #[test]
    fn an_update_repeats_only_what_it_changes() {
        let saved = json!({"name": "W", "description": "why", "canvas_layout": {"zoom": 1}});
        let rows = [
            (json!({"name": "W"}), Some("r1"), true, "nothing but the name"),
            (json!({"canvas_layout": {"zoom": 1}, "name": "W"}), Some("r1"), true, "the same, in another order"),
            (json!({"name": "W", "canvas_layout": {"zoom": 2}}), Some("r1"), false, "another canvas"),
            (json!({"name": "W", "description": null}), Some("r1"), false, "a description to be cleared"),
            (json!({"name": "V"}), Some("r1"), false, "another name"),
            (json!({"name": "W", "edges": []}), Some("r1"), false, "more than was saved"),
            (json!({"name": "W"}), None, false, "a new workflow keeps nothing"),
            (saved.clone(), None, true, "a new workflow, whole"),
        ];
        for (prepared, rule, expected, reason) in rows {
            let (change, decided) = accepted(WHAT, rule, saved.clone());
            let is_saved = last_saved(&[(change, decided)], rule, &Prepared::from_text(&prepared)).is_some();
            assert_eq!(is_saved, expected, "{reason}");
        }
    }

    #[test]
    fn what_was_overwritten_since_is_not_saved() {
        let newest_first = [
            accepted(WHAT, Some("r2"), json!({"name": "W", "v": 1})),
            accepted(WHAT, Some("r1"), json!({"name": "W", "v": 3})),
            accepted(WHAT, Some("r1"), json!({"name": "W", "v": 1})),
        ];
        for (version, is_saved) in [(1, false), (3, true)] {
            let prepared = Prepared::from_text(&json!({"name": "W", "v": version}));
            assert_eq!(last_saved(&newest_first, Some("r1"), &prepared).is_some(), is_saved, "{version}");
        }
    }
}
