//! The request that asks for a run.

/// The request that asks for a run, as far as the run needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its id.
    pub id: String,
    /// The client's own name for it and a digest of what it asks: a second request with both finds the first one's run.
    pub key: Option<(String, Vec<u8>)>,
    /// Whether it may be a request of lately that is sent again: one with the same digest finds the first one's run, and
    /// goes on with it where that broke off.
    pub may_repeat: bool,
}
