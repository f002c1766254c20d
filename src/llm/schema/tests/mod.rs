//! Schemas as each vendor gets them: a table per vendor with a reason per row.

mod hostile;
mod whole;

use serde_json::json;

use super::*;

type Row = (&'static str, Value, Value);

/// Compares the property `p` of an object schema, before and after.
fn check(rows: impl IntoIterator<Item = Row>, transform: impl Fn(&Value) -> Value) {
    for (reason, before, after) in rows {
        let whole = json!({"type": "object", "properties": {"p": before}});
        let expected = json!({"type": "object", "properties": {"p": after}});
        assert_eq!(transform(&whole), expected, "{reason}");
    }
}

fn ollama(schema: &Value) -> Value {
    without_references("", schema).1.into_owned()
}

fn gemini(schema: &Value) -> Value {
    with_references(schema).unwrap().into_owned()
}

#[test]
fn ollama_gets_the_keywords_it_has_fields_for_and_the_rest_in_words() {
    check(
        [
            (
                "what it knows stays",
                json!({"type": "string", "enum": ["a", "b"]}),
                json!({"type": "string", "enum": ["a", "b"]}),
            ),
            ("a constant is a choice of one", json!({"const": "a"}), json!({"enum": ["a"], "type": "string"})),
            (
                "its own words come first",
                json!({"type": "string", "description": "The code", "pattern": "^a+$", "minLength": 2}),
                json!({"type": "string", "description": "The code. Must match the pattern ^a+$. At least 2 characters."}),
            ),
            (
                "numbers' bounds, default and format are described",
                json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "default": 3, "format": "int32"}),
                json!({"type": "integer", "description": "At least 1. Less than 9. Default: 3. Format: int32."}),
            ),
            (
                "null is described",
                json!({"type": ["string", "null"]}),
                json!({"type": "string", "description": "May be null."}),
            ),
            ("nothing but null is a type", json!({"type": ["null"]}), json!({"type": "null"})),
            (
                "exactly one is described",
                json!({"oneOf": [{"type": "string"}, {"type": "integer", "maximum": 3}]}),
                json!({
                    "anyOf": [{"type": "string"}, {"type": "integer", "description": "At most 3."}],
                    "description": "Exactly one of the alternatives must match.",
                }),
            ),
            (
                "all parts are one",
                json!({"allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": false},
                ]}),
                json!({
                    "type": "object",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "required": ["a", "b"],
                    "description": "One part of it allows no properties but b. No other properties.",
                }),
            ),
            ("anything goes", json!(true), json!({})),
            ("nothing goes", json!(false), json!({"description": "Nothing is allowed here."})),
            ("no schema at all", json!(7), json!({})),
            (
                "a required property that is not described",
                json!({"type": "object", "properties": {}, "required": ["x"]}),
                json!({"type": "object", "properties": {}, "description": "Also required: x."}),
            ),
            (
                "keywords that are unknown",
                json!({"type": "array", "items": {"type": "string"}, "x-unit": "m", "uniqueItems": true}),
                json!({"type": "array", "items": {"type": "string"}, "description": "x-unit: m. No item twice."}),
            ),
            (
                "a reference to elsewhere",
                json!({"$ref": "https://example.com/point"}),
                json!({"description": "$ref: https://example.com/point."}),
            ),
        ],
        ollama,
    );
}

#[test]
fn ollama_gets_references_written_out_until_they_repeat() {
    let schema = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node", "description": "The tree."}},
        "$defs": {"Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["name"],
        }},
    });
    let again = json!({"type": "object", "description": "The same form again as Node."});
    let expected = json!({
        "type": "object",
        "properties": {"root": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": again}},
            "required": ["name"],
            "description": "The tree.",
        }},
    });
    assert_eq!(ollama(&schema), expected);
}

#[test]
fn ollama_reads_no_description_of_the_arguments_so_the_tool_has_it() {
    let schema = json!({"type": "object", "properties": {}, "description": "One or none.", "maxProperties": 1});
    let (description, schema) = without_references("Finds", &schema);
    assert_eq!(description, "Finds. One or none. At most 1 properties.");
    assert_eq!(*schema, json!({"type": "object", "properties": {}}));
}

#[test]
fn gemini_gets_the_documented_keywords_and_the_rest_in_words() {
    check(
        [
            (
                "what it documents stays",
                json!({"type": "string", "format": "date", "title": "Day"}),
                json!({"type": "string", "format": "date", "title": "Day"}),
            ),
            ("types may be lists", json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]})),
            ("a constant is a choice of one", json!({"const": 1}), json!({"enum": [1], "type": "integer"})),
            (
                "bounds of whole numbers can be inclusive",
                json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "minimum": -5}),
                json!({"type": "integer", "minimum": 1, "maximum": 9}),
            ),
            (
                "the narrower bound wins in either order",
                json!({"type": "integer", "minimum": 7, "exclusiveMinimum": 0}),
                json!({"type": "integer", "minimum": 7}),
            ),
            (
                "bounds of other numbers cannot",
                json!({"type": "number", "exclusiveMinimum": 0}),
                json!({"type": "number", "description": "Greater than 0."}),
            ),
            (
                "a choice that allows null",
                json!({"enum": ["a", null]}),
                json!({"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "null"}]}),
            ),
            (
                "a choice of other values",
                json!({"type": "boolean", "enum": [true]}),
                json!({"type": "boolean", "description": "One of: true."}),
            ),
            (
                "a choice of flags",
                json!({"enum": [true, false]}),
                json!({"type": "boolean", "description": "One of: true, false."}),
            ),
            (
                "a flag that may be null",
                json!({"enum": [true, null]}),
                json!({"type": ["boolean", "null"], "description": "One of: true, null."}),
            ),
            (
                "alternatives",
                json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
                json!({
                    "anyOf": [{"type": "string"}, {"type": "integer"}],
                    "description": "Exactly one of the alternatives must match.",
                }),
            ),
            (
                "other properties have a schema",
                json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}),
                json!({
                    "type": "object",
                    "additionalProperties": {"type": "string", "description": "At most 3 characters."},
                }),
            ),
            (
                "what is refused",
                json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "contains": {"const": "a"}}),
                json!({
                    "type": "array",
                    "items": {"type": "string"},
                    "description": r#"No item twice. At least one item must match {"const":"a"}."#,
                }),
            ),
        ],
        gemini,
    );
}

#[test]
fn gemini_keeps_references_alone_and_out_of_required_circles() {
    let schema = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/definitions/Node", "description": "The tree."}, "other": {"$ref": "#/definitions/Node"}},
        "required": ["root"],
        "definitions": {"Node": {
            "type": "object",
            "properties": {"name": {"const": "n"}, "children": {"type": "array", "items": {"$ref": "#/definitions/Node"}}},
            "required": ["name", "children"],
        }},
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "root": {"description": "The tree.", "anyOf": [{"$ref": "#/$defs/Node"}]},
            "other": {"$ref": "#/$defs/Node"},
        },
        "required": ["root"],
        "$defs": {"Node": {
            "type": "object",
            "properties": {
                "name": {"enum": ["n"], "type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
            "description": "Also required: children.",
        }},
    });
    assert_eq!(gemini(&schema), expected);
}

#[test]
fn gemini_gets_each_definition_under_a_name_of_its_own_and_none_is_lost() {
    let schema = json!({
        "type": "object",
        "properties": {
            "old": {"$ref": "#/definitions/X"},
            "new": {"$ref": "#/$defs/X"},
            "some": {"$ref": "#/$defs/Kind", "anyOf": [{"type": "string"}]},
        },
        "definitions": {"X": {"type": "string"}},
        "$defs": {"X": {"type": "integer"}, "Kind": {"type": "string", "enum": ["a"]}},
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "old": {"$ref": "#/$defs/definitions.X"},
            "new": {"$ref": "#/$defs/X"},
            "some": {"anyOf": [{"type": "string"}], "type": "string", "enum": ["a"]},
        },
        "$defs": {
            "definitions.X": {"type": "string"},
            "X": {"type": "integer"},
            "Kind": {"type": "string", "enum": ["a"]},
        },
    });
    assert_eq!(gemini(&schema), expected);
}

#[test]
fn gemini_gets_no_schema_for_a_tool_without_arguments() {
    for empty in [json!({"type": "object"}), json!({"type": "object", "properties": {}}), json!(null), json!({})] {
        assert_eq!(with_references(&empty), None, "{empty}");
    }
    for free in [json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"minProperties": 1})] {
        assert!(with_references(&free).is_some(), "{free}");
    }
}

#[test]
fn shipped_tools_cost_no_copy() {
    let files =
        [include_str!("../../../../config/tools/workflow.json"), include_str!("../../../../config/tools/tables.json")];
    for tool in files.iter().flat_map(|file| serde_json::from_str::<Vec<Value>>(file).unwrap()) {
        let schema = &tool["input_schema"];
        if schema["properties"].as_object().is_none_or(Map::is_empty) {
            assert_eq!(with_references(schema), None);
            continue;
        }
        let results = [
            with_object_top(schema),
            with_references(schema).unwrap(),
            without_references("", schema).1,
            with_object_top_and_items(schema),
        ];
        for (result, vendor) in results.iter().zip(["claude", "gemini", "ollama", "openai"]) {
            assert!(matches!(result, Cow::Borrowed(same) if std::ptr::eq(*same, schema)), "{vendor}: {tool}");
        }
    }
}
