//! Pages of lists.

/// A position in a list: a time and an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The id.
    pub id: String,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Whether there is more behind it.
    pub has_more: bool,
}
