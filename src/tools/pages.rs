//! Reading a paged list to its end: page after page until everything is there, up to a bound.

use serde_json::Value;

use super::backend::{Backend, BackendError, Request};
use super::keys::field;
use crate::chat::caller::Caller;

/// Rows per page; the backend allows 1000.
const ROWS: &str = "500";

/// 10 pages: 5000 rows are more than any model can use.
const MAX_PAGES: usize = 10;

/// A list's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The rows, in the backend's order.
    pub items: Vec<Value>,
    /// How many there are in all, by the backend's count.
    pub total: usize,
}

/// One page as the backend sent it.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The rows.
    pub items: Vec<Value>,
    /// How many there are in all; `None` for a bare array.
    pub total: Option<usize>,
    /// Which page this is, from 1.
    pub number: usize,
    /// How many rows a full page has; `None` when the backend does not say.
    pub rows: Option<usize>,
}

impl Page {
    /// The page in `answer`: the envelope `{items, total, page, rows_per_page}` or a bare array.
    ///
    /// # Errors
    /// [`BackendError::Shape`] when it is neither.
    pub fn parse(answer: Value) -> Result<Self, BackendError> {
        let number = |key: &str| field(&answer, key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let (total, page, rows) = (number("total"), number("page"), number("rows_per_page"));
        let items = match answer {
            Value::Array(items) => Some(items),
            Value::Object(mut envelope) => match envelope.remove("items") {
                Some(Value::Array(items)) => Some(items),
                // An empty list is `null` in some encoders.
                Some(Value::Null) => Some(Vec::new()),
                _ => None,
            },
            _ => None,
        };
        let items = items.ok_or_else(|| BackendError::Shape("not a page of rows".to_owned()))?;
        Ok(Self { items, total, number: page.unwrap_or(1), rows })
    }

    /// Whether rows follow after this page.
    pub fn has_more(&self) -> bool {
        let before = (self.number.max(1) - 1).saturating_mul(self.rows.unwrap_or(self.items.len()));
        self.total.is_some_and(|total| before.saturating_add(self.items.len()) < total)
    }
}

/// All rows of the list at `segments`, at most ten pages of them.
///
/// # Errors
/// See [`BackendError`].
pub async fn all_rows(backend: &Backend, caller: &Caller, segments: &[&str]) -> Result<Rows, BackendError> {
    let mut items: Vec<Value> = Vec::new();
    let mut total = 0;
    for number in 1..=MAX_PAGES {
        let number = number.to_string();
        let request = Request::get(segments.iter().copied()).query("rows", ROWS).query("page", &number);
        let page = Page::parse(backend.call(caller, request).await?)?;
        let is_last = page.items.is_empty();
        items.extend(page.items);
        total = page.total.unwrap_or(items.len()).max(items.len());
        if is_last || items.len() >= total {
            break;
        }
    }
    Ok(Rows { items, total })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn more_follows_only_when_rows_are_left_after_this_page() {
        let rows = [
            (json!({"items": [1, 2], "total": 5, "page": 1, "rows_per_page": 2}), true, "first of three"),
            (json!({"items": [5], "total": 5, "page": 3, "rows_per_page": 2}), false, "the last page is not full"),
            (json!({"items": [3, 4], "total": 4, "page": 2, "rowsPerPage": 2}), false, "the last page is full"),
            (json!({"items": null, "total": 0}), false, "none at all"),
            (json!([1, 2]), false, "a bare array is everything"),
            (json!({"items": [1], "total": 9, "page": 0}), true, "a page 0 does not underflow"),
        ];
        for (answer, expected, reason) in rows {
            assert_eq!(Page::parse(answer).unwrap().has_more(), expected, "{reason}");
        }
    }

    #[test]
    fn something_else_than_a_page_is_refused() {
        for answer in [json!({"rules": []}), json!("x"), json!(null), json!({"items": {}})] {
            assert!(Page::parse(answer).is_err());
        }
    }
}
