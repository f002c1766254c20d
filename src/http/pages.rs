//! What lists of directives and signals have in common: how many, from where on, and whose.

use super::problem::Problem;
use crate::agent::ports::directives::Access;
use crate::agent::ports::pages::Cursor;

/// The longest cursor, in bytes.
const CURSOR_BYTES: usize = 64;

/// How many are wanted, where `(default, most)` may be.
///
/// # Errors
/// When it is no such number.
pub(super) fn limit(text: Option<&str>, (default, most): (u32, u32)) -> Result<u32, Problem> {
    match text {
        None | Some("") => Ok(default),
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=most).contains(limit) && text.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| Problem::bad_request(format!("limit must be a whole number from 1 to {most}"))),
    }
}

/// Whether all of the tenant is wanted, by somebody who may.
///
/// # Errors
/// When it is another word, or for somebody else.
pub(super) fn own_or_tenant(of: Option<&str>, access: Access) -> Result<bool, Problem> {
    match of {
        None | Some("" | "own") => Ok(false),
        Some("tenant") if access.reads => Ok(true),
        Some("tenant") => {
            Err(Problem::role_required("of=tenant is for those with a role that reads all of the tenant"))
        }
        Some(_) => Err(Problem::bad_request("of must be own or tenant")),
    }
}

/// Positions in lists, as texts.
pub(super) trait Cursored: Sized {
    /// The text.
    fn written(&self) -> String;

    /// The position that a request names, where it does.
    ///
    /// # Errors
    /// When it is none of ours.
    fn parsed(text: Option<&str>) -> Result<Option<Self>, Problem>;
}

impl Cursored for Cursor {
    fn written(&self) -> String {
        format!("{}.{}", self.at_ms, self.id)
    }

    fn parsed(text: Option<&str>) -> Result<Option<Self>, Problem> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let is_id = |id: &str| id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        let parts = text.split_once('.').filter(|(_, id)| text.len() <= CURSOR_BYTES && is_id(id));
        let cursor = parts.and_then(|(at_ms, id)| Some(Self { at_ms: at_ms.parse().ok()?, id: id.to_owned() }));
        cursor.map(Some).ok_or_else(|| Problem::cursor_invalid("this list has not given such a cursor"))
    }
}

/// A number in an order.
impl Cursored for i64 {
    fn written(&self) -> String {
        self.to_string()
    }

    fn parsed(text: Option<&str>) -> Result<Option<Self>, Problem> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let number = text.parse().ok().filter(|number: &i64| *number >= 0);
        number.map(Some).ok_or_else(|| Problem::cursor_invalid("this list has not given such a cursor"))
    }
}
