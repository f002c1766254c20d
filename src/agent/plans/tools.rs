//! The tools that make plans and ask other assistants. They are the loop's own: no handler has them.

use serde_json::{Value, json};

use super::check::required;
use crate::agent::offer::profile::{DELEGATE, Delegation, Planning};
use crate::agent::ports::tools::OfferedTool;
use crate::chat::tool::ToolDef;

/// The tool that makes plans.
pub fn plan_tool(planning: &Planning) -> ToolDef {
    let step = json!({
        "type": "object",
        "properties": {
            "step_number": {"type": "integer", "description": "From 1, unique"},
            "type": {"type": "string", "enum": ["research", "action", "analysis", "synthesis"],
                     "description": "A research step that fails ends the plan"},
            "description": {"type": "string"},
            "tools": {"type": "array", "items": {"type": "string"}, "description": "Names of tools"},
            "depends_on": {"type": "array", "items": {"type": "integer"},
                           "description": "Steps whose results it needs, with smaller numbers"},
            "arguments": {"type": "object",
                          "description": "Arguments for its tools; with several tools an object for each, by its name"},
            "executor_required": {"type": "boolean",
                                  "description": "True where the step needs judgement: an assistant of its own carries it out"}
        },
        "required": ["description"]
    });
    ToolDef {
        name: planning.tool.clone(),
        description: "Makes a plan of several steps and carries it out; steps that do not depend on each other run at once. Use it for \
                      work of several steps, and not for a single call. Leave out the steps to have them written. With plan_id a \
                      plan that waits is carried out."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "objective": {"type": "string", "description": "What the plan is to bring about"},
                "execution_mode": {"type": "string", "enum": ["auto_execute", "draft_only", "agent_review"],
                    "description": "auto_execute runs it at once; draft_only keeps it for the user; agent_review has it reviewed first"},
                "requested_outputs": {"type": "array", "items": {"type": "string"}},
                "priority_entities": {"type": "array", "items": {"type": "string"}},
                "plan": {"type": "object", "properties": {
                    "reasoning": {"type": "string"},
                    "steps": {"type": "array", "items": step}
                }},
                "plan_id": {"type": "string", "description": "A plan of this conversation that waits"}
            }
        }),
    }
}

/// The tool that asks another assistant.
pub fn delegate_tool(delegation: &Delegation) -> ToolDef {
    let mut properties = json!({
        "task": {"type": "string",
                 "description": "All that the assistant has to know: it sees nothing of this conversation"}
    });
    let mut description = "Gives a task to an assistant of its own, and answers with what it says.".to_owned();
    let mut required = vec!["task"];
    if delegation.with_tools {
        properties["tools"] = json!({"type": "array", "items": {"type": "string"},
            "description": "Names of the tools that it gets, where no agent is named"});
    }
    if !delegation.assistants.is_empty() {
        let names: Vec<&str> = delegation.assistants.iter().map(|assistant| assistant.name.as_str()).collect();
        for assistant in &delegation.assistants {
            description.push_str(&format!("\n- {}: {}", assistant.name, assistant.description));
        }
        properties["agent"] = json!({"type": "string", "enum": names, "description": "Who gets it"});
        if !delegation.with_tools {
            required.push("agent");
        }
    }
    ToolDef {
        name: DELEGATE.to_owned(),
        description,
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    }
}

/// The tools of a plan's steps for whoever writes one: name, purpose and required arguments.
pub fn listed(tools: &[OfferedTool]) -> Value {
    let listed = tools.iter().map(|tool| {
        let required: Vec<&str> = required(&tool.def).collect();
        json!({"name": tool.def.name, "description": tool.def.description, "required": required})
    });
    listed.collect()
}
