//! Tools by words: BM25 (Robertson and Zaragoza 2009) over their names, descriptions and sample questions. Pure.

use std::collections::{BTreeMap, HashMap};

use super::by_score;
use crate::agent::ports::tools::OfferedTool;

/// The usual constants: how soon a word that is repeated counts no more, and how much a long text is held back.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// A word of a name says more than one of a sample question, and that more than one of a description.
const NAME: f64 = 3.0;
const SAMPLE: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;

/// The weight of the name of a tool that was used last, beside the words of the question.
const RECENT: f64 = 0.5;

/// 200 words of a question, and 2,000 of a tool, are looked at.
const QUESTION_WORDS: usize = 200;
const TOOL_WORDS: usize = 2000;

/// Words that are in every sentence.
const EMPTY: [&str; 48] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for",
    "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or", "our", "please",
    "that", "the", "their", "them", "there", "this", "to", "was", "we", "what", "which", "with", "would", "you",
    "your",
];

/// The indices of the tools that have words of the question, best first.
pub(super) fn ranked(question: &str, recent: &[&str], texts: &[&Weighed]) -> Vec<usize> {
    // In order, since a sum of numbers depends on it.
    let mut wanted: BTreeMap<String, f64> = BTreeMap::new();
    for word in words(question).take(QUESTION_WORDS) {
        wanted.insert(word, 1.0);
    }
    for word in recent.iter().flat_map(|name| words(name)).take(QUESTION_WORDS) {
        wanted.entry(word).or_insert(RECENT);
    }
    let mean = texts.iter().map(|text| text.length).sum::<f64>() / texts.len().max(1) as f64;
    let mut scores = vec![0.0; texts.len()];
    for (word, weight) in &wanted {
        let having = texts.iter().filter(|text| text.weights.contains_key(word)).count() as f64;
        if having == 0.0 {
            continue;
        }
        // Never negative in this formula: a word that most tools have still counts a little.
        let rarity = (1.0 + (texts.len() as f64 - having + 0.5) / (having + 0.5)).ln();
        for (score, text) in scores.iter_mut().zip(texts) {
            let Some(often) = text.weights.get(word) else { continue };
            let held_back = SATURATION * (1.0 - LENGTH + LENGTH * text.length / mean.max(f64::MIN_POSITIVE));
            *score += weight * rarity * often * (SATURATION + 1.0) / (often + held_back);
        }
    }
    by_score(&scores)
}

/// A tool's words with what they count, and all of that together.
#[derive(Debug)]
pub(super) struct Weighed {
    /// The weight of each word.
    pub(super) weights: HashMap<String, f64>,
    length: f64,
}

/// The words of a tool.
pub(super) fn weighed(tool: &OfferedTool) -> Weighed {
    let name = words(&tool.def.name).map(|word| (word, NAME));
    let samples = tool.samples.iter().flat_map(|sample| words(sample)).map(|word| (word, SAMPLE));
    let description = words(&tool.def.description).map(|word| (word, DESCRIPTION));
    let mut weights: HashMap<String, f64> = HashMap::new();
    for (word, weight) in name.chain(samples).chain(description).take(TOOL_WORDS) {
        *weights.entry(word).or_default() += weight;
    }
    // The order of a sum makes no difference here: all are whole.
    let length = weights.values().sum();
    Weighed { weights, length }
}

/// The words of a text as they are compared: split where letters and digits end and where a small letter is followed by a
/// capital, in small letters, without an English plural, without those that are in every sentence.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars().chain([' ']) {
        if !word.is_empty() && (!c.is_alphanumeric() || (was_small && c.is_uppercase())) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    words.into_iter().filter(|word| !EMPTY.contains(&word.as_str())).map(singular)
}

/// `queries` is `query`, `searches` is `search`, `reports` is `report`; `status` and `class` stay.
fn singular(word: String) -> String {
    if word.len() <= 3 || !word.is_ascii() {
        return word;
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    if let Some(stem) =
        word.strip_suffix("es").filter(|stem| ["s", "x", "ch", "sh"].iter().any(|end| stem.ends_with(end)))
    {
        return stem.to_owned();
    }
    match word.strip_suffix('s').filter(|stem| !stem.ends_with(['s', 'u', 'i'])) {
        Some(stem) => stem.to_owned(),
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::texts::Texts;
    use std::sync::Arc;

    use super::*;
    use crate::chat::tool::{Effect, Policy, ToolDef};

    fn tools() -> Vec<OfferedTool> {
        [
            ("search_articles", "Searches the library for articles by their text.", &["find papers about CRISPR"][..]),
            ("get_article", "Reads one article with its abstract.", &[]),
            ("listCustomers", "Lists the customers of the company, page by page.", &["who buys from us?"]),
            ("close_ticket", "Closes a ticket of the help desk with a reason.", &[]),
            ("weather__forecast", "The weather of the next days in a city.", &["will it rain tomorrow?"]),
        ]
        .into_iter()
        .map(|(name, description, samples)| OfferedTool {
            def: Arc::new(ToolDef {
                name: name.to_owned(),
                description: description.to_owned(),
                input_schema: json!({"type": "object"}),
            }),
            policy: Policy::default(),
            effect: Effect::Read,
            moves_to: None,
            operation: None,
            samples: samples.iter().map(|sample| (*sample).to_owned()).collect(),
            only_if: None,
            bare_text: None,
        })
        .collect()
    }

    #[test]
    fn the_tool_that_a_question_is_about_comes_first() {
        let tools = tools();
        let texts = Texts::default().texts_for(&tools.iter().collect::<Vec<_>>());
        let rows: [(&str, &[&str], Option<&str>, &str); 12] = [
            ("search articles on gene editing", &[], Some("search_articles"), "words of the name"),
            ("find me a paper about CRISPR", &[], Some("search_articles"), "a sample question, in the singular"),
            ("Show me all customers", &[], Some("listCustomers"), "a name in camel case"),
            ("which customer is the largest?", &[], Some("listCustomers"), "one of many"),
            ("please close the ticket", &[], Some("close_ticket"), "words between"),
            ("CLOSE TICKET!!!", &[], Some("close_ticket"), "capitals and marks"),
            ("will it rain in Oslo?", &[], Some("weather__forecast"), "a sample question"),
            ("read the abstract", &[], Some("get_article"), "a word of a description"),
            ("and in Bergen?", &["weather__forecast"], Some("weather__forecast"), "what was used last"),
            ("close the ticket", &["weather__forecast"], Some("close_ticket"), "but the question says more"),
            ("how are you", &[], None, "nothing fits"),
            ("", &[], None, "no question"),
        ];
        for (question, recent, expected, reason) in rows {
            let best = ranked(question, recent, &texts.iter().map(|text| &text.words).collect::<Vec<_>>())
                .first()
                .map(|at| tools[*at].def.name.as_str());
            assert_eq!(best, expected, "{reason}");
        }
    }

    #[test]
    fn words_are_what_is_compared() {
        let rows: [(&str, &[&str], &str); 6] = [
            ("get_userNames2Day", &["get", "user", "names2", "day"], "snake and camel"),
            ("HTTPStatus queries", &["httpstatus", "query"], "capitals in a row are one word"),
            ("boxes, searches; status of classes", &["box", "search", "status", "class"], "plurals"),
            ("Ärzte in Zürich", &["ärzte", "zürich"], "any alphabet"),
            ("the of and", &[], "words of every sentence"),
            ("日本語", &["日本語"], "no capitals there"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(words(text).collect::<Vec<_>>(), expected, "{reason}");
        }
    }
}
