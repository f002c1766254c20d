//! Markers that are taken out of a model's text, and the text that is emitted.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agent::offer::menu::Menu;
use crate::agent::offer::profile::{ClientAction, Diagnostics, Face, PayloadType, ProfileBounds};
use crate::agent::prompt::Prompt;
use crate::chat::answer::{ActionHandler, ActionStyle};
use crate::chat::model::ModelChoice;
use crate::chat::schema::Schema;

fn profile() -> Profile {
    let kind = |name: &str, marker: &str, schema: Option<Value>| PayloadType {
        name: name.to_owned(),
        description: String::new(),
        marker: Some(marker.to_owned()),
        schema: schema.map(|schema| Schema::parse(&schema).unwrap()),
        instructions: String::new(),
        summary: None,
    };
    Profile {
        id: "p".to_owned(),
        context_type: "p".to_owned(),
        aliases: Vec::new(),
        is_fallback: false,
        read_only: false,
        in_workspace: false,
        app: String::new(),
        roles: Vec::new(),
        takes_instructions: false,
        exposes: Vec::new(),
        prompt: Prompt::empty(),
        data: Vec::new(),
        tools: Vec::new(),
        sourced: Vec::new(),
        accepts: Vec::new(),
        sources: Vec::new(),
        selection: None,
        context: None,
        recap: None,
        clarify: None,
        planning: None,
        delegation: None,
        payload_types: vec![
            kind("query", "QUERY:", Some(json!({"type": "object", "required": ["q"]}))),
            kind("anything", "ANY_THING:", None),
        ],
        client_actions: vec![ClientAction { name: "close".to_owned(), description: String::new() }],
        suggestions: true,
        bounds: ProfileBounds::default(),
        face: Face::default(),
        is_page: false,
        is_internal: false,
        diagnostics: Diagnostics::default(),
        reply_language: None,
        shows_thinking: false,
        shows_tools: false,
        background: false,
        models: Menu::only(ModelChoice { models: Vec::new(), max_tokens: None, temperature: None, effort: None }),
    }
}

/// The text that is emitted of a turn that comes in these pieces, and the rest of it.
fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Closed {
    let mut markers = Markers::from_profile(&profile());
    let text: String = pieces.into_iter().map(|piece| markers.push(piece.to_owned())).collect();
    let closed = markers.close();
    Closed { rest: text + &closed.rest, ..closed }
}

fn value(label: &str, value: &str) -> SuggestedValue {
    SuggestedValue { label: label.to_owned(), value: value.to_owned() }
}

fn query(data: Value) -> Found {
    Found::Payload { kind: "query".to_owned(), data }
}

#[test]
fn valid_markers_are_taken_out_of_the_text() {
    let yes = || Found::Values(vec![value("Yes", "yes")]);
    let one = r#"[{"label": "Yes", "value": "yes"}]"#;
    let rows: [(String, &str, Vec<Found>, &str); 21] = [
        (format!("Shall I?\n\nSUGGESTED_VALUES: {one}"), "Shall I?", vec![yes()], "at the end"),
        (format!("SUGGESTED_VALUES: {one}\n\nShall I?"), "Shall I?", vec![yes()], "at the beginning"),
        (format!("A.\n\nSUGGESTED_VALUES: {one}\n\nB."), "A.\n\nB.", vec![yes()], "between paragraphs"),
        (format!("A.\nSUGGESTED_VALUES: {one}\n\nB."), "A.\n\nB.", vec![yes()], "the wider gap stays"),
        (format!("A SUGGESTED_VALUES: {one} B"), "A B", vec![yes()], "in a line"),
        (format!("A.\nSUGGESTED_VALUES:\n{one}\n"), "A.", vec![yes()], "JSON on the next line"),
        (format!("A.\n**SUGGESTED_VALUES:** {one}"), "A.", vec![yes()], "a bold word"),
        (format!("A.\n**SUGGESTED_VALUES: {one}**\nB."), "A.\nB.", vec![yes()], "all bold"),
        (format!("A.\n`SUGGESTED_VALUES:` {one}"), "A.", vec![yes()], "a word as code"),
        (format!("A.\nSUGGESTED_VALUES:\n```json\n{one}\n```\nB."), "A.\nB.", vec![yes()], "JSON in a fence"),
        (format!("A.\n```json\nSUGGESTED_VALUES: {one}\n```\nB."), "A.\nB.", vec![yes()], "all in a fence"),
        (format!("A.\n```\n**SUGGESTED_VALUES:**\n{one}\n```"), "A.", vec![yes()], "bold in a fence"),
        (
            format!("```\nSUGGESTED_VALUES: {one}\nlet x = 1;\n```"),
            "```\nlet x = 1;\n```",
            vec![yes()],
            "a fence around more than the marker stays",
        ),
        (
            r#"SUGGESTED_VALUES: [{"label": "[a] \"b\" }", "value": "\\"}]"#.to_owned(),
            "",
            vec![Found::Values(vec![value("[a] \"b\" }", "\\")])],
            "brackets and quotes in texts",
        ),
        (
            format!("SUGGESTED_VALUES: {one}\nSUGGESTED_VALUES: [{{\"label\": \"No\", \"value\": \"no\"}}]\nB"),
            "B",
            vec![yes()],
            "the first one counts, the second is not emitted either",
        ),
        (
            "QUERY: {\"q\": {\"a\": [1]}}\nANY_THING: [1]\nQUERY: {\"q\": 2}".to_owned(),
            "",
            vec![
                query(json!({"q": {"a": [1]}})),
                Found::Payload { kind: "anything".to_owned(), data: json!([1]) },
                query(json!({"q": 2})),
            ],
            "payloads in their order",
        ),
        (
            "Look:\nQUERY: [1] and QUERY: {\"q\": 1}".to_owned(),
            "Look:\nQUERY: [1] and",
            vec![query(json!({"q": 1}))],
            "a right one behind a wrong one",
        ),
        (
            "QUERY: {\"q\": QUERY: {\"q\": 1}".to_owned(),
            "QUERY: {\"q\":",
            vec![query(json!({"q": 1}))],
            "a right one in a wrong one",
        ),
        ("QUERY: QUERY: {\"q\": 1}".to_owned(), "QUERY:", vec![query(json!({"q": 1}))], "a word twice"),
        ("***QUERY: {\"q\": 1}** x".to_owned(), "* x", vec![query(json!({"q": 1}))], "a star before"),
        ("(QUERY:{\"q\":1})".to_owned(), "()", vec![query(json!({"q": 1}))], "in brackets"),
    ];
    for (raw, text, found, reason) in rows {
        let closed = read([raw.as_str()]);
        assert_eq!((closed.rest.as_str(), closed.found), (text, found), "{reason}");
    }
}

#[test]
fn what_only_looks_like_a_marker_stays_text_with_a_note() {
    let rows: [(&str, &[&str], &str); 14] = [
        ("SUGGESTED_VALUES: none", &["SUGGESTED_VALUES: is not followed by JSON"], "prose"),
        (
            "SUGGESTED_VALUES: [see below] and on",
            &["SUGGESTED_VALUES: is followed by something that is no JSON"],
            "no JSON",
        ),
        (
            "SUGGESTED_VALUES: [{\"label\": \"a\"",
            &["SUGGESTED_VALUES: is followed by JSON that does not end"],
            "cut off",
        ),
        ("SUGGESTED_VALUES: {\"label\": \"a\"}", &["SUGGESTED_VALUES: is not followed by a list"], "no list"),
        (
            "QUERY: {\"x\": 1} b",
            &["QUERY: has data that is wrong: \"q\" is a required property"],
            "not what the schema says",
        ),
        (
            r#"QUERY: {"q": "\ud800"}"#,
            &["QUERY: is followed by something that is no JSON"],
            "half a character, which only the parser sees",
        ),
        ("OLD_QUERY: {\"q\": 1}", &[], "the end of a longer word"),
        ("query: {\"q\": 1}", &[], "small letters"),
        ("QUERY : {\"q\": 1}", &[], "a blank before the colon"),
        ("SCHEMA_PROPOSAL: {\"q\": 1}", &[], "another profile's marker"),
        ("SUGGESTED_VALU", &[], "the beginning of one"),
        ("a ** b ` c ``` d\n```rust\nfn x() {}\n```\n", &[], "Markdown"),
        ("Line\n\n  indented  \n\n\n", &[], "blanks"),
        ("", &[], "nothing"),
    ];
    for (text, notes, reason) in rows {
        let closed = read([text]);
        assert_eq!(closed.rest, text, "{reason}");
        assert_eq!(closed.notes, notes, "{reason}");
        assert!(closed.found.is_empty(), "{reason}");
    }
}

#[test]
fn wrong_entries_of_suggestions_are_left_out_alone() {
    let text = r#"SUGGESTED_ACTIONS: [
        {"label": "Close", "action": "close", "handler": "client", "data": {"n": 1}, "style": "warning"},
        {"label": "Fly", "action": "fly", "handler": "client"},
        {"label": "Save", "action": "save", "handler": "server", "data": null, "style": null},
        {"label": "Save", "action": "save", "handler": "other"},
        {"label": "Save", "action": "save", "handler": "server", "style": "red"},
        {"label": 7, "action": "save", "handler": "server"},
        "close"
    ] SUGGESTED_VALUES: [{"label": "A"}, {"label": " ", "value": "x"}]"#;
    let closed = read([text]);
    let action = |label: &str, name: &str, handler, data, style| SuggestedAction {
        label: label.to_owned(),
        action: name.to_owned(),
        handler,
        data,
        style,
    };
    let close = action("Close", "close", ActionHandler::Client, Some(json!({"n": 1})), Some(ActionStyle::Warning));
    let save = action("Save", "save", ActionHandler::Server, None, None);
    assert_eq!(closed.rest, "");
    assert_eq!(closed.found, [Found::Actions(vec![close, save])]);
    let left_out = [
        "SUGGESTED_ACTIONS: has an entry that was left out: [1] is nothing that the front end can do",
        "SUGGESTED_ACTIONS: has an entry that was left out: [3] must have the handler client or server",
        "SUGGESTED_ACTIONS: has an entry that was left out: [4] must have the style primary, secondary or warning",
        "SUGGESTED_ACTIONS: has an entry that was left out: [5] must have the text label",
        "SUGGESTED_ACTIONS: has an entry that was left out: [6] is no object",
        "SUGGESTED_VALUES: has an entry that was left out: [0] must have the text value",
        "SUGGESTED_VALUES: has an entry that was left out: [1] must have the text label",
    ];
    assert_eq!(closed.notes, left_out);
}

#[test]
fn a_model_offers_no_decision() {
    let text = r#"SUGGESTED_ACTIONS: [
        {"label": "Fine", "action": "approve_call", "handler": "server", "data": {"approval_id": "1"}},
        {"label": "No", "action": "reject_call", "handler": "server"}
    ]"#;
    let closed = read([text]);
    assert_eq!((closed.rest.as_str(), closed.found), ("", Vec::new()));
    let notes = [0, 1].map(|at| {
        format!("SUGGESTED_ACTIONS: has an entry that was left out: [{at}] is for the server alone to offer")
    });
    assert_eq!(closed.notes, notes);
}

#[test]
fn a_discarded_turn_leaves_no_text() {
    let mut markers = Markers::from_profile(&profile());
    let rejected = r#"Well SUGGESTED_VALUES: [{"label": "A", "value": "a"}] QUERY: {"q": 1} QUERY: {"#;
    assert_eq!(markers.push(rejected.to_owned()), "Well");
    markers.discard();
    assert_eq!(markers.close(), Closed::default());
    assert_eq!(markers.push(r#"SUGGESTED_VALUES: [{"label": "B", "value": "b"}]"#.to_owned()), "");
    assert_eq!(markers.close().found, [Found::Values(vec![value("B", "b")])]);
}

#[test]
fn text_waits_only_while_it_may_be_the_beginning_of_a_marker() {
    let rows: [(&[&str], &[&str], &str); 8] = [
        (&["Hel", "lo", "!"], &["Hel", "lo", "!"], "plain text flows"),
        (&["A ", "b"], &["A", " b"], "a blank waits for what comes behind it"),
        (&["S", "o it is"], &["", "So it is"], "a letter that a marker begins with"),
        (&["QUER", "IES"], &["", "QUERIES"], "most of one"),
        (&["a*", "*", "b"], &["a", "", "**b"], "bold"),
        (&["```", "rust\n", "fn"], &["", "", "```rust\nfn"], "a code fence"),
        (&["QUERY: ", "x"], &["", "QUERY: x"], "a word that nothing follows"),
        (&["QUERY: [", "x"], &["", "QUERY: [x"], "no JSON, seen at once"),
    ];
    for (pieces, expected, reason) in rows {
        let mut markers = Markers::from_profile(&profile());
        let emitted: Vec<String> = pieces.iter().map(|piece| markers.push((*piece).to_owned())).collect();
        assert_eq!(emitted, expected, "{reason}");
    }
}

#[test]
fn too_much_behind_a_marker_is_text() {
    let long = format!("QUERY: {{\"q\": \"{}\"}}", "x".repeat(MOST_HELD));
    let closed = read(long.as_bytes().chunks(1000).map(|chunk| std::str::from_utf8(chunk).unwrap()));
    assert!(closed.rest == long && closed.found.is_empty());
    assert_eq!(closed.notes, ["QUERY: is followed by too much"]);
}

#[test]
fn a_turn_begins_anew() {
    let mut markers = Markers::from_profile(&profile());
    assert_eq!(markers.push("Wait. QUERY: {".to_owned()), "Wait.");
    assert_eq!(markers.close().rest, " QUERY: {");
    assert_eq!(markers.push("QUERY: {\"q\": 1}\nDone".to_owned()), "Done");
    assert_eq!(markers.close().found, [query(json!({"q": 1}))]);
}

/// Pieces of texts that are full of markers, right and wrong ones.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    let words = [
        "SUGGESTED_VALUES:",
        "SUGGESTED_ACTIONS:",
        "QUERY:",
        "ANY_THING:",
        "[{\"label\": \"a\", \"value\": \"b\"}]",
        "{\"q\": \"}\\\"[\"}",
        "{\"q\":",
        "[1, 2",
        "]",
        "}",
        "\"",
        "\\",
        "**",
        "*",
        "`",
        "```",
        "```json\n",
        "\n",
        "\n\n",
        " ",
        "grün",
        "QUE",
        "S",
        "_",
        ".",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()).prop_map(str::to_owned), 0..24)
}

proptest! {
    #[test]
    fn how_a_text_is_cut_does_not_matter(pieces in pieces(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9)) {
        let text = pieces.concat();
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let mut cuts: Vec<usize> = if ends.is_empty() { Vec::new() } else { cuts.iter().map(|cut| *cut.get(&ends)).collect() };
        cuts.push(text.len());
        cuts.sort_unstable();
        let mut from = 0;
        let parts: Vec<&str> = cuts.iter().map(|to| &text[std::mem::replace(&mut from, *to)..*to]).collect();
        let whole = read([text.as_str()]);
        prop_assert_eq!(&read(parts), &whole);
        prop_assert_eq!(&read(text.split_inclusive(|_| true)), &whole);
    }

    #[test]
    fn nothing_of_a_valid_marker_is_emitted(
        before in "[a-z .*`\n]{0,20}[a-z.]",
        after in "[a-z.][a-z .*`\n]{0,20}",
        n in 0..9,
        bold in any::<bool>(),
    ) {
        let word = if bold { "**QUERY:**" } else { "QUERY:" };
        let closed = read([format!("{before}\n{word} {{\"q\": [{n}]}}\n{after}").as_str()]);
        prop_assert_eq!(closed.rest, format!("{before}\n{after}"));
        prop_assert_eq!(closed.found, [query(json!({"q": [n]}))]);
    }

    #[test]
    fn text_without_markers_stays_as_it_is(text in "[a-zA-Z *`\n_:{}\\[\\]\"]{0,80}") {
        prop_assume!(!["QUERY:", "ANY_THING:", "SUGGESTED"].iter().any(|word| text.contains(word)));
        prop_assert_eq!(read([text.as_str()]).rest, text);
    }
}
