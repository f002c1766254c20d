//! Paged lists: which part of how many, and in which order.

use std::cmp::Ordering;

use serde::Serialize;

use super::error::ApiError;
use super::extract::Params;

const DEFAULT_ROWS: usize = 10;
const MAX_ROWS: usize = 1000;

/// Which page, how long, how sorted: `page`, `rows`, `orderBy=field,ASC|DESC`.
#[derive(Debug)]
pub struct Paging {
    page: usize,
    rows: usize,
    field: &'static str,
    descending: bool,
}

/// The envelope of a paged list.
#[derive(Debug, Serialize)]
pub struct Page<V> {
    items: Vec<V>,
    total: usize,
    page: usize,
    rows_per_page: usize,
}

impl Paging {
    /// The paging that `params` ask for. `fields` are those that can be sorted by; the first is the default, newest first.
    ///
    /// # Errors
    /// `invalid_argument` for a number out of bounds, an unknown field or direction.
    pub fn parse(params: &Params, fields: &[&'static str]) -> Result<Self, ApiError> {
        let page = params.parse("page")?.unwrap_or(1);
        let rows = params.parse("rows")?.unwrap_or(DEFAULT_ROWS);
        if page < 1 {
            return Err(ApiError::invalid("page: must be 1 or more"));
        }
        if !(1..=MAX_ROWS).contains(&rows) {
            return Err(ApiError::invalid(format!("rows: must be 1 to {MAX_ROWS}")));
        }
        let Some(order) = params.text("orderBy") else {
            let field = fields.first().copied().unwrap_or_default();
            return Ok(Self { page, rows, field, descending: true });
        };
        let (name, direction) = order.split_once(',').unwrap_or((order, "ASC"));
        let Some(field) = fields.iter().copied().find(|field| *field == name.trim()) else {
            return Err(ApiError::invalid(format!("orderBy: must be one of {}", fields.join(", "))));
        };
        let descending = match direction.trim() {
            "ASC" => false,
            "DESC" => true,
            _ => return Err(ApiError::invalid("orderBy: the direction must be ASC or DESC")),
        };
        Ok(Self { page, rows, field, descending })
    }

    /// This page of `found`; `compare` orders two records by a field of those given to [`Self::parse`].
    pub fn cut<'a, T, V>(
        &self,
        mut found: Vec<&'a T>,
        compare: impl Fn(&T, &T, &str) -> Ordering,
        view: impl Fn(&'a T) -> V,
    ) -> Page<V> {
        found.sort_by(|a, b| match self.descending {
            true => compare(b, a, self.field),
            false => compare(a, b, self.field),
        });
        let skipped = (self.page - 1).saturating_mul(self.rows);
        Page {
            total: found.len(),
            items: found.into_iter().skip(skipped).take(self.rows).map(view).collect(),
            page: self.page,
            rows_per_page: self.rows,
        }
    }
}
