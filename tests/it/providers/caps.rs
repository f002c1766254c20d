//! What an answer may cost: at each cap it is read, one step over it is an error, and the smallest of frames, by the hundred
//! thousand, cost no more than their number.

use switchboard::agent::ports::llm::ProviderErrorKind;
use switchboard::llm::{Vendor, Wire, recorded};

use super::responses_wire;
use crate::support::converse;
use crate::support::said::{End, Piece, Said};

/// As in `llm/answer.rs`.
const MAX_ANSWER_BYTES: usize = 64 << 20;
const MAX_PIECES: usize = 10_000;

/// What comes over the network at a time, more or less.
const PIECE_BYTES: usize = 64 << 10;

const STOP: &str = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";

fn said(wire: impl Into<&'static Wire>, body: impl AsRef<[u8]>) -> Said {
    Said::of(recorded::events(wire, body.as_ref().chunks(PIECE_BYTES)))
}

/// Whether the answer came to its end; else it failed for being over a cap.
fn is_whole(said: &Said) -> bool {
    match &said.end {
        End::Finished { .. } => true,
        End::Failed { kind, words } => {
            assert_eq!(*kind, ProviderErrorKind::Malformed, "{words}");
            assert!(words.starts_with("the answer "), "{words}");
            false
        }
    }
}

/// `count` frames, of the vendor's framing, and what ends the answer.
fn framed(vendor: Vendor, count: usize, frame: impl Fn(usize) -> String) -> Vec<u8> {
    let frames = (0..count).map(frame);
    let text: String = match vendor {
        Vendor::Bedrock => {
            let named = frames.flat_map(|frame| match frame.contains("\"start\"") {
                true => converse::event("contentBlockStart", &frame),
                false => converse::event("contentBlockDelta", &frame),
            });
            return named.chain(converse::end()).collect();
        }
        Vendor::Ollama => frames.chain([r#"{"done":true}"#.to_owned()]).map(|frame| frame + "\n").collect(),
        Vendor::Claude => {
            let end = r#"{"type":"message_stop"}"#.to_owned();
            frames.chain([end]).map(|frame| format!("data: {frame}\n\n")).collect()
        }
        Vendor::Gemini | Vendor::Vertex => {
            let end = r#"{"candidates":[{"finishReason":"STOP"}]}"#.to_owned();
            frames.chain([end]).map(|frame| format!("data: {frame}\n\n")).collect()
        }
        Vendor::OpenAi => frames.map(|frame| format!("data: {frame}\n\n")).chain([STOP.to_owned()]).collect(),
    };
    text.into_bytes()
}

/// The `nth` call of an answer, without arguments.
fn call(vendor: Vendor, nth: usize) -> String {
    match vendor {
        Vendor::Claude => format!(
            r#"{{"type":"content_block_start","index":{nth},"content_block":{{"type":"tool_use","id":"i{nth}","name":"f"}}}}"#
        ),
        Vendor::Gemini | Vendor::Vertex => {
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#.to_owned()
        }
        Vendor::Bedrock => {
            format!(r#"{{"contentBlockIndex":{nth},"start":{{"toolUse":{{"toolUseId":"i{nth}","name":"f"}}}}}}"#)
        }
        Vendor::Ollama => r#"{"message":{"tool_calls":[{"function":{"name":"f"}}]}}"#.to_owned(),
        Vendor::OpenAi => {
            format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{nth},"function":{{"name":"f"}}}}]}}}}]}}"#)
        }
    }
}

/// The `nth` piece of text, empty or not.
fn text(vendor: Vendor, text: &str) -> String {
    match vendor {
        Vendor::Claude => {
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#)
        }
        Vendor::Gemini | Vendor::Vertex => {
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
        }
        Vendor::Bedrock => format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{text}"}}}}"#),
        Vendor::Ollama => format!(r#"{{"message":{{"content":"{text}"}}}}"#),
        Vendor::OpenAi => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#),
    }
}

#[test]
fn an_answer_at_its_cap_of_bytes_is_read_and_one_byte_more_is_an_error() {
    for (bytes, is_read) in [(MAX_ANSWER_BYTES, true), (MAX_ANSWER_BYTES + 1, false)] {
        let comment = format!(":{}\n", "x".repeat((1 << 20) - 2));
        let body = comment.repeat(63);
        let last = format!(":{}\n", "x".repeat(bytes - body.len() - STOP.len() - 2));
        assert_eq!(is_whole(&said(Vendor::OpenAi, &(body + &last + STOP))), is_read, "{bytes} bytes");
    }
}

#[test]
fn an_answer_at_its_cap_of_calls_is_read_and_one_call_more_is_an_error() {
    for vendor in Vendor::ALL {
        for (count, is_read) in [(MAX_PIECES, true), (MAX_PIECES + 1, false)] {
            let said = said(vendor, framed(vendor, count, |nth| call(vendor, nth)));
            assert_eq!(is_whole(&said), is_read, "{count} calls of {vendor:?}");
            assert_eq!(said.pieces.len(), MAX_PIECES, "{vendor:?}");
        }
    }
}

#[test]
fn an_answer_whose_kinds_alternate_has_as_many_pieces_and_no_more() {
    let alternating = |nth| match nth % 2 {
        0 => r#"{"message":{"content":"a","thinking":""}}"#.to_owned(),
        _ => r#"{"message":{"content":"","thinking":"b"}}"#.to_owned(),
    };
    for (count, is_read) in [(MAX_PIECES, true), (MAX_PIECES + 1, false)] {
        let said = said(Vendor::Ollama, framed(Vendor::Ollama, count, alternating));
        assert_eq!((is_whole(&said), said.pieces.len()), (is_read, MAX_PIECES), "{count} pieces");
    }
}

#[test]
fn an_answer_at_its_cap_of_reasoning_blocks_is_read_and_one_block_more_is_an_error() {
    // Each block counts, and so does its one field.
    for (blocks, is_read) in [(5_000, true), (5_001, false)] {
        let detail = |_| r#"{"choices":[{"delta":{"reasoning_details":[{"data":1}]}}]}"#.to_owned();
        assert_eq!(is_whole(&said(Vendor::OpenAi, framed(Vendor::OpenAi, blocks, detail))), is_read, "{blocks} blocks");
    }
    let fragment = |_| r#"{"choices":[{"delta":{"reasoning_details":[{"index":0,"text":"x"}]}}]}"#.to_owned();
    assert!(is_whole(&said(Vendor::OpenAi, framed(Vendor::OpenAi, 20_000, fragment))), "fragments of one block");
}

#[test]
fn a_long_text_in_the_smallest_events_is_one_piece() {
    for vendor in Vendor::ALL {
        let said = said(vendor, framed(vendor, 20_000, |nth| text(vendor, if nth % 2 == 0 { "" } else { "a" })));
        assert!(is_whole(&said), "{vendor:?}");
        assert_eq!(said.pieces, [Piece::Text("a".repeat(10_000))], "{vendor:?}");
    }
}

#[test]
fn lines_and_frames_that_say_nothing_are_read_past() {
    // Quadratic work would be 10^10 steps here: the test would not end.
    let rows = [
        ("data:\n\n", "events without data"),
        (":\n", "comments"),
        ("event: ping\n\n", "events of no kind"),
        ("\n", "blank lines"),
        ("data: {}\n\n", "empty objects"),
    ];
    for (filler, why) in rows {
        let said = said(Vendor::OpenAi, &(filler.repeat(100_000) + "\n" + STOP));
        assert_eq!((is_whole(&said), said.pieces), (true, vec![]), "{why}");
    }
    let one_event = "data: {\n".to_owned() + &"data:\n".repeat(100_000) + "data: }\n\n" + STOP;
    assert!(is_whole(&said(Vendor::OpenAi, &one_event)), "lines of one event");
    let said = said(Vendor::Ollama, &("\n{}\n".repeat(50_000) + "{\"done\":true}"));
    assert_eq!((is_whole(&said), said.pieces), (true, vec![]), "lines");
}

/// Frames of a response, and what ends it.
fn response(count: usize, frame: impl Fn(usize) -> String) -> String {
    let end = r#"{"type":"response.completed"}"#.to_owned();
    (0..count).map(frame).chain([end]).map(|frame| format!("data: {frame}\n\n")).collect()
}

#[test]
fn a_response_at_its_caps_is_read_and_one_piece_more_is_an_error() {
    let call = |nth| {
        let item = format!(r#"{{"id":"i{nth}","type":"function_call","call_id":"c{nth}","name":"f"}}"#);
        format!(r#"{{"type":"response.output_item.added","output_index":{nth},"item":{item}}}"#)
    };
    // Of no kind that says anything: no pieces, but items all the same.
    let other =
        |nth| format!(r#"{{"type":"response.output_item.added","item":{{"id":"i{nth}","type":"web_search_call"}}}}"#);
    for (count, is_read) in [(MAX_PIECES, true), (MAX_PIECES + 1, false)] {
        let calls = said(responses_wire(), response(count, call));
        assert_eq!((is_whole(&calls), calls.pieces.len()), (is_read, MAX_PIECES), "{count} calls");
        assert_eq!(is_whole(&said(responses_wire(), response(count, other))), is_read, "{count} items");
    }
}

#[test]
fn a_long_response_in_the_smallest_events_is_one_piece() {
    let delta = |nth: usize| {
        let text = if nth.is_multiple_of(2) { "" } else { "a" };
        format!(r#"{{"type":"response.output_text.delta","item_id":"m","output_index":0,"delta":"{text}"}}"#)
    };
    let text = said(responses_wire(), response(20_000, delta));
    assert!(is_whole(&text));
    assert_eq!(text.pieces, [Piece::Text("a".repeat(10_000))]);
    // Each about the first of many items: quadratic work would be 10^9 steps here.
    let far = |nth| match nth {
        0..9_000 => format!(r#"{{"type":"response.output_item.added","item":{{"id":"i{nth}","type":"message"}}}}"#),
        _ => r#"{"type":"response.output_text.delta","item_id":"i0","delta":"a"}"#.to_owned(),
    };
    let far = said(responses_wire(), response(109_000, far));
    assert_eq!((is_whole(&far), far.pieces), (true, vec![Piece::Text("a".repeat(100_000))]));
}
