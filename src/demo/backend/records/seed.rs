//! The records the demo starts with, read from JSON texts and checked like anything a client sends: a seeded rule goes through
//! the same validation as a saved one.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::action_types::{ActionType, ActionTypes};
use super::alerts::{Alert, RecipientType};
use super::all::Records;
use super::catalog::Catalog;
use super::fields::FieldErrors;
use super::forum::Forum;
use super::ontology::Ontology;
use super::people::People;
use super::reference::Reference;
use super::research::Research;
use super::rules::build::{Author, assemble};
use super::rules::input::SaveBody;
use super::rules::rule::Rule;
use super::rules::validate;
use super::stamp::Stamp;
use super::tables::{self, TableConfig};

const ACTION_TYPES: &str = "action-types.json";
const TRIGGERS: &str = "triggers.json";
const ENTITIES: &str = "entities.json";
const PEOPLE: &str = "people.json";
const SCHEMA: &str = "schema.json";
const RULES: &str = "rules.json";
const ALERTS: &str = "alerts.json";
const TABLES: &str = "tables.json";
const RESEARCH: &str = "research.json";
const FORUM: &str = "forum.json";
const PACKAGES: &str = "packages.json";
const ONTOLOGY: &str = "ontology.json";

/// The files a seed is made of; each must be there.
pub const FILES: [&str; 12] =
    [ACTION_TYPES, TRIGGERS, ENTITIES, PEOPLE, SCHEMA, RULES, ALERTS, TABLES, RESEARCH, FORUM, PACKAGES, ONTOLOGY];

/// What the demo starts with.
#[derive(Debug)]
pub struct Seed {
    pub(in crate::demo::backend) action_types: ActionTypes,
    pub(in crate::demo::backend) reference: Reference,
    pub(in crate::demo::backend) people: People,
    pub(in crate::demo::backend) catalog: Catalog,
    pub(in crate::demo::backend) records: Records,
}

/// A seed that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// One of [`FILES`] is not there.
    #[error("demo data: {0} is missing")]
    Missing(&'static str),
    /// A file is not JSON of the right shape.
    #[error("demo data: {file} is malformed at {path}")]
    Malformed {
        /// Which file.
        file: &'static str,
        /// Where in it.
        path: String,
        /// What is wrong there.
        #[source]
        source: serde_json::Error,
    },
    /// A record is well formed and still makes no sense.
    #[error("demo data: {file}: {record}: {problem}")]
    Invalid {
        /// Which file.
        file: &'static str,
        /// Which record.
        record: String,
        /// Why not.
        problem: String,
    },
}

/// A rule of `rules.json`: the body of a full save, with what only a seed can say. Entity and trigger are named.
#[derive(Debug, Deserialize)]
struct SeedRule {
    id: Uuid,
    entity: String,
    trigger_type: String,
    #[serde(default)]
    is_default: bool,
    created_by: String,
    created_date: Stamp,
    updated_date: Option<Stamp>,
    #[serde(flatten)]
    body: SaveBody,
}

impl Seed {
    /// The seed in the texts that `files` gives for each name of [`FILES`].
    ///
    /// # Errors
    /// When a file is missing or malformed, or a record is invalid; the first one found.
    pub fn parse(files: impl Fn(&str) -> Option<String>) -> Result<Self, SeedError> {
        let list: Vec<ActionType> = read(&files, ACTION_TYPES)?;
        let action_types = ActionTypes::new(list).map_err(|(name, source)| SeedError::Malformed {
            file: ACTION_TYPES,
            path: format!("config_schema of {name}"),
            source,
        })?;
        let reference = Reference { triggers: read(&files, TRIGGERS)?, entities: read(&files, ENTITIES)? };
        if let Some(name) = reference.entity_of_unknown_type() {
            return Err(invalid(ENTITIES, name, "unknown entity type"));
        }
        let people: People = read(&files, PEOPLE)?;
        if let Some(name) = people.user_with_unknown_role() {
            return Err(invalid(PEOPLE, name, "unknown role"));
        }

        let rules: Vec<SeedRule> = read(&files, RULES)?;
        let rules = rules.into_iter().map(|rule| rule.check(&action_types, &reference)).collect::<Result<_, _>>()?;
        let research: Research = read(&files, RESEARCH)?;
        if let Some(report) = research.report_of_nothing() {
            return Err(invalid(RESEARCH, report.to_string(), "its stream or one of its articles is not there"));
        }
        let forum: Forum = read(&files, FORUM)?;
        if let Some(id) = forum.stray() {
            return Err(invalid(FORUM, id.to_string(), "what it stands in is not there"));
        }
        let ontology: Ontology = read(&files, ONTOLOGY)?;
        if let Some(id) = ontology.stray() {
            return Err(invalid(ONTOLOGY, id.to_string(), "its project is not there"));
        }
        let (alerts, configs, packages) = (read(&files, ALERTS)?, read(&files, TABLES)?, read(&files, PACKAGES)?);
        let records =
            Records { rules, alerts, configs, research, forum, ontology, packages, installations: Vec::new() };
        for alert in &records.alerts {
            check_alert(alert, &records.rules, &people)?;
        }
        for config in &records.configs {
            check_table(config)?;
        }
        Ok(Self { action_types, reference, people, catalog: read(&files, SCHEMA)?, records })
    }
}

impl SeedRule {
    fn check(mut self, types: &ActionTypes, reference: &Reference) -> Result<Rule, SeedError> {
        let record = self.id.to_string();
        let Some(entity) = reference.entity_named(&self.entity) else {
            return Err(invalid(RULES, record, format!("unknown entity {:?}", self.entity)));
        };
        let trigger = reference.triggers.iter().find(|trigger| trigger.name == self.trigger_type);
        let Some(trigger) = trigger else {
            return Err(invalid(RULES, record, format!("unknown trigger type {:?}", self.trigger_type)));
        };
        self.body.entity_id = Some(entity.id.to_string());
        self.body.trigger_type_id = Some(trigger.id.to_string());
        let input = self.body.check(types).map_err(|error| invalid(RULES, record.as_str(), error.to_string()))?;
        let links = validate::check(&input, types).map_err(|errors| invalid(RULES, record, errors.join("; ")))?;
        let author = Author { user: &self.created_by, at: self.created_date };
        let mut rule = assemble(input, &links, self.id, author, |_| true);
        rule.is_default = self.is_default;
        rule.updated = self.updated_date.unwrap_or(self.created_date);
        Ok(rule)
    }
}

fn check_alert(alert: &Alert, rules: &[Rule], people: &People) -> Result<(), SeedError> {
    if let Some(id) = alert.source_rule_id
        && rules.iter().all(|rule| rule.id != id)
    {
        return Err(invalid(ALERTS, alert.id.to_string(), format!("unknown rule {id}")));
    }
    let unknown = alert.recipients.iter().find(|recipient| match recipient.recipient_type {
        RecipientType::User => people.user(recipient.recipient_id).is_none(),
        RecipientType::Role => people.role(recipient.recipient_id).is_none(),
    });
    match unknown {
        None => Ok(()),
        Some(recipient) => {
            Err(invalid(ALERTS, alert.id.to_string(), format!("unknown recipient {}", recipient.recipient_id)))
        }
    }
}

fn check_table(config: &TableConfig) -> Result<(), SeedError> {
    let mut errors = FieldErrors::default();
    tables::check_config(&config.config, &mut errors);
    errors.finish().map_err(|error| invalid(TABLES, config.name.as_str(), error.to_string()))
}

fn invalid(file: &'static str, record: impl Into<String>, problem: impl Into<String>) -> SeedError {
    SeedError::Invalid { file, record: record.into(), problem: problem.into() }
}

fn read<T: DeserializeOwned>(files: &impl Fn(&str) -> Option<String>, file: &'static str) -> Result<T, SeedError> {
    let text = files(file).ok_or(SeedError::Missing(file))?;
    let json = &mut serde_json::Deserializer::from_str(&text);
    serde_path_to_error::deserialize(json).map_err(|error| SeedError::Malformed {
        file,
        path: error.path().to_string(),
        source: error.into_inner(),
    })
}
