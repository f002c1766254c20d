//! Finding what a model or a user meant by a name: exact first, then without case, then with `_` and `-` as spaces; and when
//! nothing fits, the names that come nearest, for the error message.

use std::collections::BTreeSet;

use crate::chat::line::one_line;
use uuid::Uuid;

/// How many names an error message lists.
const NEAR_NAMES: usize = 10;

/// A name and the id it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// As the backend spells it.
    pub name: String,
    /// Its id.
    pub id: String,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'a> {
    /// This one.
    One(&'a Named),
    /// Any of these.
    Several(Vec<&'a Named>),
    /// Nothing.
    Nothing,
}

/// The id in `text`, written as backends write it.
pub fn as_uuid(text: &str) -> Option<String> {
    Uuid::try_parse(text.trim()).ok().map(|id| id.hyphenated().to_string())
}

/// What `wanted` stands for in `list`: the strictest reading that finds anything wins.
pub fn find<'a>(list: &'a [Named], wanted: &str) -> Found<'a> {
    let wanted = wanted.trim();
    let readings: [fn(&str) -> String; 3] = [str::to_owned, str::to_lowercase, plain];
    for reading in readings {
        let key = reading(wanted);
        let mut matches: Vec<&Named> = Vec::new();
        for named in list.iter().filter(|named| reading(&named.name) == key) {
            if matches.iter().all(|known| known.id != named.id) {
                matches.push(named);
            }
        }
        match matches.as_slice() {
            [] => {}
            [one] => return Found::One(one),
            _ => return Found::Several(matches),
        }
    }
    Found::Nothing
}

/// Up to ten of `names`, the most similar to `wanted` first.
pub fn near<'a>(names: impl IntoIterator<Item = &'a str>, wanted: &str) -> Vec<&'a str> {
    let wanted = plain(wanted);
    let wanted_pairs = pairs(&wanted);
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| {
            let name_plain = plain(name);
            let name_pairs = pairs(&name_plain);
            let common = wanted_pairs.intersection(&name_pairs).count();
            // Dice's coefficient in thousandths; a name that contains the wanted one, or is contained, comes before others.
            let dice = 2000 * common / (wanted_pairs.len() + name_pairs.len()).max(1);
            let contains = name_plain.contains(&wanted) || wanted.contains(&name_plain);
            (dice + if contains { 1000 } else { 0 }, name)
        })
        .collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup();
    scored.into_iter().take(NEAR_NAMES).map(|(_, name)| name).collect()
}

/// `names` quoted and joined for a sentence; `none` when there are none.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("{name:?}")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

/// `name` in lower case, `_` and `-` as spaces, runs of spaces as one.
fn plain(name: &str) -> String {
    one_line(&name.to_lowercase().replace(['_', '-'], " "))
}

/// All pairs of neighbouring characters.
fn pairs(text: &str) -> BTreeSet<(char, char)> {
    text.chars().zip(text.chars().skip(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<Named> {
        names.iter().enumerate().map(|(i, name)| Named { name: (*name).to_owned(), id: i.to_string() }).collect()
    }

    #[test]
    fn the_strictest_reading_that_finds_anything_wins() {
        let rows: [(&[&str], &str, &[&str], &str); 8] = [
            (&["Low Stock", "low stock"], "low stock", &["1"], "exact before other cases"),
            (&["Low Stock"], "LOW STOCK", &["0"], "case does not matter"),
            (&["Low Stock"], "low_stock", &["0"], "underscores in the question"),
            (&["low-stock_alert"], "Low Stock Alert", &["0"], "signs in the list"),
            (&["Low Stock"], "  Low Stock ", &["0"], "blanks around it"),
            (&["Low Stock", "Low Stock"], "Low Stock", &["0", "1"], "a name used twice is ambiguous"),
            (&["Low Stock", "LOW STOCK"], "low stock", &["0", "1"], "two spellings, neither exact"),
            (&["Low Stock"], "Low", &[], "a part of a name is not the name"),
        ];
        for (names, wanted, expected, reason) in rows {
            let names = list(names);
            let ids: Vec<&str> = match find(&names, wanted) {
                Found::One(named) => vec![&named.id],
                Found::Several(several) => several.into_iter().map(|named| named.id.as_str()).collect(),
                Found::Nothing => Vec::new(),
            };
            assert_eq!(ids, expected, "{reason}");
        }
    }

    #[test]
    fn one_thing_listed_twice_is_not_ambiguous() {
        let twice = [Named { name: "A".into(), id: "1".into() }, Named { name: "A".into(), id: "1".into() }];
        assert_eq!(find(&twice, "A"), Found::One(&twice[0]));
    }

    #[test]
    fn near_names_come_most_similar_first_and_at_most_ten() {
        let names = ["sales.orders", "inventory.inventory_items", "inventory.products", "hr.titles"];
        assert_eq!(near(names, "inventory_items")[0], "inventory.inventory_items");
        assert_eq!(near(names, "order")[0], "sales.orders");
        let many: Vec<String> = (0..30).map(|i| format!("name {i}")).collect();
        assert_eq!(near(many.iter().map(String::as_str), "name").len(), 10);
        assert_eq!(near([], "x"), Vec::<&str>::new());
    }
}
