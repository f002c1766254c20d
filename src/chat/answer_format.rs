//! The form that a client wants an answer in, and whether one has it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::schema::Schema;
use crate::bounded::json;

/// The longest name that every vendor accepts, in bytes.
const NAME_BYTES: usize = 64;

/// Begins and ends a block of code, which models like to put around JSON.
const FENCE: &str = "```";

/// The form of an answer that is not free text.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerFormat {
    /// Any JSON object.
    Object,
    /// A JSON object that fits a schema.
    Schema(Arc<AnswerSchema>),
}

/// The schema of an answer.
#[derive(Debug, Clone)]
pub struct AnswerSchema {
    /// What the client calls it, in the alphabet that every vendor allows.
    pub name: String,
    /// What the answer is for.
    pub description: Option<String>,
    /// Whether the vendor is to hold the model to it, where it can. It is checked in any case.
    pub is_strict: bool,
    /// The schema itself: an object at its top.
    pub schema: Value,
    /// The paths of the expressions in it that are not checked, since they cannot be run in linear time.
    pub unchecked: Vec<String>,
    check: Schema,
}

impl PartialEq for AnswerSchema {
    fn eq(&self, other: &Self) -> bool {
        let of = |schema: &Self| (schema.name.clone(), schema.description.clone(), schema.is_strict);
        of(self) == of(other) && self.schema == other.schema
    }
}

impl AnswerSchema {
    /// The schema in `schema`, of a stranger.
    ///
    /// # Errors
    /// When its name or the schema cannot be used, in words for its sender.
    pub fn parse(
        name: String,
        description: Option<String>,
        is_strict: bool,
        mut schema: Value,
    ) -> Result<Self, String> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(allowed) {
            return Err(format!("must have a name of 1 to {NAME_BYTES} characters of A-Z a-z 0-9 _ -"));
        }
        let Some(fields) = schema.as_object_mut() else {
            return Err("must have a schema that is an object".to_owned());
        };
        if !fields.contains_key("$ref") && fields.entry("type").or_insert_with(|| "object".into()) != "object" {
            return Err("must have a schema of the type object".to_owned());
        }
        let (check, unchecked) =
            Schema::of_request(&schema).map_err(|error| format!("must have a schema that can be used: {error}"))?;
        Ok(Self { name, description, is_strict, schema, unchecked, check })
    }
}

/// A schema as it is kept: its name, what the answer is for, whether it is strict, and itself. `None` is any object.
type KeptForm<'a, T> = Option<(Cow<'a, str>, Option<Cow<'a, str>>, bool, T)>;

impl AnswerFormat {
    /// It as text, to be kept.
    pub fn to_text(&self) -> String {
        let kept: KeptForm<'_, &Value> = match self {
            Self::Object => None,
            Self::Schema(schema) => {
                let AnswerSchema { name, description, is_strict, schema, .. } = &**schema;
                Some((name.into(), description.as_ref().map(Cow::from), *is_strict, schema))
            }
        };
        // Texts and JSON always serialise.
        serde_json::to_string(&kept).unwrap_or_default()
    }

    /// The form that was kept as `text`; `None` where it is none that can be asked for today.
    pub fn of_text(text: &str) -> Option<Self> {
        let kept: KeptForm<'_, &RawValue> = json::parse(text).ok()?;
        let Some((name, description, is_strict, schema)) = kept else { return Some(Self::Object) };
        let (description, schema) = (description.map(Cow::into_owned), json::value(schema.get()).ok()?);
        let schema = AnswerSchema::parse(name.into_owned(), description, is_strict, schema).ok()?;
        Some(Self::Schema(Arc::new(schema)))
    }

    /// The JSON object in `text`, as it stands there; a block of code around it does not count.
    ///
    /// # Errors
    /// What is wrong with it, in words for its author.
    pub fn read<'a>(&self, text: &'a str) -> Result<&'a str, Vec<String>> {
        let json = bare(text);
        let value = json::value(json).map_err(|error| vec![format!("it is no JSON: {error}")])?;
        if !value.is_object() {
            return Err(vec!["it is no JSON object".to_owned()]);
        }
        if let Self::Schema(schema) = self {
            schema.check.check(&value)?;
        }
        Ok(json)
    }
}

/// `text` without the block of code that it is in, if it is in one.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    inside.and_then(|inside| inside.split_once('\n')).map_or(text, |(_language, code)| code.trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn city() -> AnswerFormat {
        let schema = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
        AnswerFormat::Schema(Arc::new(AnswerSchema::parse("city".to_owned(), None, false, schema).unwrap()))
    }

    #[test]
    fn an_answer_is_one_json_object_that_fits() {
        let object = r#"{"city":"Ulm"}"#;
        let rows = [
            (object.to_owned(), Ok(object), "as it is"),
            (format!("\n {object}\n"), Ok(object), "blanks around it"),
            (format!("```json\n{object}\n```\n"), Ok(object), "a block of code"),
            (format!("```\n{object}\n```"), Ok(object), "one without a language"),
            (r#"{"city":7}"#.to_owned(), Err("city: 7 is not of type \"string\""), "another type"),
            ("{}".to_owned(), Err("\"city\" is a required property"), "not all of it"),
            ("[]".to_owned(), Err("it is no JSON object"), "a list"),
            (format!("Here: {object}"), Err("it is no JSON: expected value at line 1 column 1"), "words before it"),
            (format!("{object} {object}"), Err("it is no JSON: trailing characters at line 1 column 16"), "two"),
            ("```json".to_owned(), Err("it is no JSON: expected value at line 1 column 1"), "half a block"),
            ("``````".to_owned(), Err("it is no JSON: expected value at line 1 column 1"), "an empty block"),
            (String::new(), Err("it is no JSON: EOF while parsing a value at line 1 column 0"), "nothing"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(city().read(&text), expected.map_err(|mistake| vec![mistake.to_owned()]), "{reason}");
        }
        assert_eq!(AnswerFormat::Object.read("{\"a\":[1]}"), Ok("{\"a\":[1]}"));
    }

    #[test]
    fn a_form_that_was_kept_is_the_same() {
        let schema = AnswerSchema::parse("b".to_owned(), Some("For \"b\".".to_owned()), true, json!({"default": 1}));
        for form in [AnswerFormat::Object, city(), AnswerFormat::Schema(Arc::new(schema.unwrap()))] {
            assert_eq!(AnswerFormat::of_text(&form.to_text()), Some(form));
        }
        for text in ["", "{}", r#"["a b",null,true,{}]"#, r#"["a",null,true,{"type":"array"}]"#] {
            assert_eq!(AnswerFormat::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_schema_has_a_name_and_an_object_at_its_top() {
        let parse = |name: &str, schema: Value| AnswerSchema::parse(name.to_owned(), None, true, schema).map(drop);
        assert_eq!(parse("a", json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}})), Ok(()));
        for (name, schema, reason) in [
            ("", json!({}), "no name"),
            ("a b", json!({}), "a blank"),
            ("a", json!([]), "a list"),
            ("a", json!({"type": "array"}), "a list at the top"),
            ("a", json!({"properties": 7}), "none"),
        ] {
            assert!(parse(name, schema).is_err_and(|why| why.starts_with("must have a ")), "{reason}");
        }
    }
}
