//! All records that requests can change.

use uuid::Uuid;

use super::alerts::Alert;
use super::forum::Forum;
use super::ontology::Ontology;
use super::packages::{Installation, Package};
use super::research::Research;
use super::rules::rule::Rule;
use super::tables::TableConfig;

/// Each of rules, table configs, and the rows of all tenants: far more than a demo needs, little enough to keep in memory.
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
    /// The forums of all tenants.
    pub forum: Forum,
    /// Projects and tasks.
    pub ontology: Ontology,
    /// All packages.
    pub packages: Vec<Package>,
    /// What all tenants have installed.
    pub installations: Vec<Installation>,
}

impl Records {
    /// The rule with this id, active or not.
    pub fn rule(&self, id: Uuid) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}
