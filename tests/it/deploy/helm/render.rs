//! The part of Helm's template language that the chart keeps to: values, `if` with a few conditions, `range`, `include`, `toYaml`,
//! `quote`, `replace`, `nindent` and `fail`. Anything else fails the test, so that the chart stays as simple as this.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Debug, Clone)]
enum Token {
    Text(String),
    Action(String),
}

/// What templates of one chart share: its values and the texts that it has names for.
pub struct Renderer {
    root: Value,
    named: BTreeMap<String, Vec<Token>>,
    /// What the chart refuses its values for.
    refusal: RefCell<Option<String>>,
}

impl Renderer {
    /// With the names that `helpers` defines.
    pub fn new(root: Value, helpers: &str) -> Self {
        let mut named = BTreeMap::new();
        let mut tokens = tokens(helpers).into_iter();
        while let Some(token) = tokens.next() {
            let Token::Action(action) = token else { continue };
            let name = action.strip_prefix("define ").unwrap_or_else(|| panic!("only define: {action}"));
            let body = tokens.by_ref().take_while(|token| !matches!(token, Token::Action(a) if a == "end")).collect();
            named.insert(name.trim_matches('"').to_owned(), body);
        }
        Self { root, named, refusal: RefCell::default() }
    }

    /// A template's text, or the words of its `fail`.
    pub fn render(&self, template: &str) -> Result<String, String> {
        let tokens = tokens(template);
        let mut out = String::new();
        let end = self.block(&tokens, 0, &BTreeMap::new(), true, &mut out);
        assert_eq!(end, tokens.len(), "an end too many");
        self.refusal.take().map_or(Ok(out), Err)
    }

    /// Renders up to the `end` or `else` of this block, or to the end of all; where it stopped.
    fn block(
        &self,
        tokens: &[Token],
        mut at: usize,
        vars: &BTreeMap<&str, Value>,
        on: bool,
        out: &mut String,
    ) -> usize {
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Text(text) if on => out.push_str(text),
                Token::Text(_) => {}
                Token::Action(action) => {
                    let (word, rest) = action.split_once(' ').unwrap_or((action, ""));
                    match word {
                        "end" | "else" => return at,
                        "if" => {
                            let holds = is_true(&self.condition(rest, vars));
                            at = self.block(tokens, at + 1, vars, on && holds, out);
                            if matches!(&tokens[at], Token::Action(action) if action == "else") {
                                at = self.block(tokens, at + 1, vars, on && !holds, out);
                            }
                        }
                        "range" => {
                            let (names, path) = rest.split_once(" := ").expect("range $k, $v := path");
                            let (key, value) = names.split_once(", ").expect("range $k, $v := path");
                            let all = self.value(path, vars);
                            let mut end = self.block(tokens, at + 1, vars, false, &mut String::new());
                            for (k, v) in all.as_object().unwrap_or_else(|| panic!("{path} is no map")) {
                                let mut vars = vars.clone();
                                vars.extend([(key, Value::from(k.as_str())), (value, v.clone())]);
                                end = self.block(tokens, at + 1, &vars, on, out);
                            }
                            at = end;
                        }
                        "fail" if on => _ = self.refusal.borrow_mut().get_or_insert(rest.trim_matches('"').to_owned()),
                        _ if on => out.push_str(&self.piped(action, vars)),
                        _ => {}
                    }
                }
            }
            at += 1;
        }
        at
    }

    /// A value, or one of the functions that conditions are made of, with arguments that may be such in brackets.
    fn condition(&self, text: &str, vars: &BTreeMap<&str, Value>) -> Value {
        let mut words = words(text).into_iter();
        let first = words.next().unwrap();
        let given: Vec<Value> = words
            .map(|word| match word.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
                Some(inner) => self.condition(inner, vars),
                None => self.value(word, vars),
            })
            .collect();
        let number = |at: usize| given[at].as_i64().unwrap_or_else(|| panic!("{text}: no number"));
        match (first, given.len()) {
            (path, 0) => self.value(path, vars),
            ("not", 1) => Value::from(!is_true(&given[0])),
            ("and", _) => Value::from(given.iter().all(is_true)),
            ("or", _) => Value::from(given.iter().any(is_true)),
            ("int", 1) => Value::from(number(0)),
            ("add", 2) => Value::from(number(0) + number(1)),
            ("le", 2) => Value::from(number(0) <= number(1)),
            _ => panic!("{text} is not known here"),
        }
    }

    /// A value and the functions that it goes through.
    fn piped(&self, action: &str, vars: &BTreeMap<&str, Value>) -> String {
        let mut stages = action.split(" | ");
        let first = stages.next().unwrap();
        let mut text = match first.split_once(' ') {
            Some(("include", rest)) => {
                let name = rest.strip_suffix(" .").expect("include \"name\" .").trim_matches('"');
                let mut out = String::new();
                self.block(&self.named[name], 0, vars, true, &mut out);
                out
            }
            Some(("toYaml", path)) => yaml(&self.value(path, vars)),
            Some((other, _)) => panic!("{other} is not known here"),
            None => match self.value(first, vars) {
                Value::String(text) => text,
                value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
                value => panic!("{first} is {value}"),
            },
        };
        for stage in stages {
            text = match stage.split_once(' ') {
                None if stage == "quote" => Value::from(text).to_string(),
                Some(("replace", what)) => {
                    let (old, new) = what.split_once(' ').expect("replace OLD NEW");
                    text.replace(old.trim_matches('"'), new.trim_matches('"'))
                }
                Some(("nindent", columns)) => {
                    let blanks = " ".repeat(columns.parse().unwrap());
                    text.lines().map(|line| format!("\n{blanks}{line}")).collect()
                }
                _ => panic!("{stage} is not known here"),
            };
        }
        text
    }

    fn value(&self, path: &str, vars: &BTreeMap<&str, Value>) -> Value {
        if path.starts_with('$') {
            return vars[path].clone();
        }
        let path = path.strip_prefix('.').unwrap_or_else(|| panic!("{path} is no path"));
        let found = path.split('.').try_fold(&self.root, |value, key| value.get(key));
        found.unwrap_or_else(|| panic!("no value .{path}")).clone()
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// The words of a condition; what stands in brackets is one.
fn words(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut begun) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 => {
                found.push(&text[begun..at]);
                begun = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[begun..]);
    found
}

fn tokens(template: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once("{{") {
        let (action, mut after) = after.split_once("}}").expect("an action ends");
        let (text, action) = match action.strip_prefix('-') {
            Some(action) => (text.trim_end(), action),
            None => (text, action),
        };
        let action = match action.strip_suffix('-') {
            Some(action) => {
                after = after.trim_start();
                action
            }
            None => action,
        };
        found.extend([Token::Text(text.to_owned()), Token::Action(action.trim().to_owned())]);
        rest = after;
    }
    found.push(Token::Text(rest.to_owned()));
    found
}

/// A value as YAML, texts always quoted.
fn yaml(value: &Value) -> String {
    let indented = |value: &Value| yaml(value).replace('\n', "\n  ");
    match value {
        Value::Object(map) if !map.is_empty() => {
            let lines = map.iter().map(|(key, value)| match value {
                Value::Object(inner) if !inner.is_empty() => format!("{key}:\n  {}", indented(value)),
                Value::Array(inner) if !inner.is_empty() => format!("{key}:\n  {}", indented(value)),
                other => format!("{key}: {other}"),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| format!("- {}", indented(item))).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
