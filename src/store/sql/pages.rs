//! Pages of lists of which one row more is read than is wanted.

use crate::agent::ports::pages::Page;
use crate::store::fault::Fault;

/// The page of `rows`, of which one more was read than is wanted.
pub(super) fn page<R, T>(mut rows: Vec<R>, limit: u32, made: impl Fn(R) -> Result<T, Fault>) -> Result<Page<T>, Fault> {
    let limit = limit as usize;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    Ok(Page { items: rows.into_iter().map(made).collect::<Result<_, _>>()?, has_more })
}
