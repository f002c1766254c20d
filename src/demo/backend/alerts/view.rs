//! Alerts as clients read them, in camelCase, with the names of the rule and the recipients filled in.

use serde::Serialize;
use uuid::Uuid;

use super::{Alert, Recipient, RecipientType};
use crate::demo::backend::people::People;
use crate::demo::backend::rules::Rule;

/// An alert with names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertView<'a> {
    #[serde(flatten)]
    alert: &'a Alert,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_rule_name: Option<&'a str>,
    recipients: Vec<RecipientView<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecipientView<'a> {
    recipient_type: RecipientType,
    recipient_id: Uuid,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
}

impl<'a> AlertView<'a> {
    /// The alert as `rules` and `people` name things now.
    pub fn new(alert: &'a Alert, rules: &'a [Rule], people: &'a People) -> Self {
        let source = alert.source_rule_id.and_then(|id| rules.iter().find(|rule| rule.id == id));
        Self {
            alert,
            source_rule_name: source.map(|rule| rule.name.as_str()),
            recipients: alert.recipients.iter().map(|recipient| RecipientView::new(recipient, people)).collect(),
        }
    }
}

impl<'a> RecipientView<'a> {
    fn new(recipient: &Recipient, people: &'a People) -> Self {
        let Recipient { recipient_type, recipient_id } = *recipient;
        let (name, email) = match recipient_type {
            RecipientType::User => {
                let user = people.user(recipient_id);
                (user.map(|user| user.full_name()), user.map(|user| user.email.as_str()))
            }
            RecipientType::Role => (people.role(recipient_id).map(|role| role.name.clone()), None),
        };
        Self { recipient_type, recipient_id, name: name.unwrap_or_default(), email }
    }
}
