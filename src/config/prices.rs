//! `[prices."provider:model"]`: what models cost. Their names are the operator's to write, with dots and colons in them,
//! so this section is read by itself.

use toml::{Table, Value};

use super::Problem;
use crate::agent::spend::prices::{Price, Prices};

/// Takes the section out of `layer`.
pub(super) fn take(layer: &mut Table, problems: &mut Vec<Problem>) -> Prices {
    let models = match layer.remove("prices") {
        None => return Prices::default(),
        Some(Value::Table(models)) => models,
        Some(_) => {
            problems.push(Problem::new("prices", "must be a section"));
            return Prices::default();
        }
    };
    let prices = models.into_iter().filter_map(|(name, price)| {
        let path = format!("prices.{name}");
        let Value::Table(fields) = price else {
            problems.push(Problem::new(path, "must be a section with input and output"));
            return None;
        };
        Some((name, price_in(&fields, &path, problems)?))
    });
    Prices::new(prices.collect::<Vec<_>>())
}

fn price_in(fields: &Table, path: &str, problems: &mut Vec<Problem>) -> Option<Price> {
    let before = problems.len();
    for key in fields.keys().filter(|key| !["input", "output", "cached_input"].contains(&key.as_str())) {
        problems.push(Problem::new(format!("{path}.{key}"), "is not a known setting"));
    }
    let mut amount = |key: &str| {
        let amount = match fields.get(key)? {
            Value::Float(amount) => Some(*amount),
            Value::Integer(amount) => Some(*amount as f64),
            Value::String(_) | Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
        };
        let amount = amount.filter(|amount| amount.is_finite() && *amount >= 0.0);
        if amount.is_none() {
            let reason = "must be a number of US dollars for a million tokens, at least 0";
            problems.push(Problem::new(format!("{path}.{key}"), reason));
        }
        amount
    };
    let (input, output, cached_input) = (amount("input"), amount("output"), amount("cached_input"));
    for key in ["input", "output"] {
        if !fields.contains_key(key) {
            problems.push(Problem::new(format!("{path}.{key}"), "is required"));
        }
    }
    (problems.len() == before).then_some(Price { input: input?, output: output?, cached_input })
}
