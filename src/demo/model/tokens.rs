//! A message cut into tokens: words, quoted names and comparison signs. Reading stops after a bounded number of them.

/// How many characters of a message are read: more than anybody types by hand.
const MAX_CHARS: usize = 8_000;

/// A word, a quoted name or a comparison sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    /// As the user wrote it, quotes removed.
    pub text: String,
    /// The same in lower case, for comparing.
    pub low: String,
    /// Whether it stood in quotes: then it is a name and never a keyword.
    pub quoted: bool,
    /// What follows it.
    pub then: Break,
}

/// What separates a token from the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    /// Nothing but space.
    None,
    /// A comma.
    Comma,
    /// The end of a sentence or line.
    Stop,
}

/// The tokens of `text`, in order.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().take(MAX_CHARS).collect();
    let at = |i: usize| chars.get(i).copied();
    let is_word = |i: usize| at(i).is_some_and(char::is_alphanumeric);
    let mut found: Vec<Token> = Vec::new();
    let mut i = 0;
    while let Some(c) = at(i) {
        if let Some(end) = closing_quote(&chars, i) {
            let name: String = chars.get(i + 1..end).unwrap_or_default().iter().collect();
            push(&mut found, name.trim(), true);
            i = end + 1;
            continue;
        }
        match c {
            ',' => mark(&mut found, Break::Comma),
            '?' | ';' | '\n' | '.' | ':' => mark(&mut found, Break::Stop),
            '!' if at(i + 1) != Some('=') => mark(&mut found, Break::Stop),
            '<' | '>' | '=' | '!' => {
                let start = i;
                while at(i + 1).is_some_and(|next| matches!(next, '<' | '>' | '=')) {
                    i += 1;
                }
                let sign: String = chars.get(start..=i).unwrap_or_default().iter().collect();
                push(&mut found, &sign, false);
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '@' | '-' | '+') => {
                let start = i;
                let inside = |i: usize| match at(i) {
                    Some(c) if c.is_alphanumeric() || matches!(c, '_' | '@' | '-' | '+' | '%' | '/') => true,
                    Some('.' | ':' | '\'' | '’') => is_word(i + 1),
                    Some(_) | None => false,
                };
                while inside(i + 1) {
                    i += 1;
                }
                let word: String = chars.get(start..=i).unwrap_or_default().iter().collect();
                if word.chars().any(char::is_alphanumeric) {
                    push(&mut found, word.trim_end_matches("'s").trim_end_matches("’s"), false);
                }
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Where the quoted name that opens at `open` closes; `None` when nothing opens there or it never closes.
fn closing_quote(chars: &[char], open: usize) -> Option<usize> {
    let close = match chars.get(open)? {
        '"' => '"',
        '“' => '”',
        '`' => '`',
        '\'' => '\'',
        '‘' => '’',
        _ => return None,
    };
    let is_word = |i: usize| chars.get(i).is_some_and(|c| c.is_alphanumeric());
    if open > 0 && is_word(open - 1) {
        return None;
    }
    let line = chars.iter().enumerate().skip(open + 1).take_while(|(_, c)| **c != '\n');
    let mut candidates = line.filter(|(_, c)| **c == close).map(|(i, _)| i);
    candidates.find(|&i| i > open + 1 && !is_word(i + 1))
}

fn push(found: &mut Vec<Token>, text: &str, quoted: bool) {
    if !text.is_empty() {
        found.push(Token { text: text.to_owned(), low: text.to_lowercase(), quoted, then: Break::None });
    }
}

fn mark(found: &mut [Token], then: Break) {
    if let Some(last) = found.last_mut() {
        last.then = match (last.then, then) {
            (Break::Stop, _) | (_, Break::Stop) => Break::Stop,
            (Break::None | Break::Comma, other) => other,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_words_names_and_signs() {
        let cases: &[(&str, &[&str], &str)] = &[
            ("What's this?", &["What", "this."], "the possessive ending is dropped"),
            ("qty<10, then stop", &["qty", "<", "10,", "then", "stop"], "signs need no spaces"),
            ("a >= 2 != b!", &["a", ">=", "2", "!=", "b."], "two-character signs stay together"),
            ("hide \"Unit Cost\" now", &["hide", "\"Unit Cost\"", "now"], "a quoted name is one token"),
            ("don't say 'Low Stock'", &["don't", "say", "\"Low Stock\""], "an apostrophe in a word opens nothing"),
            ("mail a.b@c.org.", &["mail", "a.b@c.org."], "the dots of an address stay inside"),
            ("an \"open quote", &["an", "open", "quote"], "an unclosed quote is ignored"),
            ("“Größe” – prüfen", &["\"Größe\"", "prüfen"], "letters of any script count"),
            ("\u{1F600} '' \"\" - ", &[], "no words, no tokens"),
        ];
        for (text, expected, why) in cases {
            let shown: Vec<String> = tokens(text).iter().map(show).collect();
            assert_eq!(&shown, expected, "{why}");
        }
    }

    fn show(token: &Token) -> String {
        let text = if token.quoted { format!("{:?}", token.text) } else { token.text.clone() };
        text + match token.then {
            Break::None => "",
            Break::Comma => ",",
            Break::Stop => ".",
        }
    }
}
