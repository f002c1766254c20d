//! Alerts: what rules told people. They are made by the seed; people can only acknowledge and dismiss them.

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::people::People;
use super::stamp::Stamp;
use crate::chat::caller::Caller;

/// An alert, as `alerts.json` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Alert {
    /// Its id.
    pub id: Uuid,
    pub alert_type: String,
    pub severity: Severity,
    pub title: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_entity_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_entity_id: Option<Uuid>,
    /// The rule that fired it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_rule_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_url: Option<String>,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_date: Option<Stamp>,
    pub created_date: Stamp,
    pub updated_date: Stamp,
    /// Whom it is for; the view adds their names.
    #[serde(skip_serializing)]
    pub recipients: Vec<Recipient>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledgments: Vec<Acknowledgment>,
}

/// Whom an alert is for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recipient {
    /// A user or everybody in a role.
    pub recipient_type: RecipientType,
    /// The user's or role's id.
    pub recipient_id: Uuid,
}

/// A user or a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecipientType {
    /// One user.
    User,
    /// Everybody in a role.
    Role,
}

/// Who took note, and what they said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Acknowledgment {
    pub id: Uuid,
    pub acknowledged_by: String,
    pub acknowledged_date: Stamp,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Active,
    Acknowledged,
    Dismissed,
    Resolved,
}

impl FromStr for Severity {
    type Err = serde::de::value::Error;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::deserialize(word.into_deserializer())
    }
}

impl FromStr for Status {
    type Err = serde::de::value::Error;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::deserialize(word.into_deserializer())
    }
}

impl Alert {
    /// Whether it is for `caller`, by name or by role.
    pub fn is_for(&self, caller: &Caller, people: &People) -> bool {
        let user = Uuid::try_parse(&caller.owner.user).ok();
        self.recipients.iter().any(|recipient| match recipient.recipient_type {
            RecipientType::User => user == Some(recipient.recipient_id),
            RecipientType::Role => people.has_role(caller, recipient.recipient_id),
        })
    }
}
