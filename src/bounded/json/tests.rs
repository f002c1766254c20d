//! JSON and YAML that is read, what of it is refused, and the memory it takes.

use serde_json::json;

use super::*;
use crate::bounded::memory::{Kind, Memory};

#[test]
fn a_text_becomes_the_value_that_it_says() {
    let texts = [
        r#"{"b":1,"a":[true,null,-2,1.5e300,"gr\u00fcn",{"x":{}}],"":[]}"#,
        "[]",
        "\"text\"",
        "18446744073709551615",
        r#"[[1,[2]],{"a":{"b":{"c":[{"d":1},{"d":2}]}}},3]"#,
        r#" {"a":1,"b":2,"a":3} "#,
    ];
    for text in texts {
        let expected: Value = serde_json::from_str(text).unwrap();
        let read = value(text).unwrap();
        assert_eq!(read.to_string(), expected.to_string(), "{text}");
        if !text.contains("\"a\":3") {
            let compact = compact(text, &mut NodeBudget::for_bytes(text.len(), None)).unwrap();
            assert_eq!(compact, expected.to_string(), "{text}");
        }
    }
    for text in ["", "{", "[1,]", "nul", "1 2", r#"{"a"}"#, r#""\ud800""#, "1e400", "\u{1}"] {
        assert!(matches!(value(text), Err(JsonError::Syntax(_))), "{text}");
        assert!(matches!(check(text), Err(JsonError::Syntax(_))), "{text}");
    }
}

#[test]
fn halves_of_characters_are_replaced_where_nothing_can_be_read_otherwise() {
    let rows = [
        (r#"{"a":"x \udcaf y \ud83d"}"#, Some("x \u{fffd} y \u{fffd}"), "one of each kind"),
        (r#"{"a":"\ud83d\ude00 \uD83D\ud83d\ude00"}"#, Some("😀 \u{fffd}😀"), "whole ones beside one"),
        (r#"{"a":"\ud83d\n"}"#, Some("\u{fffd}\n"), "another escape behind it"),
        (r#"{"a":"\\ud83d"}"#, Some("\\ud83d"), "what only looks like one"),
        (r#"{"a":"\ud83d""#, None, "something else is wrong too"),
        (r#"{"a":"\ud8é0"}"#, None, "no escape"),
    ];
    for (text, expected, reason) in rows {
        let mut budget = NodeBudget::for_bytes(text.len(), None);
        let read = mended(text, &mut budget, |text, budget| read(text, &Wanted::All, budget));
        assert_eq!(read.ok().map(|value| value["a"].clone()), expected.map(|text| json!(text)), "{reason}");
        let compacted = mended(text, &mut NodeBudget::for_bytes(text.len(), None), compact).ok();
        assert_eq!(compacted, expected.map(|text| json!({"a": text}).to_string()), "{reason}");
    }
}

/// What the first reading has taken is free for the second.
#[test]
fn a_mended_text_takes_memory_once() {
    let row = r#"{"id":"2c4a1f4e-7f0e-4b0b-9d53-0a6a5a2f1c11","name":"a usual name of a thing","at":"2026-11-22T18:00:00Z"},"#;
    let text = format!("[{}\"\\ud83d\"]", row.repeat((4 << 20) / row.len()));
    let memory = Memory::new(64 << 20);
    let mut budget = NodeBudget::for_bytes(text.len(), Some(memory.reserve(Kind::Json, 0).unwrap()));
    let whole = mended(&text, &mut budget, |text, budget| read(text, &Wanted::All, budget)).unwrap();
    let (taken, held) = (super::memory(&whole), memory.reserved().map(|(_, bytes)| bytes).sum::<usize>());
    assert!((taken * 9 / 10..=taken * 2).contains(&held), "{held} for {taken}");
}

#[test]
fn lists_of_any_length_are_read_whole() {
    for length in [4095, 4096, 4097, 8192, 10_000] {
        for before in [0, 1, 4095, 4096] {
            let inner: Vec<_> = (0..length).map(|n| json!({"n": n, "tags": ["a", n]})).collect();
            let outer: Value = (0..before).map(|n| json!(n)).chain([json!(inner), json!("last")]).collect();
            assert_eq!(value(&outer.to_string()).unwrap(), outer, "{length} in a list behind {before}");
        }
    }
}

#[test]
fn only_what_is_wanted_is_read() {
    let text = r#"{"total":2,"items":[{"id":1,"x":{"id":9}},{"id":2,"n":[{"a":1,"b":2}]},7],"rest":{"id":3}}"#;
    let item = Wanted::field("id", Wanted::All).and(Wanted::field("n", Wanted::field("a", Wanted::All)));
    let wanted = Wanted::field("items", item).and(Wanted::field("rest", Wanted::nothing()));
    let expected = json!({"items": [{"id": 1}, {"id": 2, "n": [{"a": 1}]}, 7], "rest": {}});
    let some = |text: &str| read(text, &wanted, &mut NodeBudget::for_bytes(text.len(), None));
    assert_eq!(some(text).unwrap(), expected);
    assert!(some(r#"{"x":[1,}"#).is_err(), "what is left out has to be JSON too");
}

#[test]
fn what_takes_too_much_is_refused_whether_it_is_read_or_only_looked_at() {
    let many = |row: &str, bytes: usize| format!("[{}{row}]", format!("{row},").repeat(bytes / (row.len() + 1)));
    for row in [r#"{"":0}"#, "0", "[]", "{}", r#"{"a":1,"b":2}"#] {
        let text = many(row, 2 << 20);
        let most = budget_for(text.len());
        assert!(matches!(fits(&text, 1), Err(JsonError::TooMany(limit)) if limit == most), "{row}");
        assert!(check(&text).is_ok(), "what is passed on is its text: {row}");
        assert!(matches!(value(&text), Err(JsonError::TooMany(limit)) if limit == most), "{row}");
        let few = many(row, 64 << 10);
        assert!(fits(&few, 1).is_ok() && value(&few).is_ok(), "a small one is: {row}");
        let whole = value(&few).unwrap();
        assert!(memory(&whole) <= budget_for(few.len()), "{row}");
    }
    let row =
        r#"{"id":"2c4a1f4e-7f0e-4b0b-9d53-0a6a5a2f1c11","name":"a usual name of a thing","at":"2026-11-22T18:00:00Z"}"#;
    let text = many(row, 4 << 20);
    assert!(fits(&text, 1).is_ok() && value(&text).is_ok(), "usual rows are read, whatever there is of them");
}

#[test]
fn what_is_read_is_reserved_first() {
    let memory = Memory::new(2 << 20);
    let text = format!("[{}0]", "0,".repeat(10_000));
    let mut budget = NodeBudget::for_bytes(text.len(), Some(memory.reserve(Kind::Json, 0).unwrap()));
    let whole = read(&text, &Wanted::All, &mut budget).unwrap();
    let (taken, held) = (super::memory(&whole), memory.reserved().map(|(_, bytes)| bytes).sum::<usize>());
    assert!((taken * 9 / 10..=taken * 2).contains(&held), "{held} for {taken}");
    let mut second = NodeBudget::for_bytes(text.len(), Some(memory.reserve(Kind::Json, 0).unwrap()));
    let refused = read(&text, &Wanted::All, &mut second);
    assert!(matches!(refused, Err(JsonError::Exhausted(_))), "{refused:?}");
    drop((budget, second));
    assert_eq!(memory.reserved().map(|(_, bytes)| bytes).sum::<usize>(), 0, "all of it is given back");
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(check(&nested(MAX_DEPTH)).is_ok() && value(&nested(MAX_DEPTH)).is_ok());
    for text in [nested(MAX_DEPTH + 1), "[".repeat(100_000), r#"{"a":"#.repeat(MAX_DEPTH + 1)] {
        assert!(matches!(check(&text), Err(JsonError::TooDeep)) && matches!(value(&text), Err(JsonError::TooDeep)));
    }
}

#[test]
fn a_name_comes_once_in_what_is_checked() {
    let many = (0..40).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",");
    let rows = [
        (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#.to_owned(), true, "the same name in several objects"),
        (r#"{"a":1,"A":2,"a ":3,"":4}"#.to_owned(), true, "names that are alike"),
        (format!("{{{many}}}"), true, "many names"),
        (r#"{"a":1,"a":1}"#.to_owned(), false, "twice, the same value"),
        (r#"{"a":1,"b":2,"\u0061":3}"#.to_owned(), false, "once spelt otherwise"),
        (r#"{"x":[0,{"y":{"a":1,"a":2}}]}"#.to_owned(), false, "far inside"),
        (format!("{{{many},\"k39\":0}}"), false, "one of many"),
        (format!("{{{many},\"k3\":0}}"), false, "one of the first of many"),
    ];
    for (text, expected, reason) in rows {
        match check(&text) {
            Ok(()) => assert!(expected, "{reason}"),
            Err(error) => assert!(!expected && matches!(error, JsonError::Twice), "{reason}: {error}"),
        }
    }
}

#[test]
fn yaml_becomes_the_value_that_it_says() {
    let text = "a: &a {x: [1, -2, 1.5, true, null, ~, 'no', gr\u{fc}n]}\nb: *a\nc:\n  <<: *a\n  200: |\n    two\n    lines\n? d\n: []\n";
    let x = json!([1, -2, 1.5, true, null, null, "no", "gr\u{fc}n"]);
    assert_eq!(
        yaml(text).unwrap(),
        json!({"a": {"x": x}, "b": {"x": x}, "c": {"x": x, "200": "two\nlines\n"}, "d": []})
    );
    for text in ["a: [", "\u{0}", "- &a [*a]", "a: 1\n---\nb: 2"] {
        assert!(matches!(yaml(text), Err(JsonError::Syntax(_))), "{text:?}");
    }
    for text in ["a: 1\na: 2", "b: {a: 1, 'a': 2}", "b: &b {x: 1}\nc: {<<: *b, a: 1, a: 2}"] {
        assert!(matches!(yaml(text), Err(JsonError::Twice)), "{text:?}: {:?}", yaml(text));
    }
}

#[test]
fn yaml_that_takes_too_much_is_refused_like_json() {
    for (row, reason) in [("- {}\n", "objects"), ("- []\n", "lists"), ("- 0\n", "numbers"), ("- {a: 1}\n", "fields")] {
        let text = row.repeat((2 << 20) / row.len());
        let most = budget_for(text.len());
        assert!(matches!(yaml(&text), Err(JsonError::TooMany(limit)) if limit == most), "{reason}");
        let few = row.repeat((64 << 10) / row.len());
        assert!(memory(&yaml(&few).unwrap()) <= budget_for(few.len()), "{reason}: a small one is read");
    }
    let row =
        "- id: 2c4a1f4e-7f0e-4b0b-9d53-0a6a5a2f1c11\n  name: a usual name of a thing, as they are written & read\n";
    assert!(
        yaml(&row.repeat((6 << 20) / row.len())).is_ok(),
        "usual rows are read, more of them than the library's own limit"
    );
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(yaml(&nested(MAX_DEPTH)).is_ok() && yaml(&nested(MAX_DEPTH + 1)).is_err());
}

#[test]
fn what_aliases_of_yaml_expand_to_is_counted() {
    let bomb = (0..8).fold("l0: &l0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        text + &format!("l{}: &l{} [{}]\n", n + 1, n + 1, vec![format!("*l{n}"); 9].join(", "))
    });
    let flat = format!("a: &a [{}0]\nb: [{}*a]\n", "0, ".repeat(999), "*a, ".repeat(199));
    for (text, reason) in [(&bomb, "each of the one before"), (&flat, "one again and again")] {
        assert!(matches!(yaml(text), Err(JsonError::TooMany(_))), "{reason}: {:?}", yaml(text).err());
    }
    // These are copied by the library before they are values.
    let key = format!("? [{}0]\n: 1\n", "[], ".repeat(400_000));
    let merged = format!("<<: {{a: [{}0]}}\n", "[], ".repeat(400_000));
    let anchored = format!("- &a [{}0]\n", "[], ".repeat(400_000));
    for (text, reason) in [(&key, "a key"), (&merged, "merged"), (&anchored, "an anchor")] {
        assert!(matches!(yaml(text), Err(JsonError::TooMany(_))), "{reason}: {:?}", yaml(text).err());
    }
}
