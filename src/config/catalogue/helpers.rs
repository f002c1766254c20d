//! `[plan]`, `[delegate]` and `[[agents]]` of a profile: the plans that its model may make, and whom it may give tasks to.

use super::layers::Layer;
use crate::agent::offer::profile::{Assistant, Begins, Delegation, Planning};
use crate::config::document::Table;

/// The name of the tool that makes plans, where a profile gives it none.
const PLAN_TOOL: &str = "create_plan";

/// Reads the tables into `layer`.
pub(super) fn read(table: &mut Table<'_>, layer: &mut Layer) {
    if let Some(mut table) = table.table("plan") {
        let tool = table.take("tool").and_then(|entry| {
            let location = entry.location();
            let name = entry.text()?;
            let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
                location.wrong("must be 1 to 64 of A-Z a-z 0-9 _ -");
            }
            Some(name)
        });
        let begins_with = table.table("begins_with").and_then(|mut table| {
            let (tool, gives) = (table.required_text("tool"), table.required_text("gives"));
            table.finish();
            Some(Begins { tool: tool?, gives: gives? })
        });
        layer.planning = Some(Planning { tool: tool.unwrap_or_else(|| PLAN_TOOL.to_owned()), begins_with });
        table.finish();
    }
    let with_tools = table.table("delegate").map(|mut table| {
        let tools = table.flag("tools").unwrap_or(true);
        table.finish();
        tools
    });
    let mut assistants: Vec<Assistant> = Vec::new();
    for mut table in table.tables("agents") {
        let (profile, description) = (table.required_text("profile"), table.required_text("description"));
        let name = table.text("name").or_else(|| profile.clone());
        if let (Some(name), Some(description), Some(context_type)) = (name, description, profile) {
            if assistants.iter().any(|known| known.name == name) {
                table.wrong(format_args!("{name:?} is listed twice"));
            }
            assistants.push(Assistant { name, description, context_type });
        }
        table.finish();
    }
    if with_tools.is_some() || !assistants.is_empty() {
        layer.delegation = Some(Delegation { with_tools: with_tools.unwrap_or_default(), assistants });
    }
}
