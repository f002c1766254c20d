//! The titles of calls that wait, made for whoever looks at one.
//!
//! **Invariant:** what is looked up for a title is read with the token of whoever looks at the call, and what cannot be
//! read gives no title: the call is shown by its tool and arguments then.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::declared::Declared;
use crate::agent::ports::approvals::ApprovalTitles;
use crate::bounded::json::Wanted;
use crate::chat::approval::Approval;
use crate::chat::caller::Caller;
use crate::chat::template::Values;
use crate::tools::backend::{Backend, Request};

/// The longest title, in characters: a heading.
const TITLE_CHARS: usize = 200;

/// The titles of all tools that have one.
pub struct Titles {
    by_tool: BTreeMap<String, (Arc<Declared>, Arc<Backend>)>,
}

impl Titles {
    pub(super) fn new(tools: impl IntoIterator<Item = (String, Arc<Declared>, Arc<Backend>)>) -> Self {
        let tools = tools.into_iter().filter(|(_, declared, _)| declared.naming.is_some());
        Self { by_tool: tools.map(|(name, declared, backend)| (name, (declared, backend))).collect() }
    }
}

#[async_trait]
impl ApprovalTitles for Titles {
    async fn title(&self, caller: &Caller, approval: &Approval) -> Option<String> {
        let (declared, backend) = self.by_tool.get(&approval.tool)?;
        let naming = declared.naming.as_ref()?;
        let mut values = Values::default();
        values.insert("args", Value::Object(approval.arguments.clone()));
        values.insert("user", json!(caller.owner.user));
        values.insert("tenant", json!(caller.owner.tenant_name()));
        values.insert("roles", json!(caller.roles));
        let data = match &naming.resolve {
            None => Value::Null,
            Some(path) => {
                let segments = path.fill(&approval.arguments).ok()?;
                let request = Request::get(segments.iter().map(String::as_str));
                let read = backend.read(caller, request, Wanted::All, |answer, _| Ok(answer)).await;
                let told = read.inspect_err(|error| {
                    tracing::debug!(error = error.for_log(), "no title for a call that waits");
                });
                // Of another shape it has none of the names that a title takes.
                told.ok().filter(Value::is_object)?
            }
        };
        values.insert("data", data);
        naming.title.render(&values).ok().and_then(|text| one_line(&text))
    }
}

/// A text as one line without control characters; `None` for an empty one.
fn one_line(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let cut = match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    };
    Some(cut).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        let rows = [
            (" Archive\n\tGene\u{0} editing ", Some("Archive Gene editing".to_owned()), "one line"),
            (" \n ", None, "nothing"),
            (&"é".repeat(201), Some(format!("{}…", "é".repeat(200))), "cut at a character"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(one_line(text), expected, "{reason}");
        }
    }
}
