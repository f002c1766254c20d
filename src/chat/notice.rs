//! What the server tells the user of a run beside the answer.

use super::ids::FileId;

/// Files that the model which answers is not shown: it reads a sentence about each, and this tells its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The files.
    pub files: Vec<FileId>,
    /// Which they are and why, in words.
    pub message: String,
    /// The same as a piece of the answer, for protocols that have nothing but its text; empty where the answer has a form in
    /// which nothing else may stand.
    pub said: String,
}

impl Notice {
    /// What it is about, for programs.
    pub const CODE: &'static str = "files_not_shown";
}
