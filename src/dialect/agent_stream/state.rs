//! The state of a session as its clients know it: how much of it a model reads, and what its last turn was about, which
//! they may send back.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::bounded::json::object;
use crate::chat::clarification::Clarification;
use crate::chat::day::{ms_of, rfc3339};
use crate::chat::state::{ContextUsage, Mentioned, Recap, SummaryFigures};

/// The kind of screen where a project begins: a turn there follows another strategy.
const CREATING: &str = "project_create";

/// The strategy of a turn that has asked its user.
const ASKING: &str = "ask_clarifying_questions";

/// What stands behind the beginning of a message.
const CUT_OFF: &str = "...";

/// 300 characters of a client's words.
const SUMMARY_CHARS: usize = 300;

/// 200 characters of an id or a name.
const NAME_CHARS: usize = 200;

/// 20 of a list, and 20 kinds.
const MOST: usize = 20;

/// How much of its budget a session takes.
pub(super) fn usage(usage: &ContextUsage) -> Value {
    let summary = usage.summary.as_ref();
    json!({
        "estimatedTokens": usage.tokens,
        "tokenBudget": usage.budget,
        "usagePercent": usage.percent(),
        "tokensRemaining": usage.remaining(),
        "status": usage.fullness().name(),
        "lastCompressedAt": summary.map(|summary| rfc3339(summary.at_ms)),
        "lastCompression": summary.map(compression),
    })
}

fn compression(summary: &SummaryFigures) -> Value {
    // Rounded to two digits. No summary comes near the numbers that a float does not hold.
    let ratio = summary.original_tokens.saturating_mul(100) / summary.tokens.max(1);
    json!({
        "id": summary.id,
        "compressionRatio": u32::try_from(ratio).map_or(f64::MAX, f64::from) / 100.0,
        "originalTokens": summary.original_tokens,
        "compressedTokens": summary.tokens,
    })
}

/// What a turn was about.
pub(super) fn recap(recap: &Recap) -> Value {
    let strategy = match (recap.is_asking, recap.context_type.as_str()) {
        (true, _) => ASKING,
        (false, CREATING) => "project_creation",
        (false, _) => "planner_stream",
    };
    let summary = match recap.is_of_move() {
        true => recap.summary.clone(),
        false => format!("{}{CUT_OFF}", recap.summary),
    };
    let of_kind = |Mentioned { kind, is_one, ids }: &Mentioned| match (is_one, ids.as_slice()) {
        (true, [first, ..]) => (format!("{kind}_id"), json!(first)),
        (_, ids) => (format!("{kind}_ids"), json!(ids)),
    };
    let entities: Map<String, Value> = recap.entities.iter().map(of_kind).collect();
    json!({
        "summary": summary,
        "entities": entities,
        "context_type": recap.context_type,
        "data_accessed": recap.tools,
        "strategy_used": strategy,
        "timestamp": (recap.at_ms != 0).then(|| rfc3339(recap.at_ms)),
    })
}

/// What was said and asked before a project is made.
pub(super) fn clarification(so_far: &Clarification) -> Value {
    json!({
        "roundNumber": so_far.rounds,
        "accumulatedContext": so_far.said.join("\n"),
        "previousQuestions": so_far.asked,
        "previousResponses": so_far.said,
    })
}

/// What a client says of the turn before; `None` where it says nothing of the kind.
pub(super) fn read(raw: &RawValue) -> Option<Recap> {
    let fields = object(raw.get()).filter(|fields| !fields.is_empty())?;
    let text = |name: &str| cut(fields.get(name).and_then(Value::as_str).unwrap_or_default(), SUMMARY_CHARS);
    let entities = fields.get("entities").and_then(Value::as_object).into_iter().flatten();
    let entities = entities.filter_map(|(key, value)| {
        let (kind, is_one) = match (key.strip_suffix("_id"), key.strip_suffix("_ids")) {
            (Some(kind), _) => (kind, true),
            (None, Some(kind)) => (kind, false),
            (None, None) => return None,
        };
        let ids = names(value);
        (!ids.is_empty()).then(|| Mentioned { kind: cut(kind, NAME_CHARS), is_one, ids })
    });
    let summary = text("summary");
    Some(Recap {
        summary: summary.trim_end_matches(CUT_OFF).to_owned(),
        context_type: text("context_type"),
        entities: entities.take(MOST).collect(),
        tools: fields.get("data_accessed").map(names).unwrap_or_default(),
        at_ms: fields.get("timestamp").and_then(Value::as_str).and_then(ms_of).unwrap_or_default(),
        is_asking: text("strategy_used") == ASKING,
    })
}

/// A text, or those in a list.
fn names(value: &Value) -> Vec<String> {
    let texts: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![value],
    };
    let texts = texts.into_iter().filter_map(Value::as_str).filter(|text| !text.trim().is_empty());
    texts.take(MOST).map(|text| cut(text, NAME_CHARS)).collect()
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::json::parse;
    use crate::chat::place::Place;

    #[test]
    fn what_was_sent_reads_back() {
        let sent = Recap {
            summary: "Plan my week".to_owned(),
            context_type: "global".to_owned(),
            entities: vec![
                Mentioned { kind: "project".to_owned(), is_one: true, ids: vec!["p".to_owned()] },
                Mentioned { kind: "task".to_owned(), is_one: false, ids: vec!["a".to_owned(), "b".to_owned()] },
            ],
            tools: vec!["list_onto_tasks".to_owned()],
            at_ms: 1_700_000_000_000,
            is_asking: false,
        };
        let view = recap(&sent);
        let raw: Box<RawValue> = parse(&view.to_string()).unwrap();
        assert_eq!(view["entities"], json!({"project_id": "p", "task_ids": ["a", "b"]}));
        assert_eq!(read(&raw).as_ref(), Some(&sent));
        let asking = Recap { is_asking: true, ..sent };
        let raw: Box<RawValue> = parse(&recap(&asking).to_string()).unwrap();
        assert_eq!(read(&raw), Some(asking));
        let place = Place { context_type: "project".to_owned(), entity: None, focus: None };
        let moved = Recap::of_move(&place, 7);
        let raw: Box<RawValue> = parse(&recap(&moved).to_string()).unwrap();
        assert_eq!(read(&raw), Some(moved));
    }

    #[test]
    fn what_a_client_says_is_bounded() {
        let raw = |value: Value| -> Box<RawValue> { parse(&value.to_string()).unwrap() };
        for other in [json!("x"), json!(null), json!([]), json!({}), json!(7)] {
            assert_eq!(read(&raw(other.clone())), None, "{other}");
        }
        let ids: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let huge = json!({"summary": "x\n".repeat(5000), "entities": {"task_ids": ids, "moon": "m", "goal_ids": 7}, "data_accessed": {}});
        let read = read(&raw(huge)).unwrap();
        assert_eq!((read.summary.len(), read.entities.len(), read.entities[0].ids.len()), (300, 1, 20));
        assert!(!read.summary.contains('\n') && read.tools.is_empty());
    }
}
