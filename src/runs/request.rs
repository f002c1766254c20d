//! The request that asks for a run.

/// The request that asks for a run, as far as the run needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its id.
    pub id: String,
    /// The client's own name for it and a digest of what it asks: a second request with both finds the first one's run.
    pub key: Option<(String, Vec<u8>)>,
}
