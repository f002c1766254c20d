//! Values that fit, and values that are lost.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{add_note, fit, fit_json};

/// The bytes of a note beyond the limit.
const NOTE_BYTES: usize = 1800;

fn fitted(value: &Value, max: usize) -> Value {
    serde_json::from_str(&fit(&value.to_string(), max, "ask for less").unwrap()).unwrap()
}

#[test]
fn a_list_loses_whole_rows_and_its_counts_are_true() {
    let rows: Vec<Value> = (0..1200).map(|id| json!({"id": id, "name": format!("rule {id}, \"quoted\"")})).collect();
    let page = |showing: usize, has_more: bool, rows: &[Value]| json!({"total": 1200, "showing": showing, "has_more": has_more, "results": rows});
    let mut kept = fitted(&page(1200, false, &rows), 10_000);
    let note = kept.as_object_mut().unwrap().shift_remove("cut").unwrap();
    let count = kept["results"].as_array().unwrap().len();
    assert_eq!(kept, page(count, true, &rows[..count]));
    assert!((150..300).contains(&count), "{count}");
    let whole = page(1200, false, &rows).to_string().len();
    assert_eq!(note, json!(format!("results: {count} of 1200 rows are shown; {whole} bytes in all; ask for less")));
}

#[test]
fn each_kind_of_json_is_cut_as_such() {
    let long = "ü".repeat(500);
    let numbers: Vec<u32> = (0..1000).collect();
    let many: Map<String, Value> = (0..1000).map(|n| (format!("k{n}"), json!(n))).collect();
    let rows = [
        (
            json!(numbers),
            40,
            json!([
                0,
                1,
                2,
                3,
                4,
                5,
                6,
                7,
                8,
                9,
                10,
                11,
                12,
                13,
                14,
                15,
                "[cut: 16 of 1000 rows are shown; 3891 bytes in all; ask for less]"
            ]),
            "a list",
        ),
        (
            json!([{"a": long}, 2]),
            80,
            json!([{"a": format!("{}…", "ü".repeat(33))},
            "[cut: [0].a: 66 of 1000 bytes of text, 1 of 2 rows are shown; 1012 bytes in all; ask for less]"]),
            "a first row that is too long by itself",
        ),
        (
            json!({"id": 7, "log": long}),
            100,
            json!({"id": 7, "log": format!("{}…", "ü".repeat(39)),
            "cut": "log: 78 of 1000 bytes of text; 1017 bytes in all; ask for less"}),
            "a text",
        ),
        (
            json!({"cut": 1, "big": {"deep": numbers}}),
            90,
            json!({"cut": 1, "big": {"deep": (0..24).collect::<Vec<_>>()},
            "cut_": "big.deep: 24 of 1000 rows are shown; 3916 bytes in all; ask for less"}),
            "a list inside",
        ),
        (
            json!({"a": {"x": long}, "b": {"y": long}, "c": {"z": long}}),
            60,
            json!({
            "cut": "0 of 3 fields are shown; 3040 bytes in all; ask for less"}),
            "no space for any",
        ),
        (
            Value::Object(many),
            60,
            json!({"k0": 0, "k1": 1, "k2": 2, "k3": 3, "k4": 4, "k5": 5, "k6": 6,
            "k7": 7, "cut": "8 of 1000 fields are shown; 10781 bytes in all; ask for less"}),
            "many fields",
        ),
        (json!(long), 20, json!(format!("{}…\n[cut: 1002 bytes in all; ask for less]", "ü".repeat(7))), "a text alone"),
    ];
    for (value, max, expected, reason) in rows {
        assert_eq!(fitted(&value, max), expected, "{reason}");
    }
    assert_eq!(fit("{\"a\": 1}", 8, ""), None, "what fits stays");
    assert_eq!(fit_json("no json", 3, ""), None);
    assert_eq!(fit("no json", 4, "ask").unwrap(), "no j\n[cut: 4 of 7 bytes shown; ask]", "text is cut as text");
    assert_eq!(fit("{\"a\": ", 4, "ask").unwrap(), "{\"a\"\n[cut: 4 of 6 bytes shown; ask]", "half an object is text");
}

#[test]
fn a_note_stands_inside_of_json() {
    let rows = [
        (r#"{"a":1}"#, r#"{"a":1,"note":"n"}"#),
        (r#" {"note":1} "#, r#"{"note":1,"note_":"n"}"#),
        ("{ }", r#"{ "note":"n"}"#),
        ("[1]", r#"[1,"[note: n]"]"#),
        ("[]", r#"["[note: n]"]"#),
        ("words", "words\n[n]"),
    ];
    for (content, expected) in rows {
        let mut content = content.to_owned();
        add_note(&mut content, "n");
        assert_eq!(content, expected);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-zü\\\\\"\n]{0,300}".prop_map(Value::from),
    ];
    let name =
        prop_oneof![Just("showing".to_owned()), Just("has_more".to_owned()), Just("cut".to_owned()), "[a-z\"]{0,9}"];
    leaf.prop_recursive(5, 200, 40, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..12)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Whether `part` is what is left of `whole`: its first rows, its fields, the beginning of a text.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Array(part), Value::Array(whole)) => {
            // Only a first row that is too long by itself is not whole.
            let rows = part.len() <= whole.len() && part.iter().zip(whole).skip(1).all(|(part, whole)| part == whole);
            rows && part.iter().zip(whole).take(1).all(|(part, whole)| is_part(part, whole))
        }
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(name, part)| match whole.get(name) {
            Some(whole) => is_part(part, whole) || matches!(&**name, "showing" | "has_more"),
            None => false,
        }),
        (Value::String(part), Value::String(whole)) => {
            part == whole || part.strip_suffix('…').is_some_and(|part| whole.starts_with(part))
        }
        (part, whole) => part == whole,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_json_stays_json_of_bounded_length_and_every_value_is_one_of_it(value in any_json(), max in 1usize..3000) {
        let text = value.to_string();
        let Some(kept) = fit(&text, max, "ask for less") else {
            prop_assert!(text.len() <= max);
            return Ok(());
        };
        prop_assert!(kept.len() <= max + NOTE_BYTES, "{} of {max}", kept.len());
        let mut kept: Value = serde_json::from_str(&kept).unwrap();
        match &mut kept {
            Value::Array(rows) => prop_assert!(rows.pop().is_some_and(|note| note.is_string())),
            Value::Object(fields) => {
                let name = fields.keys().next_back().unwrap().clone();
                let note = fields.shift_remove(&name).unwrap();
                prop_assert!(name.starts_with("cut") && note.is_string());
            }
            _ => return Ok(()),
        }
        prop_assert!(is_part(&kept, &value), "{kept} of {value}");
    }

    #[test]
    fn any_text_is_cut_somewhere(text in any::<String>(), max in 1usize..50) {
        let kept = fit(&text, max, "ask");
        prop_assert_eq!(kept.is_none(), text.len() <= max);
    }
}
