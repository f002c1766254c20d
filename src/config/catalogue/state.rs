//! `[history]` and `[recap]` of a profile: how much of a conversation its model reads, and what its runs leave behind.

use std::sync::Arc;

use super::layers::Layer;
use crate::agent::offer::profile::ContextBudget;
use crate::agent::recap::RecapKinds;
use crate::config::document::Table;

/// 10 messages stay as they are.
const KEEP_MESSAGES: u32 = 10;

/// 85 percent is nearly full.
const NEAR_PERCENT: u32 = 85;

/// Reads the tables into `layer`.
pub(super) fn read(table: &mut Table<'_>, layer: &mut Layer) {
    if let Some(mut table) = table.table("history") {
        let tokens = table.whole("budget_tokens");
        let keep = table.whole("keep_messages").unwrap_or(KEEP_MESSAGES);
        let near_percent = table.whole("near_percent").unwrap_or(NEAR_PERCENT);
        match tokens {
            None | Some(0) => table.wrong("needs budget_tokens, which is at least 1"),
            Some(tokens) => {
                if near_percent > 100 {
                    table.wrong("near_percent must be at most 100");
                }
                layer.context = Some(ContextBudget {
                    tokens: tokens.into(),
                    keep_messages: usize::try_from(keep).unwrap_or(usize::MAX),
                    near_percent: near_percent.into(),
                });
            }
        }
        table.finish();
    }
    if let Some(mut table) = table.table("recap") {
        let kinds = RecapKinds { one: table.texts("one"), many: table.texts("many") };
        let names = || kinds.one.iter().chain(&kinds.many);
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if let Some(name) = names().find(|name| !is_name(name)) {
            table.wrong(format_args!("{name:?} is no kind: small letters and _"));
        }
        if let Some(twice) = names().enumerate().find(|(at, name)| names().take(*at).any(|known| known == *name)) {
            table.wrong(format_args!("{:?} is listed twice", twice.1));
        }
        layer.recap = Some(Arc::new(kinds));
        table.finish();
    }
}
