//! The forms that the values of a parameter may have: how each is written depends on that.

use serde_json::Value;

use super::super::refs;

/// How many `allOf`, `anyOf` and `oneOf` may stand in each other.
const MAX_DEPTH: usize = 8;

/// What values of a schema may be. One that says nothing is about single values.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shape<'d> {
    /// A list.
    pub(super) is_list: bool,
    /// An object.
    pub(super) is_object: bool,
    /// A text, a number or a truth.
    pub(super) is_single: bool,
    /// The fields of the object that are known.
    pub(super) fields: Vec<&'d str>,
}

impl<'d> Shape<'d> {
    /// That of the values of `schema`, a schema of the document `root`.
    pub(super) fn of(root: &'d Value, schema: Option<&'d Value>) -> Self {
        let mut shape = Self::default();
        if let Some(schema) = schema {
            shape.look(root, schema, 0);
        }
        shape.is_single |= !shape.is_list && !shape.is_object;
        // Of an object without known fields nothing can be made but JSON text, which is a single value too.
        shape.is_object &= !shape.is_single || !shape.fields.is_empty();
        shape
    }

    fn look(&mut self, root: &'d Value, schema: &'d Value, depth: usize) {
        let Ok(schema) = refs::target(root, schema) else { return };
        let types = match schema.get("type") {
            Some(Value::Array(types)) => types.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for name in types.iter().filter_map(Value::as_str) {
            match name {
                "array" => self.is_list = true,
                "object" => self.is_object = true,
                // It says nothing of how the others are written.
                "null" => {}
                _ => self.is_single = true,
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        if types.is_empty() {
            self.is_object |= properties.is_some();
            self.is_list |= schema.get("items").is_some();
            self.is_single |= schema.get("enum").is_some() || schema.get("const").is_some();
        }
        for name in properties.into_iter().flat_map(|fields| fields.keys()) {
            if !self.fields.contains(&name.as_str()) {
                self.fields.push(name);
            }
        }
        if depth < MAX_DEPTH {
            parts.for_each(|part| self.look(root, part, depth + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_forms_of_a_value_are_found_whatever_the_schema_is_made_of() {
        let range = json!({"type": "object", "properties": {"gt": {}, "lt": {}}});
        let root = json!({"components": {"Range": {"properties": {"gt": {}, "lt": {}}}, "Loop": {"allOf": [{"$ref": "#/components/Loop"}]}}});
        let (list, object, single) = ([true, false, false], [false, true, false], [false, false, true]);
        let rows: [(Value, [bool; 3], &[&str], &str); 13] = [
            (json!({"type": "array"}), list, &[], "a list"),
            (json!({"type": ["array", "null"]}), list, &[], "a list or nothing"),
            (json!({"anyOf": [{"type": "array"}, {"type": "null"}]}), list, &[], "the same of 3.1"),
            (json!({"items": {}}), list, &[], "a list without a type"),
            (range.clone(), object, &["gt", "lt"], "an object"),
            (json!({"$ref": "#/components/Range"}), object, &["gt", "lt"], "one without a type, referred to"),
            (json!({"allOf": [range, {"properties": {"x": {}}}]}), object, &["gt", "lt", "x"], "parts of one"),
            (json!({"oneOf": [range, {"type": "integer"}]}), [false, true, true], &["gt", "lt"], "or a number"),
            (json!({"type": "object"}), object, &[], "an object of unknown fields"),
            (json!({"anyOf": [{"type": "object"}, {"type": "string"}]}), single, &[], "which may be text"),
            (json!({"enum": ["a"]}), single, &[], "one of some"),
            (json!({}), single, &[], "nothing said"),
            (json!({"$ref": "#/components/Loop"}), single, &[], "a circle"),
        ];
        for (schema, [is_list, is_object, is_single], fields, reason) in rows {
            let expected = Shape { is_list, is_object, is_single, fields: fields.to_vec() };
            assert_eq!(Shape::of(&root, Some(&schema)), expected, "{reason}");
        }
        assert_eq!(Shape::of(&root, None), Shape { is_single: true, ..Shape::default() }, "no schema");
    }
}
