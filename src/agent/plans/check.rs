//! Whether steps make a plan.

use std::collections::BTreeSet;

use serde_json::Value;

use super::mistakes::Mistakes;
use super::read::TOOL_ARGUMENTS;
use crate::agent::offer::profile::Planning;
use crate::agent::ports::tools::OfferedTool;
use crate::agent::spend::limits::PlanLimits;
use crate::chat::plan::Step;
use crate::chat::tool::ToolDef;

/// 100 characters of a name that a model has made up.
const NAME_CHARS: usize = 100;

/// What steps are checked against.
pub struct Rules<'a> {
    /// The tools that may be used here, whether the model was told of them or not.
    pub tools: &'a [OfferedTool],
    /// What the profile says of plans.
    pub planning: &'a Planning,
    /// The bounds.
    pub limits: &'a PlanLimits,
}

impl Rules<'_> {
    /// `steps` as they are carried out: in the order of their numbers, their tools by their own names.
    ///
    /// # Errors
    /// All mistakes, in words for the model.
    pub fn check(&self, mut steps: Vec<Step>) -> Result<Vec<Step>, Mistakes> {
        let mut mistakes = Mistakes::default();
        let most = self.limits.max_steps;
        if steps.is_empty() {
            mistakes.note("the plan has no steps");
        }
        if steps.len() > most {
            mistakes.note(format_args!("the plan has {} steps, and {most} are allowed", steps.len()));
        }
        let calls: usize = steps.iter().filter(|step| !step.by_agent).map(|step| step.tools.len()).sum();
        if calls > self.limits.max_tool_calls {
            let most = self.limits.max_tool_calls;
            mistakes.note(format_args!("the plan makes {calls} calls of tools, and {most} are allowed"));
        }
        steps.sort_by_key(|step| step.number);
        let numbers: BTreeSet<u32> = steps.iter().map(|step| step.number).collect();
        for pair in steps.windows(2) {
            if let [first, second] = pair
                && first.number == second.number
            {
                mistakes.note(format_args!("step number {} is given twice", first.number));
            }
        }
        for step in &mut steps {
            let number = step.number;
            for need in &step.needs {
                if !numbers.contains(need) {
                    mistakes.note(format_args!("step {number} depends on step {need}, which does not exist"));
                } else if *need >= number {
                    mistakes.note(format_args!("step {number} depends on step {need}, which does not come before it"));
                }
            }
            for tool in &mut step.tools {
                self.name(number, tool, &mut mistakes);
            }
        }
        self.first(&mut steps, &mut mistakes);
        mistakes.or(steps)
    }

    /// Gives `tool` the name under which it is offered.
    fn name(&self, number: u32, tool: &mut String, mistakes: &mut Mistakes) {
        let same = |name: &str| name.eq_ignore_ascii_case(tool);
        if self.planning.is_own(tool) {
            mistakes.note(format_args!("step {number} uses {tool}, which a plan cannot use"));
        } else if let Some(offered) = self.tools.iter().find(|offered| same(&offered.def.name)) {
            tool.clone_from(&offered.def.name);
        } else {
            let name: String = tool.chars().take(NAME_CHARS).collect();
            mistakes.note(format_args!("step {number} uses {name}, which is not available here"));
        }
    }

    /// Where plans begin with one tool: whatever needs what that one makes comes behind it.
    fn first(&self, steps: &mut [Step], mistakes: &mut Mistakes) {
        let Some(first) = &self.planning.begins_with else { return };
        let Some(maker) = steps.iter().find(|step| step.tools.contains(&first.tool)).map(|step| step.number) else {
            mistakes.note(format_args!("no step uses {}, which a plan needs here", first.tool));
            return;
        };
        for step in steps.iter_mut().filter(|step| step.number != maker) {
            let needs = step.tools.iter().any(|tool| self.takes(tool, &first.gives));
            if !needs || has_argument(step, &first.gives) {
                continue;
            }
            if step.number < maker {
                let (number, gives) = (step.number, &first.gives);
                mistakes.note(format_args!("step {number} needs {gives}, which step {maker} makes only after it"));
            } else if !step.needs.contains(&maker) {
                step.needs.push(maker);
                step.needs.sort_unstable();
            }
        }
    }

    fn takes(&self, tool: &str, parameter: &str) -> bool {
        let tool = self.tools.iter().find(|offered| offered.def.name == tool);
        tool.is_some_and(|tool| tool.def.input_schema["properties"].get(parameter).is_some())
    }
}

/// The parameters that a call of a tool has to have.
pub fn required(def: &ToolDef) -> impl Iterator<Item = &str> {
    def.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn has_argument(step: &Step, name: &str) -> bool {
    let given = &step.metadata.get(TOOL_ARGUMENTS);
    let of = |value: &Value| value.get(name).is_some_and(|value| !value.is_null());
    given.is_some_and(|given| of(given) || step.tools.iter().any(|tool| given.get(tool).is_some_and(of)))
}
