//! Projections: JMESPath over a backend's answer, compiled once. The language is total, so none runs for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jmespath::ast::Ast;
use jmespath::{DEFAULT_RUNTIME, Expression};
use serde_json::Value;

use crate::chat::nesting::Nesting;

/// 4 KiB: what a person still reads.
const MAX_BYTES: usize = 4096;

/// How many steps may stand in each other, those in a row included: `a.b.c` has two, brackets count two. The interpreter
/// takes up to 10 KiB of stack for one, unoptimized, and a thread has 2 MiB.
const MAX_STEPS: usize = 80;

/// What brackets count.
const BRACKETS: usize = 2;

/// What is taken of a value.
#[derive(Debug, Clone, Default)]
pub struct Projection(Option<Arc<Expression<'static>>>);

impl Projection {
    /// The projection in `text`; `@` takes everything as it is.
    ///
    /// # Errors
    /// What is wrong with it, in words for the operator.
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

    /// What is taken of `value`.
    ///
    /// # Errors
    /// When the value does not allow it: a function got an argument of the wrong type.
    pub fn of(&self, value: &Value) -> Result<Value, String> {
        let Some(expression) = &self.0 else { return Ok(value.clone()) };
        // It is somebody else's interpreter over somebody else's data.
        let found = catch_unwind(AssertUnwindSafe(|| expression.search(value)));
        let found = found.map_err(|_| "it cannot be applied".to_owned())?;
        let found = found.map_err(|error| error.reason.to_string())?;
        serde_json::to_value(&*found).map_err(|error| error.to_string())
    }
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
            let found = Projection::parse(text).unwrap().of(&answer);
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
            assert!(Projection::parse(&text(4)).unwrap().of(&value).is_ok(), "{reason}");
            assert!(Projection::parse(&text(100)).is_err(), "{reason}");
            let most = (4..100).rev().find_map(|times| Projection::parse(&text(times)).ok());
            assert!(most.unwrap().of(&value).is_ok(), "{reason}");
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
            assert!(Projection::parse(&text(4)).unwrap().of(&value).is_ok(), "{reason}");
            assert!(Projection::parse(&text(100)).is_err(), "{reason}");
            let most = (4..100).rev().find_map(|times| Projection::parse(&text(times)).ok());
            assert!(most.unwrap().of(&value).is_ok(), "{reason}");
        }
        let wide = (0..60).map(|nth| format!("f{nth}: a.b.c")).collect::<Vec<_>>().join(", ");
        assert!(Projection::parse(&format!("items[?a == `1` || b].{{{wide}}}")).is_ok(), "fields beside each other");
    }
}
