//! The arguments of a declared tool: which ones a model may set, the mistakes in them, and what is filled in.
//!
//! **Invariant:** a model cannot set an argument that only the server fills.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::rules::Rules;
use crate::chat::schema::Schema;
use crate::chat::template::{TemplateError, ValueTemplate, Values};
use crate::tools::ToolError;

/// What a file says about a tool's arguments.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// Those that the model has to give, or that the path needs.
    required: Vec<String>,
    /// Those that it may give.
    known: Vec<String>,
    /// Whether others may be there too: the schema says so with `additionalProperties`.
    may_be_others: bool,
    /// Those whose `null` says nothing.
    not_null: BTreeSet<String>,
    /// What is filled in where the model set nothing.
    inject: Vec<(String, ValueTemplate)>,
    /// Applied to the arguments of the model before they are matched with the schema.
    rules: Rules,
    /// The arguments of the model must match this.
    schema: Schema,
}

impl Arguments {
    /// The arguments of `schema`, a JSON Schema of the type object, with `inject` filled in, and none of `needed` (names
    /// in the path) left out. `null` is kept only where it can be sent: in a body, as `nulls_count` says.
    ///
    /// # Errors
    /// When `schema` is no schema; in words for the operator.
    pub fn new(
        schema: &Value,
        inject: Vec<(String, ValueTemplate)>,
        needed: &[&str],
        nulls_count: bool,
    ) -> Result<Self, String> {
        let schema = without_required(schema, &inject);
        let checked = Schema::parse(&schema)?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut known: Vec<String> = properties.into_iter().flat_map(Map::keys).cloned().collect();
        let is_injected = |name: &&str| inject.iter().any(|(injected, _)| injected == name);
        let names = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut required: Vec<String> = Vec::new();
        let needed = needed.iter().copied().filter(|name| !is_injected(name));
        for name in needed.clone().chain(names.iter().filter_map(Value::as_str)) {
            if !required.iter().any(|known| known == name) {
                required.push(name.to_owned());
            }
        }
        known.extend(required.iter().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>());
        let takes_null = |name: &String| {
            let schema = properties.and_then(|properties| properties.get(name));
            // A part that refers to the whole cannot be read by itself, and is left to the whole.
            schema.is_none_or(|schema| Schema::parse(schema).map_or(true, |schema| schema.check(&Value::Null).is_ok()))
        };
        let needed: BTreeSet<&str> = needed.collect();
        let not_null = known.iter().filter(|name| !nulls_count || needed.contains(name.as_str()) || !takes_null(name));
        let not_null = not_null.cloned().collect();
        let others = schema.get("additionalProperties");
        let may_be_others = others.is_some_and(|others| *others != Value::Bool(false));
        Ok(Self { required, known, may_be_others, not_null, inject, rules: Rules::default(), schema: checked })
    }

    /// The same with `rules` for what the model gives.
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// The names that its templates take values from.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inject.iter().flat_map(|(_, template)| template.names())
    }

    /// The arguments that count of those that the model gave.
    ///
    /// # Errors
    /// Everything that is missing, or undeclared: what a model makes up is not for the backend. Then what the
    /// schema says, a few mistakes at most.
    pub fn checked(&self, args: &Map<String, Value>) -> Result<Map<String, Value>, ToolError> {
        let counts = |name: &str, value: &Value| !(value.is_null() && self.not_null.contains(name));
        let mut args: Map<String, Value> =
            args.iter().filter(|(name, value)| counts(name, value)).map(|(n, v)| (n.clone(), v.clone())).collect();
        self.rules.apply(&mut args);
        let missing: Vec<&str> =
            self.required.iter().map(String::as_str).filter(|name| !args.contains_key(*name)).collect();
        if !missing.is_empty() {
            return Err(ToolError::BadParams(format!("missing {}", missing.join(", "))));
        }
        let is_odd = |name: &&str| {
            let is_hidden = self.inject.iter().any(|(injected, _)| injected == name);
            !self.known.iter().any(|known| known == *name) && (is_hidden || !self.may_be_others)
        };
        let odd: Vec<&str> = args.keys().map(String::as_str).filter(is_odd).collect();
        if !odd.is_empty() {
            let all = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
            return Err(ToolError::BadParams(format!("no such argument: {}; there are: {all}", odd.join(", "))));
        }
        let whole = Value::Object(args);
        self.schema.check(&whole).map_err(|mistakes| ToolError::BadParams(mistakes.join("; ")))?;
        match whole {
            Value::Object(args) => Ok(args),
            _ => Ok(Map::new()),
        }
    }

    /// The same with what is filled in, from `values`.
    ///
    /// # Errors
    /// When something cannot be.
    pub fn complete(&self, mut args: Map<String, Value>, values: &Values<'_>) -> Result<Map<String, Value>, ToolError> {
        for (name, template) in &self.inject {
            if args.contains_key(name) {
                continue;
            }
            let failed = |error: TemplateError| ToolError::Refused(format!("{name} cannot be filled in: {error}"));
            if let Some(value) = template.fill(values).map_err(failed)?.filter(|value| !value.is_null()) {
                args.insert(name.clone(), value);
            }
        }
        Ok(args)
    }
}

/// `schema` as the model sees it: nothing is required that is filled in anyway.
pub fn without_required(schema: &Value, inject: &[(String, ValueTemplate)]) -> Value {
    let mut schema = schema.clone();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !inject.iter().any(|(injected, _)| name.as_str() == Some(injected)));
    }
    schema
}
