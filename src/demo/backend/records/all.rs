//! All records that requests can change.

use uuid::Uuid;

use super::alerts::Alert;
use super::research::Research;
use super::rules::rule::Rule;
use super::tables::TableConfig;

/// Each of rules and table configs: far more than a demo needs, little enough to keep in memory.
pub const MAX_RECORDS: usize = 1000;

/// What requests can change.
#[derive(Debug)]
pub struct Records {
    /// All rules, active or not.
    pub rules: Vec<Rule>,
    /// All alerts.
    pub alerts: Vec<Alert>,
    /// All table configs.
    pub configs: Vec<TableConfig>,
    /// The research desk.
    pub research: Research,
}

impl Records {
    /// The rule with this id, active or not.
    pub fn rule(&self, id: Uuid) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}
