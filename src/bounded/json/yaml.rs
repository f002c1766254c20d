//! YAML of others, read by the same visitor as JSON: what its aliases expand to is counted like what is written out.
//!
//! The library copies some of the text's nodes before that visitor sees them: what has an anchor, what is merged, and keys
//! that are lists or objects. A quarter of the text's budget is for these copies. Where nothing can be merged it remembers
//! no names: the visitor knows which come twice.

use serde::de::Error as _;
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Error, Options};

use super::budget::{NodeBudget, budget_for};
use super::reader::Count;
use super::{JsonError, MAX_DEPTH};

/// The bytes of one copied node: its event, where it came from, and room in its list.
const COPY: usize = 256;

/// The value of a YAML `text` of one document.
///
/// # Errors
/// See [`JsonError`].
pub fn yaml(text: &str) -> Result<Value, JsonError> {
    let mut budget = NodeBudget::for_bytes(text.len(), None);
    let merged = text.contains("<<");
    let (copied, expanded) = (has(text, '&'), has(text, '?') || merged);
    let for_copies = budget_for(text.len()) / 4;
    if copied || expanded {
        budget.take(for_copies)?;
    }
    let count = Count::new(&mut budget, true);
    let names = match merged {
        true => (DuplicateKeyPolicy::Error, MergeKeyPolicy::Merge),
        false => (DuplicateKeyPolicy::PassThrough, MergeKeyPolicy::AsOrdinary),
    };
    let options = options(for_copies, expanded, names);
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| count.all_of(yaml));
    read.map_err(|error| match count.why(serde_json::Error::custom(&error)) {
        JsonError::Syntax(syntax) => refused(&error, text.len()).unwrap_or(JsonError::Syntax(syntax)),
        other => other,
    })
}

/// What the library refused that the visitor refuses too.
fn refused(error: &Error, bytes: usize) -> Option<JsonError> {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => refused(error, bytes),
        Error::DuplicateMappingKey { .. } => Some(JsonError::Twice),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => Some(JsonError::TooDeep),
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => Some(JsonError::TooMany(budget_for(bytes))),
        _ => None,
    }
}

/// How the library reads: it counts what it copies, and leaves the rest to us.
fn options(
    for_copies: usize,
    expanded: bool,
    (duplicate_keys, merge_keys): (DuplicateKeyPolicy, MergeKeyPolicy),
) -> Options {
    let copies = for_copies / COPY;
    let of_all = if expanded { copies } else { usize::MAX };
    let budget = serde_saphyr::budget! {
        // Ours comes first.
        max_depth: MAX_DEPTH + 1,
        enforce_alias_anchor_ratio: false,
        max_recorded_anchor_events: copies,
        max_recorded_anchor_bytes: for_copies,
        max_events: of_all,
        max_nodes: of_all,
    };
    let alias_limits = serde_saphyr::alias_limits! { max_total_replayed_events: of_all };
    serde_saphyr::options! {
        with_snippet: false,
        budget: budget,
        alias_limits: alias_limits,
        duplicate_keys: duplicate_keys,
        merge_keys: merge_keys,
    }
}

/// Whether this indicator, of an anchor or of a key, may begin a node: prose has it behind a word.
fn has(text: &str, indicator: char) -> bool {
    text.match_indices(indicator).any(|(at, _)| {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let is_first = before.is_empty() || before.ends_with(['\n', '\r', '-', '[', '{', ',', ':', '?']);
        let is_alone = text[at + 1..].starts_with([' ', '\t', '\n', '\r']) || at + 1 == text.len();
        is_first && is_alone == (indicator == '?')
    })
}
