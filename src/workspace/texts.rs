//! What a workspace makes of texts alone: no folder, no lock, and otherwise the very code that edits files and compares
//! them. Fuzzers feed it what no model would write.

use super::diff;
use super::files;

/// What `text` is after the edit `edit`, as `replace_in_file` understands it; a patch in it is for the file `name`.
///
/// # Errors
/// The AgentSmithy protocol's word for why nothing is changed, such as `no_match`.
pub fn replaced(name: &str, text: &str, edit: &str) -> Result<String, &'static str> {
    files::replaced(name, text, edit)
}

/// What makes `new` of `old`, as a unified diff of a file `name`; empty where they are equal.
pub fn difference(name: &str, old: &str, new: &str) -> String {
    diff::unified_diff(old, new, &format!("a/{name}"), &format!("b/{name}")).text
}
