//! The names of tools.

use crate::chat::names;

/// What stands before a profile's name in that of its tool.
const ASK: &str = "ask_";

/// The longest name of a tool.
const MAX_BYTES: usize = 128;

/// The name of the tool that asks the profile of that `context_type`. What a vendor's model does not take in the name of a tool is
/// an underscore there: a client that passes one on loses all of them (evoila/meho#2745). Two profiles may have one name so: then
/// the first of them has it.
pub fn of_profile(context_type: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let mut name: String = ASK.chars().chain(context_type.chars().map(allowed)).collect();
    name.truncate(names::MAX_BYTES);
    name
}

/// Whether a tool may have this name.
pub fn is_tool_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    (1..=MAX_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::{is_tool_name, of_profile};

    #[test]
    fn every_profile_has_a_name_that_clients_take() {
        let rows = [
            ("workflow", "ask_workflow"),
            ("page/tab one", "ask_page_tab_one"),
            ("sales.crm", "ask_sales_crm"),
            ("übersicht", "ask__bersicht"),
        ];
        for (context_type, expected) in rows {
            assert_eq!(of_profile(context_type), expected);
        }
        let long = of_profile(&"x".repeat(500));
        assert!(long.len() == 64 && is_tool_name(&long));
        assert!(!is_tool_name("") && !is_tool_name("a b") && !is_tool_name(&"x".repeat(129)));
    }
}
