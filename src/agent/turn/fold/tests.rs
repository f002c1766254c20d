//! What the fold makes of a turn's events.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

fn origin() -> Arc<ModelOrigin> {
    Arc::new(ModelOrigin { provider: "test".to_owned(), model: "m".to_owned() })
}

fn text(text: &str) -> StreamEvent {
    StreamEvent::Text(text.to_owned())
}

fn thinking(text: &str) -> StreamEvent {
    StreamEvent::Thinking(text.to_owned())
}

fn start(slot: u32, id: &str, name: &str) -> StreamEvent {
    let id = (!id.is_empty()).then(|| id.to_owned());
    StreamEvent::ToolCallStarted { slot: CallSlot(slot), id, name: name.to_owned() }
}

fn input(slot: u32, json: &str) -> StreamEvent {
    StreamEvent::ToolCallInput { slot: CallSlot(slot), json: json.to_owned() }
}

fn replay(on: ReplayOn, data: &str) -> StreamEvent {
    StreamEvent::Replay { on, data: Replay::new(to_raw_value(data).unwrap()) }
}

fn finished(reason: FinishReason) -> StreamEvent {
    StreamEvent::Finished { reason, usage: None }
}

fn folded(events: Vec<StreamEvent>) -> TurnFold {
    let mut fold = TurnFold::new(origin(), CallIds::default());
    for event in events {
        fold.push(event);
    }
    fold
}

/// A message as readable lines.
fn lines(message: &AssistantMessage) -> Vec<String> {
    let sealed = |replay: &Option<Replay>| replay.as_ref().map_or(String::new(), |r| format!(" {}", r.raw()));
    let line = |part: &AssistantPart| match part {
        AssistantPart::Text { text, replay } => format!("text {text:?}{}", sealed(replay)),
        AssistantPart::Thinking { text, replay } => format!("thinking {text:?}{}", sealed(replay)),
        AssistantPart::ToolCall { call, replay } => {
            let input = match &call.input {
                ToolInput::Object(map) => json!(map).to_string(),
                ToolInput::Invalid(text) => format!("invalid {text}"),
            };
            let id = if call.id.is_minted() { "minted" } else { call.id.as_str() };
            format!("call {id} {} {input}{}", call.name, sealed(replay))
        }
        AssistantPart::Opaque(data) => format!("opaque {}", data.raw()),
    };
    message.parts.iter().map(line).collect()
}

#[test]
fn parallel_calls_keep_their_own_arguments_however_the_pieces_interleave() {
    let turn = folded(vec![
        text("Let me "),
        text(""),
        text("see."),
        start(0, "a", "one"),
        start(7, "b", "two"),
        input(7, r#"{"y""#),
        input(0, r#"{"x":1"#),
        input(7, ":2}"),
        input(0, "}"),
        start(0, "c", "again"),
        input(99, "{"),
        finished(FinishReason::Stop),
    ])
    .finish();
    assert_eq!(lines(&turn.message), ["text \"Let me see.\"", r#"call a one {"x":1}"#, r#"call b two {"y":2}"#]);
    assert_eq!(turn.reason, Some(FinishReason::Stop));
}

#[test]
fn the_run_reports_text_reasoning_and_names_but_nothing_empty() {
    let mut fold = TurnFold::new(origin(), CallIds::default());
    let events = vec![thinking("hm"), text(""), thinking(""), text("yes"), start(0, "a", "t"), input(0, "{}")];
    let reported: Vec<_> = events.into_iter().filter_map(|event| fold.push(event)).collect();
    assert_eq!(
        reported,
        [
            AgentEvent::ThinkingDelta { text: "hm".to_owned() },
            AgentEvent::TextDelta { text: "yes".to_owned() },
            AgentEvent::ToolCallStarted { id: ToolCallId::from_model("a"), name: "t".to_owned() },
        ]
    );
}

#[test]
fn a_missing_or_repeated_id_is_replaced_by_one_of_ours() {
    let turn = folded(vec![start(0, "a", "t"), start(1, "", "t"), start(2, "a", "t")]).finish();
    assert_eq!(lines(&turn.message), ["call a t {}", "call minted t {}", "call minted t {}"]);
    let ids: HashSet<_> = turn.message.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn replay_data_seals_the_piece_it_belongs_to() {
    let turn = folded(vec![
        thinking("a"),
        replay(ReplayOn::Thinking, "s1"),
        thinking("b"),
        replay(ReplayOn::Alone, "redacted"),
        replay(ReplayOn::Thinking, "s2"),
        text("x"),
        replay(ReplayOn::Text, "s3"),
        text("y"),
        start(0, "a", "t"),
        text("z"),
        replay(ReplayOn::ToolCall(CallSlot(0)), "s4"),
        replay(ReplayOn::Text, "s5"),
        replay(ReplayOn::Text, "s6"),
    ])
    .finish();
    let expected = [
        r#"thinking "a" "s1""#,
        r#"thinking "b""#,
        r#"opaque "redacted""#,
        r#"thinking "" "s2""#,
        r#"text "x" "s3""#,
        r#"text "y""#,
        r#"call a t {} "s4""#,
        r#"text "z" "s5""#,
        r#"text "" "s6""#,
    ];
    assert_eq!(lines(&turn.message), expected);
}

#[test]
fn signed_text_is_the_delta_it_came_with() {
    let turn = folded(vec![
        text("a"),
        text("é"),
        replay(ReplayOn::Text, "s1"),
        text("c"),
        text("d"),
        text(""),
        replay(ReplayOn::Text, "s2"),
        text("e"),
        replay(ReplayOn::Text, "s3"),
    ])
    .finish();
    let expected = [r#"text "a""#, r#"text "é" "s1""#, r#"text "cd""#, r#"text "" "s2""#, r#"text "e" "s3""#];
    assert_eq!(lines(&turn.message), expected);
}

#[test]
fn arguments_are_judged_at_the_end_by_why_the_model_stopped() {
    let cases = [
        ("", FinishReason::Stop, &["call a t {}"][..], "no arguments are an empty object"),
        (" null ", FinishReason::Stop, &["call a t {}"], "null means none"),
        (r#"{"a":"#, FinishReason::Stop, &[r#"call a t invalid {"a":"#], "kept, so that the model reads why"),
        ("[1]", FinishReason::Stop, &["call a t invalid [1]"], "arguments are an object"),
        (r#"{"a":"#, FinishReason::Length, &[], "cut by the limit"),
        ("", FinishReason::Length, &[], "cut before its first argument, maybe"),
        (r#"{"a":1}"#, FinishReason::Length, &[r#"call a t {"a":1}"#], "complete"),
    ];
    for (json, reason, expected, why) in cases {
        let turn = folded(vec![start(0, "a", "t"), input(0, json), finished(reason)]).finish();
        assert_eq!(lines(&turn.message), expected, "{why}");
    }
}

#[test]
fn arguments_over_the_cap_become_invalid_and_are_not_kept() {
    let piece = "é".repeat(MAX_INPUT_BYTES / 2);
    let turn = folded(vec![start(0, "a", "t"), input(0, "{"), input(0, &piece), input(0, "}")]).finish();
    let call = turn.message.calls().next().unwrap();
    let ToolInput::Invalid(kept) = &call.input else { panic!("{:?}", call.input) };
    assert_eq!(kept, &format!("{{{}", "é".repeat(511)));
}

#[test]
fn arguments_at_the_cap_are_arguments_and_one_byte_more_makes_them_invalid() {
    for (bytes, is_read) in [(MAX_INPUT_BYTES, true), (MAX_INPUT_BYTES + 1, false)] {
        let end = "x".repeat(bytes - 8) + r#""}"#;
        let turn = folded(vec![start(0, "a", "t"), input(0, r#"{"x":""#), input(0, &end)]).finish();
        let call = turn.message.calls().next().unwrap();
        assert_eq!(matches!(call.input, ToolInput::Object(_)), is_read, "{bytes} bytes");
    }
}

#[test]
fn an_id_over_its_cap_is_replaced() {
    for (bytes, is_kept) in [(MAX_ID_BYTES, true), (MAX_ID_BYTES + 1, false)] {
        let turn = folded(vec![start(0, &"i".repeat(bytes), "t")]).finish();
        assert_eq!(!turn.message.calls().next().unwrap().id.is_minted(), is_kept, "{bytes} bytes");
    }
}

#[test]
fn of_an_interrupted_turn_only_the_text_is_kept() {
    let events = vec![thinking("t"), text("one"), replay(ReplayOn::Text, "s"), start(0, "a", "t"), text("two")];
    let message = folded(events).partial().unwrap();
    assert_eq!(lines(&message), [r#"text "one""#, r#"text "two""#]);
    assert!(folded(vec![thinking("t"), start(0, "a", "t"), replay(ReplayOn::Text, "s")]).partial().is_none());
}

#[test]
fn a_name_that_no_vendor_would_take_back_is_mapped_into_their_alphabet() {
    let rows = [
        ("list_my-alerts2", "list_my-alerts2", "a good name stays"),
        ("list.rules", "list_rules", "another character"),
        ("list_rules<|channel|>commentary", "list_rules__channel__commentary", "a leaked marker"),
        ("größe", "gr__e", "letters beyond ASCII"),
        (" ", "_", "blank"),
        ("", "unnamed", "empty"),
        (&"n".repeat(64), &"n".repeat(64), "as long as may be"),
        (&"n".repeat(65), &"n".repeat(64), "too long"),
    ];
    for (given, expected, reason) in rows {
        let mut fold = TurnFold::new(origin(), CallIds::default());
        let started =
            StreamEvent::ToolCallStarted { slot: CallSlot(0), id: Some("a".to_owned()), name: given.to_owned() };
        let reported = AgentEvent::ToolCallStarted { id: ToolCallId::from_model("a"), name: expected.to_owned() };
        assert_eq!(fold.push(started), Some(reported), "{reason}");
    }
}

#[test]
fn an_id_that_the_conversation_has_had_is_replaced_and_the_new_ones_count_as_used() {
    let ids = CallIds::from_iter(["call_0".to_owned()]);
    let mut fold = TurnFold::new(origin(), ids.clone());
    for (slot, id) in [(0, "call_0"), (1, "call_1")] {
        fold.push(StreamEvent::ToolCallStarted { slot: CallSlot(slot), id: Some(id.to_owned()), name: "t".to_owned() });
    }
    let mut other = TurnFold::new(origin(), ids.clone());
    let (slot, name) = (CallSlot(0), "t".to_owned());
    other.push(StreamEvent::ToolCallStarted { slot, id: Some("call_1".to_owned()), name });
    assert!(other.finish().message.calls().all(|call| call.id.is_minted()), "a helper has none of its run's");
    let turn = fold.finish();
    let ids: Vec<_> = turn.message.calls().map(|call| call.id.clone()).collect();
    assert!(ids[0].is_minted() && ids[0].as_str() != "call_0", "{ids:?}");
    assert_eq!(ids[0].given(), "call_0", "it is known whose it was");
    assert_eq!(ids[1], ToolCallId::from_model("call_1"));
}
