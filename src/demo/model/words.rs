//! A message as words and clauses, and the few questions that intents ask of them.

use serde_json::{Number, Value};

/// How many characters of a message are read: more than a user types by hand.
const MAX_CHARS: usize = 8_000;

/// Words that stand before the verb of a request, or before a name, and say nothing.
const FILLERS: &str =
    "a all also an and can could hello hey hi i just let like me now please the then to us want would you";

/// Words that end a name that stands without quotes.
const NAME_ENDS: &str = "and as called column for if is on saying table that then to when with";

fn is_in(words: &str, low: &str) -> bool {
    words.split(' ').any(|word| word == low)
}

/// A word, a name in quotes, or a sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    /// As the user wrote it.
    pub text: String,
    /// In lower case, for comparing; empty for a name in quotes, which is no word.
    pub low: String,
    /// Whether a comma, or the end of a sentence or line, follows it.
    pub ends: bool,
}

/// The words of `text`, in order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let text: String = text.chars().take(MAX_CHARS).collect();
    let mut found: Vec<Word> = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (text, low, tail);
            match quoted(rest) {
                Some((name, after)) => (text, low, tail, rest) = (name, String::new(), "", after),
                None => {
                    let (chunk, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '<' | '>' | '=');
                    let word = chunk.trim_matches(|c| !is_part(c));
                    let word = word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(word);
                    (text, low, tail, rest) = (word, word.to_lowercase(), chunk, after);
                }
            }
            rest = rest.trim_start();
            if !text.is_empty() {
                found.push(Word { text: text.to_owned(), low, ends: false });
            }
            let ends = rest.is_empty() || tail.ends_with([',', '.', '?', '!', ';', ':']);
            found.last_mut().into_iter().for_each(|word| word.ends |= ends);
        }
    }
    found
}

/// The name in quotes that `text` begins with, and what stands behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let open = text.chars().next()?;
    let close = match open {
        '"' | '`' => open,
        '“' => '”',
        _ => return None,
    };
    let (name, after) = text.get(open.len_utf8()..)?.split_once(close)?;
    Some((name.trim(), after)).filter(|(name, _)| !name.is_empty())
}

/// One request within a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clause<'a>(pub &'a [Word]);

/// `words` cut at "and", "then" and punctuation before a word that begins a request.
pub(super) fn clauses(words: &[Word], is_verb: impl Fn(&str) -> bool) -> Vec<Clause<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, word) in words.iter().enumerate() {
        let next = Clause(words.get(at + 1..).unwrap_or_default());
        let joins = at > start && matches!(word.low.as_str(), "and" | "then");
        if (word.ends || joins) && is_verb(next.verb()) {
            found.push(Clause(words.get(start..=at).unwrap_or_default()));
            start = at + 1;
        }
    }
    found.push(Clause(words.get(start..).unwrap_or_default()));
    found.retain(|clause| !clause.0.is_empty());
    found
}

impl<'a> Clause<'a> {
    /// The first word that says something, in lower case.
    pub(super) fn verb(self) -> &'a str {
        self.0.iter().map(|word| word.low.as_str()).find(|low| !is_in(FILLERS, low)).unwrap_or_default()
    }

    /// Whether it has one of `words`.
    pub(super) fn has(self, words: &[&str]) -> bool {
        self.position(words).is_some()
    }

    /// The position of the first of `words`.
    pub(super) fn position(self, words: &[&str]) -> Option<usize> {
        self.0.iter().position(|word| words.contains(&word.low.as_str()))
    }

    /// What stands behind the first of `words`.
    pub(super) fn behind(self, words: &[&str]) -> Option<Self> {
        self.0.get(self.position(words)? + 1..).map(Self)
    }

    /// What stands before the first of `words`, or all of it.
    pub(super) fn before(self, words: &[&str]) -> Self {
        Self(self.0.get(..self.position(words).unwrap_or(self.0.len())).unwrap_or_default())
    }

    /// The first name in quotes.
    pub(super) fn quoted(self) -> Option<&'a str> {
        self.0.iter().find(|word| word.low.is_empty()).map(|word| word.text.as_str())
    }

    /// The name it begins with: the one in quotes there, else the words up to one that cannot belong to a name.
    pub(super) fn name(self) -> Option<String> {
        let mut name: Vec<&str> = Vec::new();
        for word in self.0.iter().skip_while(|word| is_in(FILLERS, &word.low)) {
            if word.low.is_empty() && name.is_empty() {
                return Some(word.text.clone());
            }
            if word.low.is_empty() || is_in(NAME_ENDS, &word.low) {
                break;
            }
            name.push(&word.text);
            if word.ends {
                break;
            }
        }
        (!name.is_empty()).then(|| name.join(" "))
    }

    /// Its proper name: the name in quotes, else the capitalised words after the first one.
    pub(super) fn proper_name(self) -> Option<String> {
        let is_capital = |word: &&Word| word.text.starts_with(char::is_uppercase);
        let words = self.0.iter().skip(1).skip_while(|word| !is_capital(word));
        let name: Vec<&str> = words.take_while(is_capital).map(|word| word.text.as_str()).collect();
        self.quoted().map(str::to_owned).or_else(|| (!name.is_empty()).then(|| name.join(" ")))
    }

    /// `schema.table` where it names one.
    pub(super) fn table(self) -> Option<&'a str> {
        self.0.iter().map(|word| word.low.as_str()).find(|low| is_table(low))
    }
}

fn is_table(low: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    low.split_once('.').is_some_and(|(schema, table)| is_name(schema) && is_name(table))
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// It is less.
    Less,
    /// It is more.
    Greater,
    /// It is the same.
    Equal,
}

/// A field, how it is compared, and with what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comparison {
    /// The field, its words joined by `_`.
    pub field: String,
    /// How.
    pub operator: Operator,
    /// With what.
    pub value: Value,
}

const LESS: &[&str] = &["<", "below", "under", "less", "lower", "fewer"];
const GREATER: &[&str] = &[">", "above", "over", "more", "greater", "higher", "exceeds"];
const EQUAL: &[&str] = &["=", "==", "is", "equals"];

/// Words between a field and its operator.
const COPULAS: &[&str] = &["is", "are", "drops", "falls", "goes", "rises", "of", "gets"];

/// Words that a field's name does not have: it stands behind the last of them.
const NO_FIELD: &str = "a an and by condition filter if of on only rows rule show step that the this what when whenever where which workflow";

impl Comparison {
    /// The first comparison in `clause`.
    pub(super) fn find(clause: Clause<'_>) -> Option<Self> {
        let operators = [(LESS, Operator::Less), (GREATER, Operator::Greater), (EQUAL, Operator::Equal)];
        operators.into_iter().find_map(|(words, operator)| {
            let field = field(clause.before(words))?;
            let mut behind = clause.behind(words)?.0.iter();
            let value = behind.find(|word| !matches!(word.low.as_str(), "than" | "the" | "to"))?;
            let value = if value.low.is_empty() { Value::from(value.text.as_str()) } else { literal(&value.text) };
            Some(Self { field, operator, value })
        })
    }

    /// It in words.
    pub(super) fn text(&self) -> String {
        let is = match self.operator {
            Operator::Less => "is less than",
            Operator::Greater => "is greater than",
            Operator::Equal => "is",
        };
        format!("{} {is} {}", self.field, super::say::brief(&self.value))
    }
}

/// The field at the end of `clause`.
fn field(clause: Clause<'_>) -> Option<String> {
    let words = clause.0.iter().rev().skip_while(|word| COPULAS.contains(&word.low.as_str()) || is_table(&word.low));
    let mut name: Vec<&str> =
        words.take_while(|word| !is_in(NO_FIELD, &word.low)).map(|word| word.text.as_str()).collect();
    name.reverse();
    (1..=3).contains(&name.len()).then(|| name.join("_").to_lowercase())
}

/// `text` as a number if it is one, else as it is.
fn literal(text: &str) -> Value {
    let number = text.parse::<i64>().map(Value::from);
    number.ok().or_else(|| Some(Value::Number(Number::from_f64(text.parse().ok()?)?))).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_words_names_and_clauses() {
        let rows = [
            ("What's this?", "What this.", "the possessive ending is dropped"),
            ("hide \"Unit Cost\", now", "hide <Unit Cost>. now.", "a name in quotes is one word"),
            ("mail a.b@c.org.\nan \"open quote", "mail a.b@c.org. an open quote.", "dots of an address stay inside"),
            ("“Größe” – prüfen \u{1F600} \"\" ", "<Größe> prüfen.", "letters of any script, and nothing else"),
        ];
        for (text, expected, reason) in rows {
            let printed = words(text).into_iter().map(|Word { text, low, ends }| {
                let text = if low.is_empty() { format!("<{text}>") } else { text };
                if ends { text + "." } else { text }
            });
            assert_eq!(printed.collect::<Vec<_>>().join(" "), expected, "{reason}");
        }
        let all = words("list this and that, then hide it. Hide 3");
        let cut = clauses(&all, |verb| verb == "hide");
        assert_eq!(cut.iter().map(|clause| clause.verb()).collect::<Vec<_>>(), ["list", "hide", "hide"]);
    }

    #[test]
    fn a_comparison_is_found_in_plain_words() {
        let rows = [
            ("add a condition step if quantity < 10", Some("quantity is less than 10")),
            ("when quantity of inventory.inventory_items is less than 10", Some("quantity is less than 10")),
            ("if the total amount is above 99.5", Some("total_amount is greater than 99.5")),
            ("filter by status = open", Some("status is open")),
            ("where the owner is \"Ann Lee\"", Some("owner is Ann Lee")),
            ("quantity <", None),
            ("what is this", None),
            ("add an alert", None),
        ];
        for (text, expected) in rows {
            let found = Comparison::find(Clause(&words(text))).map(|found| found.text());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
