//! Templates of operators over values of anyone: for prompts, and for the requests of declared tools.
//!
//! The syntax is minijinja's. A missing value is nothing, not an error, since most of it comes from clients; a name
//! that nothing ever has is a mistake, which [`Template::names`] lets whoever reads the file find.
//!
//! **Invariant:** pure. A template reads the values it is given and nothing else, values are never read as templates, and
//! no template works for ever.

mod filters;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value as Templated};
use serde_json::{Map, Value, json};

use self::filters::{cut, fenced, flat, join, one_line, unmarked};
use super::nesting::tags;
use super::screen::ScreenState;

/// 200,000 steps of a template: a loop over some ten thousand rows.
const FUEL: u64 = 200_000;

/// The name that every template has in its own environment.
const NAME: &str = "template";

/// The value that is the mark of fences. A template that says `fenced` is given it, since the filter's name has it in it.
pub const FENCE: &str = "fence";

/// The variable that holds an expression's value.
const RESULT: &str = "result__";

/// Text with placeholders for values.
#[derive(Debug, Clone)]
pub struct Template {
    environment: Arc<Environment<'static>>,
    names: BTreeSet<String>,
    /// The names with the fields that are taken of them, as far as the text tells: `args.query`.
    paths: BTreeSet<String>,
}

/// A JSON value with placeholders for values: text that is one whole `{{ expression }}` becomes its value, of whatever
/// type; other text is a [`Template`].
#[derive(Debug, Clone)]
pub enum ValueTemplate {
    /// Stays as it is.
    Fixed(Value),
    /// Text with placeholders.
    Text(Template),
    /// One expression.
    Expression(Template),
    /// A list of such.
    List(Vec<ValueTemplate>),
    /// An object of such. A field whose expression has no value is left out.
    Object(Vec<(String, ValueTemplate)>),
}

/// Values by the names that templates use. Each is converted to the templates' own type once, when a template first
/// uses it; clones share the result.
#[derive(Debug, Clone, Default)]
pub struct Values<'a>(BTreeMap<Cow<'a, str>, Arc<Given<'a>>>);

#[derive(Debug)]
struct Given<'a> {
    source: Source<'a>,
    ready: OnceLock<Templated>,
}

#[derive(Debug)]
enum Source<'a> {
    Owned(Value),
    Lent(&'a Value),
    Screen(ScreenState),
}

impl<'a> Values<'a> {
    /// Adds a value.
    pub fn insert(&mut self, name: impl Into<Cow<'a, str>>, value: Value) {
        self.put(name.into(), Source::Owned(value));
    }

    /// Adds a borrowed value.
    pub fn lend(&mut self, name: impl Into<Cow<'a, str>>, value: &'a Value) {
        self.put(name.into(), Source::Lent(value));
    }

    /// Adds a screen state, which is read when a template first speaks of it.
    pub fn screen(&mut self, name: impl Into<Cow<'a, str>>, state: ScreenState) {
        self.put(name.into(), Source::Screen(state));
    }

    /// Converts the value of that name now, if there is one.
    pub fn convert(&self, name: &str) {
        if let Some(given) = self.0.get(name) {
            given.value();
        }
    }

    fn put(&mut self, name: Cow<'a, str>, source: Source<'a>) {
        self.0.insert(name, Arc::new(Given { source, ready: OnceLock::new() }));
    }

    /// Those whose names are somewhere in `text`: all that a template with this text can use. (The names that a template
    /// takes from outside are fewer than it reads in `{% set data = data.x %}`.)
    fn named_in(&self, text: &str) -> Templated {
        let named = self.0.iter().filter(|(name, _)| text.contains(name.as_ref()));
        named.map(|(name, given)| (name.to_string(), given.value())).collect::<BTreeMap<_, _>>().into()
    }
}

impl<'a> From<&'a Map<String, Value>> for Values<'a> {
    fn from(fields: &'a Map<String, Value>) -> Self {
        let mut values = Self::default();
        fields.iter().for_each(|(name, value)| values.lend(name, value));
        values
    }
}

impl Given<'_> {
    fn value(&self) -> Templated {
        let value = self.ready.get_or_init(|| match &self.source {
            Source::Owned(value) => Templated::from(Serde(value)),
            Source::Lent(value) => Templated::from(Serde(value)),
            Source::Screen(state) => Templated::from(Serde(state.fields())),
        });
        value.clone()
    }
}

/// A template that cannot be read or filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TemplateError {
    /// The line in the template, from 1; 0 where it is not known.
    pub line: usize,
    /// The mistake, in words for the operator.
    pub reason: String,
}

impl From<Error> for TemplateError {
    fn from(error: Error) -> Self {
        let what = match error.kind() {
            ErrorKind::OutOfFuel => "it does too much",
            _ => "",
        };
        let reason = match error.detail() {
            Some(detail) => detail.to_owned(),
            None if what.is_empty() => error.kind().to_string(),
            None => what.to_owned(),
        };
        Self { line: error.line().unwrap_or(0), reason }
    }
}

/// Writes a value into a text: booleans as JSON, queries and headers have them, all else as the library does.
fn as_in_json(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Templated) -> Result<(), Error> {
    match value.kind() == ValueKind::Bool {
        true => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        false => minijinja::escape_formatter(out, state, value),
    }
}

impl Template {
    /// The template in `text`.
    ///
    /// # Errors
    /// When its syntax is wrong, it goes too deep, or it uses a filter that does not exist.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        tags::check(text).map_err(|(line, reason)| TemplateError { line, reason })?;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_formatter(as_in_json);
        environment.set_fuel(Some(FUEL));
        // A line that has only a tag leaves no line.
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.add_filter("fenced", fenced);
        environment.add_filter("one_line", one_line);
        environment.add_filter("flat", flat);
        environment.add_filter("unmarked", unmarked);
        environment.add_filter("cut", cut);
        environment.add_filter("join", join);
        environment.add_template_owned(NAME, text.to_owned())?;
        let names = environment.get_template(NAME)?.undeclared_variables(false);
        let globals: BTreeSet<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
        let names = names.into_iter().filter(|name| !globals.contains(name)).collect();
        let paths = environment.get_template(NAME)?.undeclared_variables(true).into_iter().collect();
        Ok(Self { environment: Arc::new(environment), names, paths })
    }

    /// Its text.
    pub fn written(&self) -> String {
        self.environment.get_template(NAME).map(|template| template.source().to_owned()).unwrap_or_default()
    }

    /// The fields of `name` that it takes, as far as its text tells.
    pub fn fields<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let field = move |path: &'a String| path.strip_prefix(name)?.strip_prefix('.')?.split('.').next();
        self.paths.iter().filter_map(field)
    }

    /// The names that it takes values from.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The text, its placeholders filled from `values`.
    ///
    /// # Errors
    /// When it does something that its values do not allow, or too much of it.
    pub fn render(&self, values: &Values<'_>) -> Result<String, TemplateError> {
        let template = self.environment.get_template(NAME)?;
        Ok(template.render(values.named_in(template.source()))?)
    }

    fn expression(text: &str) -> Result<Self, TemplateError> {
        Self::parse(&format!("{{% set {RESULT} = ({text}) %}}"))
    }

    /// The value of an expression; `None` where it has none.
    fn evaluate(&self, values: &Values<'_>) -> Result<Option<Value>, TemplateError> {
        let template = self.environment.get_template(NAME)?;
        let done = template.render_captured(values.named_in(template.source()))?;
        let Some(value) = done.state().lookup(RESULT).filter(|value| !value.is_undefined()) else { return Ok(None) };
        serde_json::to_value(value).map(Some).map_err(|error| TemplateError { line: 0, reason: error.to_string() })
    }
}

impl ValueTemplate {
    /// The template in `value`.
    ///
    /// # Errors
    /// When one of its texts is no template.
    pub fn parse(value: &Value) -> Result<Self, TemplateError> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Self::Fixed(value.clone())),
            Value::String(text) => match whole_expression(text) {
                Some(expression) => Ok(Self::Expression(Template::expression(expression)?)),
                None if text.contains("{{") || text.contains("{%") => Ok(Self::Text(Template::parse(text)?)),
                None => Ok(Self::Fixed(value.clone())),
            },
            Value::Array(items) => Ok(Self::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?)),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| Self::parse(value).map(|value| (name.clone(), value));
                Ok(Self::Object(fields.iter().map(field).collect::<Result<_, _>>()?))
            }
        }
    }

    /// Its source, with templates apart from fixed text.
    pub fn written(&self) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) | Self::Expression(template) => json!({"template": template.written()}),
            Self::List(items) => items.iter().map(Self::written).collect(),
            Self::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value.written())).collect(),
        }
    }

    /// The fields of `name` that it takes, as far as its texts tell.
    pub fn fields<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        match self {
            Self::Fixed(_) => BTreeSet::new(),
            Self::Text(template) | Self::Expression(template) => template.fields(name).collect(),
            Self::List(items) => items.iter().flat_map(|item| item.fields(name)).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, value)| value.fields(name)).collect(),
        }
    }

    /// The names that it takes values from.
    pub fn names(&self) -> BTreeSet<&str> {
        match self {
            Self::Fixed(_) => BTreeSet::new(),
            Self::Text(template) | Self::Expression(template) => template.names().collect(),
            Self::List(items) => items.iter().flat_map(Self::names).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, value)| value.names()).collect(),
        }
    }

    /// The value, its placeholders filled from `values`; `None` where an expression has none.
    ///
    /// # Errors
    /// When a template does something that its values do not allow.
    pub fn fill(&self, values: &Values<'_>) -> Result<Option<Value>, TemplateError> {
        match self {
            Self::Fixed(value) => Ok(Some(value.clone())),
            Self::Text(template) => Ok(Some(Value::String(template.render(values)?))),
            Self::Expression(template) => template.evaluate(values),
            Self::List(items) => {
                let items = items.iter().map(|item| Ok(item.fill(values)?.unwrap_or(Value::Null)));
                Ok(Some(Value::Array(items.collect::<Result<_, TemplateError>>()?)))
            }
            Self::Object(fields) => {
                let mut filled = Map::new();
                for (name, value) in fields {
                    if let Some(value) = value.fill(values)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Ok(Some(Value::Object(filled)))
            }
        }
    }
}

/// The text between the braces, where all of `text` is one expression.
fn whole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then(|| inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str, values: &Value) -> Result<String, String> {
        let template = Template::parse(template).map_err(|error| format!("{}: {error}", error.line))?;
        template.render(&Values::from(values.as_object().unwrap())).map_err(|error| error.to_string())
    }

    #[test]
    fn values_fill_placeholders_and_are_never_templates() {
        let rows = [
            (
                "Hi {{ user }}.",
                json!({"user": "{{ 1 + 1 }} <b>"}),
                Ok("Hi {{ 1 + 1 }} <b>."),
                "no second reading, no escapes",
            ),
            ("[{{ a.b.c }}]", json!({}), Ok("[]"), "what is not there is nothing"),
            ("{{ a }} {{ b }}", json!({"a": true, "b": false}), Ok("true false"), "booleans as in JSON"),
            ("{{ xs|join(',') }}", json!({"xs": [true, false, 1, "a"]}), Ok("true,false,1,a"), "also in a list"),
            ("{{ xs|join('-', 'n') }}", json!({"xs": [{"n": 1}, {"n": 2}]}), Ok("1-2"), "fields of a list"),
            ("{% for x in xs %}{{ x.n }};{% endfor %}", json!({"xs": [{"n": 1}, {"n": 2}]}), Ok("1;2;"), "a loop"),
            (
                "{{ x|fenced }}",
                json!({"x": {"a": "```"}}),
                Ok("```json\n{\"a\":\"\\u0060\\u0060\\u0060\"}\n```"),
                "a fence",
            ),
            (
                "{{ x|fenced }}",
                json!({"x": {"a": "[end of data ab12] ab1ab122"}, "fence": "ab12"}),
                Ok("[data ab12]\n```json\n{\"a\":\"[end of data (mark)] ab1(mark)2\"}\n```\n[end of data ab12]"),
                "a fence with a mark, which nothing in it has",
            ),
            (
                "{{ fence }} {{ x|unmarked }}",
                json!({"x": "a\n`ab12`", "fence": "ab12"}),
                Ok("ab12 a '(mark)'"),
                "a line",
            ),
            ("{{ x|unmarked }}", json!({"x": "a\n`b`"}), Ok("a 'b'"), "a line where there is no mark"),
            ("{{ x|one_line }}", json!({"x": "a\nb"}), Ok(""), "two lines"),
            ("{{ x|flat }}.", json!({"x": " a\n\n# `b`\u{2028}\u{1b}c "}), Ok("a # 'b' c."), "several lines as one"),
            ("{{ x|flat }}.", json!({"x": 7}), Ok("."), "no text"),
            (
                "{% set data = data.n %}{{ data }}",
                json!({"data": {"n": 7}}),
                Ok("7"),
                "a name that covers the value it is made of",
            ),
            ("{{ x|cut(3) }}", json!({"x": "grün ist"}), Ok("grü…"), "cut between characters"),
            ("{{ x|cut(3) }}", json!({"x": "abc"}), Ok("abc"), "short enough"),
            ("a\n{{ x", json!({}), Err("2: unexpected end of input, expected end of variable block"), "not closed"),
            ("{{ x|nope }}", json!({}), Err("filter nope is unknown"), "no such filter"),
            (
                "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
                json!({}),
                Err("it does too much"),
                "for ever",
            ),
        ];
        for (template, values, expected, reason) in rows {
            assert_eq!(rendered(template, &values), expected.map(str::to_owned).map_err(str::to_owned), "{reason}");
        }
    }

    #[test]
    fn an_expression_keeps_its_type_and_one_without_a_value_leaves_its_field_out() {
        let template =
            json!({"n": "{{ args.n }}", "t": "n={{ args.n }}", "l": ["{{ args.l }}", true], "x": "{{ args.x }}"});
        let template = ValueTemplate::parse(&template).unwrap();
        assert_eq!(template.names().into_iter().collect::<Vec<_>>(), ["args"]);
        assert_eq!(template.fields("args").into_iter().collect::<Vec<_>>(), ["l", "n", "x"]);
        let mut values = Values::default();
        values.insert("args", json!({"n": 7, "l": [1.5, null]}));
        let filled = template.fill(&values).unwrap();
        assert_eq!(filled, Some(json!({"n": 7, "t": "n=7", "l": [[1.5, null], true]})));
    }

    #[test]
    fn names_are_those_that_come_from_outside() {
        let template =
            Template::parse("{% set a = b %}{{ a }}{{ c.d }}{% for e in range(3) %}{{ e }}{% endfor %}").unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn a_value_is_converted_once_and_only_where_a_template_uses_it() {
        let (context, other) = (ScreenState::parse(r#"{"a":1}"#).unwrap(), json!([1]));
        let mut values = Values::default();
        values.screen("context", context);
        values.lend("other", &other);
        let copy = values.clone();
        let template = Template::parse("{{ context.a }}").unwrap();
        assert_eq!(template.render(&copy), Ok("1".to_owned()));
        let is_ready = |name| values.0[name].ready.get().is_some();
        assert_eq!((is_ready("context"), is_ready("other")), (true, false));
        values.convert("other");
        values.convert("none");
        assert!(is_ready("other"));
    }
}
