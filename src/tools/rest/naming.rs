//! What a call that waits is about, in words: the title that its tool's file has for whoever decides it.

use super::path::PathTemplate;
use crate::chat::template::Template;

/// The names that a title may use.
pub const NAMES: [&str; 5] = ["args", "data", "user", "tenant", "roles"];

/// What a file says of the title of a call that waits.
#[derive(Debug, Clone)]
pub struct Naming {
    /// The title.
    pub title: Template,
    /// Where the backend has what the call is about, which is `data` in the title.
    pub resolve: Option<PathTemplate>,
}
