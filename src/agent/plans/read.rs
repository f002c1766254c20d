//! What a model asks for when it makes a plan. Models write one thing in many ways: names in either case, numbers as text,
//! one tool instead of a list.

use serde_json::{Map, Value};

use super::mistakes::Mistakes;
use crate::bounded::json;
use crate::chat::ids::PlanId;
use crate::chat::plan::{PlanMode, Step, StepKind, StepStatus, fits};

/// The fields of a step that its metadata may have too, by the name that they get there.
pub const TOOL_ARGUMENTS: &str = "toolArguments";

/// The arguments of a call that makes a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// What it is for; empty where the model does not say.
    pub objective: String,
    /// What happens when it is made.
    pub mode: Result<PlanMode, Mistakes>,
    /// What it is to bring about.
    pub requested_outputs: Vec<String>,
    /// What it is about above all.
    pub priority_entities: Vec<String>,
    /// Its steps, unread; `None` where somebody else is to write them.
    pub steps: Option<Vec<Value>>,
    /// A plan that waits, and is to be carried out instead of a new one.
    pub plan: Option<Result<PlanId, String>>,
}

impl Wish {
    /// The wish in the arguments of a call.
    pub fn read(input: &Map<String, Value>) -> Self {
        let named = field(input, &["execution_mode", "executionMode", "mode"]).filter(|named| !named.is_null());
        let is_draft = field(input, &["auto_execute", "autoExecute"]) == Some(&Value::Bool(false));
        let known = named.and_then(Value::as_str).and_then(|name| PlanMode::of_name(name.trim()));
        let mode = match (known, named) {
            (Some(mode), _) => Ok(mode),
            // Nobody can say whether it was to be carried out.
            (None, Some(named)) => Err(unknown_mode(named)),
            (None, None) if is_draft => Ok(PlanMode::Draft),
            (None, None) => Ok(PlanMode::Execute),
        };
        let plan = field(input, &["plan_id", "planId"]).and_then(Value::as_str).map(str::trim);
        let plan = plan.filter(|id| !id.is_empty()).map(|id| PlanId::parse(id).map_err(|_| id.to_owned()));
        Self {
            objective: text(input, &["objective"]).unwrap_or_default(),
            mode,
            requested_outputs: texts(field(input, &["requested_outputs", "requestedOutputs"])),
            priority_entities: texts(field(input, &["priority_entities", "priorityEntities"])),
            steps: steps_in(input.get("plan")).or_else(|| steps_in(input.get("steps"))),
            plan,
        }
    }
}

fn unknown_mode(named: &Value) -> Mistakes {
    let known: Vec<_> = PlanMode::ALL.iter().map(|mode| mode.name()).collect();
    let known = known.join(", ");
    let named: String = named.to_string().chars().take(100).collect();
    Mistakes::one(format_args!("execution_mode is {named}, and has to be one of: {known}"))
}

/// The steps in a plan that a model has written: a list, or an object that has one.
pub fn steps_in(plan: Option<&Value>) -> Option<Vec<Value>> {
    match plan? {
        Value::Array(steps) => Some(steps.clone()),
        Value::Object(plan) => match plan.get("steps")? {
            Value::Array(steps) => Some(steps.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The steps that `values` are, as far as they can be read, and what cannot.
pub fn steps(values: &[Value]) -> (Vec<Step>, Mistakes) {
    let (mut mistakes, mut steps) = (Mistakes::default(), Vec::with_capacity(values.len()));
    for (place, value) in (1..).zip(values) {
        match value.as_object() {
            Some(fields) => steps.push(step(place, fields, &mut mistakes)),
            None => mistakes.note(format_args!("the step in place {place} is not an object")),
        }
    }
    (steps, mistakes)
}

fn step(place: u32, fields: &Map<String, Value>, mistakes: &mut Mistakes) -> Step {
    let number = match field(fields, &["stepNumber", "step_number", "number", "step", "id"]) {
        None => place,
        Some(number) => whole(number).filter(|number| *number > 0).unwrap_or_else(|| {
            mistakes.note(format_args!("the number of the step in place {place} is not a whole number from 1"));
            place
        }),
    };
    let mut metadata = match fields.get("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(_) => {
            mistakes.note(format_args!("the metadata of step {number} are not an object"));
            Map::new()
        }
    };
    match field(fields, &[TOOL_ARGUMENTS, "tool_arguments", "arguments", "args"]).map(arguments) {
        None => {}
        Some(Some(arguments)) => {
            metadata.insert(TOOL_ARGUMENTS.to_owned(), Value::Object(arguments));
        }
        Some(None) => mistakes.note(format_args!("the arguments of step {number} are not an object")),
    }
    if !metadata.values().all(fits) {
        mistakes.note(format_args!("step {number} has too many lists and objects in each other"));
        metadata.clear();
    }
    let kind = text(fields, &["type", "kind"]).and_then(|kind| StepKind::of_name(&kind.to_lowercase()));
    let needs = listed(field(fields, &["dependsOn", "depends_on", "needs", "dependencies"]));
    let mut needs: Vec<u32> = all(needs, whole).unwrap_or_else(|| {
        mistakes.note(format_args!("what step {number} depends on is not a list of step numbers"));
        Vec::new()
    });
    needs.sort_unstable();
    needs.dedup();
    let tools = listed(field(fields, &["tools", "tool", "tool_name", "toolName"]));
    let tools = all(tools, name).unwrap_or_else(|| {
        mistakes.note(format_args!("the tools of step {number} are not a list of names"));
        Vec::new()
    });
    Step {
        number,
        kind: kind.unwrap_or(StepKind::Research),
        description: text(fields, &["description", "title", "name"]).unwrap_or_else(|| format!("Step {number}")),
        by_agent: matches!(
            field(fields, &["executorRequired", "executor_required", "by_agent", "agent"]),
            Some(Value::Bool(true))
        ),
        tools,
        needs,
        metadata,
        status: StepStatus::Pending,
        calls: 0,
        so_far: Vec::new(),
        result: None,
        error: None,
    }
}

/// Arguments as an object, or as its JSON in a text.
fn arguments(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(arguments) => Some(arguments.clone()),
        Value::String(text) => json::object(text),
        _ => None,
    }
}

/// The values of a list, or the one that stands there instead; nulls are none.
fn listed(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(values)) => values.iter().filter(|value| !value.is_null()).collect(),
        Some(value) => vec![value],
        None => Vec::new(),
    }
}

/// What `read` makes of all of them; `None` where it makes nothing of one.
fn all<T>(values: Vec<&Value>, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    values.into_iter().map(read).collect()
}

/// A tool's name: a text, or an object that has one.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Object(fields) => {
            let function = fields.get("function").and_then(Value::as_object);
            text(fields, &["name", "tool", "id"]).or_else(|| text(function?, &["name"]))
        }
        _ => None,
    }
}

fn field<'a>(fields: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| fields.get(*name)).filter(|value| !value.is_null())
}

fn text(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let text = field(fields, names)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The texts of a list, or the one that stands there instead, as far as there are some.
fn texts(value: Option<&Value>) -> Vec<String> {
    listed(value).into_iter().filter_map(name).collect()
}

fn whole(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => {
            let plain = number
                .as_u64()
                .or_else(|| number.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as u64));
            u32::try_from(plain?).ok()
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Wish {
        Wish::read(value.as_object().unwrap())
    }

    #[test]
    fn a_wish_is_read_in_either_case() {
        let wish = read(&json!({
            "objective": " all ", "executionMode": "agent_review", "requested_outputs": "a list", "plan": {"steps": []},
        }));
        assert_eq!((wish.objective.as_str(), wish.mode), ("all", Ok(PlanMode::Review)));
        assert_eq!(wish.requested_outputs, ["a list"]);
        assert_eq!(wish.steps, Some(Vec::new()), "an empty list is one");
        let modes = [
            (json!({}), PlanMode::Execute),
            (json!({"auto_execute": false}), PlanMode::Draft),
            (json!({"auto_execute": true}), PlanMode::Execute),
            (json!({"execution_mode": "draft_only", "auto_execute": true}), PlanMode::Draft),
            (json!({"execution_mode": null}), PlanMode::Execute),
        ];
        for (input, mode) in modes {
            assert_eq!(read(&input).mode, Ok(mode), "{input}");
        }
        for unknown in [json!(7), json!("draft"), json!("")] {
            let mistakes = read(&json!({"execution_mode": unknown, "auto_execute": false})).mode.unwrap_err();
            assert!(mistakes.to_string().ends_with("auto_execute, draft_only, agent_review"), "{mistakes}");
        }
        assert_eq!(read(&json!({"plan_id": "x"})).plan, Some(Err("x".to_owned())));
        assert_eq!(read(&json!({"plan_id": ""})).plan, None);
    }

    #[test]
    fn a_step_is_read_however_it_is_written() {
        let rows = json!([
            {"type": "ACTION", "tool": "a", "dependsOn": "1", "executorRequired": true},
            {"step_number": "5", "tools": ["a", {"name": "b"}], "needs": [2.0, 1, "1", null], "args": "{\"x\": 1}"},
        ]);
        let (read, mistakes) = steps(rows.as_array().unwrap());
        assert_eq!(mistakes, Mistakes::default());
        let first = &read[0];
        assert_eq!((first.number, first.kind, first.by_agent), (1, StepKind::Action, true));
        assert_eq!((first.description.as_str(), first.tools.as_slice()), ("Step 1", ["a".to_owned()].as_slice()));
        let second = &read[1];
        assert_eq!((second.number, second.needs.as_slice()), (5, [1, 2].as_slice()));
        assert_eq!(second.tools, ["a", "b"]);
        assert_eq!(second.metadata[TOOL_ARGUMENTS], json!({"x": 1}));
        let wrong = steps(json!(["x", {"number": 0}, {"number": -1}]).as_array().unwrap()).1.to_string();
        assert!(wrong.contains("place 1") && wrong.contains("place 2") && wrong.contains("place 3"), "{wrong}");
        let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
        let rows = [
            (json!({"tools": ["a", 3]}), "tools of step 1"),
            (json!({"depends_on": ["step_1"]}), "step 1 depends on"),
            (json!({"depends_on": [1.5]}), "step 1 depends on"),
            (json!({"arguments": "id: 1"}), "arguments of step 1"),
            (json!({"metadata": []}), "metadata of step 1"),
            (json!({"arguments": {"x": deep}}), "too many lists"),
        ];
        for (step, named) in rows {
            let wrong = steps(&[step]).1.to_string();
            assert!(wrong.contains(named), "{named}: {wrong}");
        }
    }
}
