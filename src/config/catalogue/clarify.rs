//! `[clarify]` of a profile: when its users are asked first, and what.

use std::sync::Arc;

use super::layers::Layer;
use crate::agent::clarify::{Gate, Group, words};
use crate::config::document::Table;

/// Questions are asked in 2 rounds, 2 at once.
const ROUNDS: u32 = 2;
const QUESTIONS: u32 = 2;

/// Reads the table into `layer`.
pub(super) fn read(table: &mut Table<'_>, layer: &mut Layer) {
    let Some(mut table) = table.table("clarify") else { return };
    let about = table.required_text("about");
    let introduction = table.required_text("introduction");
    let question = table.required_text("question");
    let rounds = table.whole("rounds").unwrap_or(ROUNDS);
    let questions = table.whole("questions").unwrap_or(QUESTIONS);
    let full = table.whole("full");
    let mut groups: Vec<Group> = Vec::new();
    if let Some(mut all) = table.table("words") {
        for name in all.keys() {
            let Some(mut group) = all.take(&name).and_then(|entry| entry.table()) else { continue };
            let weight = group.whole("weight").unwrap_or(1);
            let listed: Vec<String> = group.texts("words").iter().map(|text| words(text)).collect();
            if listed.is_empty() || listed.iter().any(String::is_empty) {
                group.wrong("needs words, none of them empty");
            }
            groups.push(Group { name, weight, words: listed });
            group.finish();
        }
        all.finish();
    }
    let mut needs: Vec<Vec<String>> = Vec::new();
    for entry in table.take("needs").map(|entry| entry.items()).unwrap_or_default() {
        let location = entry.location();
        let all: Vec<String> = match entry.is_text() {
            true => entry.text().into_iter().collect(),
            false => entry.texts(),
        };
        if let Some(unknown) = all.iter().find(|name| groups.iter().all(|group| group.name != **name)) {
            location.wrong(format_args!("{unknown:?} is not among the words"));
        }
        needs.push(all);
    }
    if questions == 0 {
        table.wrong("questions must be at least 1");
    }
    let sum = groups.iter().map(|group| group.weight).fold(0, u32::saturating_add);
    table.finish();
    if let (Some(about), Some(introduction), Some(question)) = (about, introduction, question) {
        layer.clarify = Some(Arc::new(Gate {
            about,
            introduction,
            question,
            rounds,
            questions: usize::try_from(questions).unwrap_or(usize::MAX),
            full: full.unwrap_or(sum),
            groups,
            needs,
        }));
    }
}
