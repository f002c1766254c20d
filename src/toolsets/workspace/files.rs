//! The tools that read and change files.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{failed, off, policy};
use crate::agent::ports::tools::ToolContext;
use crate::agent::ports::workspace::{Edit, FileEdit, FileText, Hits, ListOptions, Listing, Pattern};
use crate::chat::artifact::{Artifact, FILE_EDIT};
use crate::chat::tool::{Effect, Policy, ToolOutput};
use crate::chat::worded::TOOL_ERROR;
use crate::tools::worded::{Wording, told};
use crate::tools::{Tool, ToolError, Workplace};

/// A `Tool` for each file tool: its type, its name, the type of its failures, its effect.
macro_rules! file_tool {
    ($(#[$doc:meta])* $tool:ident, $args:ty, $wording:expr, $effect:expr) => {
        $(#[$doc])*
        pub(super) struct $tool(pub(super) Option<Workplace>);

        #[async_trait]
        impl Tool for $tool {
            async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
                let args = $wording.args::<$args>(args)?;
                let place = self.0.as_ref().ok_or_else(off)?;
                args.call(place, cx).await
            }

            fn wording(&self) -> Option<Wording> {
                Some($wording)
            }

            fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
                $wording.args::<$args>(args).map(drop)
            }

            fn effect(&self) -> Effect {
                $effect
            }

            fn policy(&self) -> Policy {
                policy(self.0.as_ref())
            }

            fn is_on(&self) -> bool {
                self.0.is_some()
            }

            fn in_workspace(&self) -> bool {
                true
            }
        }
    };
}

const READ: Wording = Wording { name: "read_file", kind: "read_file_error" };
const WRITE: Wording = Wording { name: "write_to_file", kind: TOOL_ERROR };
const REPLACE: Wording = Wording { name: "replace_in_file", kind: TOOL_ERROR };
const DELETE: Wording = Wording { name: "delete_file", kind: TOOL_ERROR };
const LIST: Wording = Wording { name: "list_files", kind: "list_files_error" };
const SEARCH: Wording = Wording { name: "search_files", kind: "search_files_error" };

file_tool!(
    /// `read_file`.
    Read, ReadArgs, READ, Effect::Read);
file_tool!(
    /// `write_to_file`.
    Write, WriteArgs, WRITE, Effect::Write);
file_tool!(
    /// `replace_in_file`.
    Replace, ReplaceArgs, REPLACE, Effect::Write);
file_tool!(
    /// `delete_file`.
    Delete, DeleteArgs, DELETE, Effect::Write);
file_tool!(
    /// `list_files`.
    List, ListArgs, LIST, Effect::Read);
file_tool!(
    /// `search_files`.
    Search, SearchArgs, SEARCH, Effect::Read);

#[derive(Deserialize)]
struct ReadArgs {
    path: String,
}

impl ReadArgs {
    async fn call(self, place: &Workplace, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let workspace = place.workspaces.of(&cx.caller.owner).await.map_err(failed(READ))?;
        let FileText { path, content, is_cut } = workspace.read(&self.path).await.map_err(failed(READ))?;
        let mut result = json!({"type": "read_file_result", "path": path, "content": content});
        if is_cut {
            result["note"] = json!("the file is longer than what is read of it; search_files finds lines in all of it");
        }
        Ok(told(&result))
    }
}

#[derive(Deserialize)]
struct WriteArgs {
    path: String,
    content: String,
}

impl WriteArgs {
    async fn call(self, place: &Workplace, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let edit = edit(WRITE, place, cx, &self.path, Edit::Write(self.content)).await?;
        let mut result = json!({"type": "write_file_result", "path": edit.path});
        if !edit.is_change {
            result["note"] = json!("it had this text already");
        }
        Ok(done(&result, &edit))
    }
}

#[derive(Deserialize)]
struct ReplaceArgs {
    path: String,
    diff: String,
}

impl ReplaceArgs {
    async fn call(self, place: &Workplace, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let edit = edit(REPLACE, place, cx, &self.path, Edit::Replace(self.diff)).await?;
        if !edit.is_change {
            return Err(REPLACE.error("no_change", "nothing would change"));
        }
        let diff = edit.diff.as_ref().map(|diff| diff.text.as_str());
        Ok(done(&json!({"type": "replace_file_result", "path": edit.path, "diff": diff}), &edit))
    }
}

#[derive(Deserialize)]
struct DeleteArgs {
    path: String,
}

impl DeleteArgs {
    async fn call(self, place: &Workplace, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let edit = edit(DELETE, place, cx, &self.path, Edit::Delete).await?;
        let mut result = json!({"type": "delete_file_result", "path": edit.path});
        if !edit.is_change {
            result["note"] = json!("it was not there");
        }
        Ok(done(&result, &edit))
    }
}

#[derive(Deserialize)]
struct ListArgs {
    path: String,
    #[serde(default)]
    recursive: Option<bool>,
    #[serde(default)]
    hidden_files: Option<bool>,
}

impl ListArgs {
    async fn call(self, place: &Workplace, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let workspace = place.workspaces.of(&cx.caller.owner).await.map_err(failed(LIST))?;
        let options = ListOptions {
            recursive: self.recursive.unwrap_or_default(),
            hidden: self.hidden_files.unwrap_or_default(),
        };
        let Listing { path, items, is_cut } = workspace.list(&self.path, options).await.map_err(failed(LIST))?;
        let mut result = json!({"type": "list_files_result", "path": path, "items": items});
        if is_cut {
            result["note"] = json!("there are more; list a folder below");
        }
        Ok(told(&result))
    }
}

#[derive(Deserialize)]
struct SearchArgs {
    path: String,
    regex: String,
    #[serde(default)]
    file_pattern: Option<String>,
}

impl SearchArgs {
    async fn call(self, place: &Workplace, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let workspace = place.workspaces.of(&cx.caller.owner).await.map_err(failed(SEARCH))?;
        let pattern = Pattern { regex: self.regex, files: self.file_pattern.filter(|files| !files.is_empty()) };
        let Hits { hits, is_cut } = workspace.search(&self.path, pattern).await.map_err(failed(SEARCH))?;
        let results = hits.into_iter().map(|hit| json!({"file": hit.file, "line": hit.line, "context": hit.context}));
        let mut result = json!({"type": "search_files_result", "results": results.collect::<Value>()});
        if is_cut {
            result["note"] = json!("there may be more; ask for less");
        }
        Ok(told(&result))
    }
}

async fn edit(
    wording: Wording,
    place: &Workplace,
    cx: &ToolContext<'_>,
    path: &str,
    edit: Edit,
) -> Result<FileEdit, ToolError> {
    let owner = &cx.caller.owner;
    let workspace = place.workspaces.of(owner).await.map_err(failed(wording))?;
    workspace.edit((owner, cx.conversation), path, edit).await.map_err(failed(wording))
}

/// `result`, with the edit for the client where there is another file now.
fn done(result: &Value, edit: &FileEdit) -> ToolOutput {
    if !edit.is_change {
        return told(result);
    }
    let mut payload = json!({"file": edit.path});
    if let Some(diff) = &edit.diff {
        payload["diff"] = json!(diff.text);
        payload["added"] = json!(diff.added);
        payload["removed"] = json!(diff.removed);
    }
    ToolOutput { artifacts: vec![Artifact { kind: FILE_EDIT.into(), payload }], ..told(result) }
}
