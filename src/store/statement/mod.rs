//! Statements, before it matters for which of the two databases: texts, and the values of their parameters.
//!
//! **Invariant:** a text is this program's own, which its type demands, and input of others reaches a database as the
//! value of a parameter alone. Texts number their parameters, `$1`, `$2` …, which both databases take; words in which
//! the two differ are tokens in them, see [`dialect`].

pub(super) mod dialect;

use std::borrow::Cow;

use memchr::memchr;
use sqlx::{Arguments, Encode, Type};

use super::scope::Scope;

/// One statement.
pub(super) struct Statement {
    /// With tokens.
    pub(super) text: Cow<'static, str>,
    /// In the order of their numbers.
    pub(super) values: Vec<Value>,
    /// Where it changes rows of this table alone, reads nothing but its parameters and gives no row: such statements about
    /// different tables can be run as one.
    pub(super) table: Option<&'static str>,
}

/// The value of a parameter. `None` is `NULL`, which has a type too.
pub(super) enum Value {
    /// See [`super::scope::storable`] for texts of others that are neither JSON nor ids of ours.
    Text(Option<String>),
    Integer(Option<i64>),
    Bytes(Option<Vec<u8>>),
}

/// A value for one parameter.
pub(super) trait Parameter: Sized {
    /// Its value.
    fn value(this: Option<Self>) -> Value;
}

/// Values for the next parameters: one of those, a list of them, or a [`Scope`], which is the tenant and then the user.
pub(super) trait Parameters {
    /// Adds their values.
    fn add_to(self, values: &mut Vec<Value>);
}

impl<P: Parameter> Parameters for P {
    fn add_to(self, values: &mut Vec<Value>) {
        values.push(P::value(Some(self)));
    }
}

impl Parameters for &Scope {
    fn add_to(self, values: &mut Vec<Value>) {
        (self.tenant(), self.user()).add_to(values);
    }
}

/// Lists of these lengths.
macro_rules! lists {
    ($(($($name:ident)+))+) => {$(
        impl<$($name: Parameters),+> Parameters for ($($name,)+) {
            fn add_to(self, values: &mut Vec<Value>) {
                #[expect(non_snake_case, reason = "each is called like its type")]
                let ($($name,)+) = self;
                $($name.add_to(values);)+
            }
        }
    )+};
}

lists! {
    (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) (A B C D E F G H I)
    (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
}

impl Parameter for i64 {
    fn value(this: Option<Self>) -> Value {
        Value::Integer(this)
    }
}

impl Parameter for String {
    fn value(this: Option<Self>) -> Value {
        Value::Text(this)
    }
}

impl Parameter for &String {
    fn value(this: Option<Self>) -> Value {
        Value::Text(this.cloned())
    }
}

impl Parameter for &str {
    fn value(this: Option<Self>) -> Value {
        Value::Text(this.map(str::to_owned))
    }
}

impl Parameter for Cow<'_, str> {
    fn value(this: Option<Self>) -> Value {
        Value::Text(this.map(Cow::into_owned))
    }
}

impl Parameter for &[u8] {
    fn value(this: Option<Self>) -> Value {
        Value::Bytes(this.map(<[u8]>::to_vec))
    }
}

impl<P: Parameter> Parameter for Option<P> {
    fn value(this: Option<Self>) -> Value {
        P::value(this.flatten())
    }
}

/// A statement of this text, whose parameters are bound next. It is run by the methods that
/// [`super::database`] gives it.
pub(super) fn query(text: &'static str) -> Statement {
    Statement { text: Cow::Borrowed(text), values: Vec::new(), table: None }
}

impl Statement {
    /// Adds a part to its text where it is wanted. Parameters that no part names are bound all the same.
    pub(super) fn part(mut self, is_wanted: bool, part: &'static str) -> Self {
        if is_wanted {
            self.text.to_mut().push_str(part);
        }
        self
    }

    /// Binds the next parameters.
    pub(super) fn bind(mut self, parameters: impl Parameters) -> Self {
        parameters.add_to(&mut self.values);
        self
    }
}

/// Statements that need no answer from each other, in their order. The first that fails ends them.
#[derive(Default)]
pub(super) struct Batch(pub(super) Vec<Statement>);

impl Batch {
    /// Adds a statement, whose parameters are bound next.
    pub(super) fn say(&mut self, text: &'static str) -> &mut Self {
        self.0.push(query(text));
        self
    }

    /// Adds a change of this table alone, which reads nothing but its parameters and gives no row.
    pub(super) fn change(&mut self, table: &'static str, text: &'static str) -> &mut Self {
        self.0.push(Statement { table: Some(table), ..query(text) });
        self
    }

    /// Binds the next parameters of the last statement.
    pub(super) fn bind(&mut self, parameters: impl Parameters) -> &mut Self {
        if let Some(last) = self.0.last_mut() {
            parameters.add_to(&mut last.values);
        }
        self
    }
}

/// Writes `text` behind other texts that have `before` parameters: its own are numbered on.
pub(super) fn push_numbered(joined: &mut String, text: &str, before: usize) {
    let mut rest = text;
    while let Some(at) = memchr(b'$', rest.as_bytes()) {
        let (text, numbered) = rest.split_at(at + 1);
        joined.push_str(text);
        let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = numbered.split_at(digits);
        if let Ok(number) = digits.parse::<usize>() {
            joined.push_str(itoa::Buffer::new().format(before + number));
        }
        rest = after;
    }
    joined.push_str(rest);
}

/// Adds `values` to the parameters of a database.
///
/// # Errors
/// When one cannot be written.
pub(super) fn add_values<A: Arguments>(arguments: &mut A, values: Vec<Value>) -> Result<(), sqlx::Error>
where
    Option<String>: for<'q> Encode<'q, A::Database> + Type<A::Database>,
    Option<i64>: for<'q> Encode<'q, A::Database> + Type<A::Database>,
    Option<Vec<u8>>: for<'q> Encode<'q, A::Database> + Type<A::Database>,
{
    for value in values {
        let added = match value {
            Value::Text(text) => arguments.add(text),
            Value::Integer(number) => arguments.add(number),
            Value::Bytes(bytes) => arguments.add(bytes),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(())
}
