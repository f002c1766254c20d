//! Projections: JMESPath over a backend's answer, compiled once. The language is total, so none runs for ever.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jmespath::ast::Ast;
use jmespath::{DEFAULT_RUNTIME, Expression};
use serde_json::Value;

use crate::bounded::json::{self, NodeBudget, Wanted};
use crate::chat::nesting::Nesting;
use crate::tools::backend::BackendError;

/// 4 KiB: what a person still reads.
const MAX_BYTES: usize = 4096;

/// How many steps may stand in each other, those in a row included: `a.b.c` has two, brackets count two. The interpreter
/// takes up to 10 KiB of stack for one, unoptimized, and a thread has 2 MiB.
const MAX_STEPS: usize = 80;

/// What brackets count.
const BRACKETS: usize = 2;

/// The part of a value that is taken.
#[derive(Debug, Clone, Default)]
pub struct Projection(Option<Arc<Expression<'static>>>);

impl Projection {
    /// The projection in `text`; `@` takes everything as it is.
    ///
    /// # Errors
    /// The mistake in it, in words for the operator.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "@" {
            return Ok(Self(None));
        }
        let mut nesting = Nesting::new(BRACKETS);
        nesting.read(text, 0, None);
        if text.len() > MAX_BYTES || nesting.most() > MAX_STEPS {
            return Err(format!("must have at most {MAX_BYTES} bytes, and {MAX_STEPS} steps in each other"));
        }
        let expression = jmespath::compile(text).map_err(|error| {
            let reason = error.reason.to_string();
            format!("is no JMESPath: {} at column {}", reason.trim_end_matches('.').trim(), error.column + 1)
        })?;
        match unknown_function(expression.as_ast()) {
            Some(name) => Err(format!("uses the function {name:?}, which does not exist")),
            None => Ok(Self(Some(Arc::new(expression)))),
        }
    }

    /// Its words: two projections that take different things have different ones.
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("@", |expression| expression.as_str())
    }

    /// What of a value it looks at, where of what it gives only `of_it` is wanted.
    pub fn wanted(&self, of_it: Wanted) -> Wanted {
        self.0.as_ref().map_or(of_it.clone(), |expression| wanted(expression.as_ast(), of_it))
    }

    /// Whether it takes everything as it is.
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// The projection of `value`, made in memory of `budget`.
    ///
    /// # Errors
    /// When the value does not allow it: a function got an argument of the wrong type, or `budget` is used up.
    pub fn apply(&self, value: Cow<'_, Value>, budget: &mut NodeBudget) -> Result<Value, BackendError> {
        let Some(expression) = &self.0 else {
            if let Cow::Borrowed(value) = value {
                budget.take(json::memory(value))?;
            }
            return Ok(value.into_owned());
        };
        let copied = variables(&value);
        budget.take(copied)?;
        // A foreign interpreter over foreign data.
        let found = catch_unwind(AssertUnwindSafe(|| expression.search(&*value)));
        drop(value);
        let found = found.map_err(|_| BackendError::Shape("it cannot be applied".to_owned()))?;
        let found = found.map_err(|error| BackendError::Shape(error.reason.to_string()))?;
        let found = serde_json::to_value(&*found).map_err(|error| BackendError::Shape(error.to_string()))?;
        budget.give_back(copied);
        budget.take(json::memory(&found))?;
        Ok(found)
    }
}

/// What the interpreter's own values take, roughly: a counted node for each value, and for each object the leaves
/// of a tree that has eleven fields in one and half of them filled.
fn variables(value: &Value) -> usize {
    const NODE: usize = size_of::<jmespath::Variable>() + 2 * size_of::<usize>();
    const LEAF: usize = 11 * (size_of::<String>() + size_of::<usize>()) + 2 * size_of::<usize>();
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<usize>() + variables(item)).sum(),
        Value::Object(fields) => {
            let leaves = fields.len().div_ceil(6) * LEAF;
            leaves + fields.iter().map(|(name, value)| name.len() + variables(value)).sum::<usize>()
        }
    }
}

/// What of a value `ast` looks at, where of what it gives only `of_it` is wanted. Lists are seen through: what is wanted of one
/// is wanted of its items. Whatever compares, or asks whether there is something, wants all of it.
fn wanted(ast: &Ast, of_it: Wanted) -> Wanted {
    match ast {
        Ast::Identity { .. } | Ast::Index { .. } | Ast::Slice { .. } => of_it,
        Ast::Field { name, .. } => Wanted::field(name, of_it),
        Ast::Subexpr { lhs, rhs, .. } | Ast::Projection { lhs, rhs, .. } => wanted(lhs, wanted(rhs, of_it)),
        Ast::Flatten { node, .. } => wanted(node, of_it),
        Ast::ObjectValues { node, .. } | Ast::Not { node, .. } => wanted(node, Wanted::All),
        Ast::Or { lhs, rhs, .. } | Ast::And { lhs, rhs, .. } => wanted(lhs, Wanted::All).and(wanted(rhs, of_it)),
        Ast::Condition { predicate, then, .. } => wanted(predicate, Wanted::All).and(wanted(then, of_it)),
        Ast::Comparison { lhs, rhs, .. } => wanted(lhs, Wanted::All).and(wanted(rhs, Wanted::All)),
        Ast::MultiList { elements, .. } => all(elements.iter()),
        Ast::MultiHash { elements, .. } => all(elements.iter().map(|pair| &pair.value)),
        Ast::Function { args, .. } => all(args.iter()),
        // What a function does with each item: its list is wanted whole.
        Ast::Expref { .. } | Ast::Literal { .. } => Wanted::nothing(),
    }
}

fn all<'a>(parts: impl Iterator<Item = &'a Ast>) -> Wanted {
    parts.fold(Wanted::nothing(), |sum, part| sum.and(wanted(part, Wanted::All)))
}

/// The first function in `ast` that does not exist: without this it is found when the first answer comes.
fn unknown_function(ast: &Ast) -> Option<&str> {
    match ast {
        Ast::Function { name, args, .. } => match DEFAULT_RUNTIME.get_function(name) {
            None => Some(name),
            Some(_) => args.iter().find_map(unknown_function),
        },
        Ast::Comparison { lhs, rhs, .. }
        | Ast::Projection { lhs, rhs, .. }
        | Ast::And { lhs, rhs, .. }
        | Ast::Or { lhs, rhs, .. }
        | Ast::Subexpr { lhs, rhs, .. } => unknown_function(lhs).or_else(|| unknown_function(rhs)),
        Ast::Condition { predicate, then, .. } => unknown_function(predicate).or_else(|| unknown_function(then)),
        Ast::Expref { ast, .. } => unknown_function(ast),
        Ast::Flatten { node, .. } | Ast::Not { node, .. } | Ast::ObjectValues { node, .. } => unknown_function(node),
        Ast::MultiList { elements, .. } => elements.iter().find_map(unknown_function),
        Ast::MultiHash { elements, .. } => elements.iter().find_map(|pair| unknown_function(&pair.value)),
        Ast::Identity { .. } | Ast::Field { .. } | Ast::Index { .. } | Ast::Literal { .. } | Ast::Slice { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(text: &str, value: &Value) -> Result<Value, String> {
        let budget = &mut NodeBudget::for_bytes(0, None);
        Projection::parse(text).unwrap().apply(Cow::Borrowed(value), budget).map_err(|error| error.to_string())
    }

    /// Whatever a projection looks at is read of an answer: with the rest left out it takes the same.
    #[test]
    fn what_is_read_for_a_projection_is_all_that_it_looks_at() {
        let text = r#"{"total":3,"ok":{},"next":{"page":2,"size":9},"items":[
            {"id":1,"title":"a","tags":["x",{"n":1,"m":2}],"owner":{"name":"Ada","age":7},"x":[[{"id":5,"q":1}]]},
            {"id":2.5,"title":"b","tags":[],"owner":null,"x":[]},{"id":3,"more":{"id":4}}]}"#;
        let whole: Value = serde_json::from_str(text).unwrap();
        let expressions = [
            "@",
            "total",
            "items",
            "items[0]",
            "items[-1].id",
            "items[].id",
            "items[*].owner.name",
            "items[1:].title",
            "items[].{id: id, owner: owner.name}",
            "items[].[id, title]",
            "items[?id > `1`].title",
            "items[?owner].id",
            "items[?owner.name == 'Ada'] | [0].tags[].n",
            "items[].tags[]",
            "items[].x[][].id",
            "next.*",
            "*.page",
            "ok || next.page",
            "ok && next.page",
            "!ok",
            "nothing || items[].more.id",
            "length(items)",
            "sort_by(items, &id)[].title",
            "max_by(items, &id).id",
            "items[?contains(title || '', 'a')].id",
            "{n: total, first: items[0].id, rest: items[1:].id}",
            "items | [?id == `3`] | [0]",
            "`7`",
            "keys(next)",
            "map(&id, items)",
            "items[].owner | [?name != 'Bob'].age",
            "[items[].id, total]",
            "not_null(ok, total)",
        ];
        for expression in expressions {
            let projection = Projection::parse(expression).unwrap();
            let budget = &mut NodeBudget::for_bytes(text.len(), None);
            let read = json::read(text, &projection.wanted(Wanted::All), budget).unwrap();
            assert_eq!(taken(expression, &read), taken(expression, &whole), "{expression}");
        }
        let projection = Projection::parse("items[].{id: id, owner: owner.name}").unwrap();
        let read = json::read(text, &projection.wanted(Wanted::All), &mut NodeBudget::for_bytes(0, None)).unwrap();
        let expected = json!({"items": [{"id": 1, "owner": {"name": "Ada"}}, {"id": 2.5, "owner": null}, {"id": 3}]});
        assert_eq!(read, expected, "and no more");
    }

    #[test]
    fn a_projection_takes_what_it_says() {
        let answer = json!({"total": 2, "items": [{"id": 1, "title": "Grün", "x": {}}, {"id": 2.5}]});
        let rows = [
            ("@", Ok(answer.clone()), "everything"),
            (
                "items[].{id: id, title: title}",
                Ok(json!([{"id": 1, "title": "Grün"}, {"id": 2.5, "title": null}])),
                "a list of fields",
            ),
            ("items[?id > `1`].id", Ok(json!([2.5])), "a filter"),
            ("nothing.here", Ok(json!(null)), "what is not there"),
            ("length(total)", Err("Runtime error: "), "a function over the wrong type"),
        ];
        for (text, expected, reason) in rows {
            let found = taken(text, &answer);
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{reason}"),
                Err(words) => assert!(found.unwrap_err().contains(words), "{reason}"),
            }
        }
    }

    #[test]
    fn what_is_no_projection_is_refused_when_it_is_read() {
        for text in ["items[", "", "a b", "lengt(items)", "items[?contains(x, no(y))]", &"a".repeat(5000)] {
            assert!(Projection::parse(text).is_err(), "{text}");
        }
    }

    /// More of any of these end the process: a stack that is used up is no panic.
    #[test]
    fn a_projection_goes_only_so_deep_as_its_interpreter_takes() {
        let value = json!({"a": [[{"a": [1]}]], "b": {"a": {"a": 1}}});
        let repeated = [
            ("a", ".a", "fields"),
            ("a", "[]", "lists in one"),
            ("a", "[*]", "each"),
            ("a", "[0]", "the first"),
            ("a", "[?a]", "those that have it"),
            ("*", ".*", "all values"),
            ("a", " || a", "another"),
            ("a", " | a", "of it"),
            ("a", " == a", "the same"),
            ("a", ".b[*]", "two"),
        ];
        for (first, more, reason) in repeated {
            let text = |times| format!("{first}{}", more.repeat(times));
            assert!(taken(&text(4), &value).is_ok(), "{reason}");
            assert!(Projection::parse(&text(100)).is_err(), "{reason}");
            let most = (4..100).rev().find_map(|times| Projection::parse(&text(times)).ok());
            let budget = &mut NodeBudget::for_bytes(0, None);
            assert!(most.unwrap().apply(Cow::Borrowed(&value), budget).is_ok(), "{reason}");
        }
        for (open, close, reason) in [
            ("[", "]", "lists"),
            ("{a: ", "}", "objects"),
            ("(", ")", "brackets"),
            ("!", "", "not"),
            ("not_null(", ")", "functions"),
            ("not_null(')', ", ")", "text that looks like an end"),
            ("a[?", "]", "conditions"),
        ] {
            let text = |times| format!("{}a{}", open.repeat(times), close.repeat(times));
            assert!(taken(&text(4), &value).is_ok(), "{reason}");
            assert!(Projection::parse(&text(100)).is_err(), "{reason}");
            let most = (4..100).rev().find_map(|times| Projection::parse(&text(times)).ok());
            let budget = &mut NodeBudget::for_bytes(0, None);
            assert!(most.unwrap().apply(Cow::Borrowed(&value), budget).is_ok(), "{reason}");
        }
        let wide = (0..60).map(|nth| format!("f{nth}: a.b.c")).collect::<Vec<_>>().join(", ");
        assert!(Projection::parse(&format!("items[?a == `1` || b].{{{wide}}}")).is_ok(), "fields beside each other");
    }
}
