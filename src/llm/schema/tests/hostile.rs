//! Schemas made to do harm.

use serde_json::json;

use super::*;

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
    let references: Map<String, Value> =
        (0..2_000).map(|at| (at.to_string(), json!({"$ref": "#/$defs/long"}))).collect();
    let long = "x".repeat(20_000);
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
        json!({"type": "object", "properties": references, "$defs": {"long": {"type": "string", "description": long}}}),
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
        let beginning: String = schema.to_string().chars().take(200).collect();
        let results = [
            with_object_top(&schema),
            with_references(&schema).unwrap_or_default(),
            without_references("", &schema).1,
            with_object_top_and_items(&schema),
        ];
        for (result, vendor) in results.iter().zip(["claude", "gemini", "ollama", "openai"]) {
            let bytes = result.to_string().len();
            assert!(bytes < 1 << 19, "{vendor}: {bytes} bytes for {beginning}");
            assert!(
                vendor == "gemini" && result.is_null() || top::is_object(result),
                "{vendor}: {result} for {beginning}"
            );
        }
    }
}

#[test]
fn the_result_for_a_vendor_is_taken_as_it_is() {
    for schema in hostile().into_iter().filter(fits) {
        let beginning: String = schema.to_string().chars().take(200).collect();
        if let Some(once) = with_references(&schema).filter(|once| once.get("$defs").is_none()) {
            assert_eq!(with_references(&once), Some(Cow::Borrowed(&*once)), "{beginning}");
        }
        let once = with_object_top(&schema);
        assert_eq!(with_object_top(&once), Cow::Borrowed(&*once), "{beginning}");
    }
}
