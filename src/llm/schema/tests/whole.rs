//! Vendors that take everything below the top.

use serde_json::json;

use super::*;

#[test]
fn claude_gets_one_object_at_the_top_and_everything_below_as_it_is() {
    let below = json!({"oneOf": [{"type": "string", "pattern": "a"}, {"$ref": "#/$defs/X"}]});
    let rows = [
        (
            "below the top",
            json!({"type": "object", "properties": {"p": below}}),
            json!({"type": "object", "properties": {"p": below}}),
        ),
        ("not even a type", json!({"$schema": "x"}), json!({"type": "object", "properties": {}})),
        (
            "all parts are one",
            json!({"type": "object", "allOf": [{"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"maximum": 3}}}]}),
            json!({"type": "object", "properties": {"a": {"allOf": [{"minimum": 1}, {"maximum": 3}]}}}),
        ),
        (
            "a reference at the top",
            json!({"$ref": "#/$defs/X", "$defs": {"X": {"type": "object", "properties": {"a": {}}}}}),
            json!({
                "$defs": {"X": {"type": "object", "properties": {"a": {}}}},
                "type": "object",
                "properties": {"a": {}},
            }),
        ),
        (
            "alternatives are united and described",
            json!({
                "type": "object",
                "description": "Where to look.",
                "oneOf": [
                    {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
                    {"title": "Web", "properties": {"kind": {"const": "web"}, "url": {"type": "string"}}, "required": ["kind"]},
                ],
            }),
            json!({
                "type": "object",
                "description": "Where to look. Exactly one of these forms: (1) kind = \"file\" (required), path (required); \
                                (2) Web, kind = \"web\" (required), url.",
                "properties": {
                    "kind": {"anyOf": [{"const": "file"}, {"const": "web"}]},
                    "path": {"type": "string"},
                    "url": {"type": "string"},
                },
                "required": ["kind"],
            }),
        ),
        (
            "which of the properties are needed",
            json!({
                "type": "object",
                "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
                "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
            }),
            json!({
                "type": "object",
                "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
                "description": "At least one of these forms: (1) id (required); (2) name (required).",
            }),
        ),
        (
            "arguments are an object",
            json!({"type": ["object", "null"], "properties": {}}),
            json!({"type": "object", "properties": {}}),
        ),
    ];
    for (reason, before, after) in rows {
        assert_eq!(*with_object_top(&before), after, "{reason}");
    }
}

#[test]
fn chat_completions_get_the_schema_as_it_is_below_a_plain_top() {
    let plain = json!({
        "type": "object",
        "properties": {
            "p": {"$ref": "#/$defs/X", "const": 1, "oneOf": [{}]},
            "type": {"const": {"type": "array"}},
            "list": {"type": "array", "items": {}},
        },
        "$defs": {},
    });
    assert!(matches!(with_object_top_and_items(&plain), Cow::Borrowed(same) if *same == plain));
    let empty = json!({"type": "object", "properties": {}});
    for (reason, schema, expected) in [
        ("its dialect's name is refused by some", json!({"$schema": "x", "type": "object"}), empty.clone()),
        ("no schema", json!(null), empty.clone()),
        ("not one either", json!([1]), empty.clone()),
        ("properties are an object", json!({"type": "object", "properties": 3}), empty),
        (
            "alternatives at the top are refused",
            json!({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({
                "type": "object",
                "properties": {"a": {}},
                "description": "At least one of these forms: (1) a (required); (2) b (required).",
            }),
        ),
        (
            "so are choices and exclusions",
            json!({"type": "object", "properties": {}, "enum": [{"a": 1}], "not": {"required": ["b"]}}),
            json!({
                "type": "object",
                "properties": {},
                "description": r#"One of: {"a":1}. Must not match {"required":["b"]}."#,
            }),
        ),
        (
            "a list says what is in it",
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "array"},
                    "b": {"anyOf": [{"type": ["array", "null"]}], "default": {"type": "array"}},
                    "c": {"type": "array", "items": {"type": "array"}},
                },
            }),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "array", "items": {}},
                    "b": {"anyOf": [{"type": ["array", "null"], "items": {}}], "default": {"type": "array"}},
                    "c": {"type": "array", "items": {"type": "array", "items": {}}},
                },
            }),
        ),
    ] {
        assert_eq!(*with_object_top_and_items(&schema), expected, "{reason}");
    }
}
