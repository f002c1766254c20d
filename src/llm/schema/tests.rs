//! Schemas as each vendor gets them: a table per vendor with a reason per row.

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
    for_ollama("", schema).1.into_owned()
}

fn gemini(schema: &Value) -> Value {
    for_gemini(schema).unwrap().into_owned()
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
                "numbers' bounds, default and format are told",
                json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "default": 3, "format": "int32"}),
                json!({"type": "integer", "description": "At least 1. Less than 9. Default: 3. Format: int32."}),
            ),
            (
                "null is told",
                json!({"type": ["string", "null"]}),
                json!({"type": "string", "description": "May be null."}),
            ),
            ("nothing but null is a type", json!({"type": ["null"]}), json!({"type": "null"})),
            (
                "exactly one is told",
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
                    "description": "No other properties.",
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
                "keywords that nobody knows",
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
    let (description, schema) = for_ollama("Finds", &schema);
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
fn gemini_gets_no_schema_for_a_tool_without_arguments() {
    for empty in [json!({"type": "object"}), json!({"type": "object", "properties": {}}), json!(null), json!({})] {
        assert_eq!(for_gemini(&empty), None, "{empty}");
    }
    for free in [json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"minProperties": 1})] {
        assert!(for_gemini(&free).is_some(), "{free}");
    }
}

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
            "alternatives are united and told",
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
        assert_eq!(*for_claude(&before), after, "{reason}");
    }
}

#[test]
fn chat_completions_get_the_schema_as_it_is_with_properties() {
    let rows = [
        ("alternatives at the top are allowed", json!({"oneOf": [{}], "type": "object", "properties": {}})),
        (
            "every keyword is",
            json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/X", "const": 1}}, "$defs": {}}),
        ),
    ];
    for (reason, schema) in rows {
        assert!(matches!(for_openai(&schema), Cow::Borrowed(same) if *same == schema), "{reason}");
    }
    let empty = json!({"type": "object", "properties": {}});
    for (reason, schema) in [
        ("its dialect's name is refused by some", json!({"$schema": "x", "type": "object"})),
        ("no schema", json!(null)),
        ("not one either", json!([1])),
        ("properties are an object", json!({"type": "object", "properties": 3})),
    ] {
        assert_eq!(*for_openai(&schema), empty, "{reason}");
    }
}

#[test]
fn shipped_tools_cost_no_copy() {
    let files =
        [include_str!("../../../config/tools/workflow.json"), include_str!("../../../config/tools/tables.json")];
    for tool in files.iter().flat_map(|file| serde_json::from_str::<Vec<Value>>(file).unwrap()) {
        let schema = &tool["input_schema"];
        if schema["properties"].as_object().is_none_or(Map::is_empty) {
            assert_eq!(for_gemini(schema), None);
            continue;
        }
        let results = [for_claude(schema), for_gemini(schema).unwrap(), for_ollama("", schema).1, for_openai(schema)];
        for (result, vendor) in results.iter().zip(["claude", "gemini", "ollama", "openai"]) {
            assert!(matches!(result, Cow::Borrowed(same) if std::ptr::eq(*same, schema)), "{vendor}: {tool}");
        }
    }
}

/// Everything a hostile schema could try: circles, doublings, wrong types, depth, size.
fn hostile() -> Vec<Value> {
    let mut doubling = Map::new();
    for at in 0..64 {
        let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
        doubling
            .insert(at.to_string(), json!({"type": "object", "properties": {"a": next, "b": next}, "required": ["a"]}));
    }
    let deep = (0..100).fold(json!({}), |inner, _| json!({"properties": {"x": inner}}));
    let wide: Map<String, Value> = (0..30_000).map(|at| (at.to_string(), json!({}))).collect();
    let big = json!({"enum": vec!["a"; 9_000]});
    let many: Map<String, Value> =
        (0..3_000).map(|at| (at.to_string(), json!({"allOf": [{"$ref": "#/$defs/big"}]}))).collect();
    let wrong = json!([
        "type",
        "properties",
        "items",
        "enum",
        "required",
        "anyOf",
        "allOf",
        "oneOf",
        "$ref",
        "description",
        "const"
    ]);
    let mut schemas = vec![
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"oneOf": [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}]}]}),
        json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/properties/b"}, "c": {"allOf": [{"$ref": "#/properties/c"}]}}}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
        json!({"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": doubling}),
        json!({"$defs": {"big": big}, "properties": many}),
        json!({"properties": wide}),
        deep,
    ];
    for keyword in wrong.as_array().unwrap() {
        for value in
            [json!(null), json!(1), json!("x"), json!([]), json!([1, null]), json!({}), json!({"a": 1}), json!(true)]
        {
            let mut schema = Map::new();
            schema.insert(keyword.as_str().unwrap().to_owned(), value.clone());
            schemas.push(json!({"type": "object", "properties": {"p": schema}}));
            schemas.push(Value::Object(schema));
        }
    }
    schemas
}

#[test]
fn a_hostile_schema_becomes_an_object_of_bounded_size() {
    for schema in hostile() {
        let shown: String = schema.to_string().chars().take(200).collect();
        let results = [
            for_claude(&schema),
            for_gemini(&schema).unwrap_or_default(),
            for_ollama("", &schema).1,
            for_openai(&schema),
        ];
        for (result, vendor) in results.iter().zip(["claude", "gemini", "ollama", "openai"]) {
            let bytes = result.to_string().len();
            assert!(bytes < 1 << 21, "{vendor}: {bytes} bytes for {shown}");
            assert!(vendor == "gemini" && result.is_null() || top::is_object(result), "{vendor}: {result} for {shown}");
        }
    }
}

#[test]
fn the_result_for_a_vendor_is_taken_as_it_is() {
    for schema in hostile().into_iter().filter(fits) {
        let shown: String = schema.to_string().chars().take(200).collect();
        if let Some(once) = for_gemini(&schema).filter(|once| once.get("$defs").is_none()) {
            assert_eq!(for_gemini(&once), Some(Cow::Borrowed(&*once)), "{shown}");
        }
        let once = for_claude(&schema);
        assert_eq!(for_claude(&once), Cow::Borrowed(&*once), "{shown}");
    }
}
