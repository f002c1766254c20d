//! Comparisons in plain words, "quantity drops below 10" or "status = open", for workflow conditions and table filters.

use serde_json::{Number, Value};

use super::clause::{Clause, is_one};
use super::tokens::{Break, Token};

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Contains,
    ChangedTo,
    Empty,
    NotEmpty,
}

/// A field, how it is compared, and with what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comparison {
    /// The field as the user named it, words joined by `_`, lower case unless quoted.
    pub field: String,
    /// The comparison.
    pub operator: Operator,
    /// The other side; `Null` for the operators that need none.
    pub value: Value,
}

/// Wordings, longer ones before those they begin with.
const WORDINGS: &[(&[&str], Operator)] = &[
    (&["is", "less", "than"], Operator::Less),
    (&["is", "lower", "than"], Operator::Less),
    (&["is", "greater", "than"], Operator::Greater),
    (&["is", "more", "than"], Operator::Greater),
    (&["is", "higher", "than"], Operator::Greater),
    (&["is", "at", "least"], Operator::GreaterOrEqual),
    (&["is", "at", "most"], Operator::LessOrEqual),
    (&["is", "not", "empty"], Operator::NotEmpty),
    (&["is", "not", "null"], Operator::NotEmpty),
    (&["does", "not", "equal"], Operator::NotEqual),
    (&["is", "not"], Operator::NotEqual),
    (&["is", "empty"], Operator::Empty),
    (&["is", "null"], Operator::Empty),
    (&["is", "below"], Operator::Less),
    (&["is", "under"], Operator::Less),
    (&["is", "above"], Operator::Greater),
    (&["is", "over"], Operator::Greater),
    (&["changes", "to"], Operator::ChangedTo),
    (&["changed", "to"], Operator::ChangedTo),
    (&["becomes"], Operator::ChangedTo),
    (&["drops", "below"], Operator::Less),
    (&["drops", "under"], Operator::Less),
    (&["falls", "below"], Operator::Less),
    (&["falls", "under"], Operator::Less),
    (&["goes", "below"], Operator::Less),
    (&["goes", "above"], Operator::Greater),
    (&["goes", "over"], Operator::Greater),
    (&["rises", "above"], Operator::Greater),
    (&["less", "than"], Operator::Less),
    (&["lower", "than"], Operator::Less),
    (&["greater", "than"], Operator::Greater),
    (&["more", "than"], Operator::Greater),
    (&["higher", "than"], Operator::Greater),
    (&["at", "least"], Operator::GreaterOrEqual),
    (&["at", "most"], Operator::LessOrEqual),
    (&["exceeds"], Operator::Greater),
    (&["below"], Operator::Less),
    (&["under"], Operator::Less),
    (&["above"], Operator::Greater),
    (&["over"], Operator::Greater),
    (&["equals"], Operator::Equal),
    (&["contains"], Operator::Contains),
    (&["<="], Operator::LessOrEqual),
    (&["=<"], Operator::LessOrEqual),
    (&[">="], Operator::GreaterOrEqual),
    (&["=>"], Operator::GreaterOrEqual),
    (&["!="], Operator::NotEqual),
    (&["<>"], Operator::NotEqual),
    (&["=="], Operator::Equal),
    (&["="], Operator::Equal),
    (&["<"], Operator::Less),
    (&[">"], Operator::Greater),
    (&["is"], Operator::Equal),
];

/// Words that cannot be part of a field's name: the field is what stands between the last of them and the operator.
const BEFORE_FIELD: &[&str] = &[
    "if",
    "when",
    "whenever",
    "where",
    "whether",
    "that",
    "condition",
    "check",
    "checks",
    "checking",
    "step",
    "filter",
    "by",
    "with",
    "of",
    "only",
    "items",
    "rows",
    "records",
    "once",
    "while",
    "and",
    "add",
    "the",
    "a",
    "an",
    "its",
    "on",
    "for",
    "to",
    "show",
    "true",
    "false",
    "item",
    "row",
    "record",
    "otherwise",
    "node",
    "action",
    "alert",
    "me",
    "then",
    "field",
    "column",
    "evaluate",
    "which",
    "what",
    "this",
    "workflow",
    "rule",
    "it",
    "there",
];

impl Operator {
    /// Whether nothing stands on its other side.
    fn is_unary(self) -> bool {
        matches!(self, Self::Empty | Self::NotEmpty)
    }

    /// The operator in words, for explanations.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Less => "is less than",
            Self::LessOrEqual => "is at most",
            Self::Greater => "is greater than",
            Self::GreaterOrEqual => "is at least",
            Self::Equal => "is",
            Self::NotEqual => "is not",
            Self::Contains => "contains",
            Self::ChangedTo => "changes to",
            Self::Empty => "is empty",
            Self::NotEmpty => "is not empty",
        }
    }
}

impl Comparison {
    /// The first comparison in `clause`.
    pub(super) fn find(clause: Clause<'_>) -> Option<Self> {
        let tokens = clause.0;
        for start in 1..tokens.len() {
            let rest = clause.from(start);
            let Some((words, operator)) = WORDINGS.iter().find(|(words, _)| rest.phrase_at(words) == Some(0)) else {
                continue;
            };
            let Some(field) = field_before(tokens.get(..start).unwrap_or_default()) else { continue };
            let other_side = rest.from(words.len());
            if operator.is_unary() {
                return Some(Self { field, operator: *operator, value: Value::Null });
            }
            if let Some(value) = value_at_start(other_side.0) {
                return Some(Self { field, operator: *operator, value });
            }
        }
        None
    }

    /// The comparison in words.
    pub(super) fn words(&self) -> String {
        let text = format!("{} {}", self.field, self.operator.words());
        match &self.value {
            Value::Null => text,
            Value::String(value) => format!("{text} {value}"),
            other => format!("{text} {other}"),
        }
    }
}

/// The field's name at the end of `tokens`.
fn field_before(tokens: &[Token]) -> Option<String> {
    let start =
        tokens.iter().rposition(|token| is_one(token, BEFORE_FIELD) || token.then != Break::None).map_or(0, |i| i + 1);
    let words: Vec<&str> = tokens
        .get(start..)?
        .iter()
        .map(|token| if token.quoted { token.text.as_str() } else { token.low.as_str() })
        .collect();
    let is_field = !words.is_empty() && words.len() <= 3;
    is_field.then(|| words.join("_"))
}

/// The value `tokens` begin with: a quoted text, a number, a truth value or a word.
fn value_at_start(tokens: &[Token]) -> Option<Value> {
    let token = tokens.iter().find(|token| !is_one(token, &["the", "a", "an", "to", "than"]))?;
    Some(if token.quoted { Value::String(token.text.clone()) } else { literal(&token.text) })
}

/// `text` as a number or truth value if it is one, else as it is.
pub(super) fn literal(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return Value::from(whole);
    }
    let is_numeral = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
    if let Some(number) = text.parse::<f64>().ok().filter(|_| is_numeral).and_then(Number::from_f64) {
        return Value::Number(number);
    }
    match text.to_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "zero" => Value::from(0),
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn a_comparison_is_found_in_plain_words() {
        let cases: &[(&str, Option<&str>)] = &[
            ("add a condition step if quantity < 10", Some("quantity is less than 10")),
            ("check whether the total amount is at least 99.5", Some("total_amount is at least 99.5")),
            ("when stock drops below zero", Some("stock is less than 0")),
            ("filter by status = open", Some("status is open")),
            ("status is not \"Sent out\"", Some("status is not Sent out")),
            ("where name is empty", Some("name is empty")),
            ("if status changes to shipped", Some("status changes to shipped")),
            ("quantity <", None),
            ("< 10", None),
            ("what is this", None),
            ("add an alert", None),
        ];
        for (text, expected) in cases {
            let read = tokens(text);
            let found = Comparison::find(Clause(&read)).map(|comparison| comparison.words());
            assert_eq!(found.as_deref(), *expected, "{text}");
        }
    }
}
