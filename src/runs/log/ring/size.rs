//! About how many bytes an event takes in memory.

use serde_json::{Map, Value};

use crate::chat::answer::Suggestions;
use crate::chat::event::AgentEvent;
use crate::chat::ids::FileId;
use crate::chat::place::{Entity, Place};
use crate::chat::plan::{Execution, Plan, PlanEvent, Step};
use crate::chat::state::StateEvent;
use crate::chat::tool::{Progress, ToolInput};

/// Bytes that an event takes besides its texts: itself, its count and its slot in the list.
const EVENT_BYTES: usize = size_of::<AgentEvent>() + 4 * size_of::<usize>();

/// Its texts, and what it takes besides them.
pub(in crate::runs) fn size(event: &AgentEvent) -> usize {
    let texts = match event {
        AgentEvent::TextDelta { text } | AgentEvent::ThinkingDelta { text } => text.len(),
        AgentEvent::Notice(notice) => {
            notice.message.len() + notice.said.len() + notice.files.len() * size_of::<FileId>()
        }
        AgentEvent::ToolCallStarted { id, name } => id.as_str().len() + name.len(),
        AgentEvent::ToolCallReady { id, name, input } => id.as_str().len() + name.len() + input_size(input),
        AgentEvent::ToolProgress { id, name, progress } => {
            let Progress { stage, message, fraction: _, data } = &**progress;
            id.as_str().len() + name.len() + stage.len() + message.len() + data.as_ref().map_or(0, json_size)
        }
        AgentEvent::ToolCallHeld { id, name, approval: _ } => id.as_str().len() + name.len(),
        AgentEvent::CallDecided { requested_as, name, runs_as } => {
            requested_as.as_str().len() + name.len() + runs_as.as_ref().map_or(0, |id| id.as_str().len())
        }
        AgentEvent::AwaitingClient { usage: _, calls } => {
            calls.iter().map(|call| call.id.as_str().len() + call.name.len() + input_size(&call.input)).sum()
        }
        AgentEvent::ToolCallFinished { id, name, fate: _, error: _, result } => {
            id.as_str().len() + name.len() + result.len()
        }
        AgentEvent::Operation(operation) => {
            let id = operation.id.as_ref().map_or(0, String::len);
            operation.call.as_str().len() + operation.kind.len() + operation.name.len() + id
        }
        AgentEvent::Directive(notice) => notice.name.len() + notice.asks.as_ref().map_or(0, |asks| asks.digest.len()),
        AgentEvent::Artifact(artifact) => artifact.kind.len() + json_size(&artifact.payload),
        AgentEvent::Payload(payload) => payload.kind.len() + payload.summary.len() + payload.data.as_str().len(),
        AgentEvent::Suggested(suggestions) => suggestions_size(suggestions),
        AgentEvent::Diagnosed(diagnostics) => json_size(diagnostics),
        AgentEvent::Observed(observation) => observation.size(),
        AgentEvent::PlaceChanged { by: _, place, is_refocused: _ } => {
            let Place { context_type, entity, focus } = &**place;
            let name = |entity: &Entity| entity.id.len() + entity.name.as_ref().map_or(0, String::len);
            let focus = focus.as_ref().map_or(0, |focus| focus.as_str().len());
            context_type.len() + entity.as_ref().map_or(0, name) + focus
        }
        AgentEvent::State(event) => state_size(event),
        AgentEvent::Failed(failure) => failure.message.len(),
        AgentEvent::Plan(event) => plan_event_size(event),
        AgentEvent::Within(within) => size(&within.event),
        AgentEvent::TurnStarted { .. }
        | AgentEvent::TurnEnded { .. }
        | AgentEvent::Summarising
        | AgentEvent::Summarised
        | AgentEvent::RoundEnded
        | AgentEvent::LimitReached
        | AgentEvent::Finished { .. }
        | AgentEvent::AwaitingApproval { .. }
        | AgentEvent::Cancelled
        | AgentEvent::Interrupted => 0,
    };
    EVENT_BYTES + texts
}

fn state_size(event: &StateEvent) -> usize {
    match event {
        StateEvent::ContextUsage(_) => 0,
        StateEvent::Asked(asked) => asked.introduction.len() + asked.questions.iter().map(String::len).sum::<usize>(),
        StateEvent::RecapBefore(recap) | StateEvent::Recap(recap) | StateEvent::RecapOfMove(recap) => {
            let ids = recap.entities.iter().flat_map(|kind| kind.ids.iter().chain([&kind.kind]));
            let texts = ids.chain(&recap.tools).chain([&recap.summary, &recap.context_type]);
            texts.map(String::len).sum()
        }
    }
}

fn plan_event_size(event: &PlanEvent) -> usize {
    match event {
        PlanEvent::Created(plan)
        | PlanEvent::Reviewed(plan)
        | PlanEvent::Held(plan)
        | PlanEvent::Ended(plan)
        | PlanEvent::Paused(plan)
        | PlanEvent::Resumed(plan) => plan_size(plan),
        PlanEvent::StepStarted { plan: _, step }
        | PlanEvent::StepPaused { plan: _, step }
        | PlanEvent::StepFinished { plan: _, step } => step_size(step),
        PlanEvent::AgentStarted(work) | PlanEvent::AgentPaused(work) | PlanEvent::AgentFinished(work) => {
            execution_size(work)
        }
    }
}

fn plan_size(plan: &Plan) -> usize {
    let notes = plan.review.as_ref().map_or(0, |review| review.notes.len());
    let texts = texts_size(&plan.requested_outputs) + texts_size(&plan.priority_entities);
    size_of::<Plan>() + plan.objective.len() + notes + texts + plan.steps.iter().map(step_size).sum::<usize>()
}

fn step_size(step: &Step) -> usize {
    let so_far: usize = step.so_far.iter().map(|call| call.id.len() + call.content.len()).sum();
    let told = step.result.as_ref().map_or(0, json_size) + step.error.as_ref().map_or(0, String::len);
    size_of::<Step>() + step.description.len() + texts_size(&step.tools) + fields_size(&step.metadata) + so_far + told
}

fn execution_size(work: &Execution) -> usize {
    let calls = work
        .calls
        .iter()
        .map(|call| call.id.len() + call.tool.len() + json_size(&call.arguments) + json_size(&call.result));
    let told = work.result.as_ref().map_or(0, json_size) + work.error.as_ref().map_or(0, String::len);
    let texts = texts_size(&work.tools) + texts_size(&work.waits_for);
    size_of::<Execution>() + work.name.len() + work.task.len() + texts + calls.sum::<usize>() + told
}

fn texts_size(texts: &[String]) -> usize {
    texts.iter().map(|text| size_of::<String>() + text.len()).sum()
}

fn input_size(input: &ToolInput) -> usize {
    match input {
        ToolInput::Object(fields) => fields_size(fields),
        ToolInput::Invalid(text) => text.len(),
    }
}

fn suggestions_size(suggestions: &Suggestions) -> usize {
    let values = suggestions.values.iter().flatten().map(|value| value.label.len() + value.value.len());
    let actions = suggestions
        .actions
        .iter()
        .flatten()
        .map(|action| action.label.len() + action.action.len() + action.data.as_ref().map_or(0, json_size));
    values.chain(actions).sum()
}

fn json_size(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(json_size).sum(),
        Value::Object(fields) => fields_size(fields),
    };
    size_of::<Value>() + inner
}

fn fields_size(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| name.len() + size_of::<String>() + json_size(value)).sum()
}
