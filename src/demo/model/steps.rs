//! Workflow steps in plain words: "add an email to ops@example.com if quantity < 5" becomes steps with sensible configurations.

use serde_json::{Map, Value, json};

use super::clause::{Clause, is_one};
use super::comparison::{Comparison, Operator};
use super::{questions, words};

/// A step that the user described.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// What it does.
    pub kind: Kind,
    /// Its name, where the user gave one.
    pub name: Option<String>,
    /// The step it follows, where the user named one.
    pub after: Option<String>,
    /// The output port of that step it hangs on.
    pub port: Option<&'static str>,
}

/// What a step does, with the details the user gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Condition(Option<Comparison>),
    Alert {
        severity: &'static str,
        title: Option<String>,
    },
    Email {
        to: Vec<String>,
        body: Option<String>,
    },
    Notification {
        to: Vec<String>,
        body: Option<String>,
    },
    UpdateField(Option<(String, Value)>),
    Audit {
        message: Option<String>,
    },
    Delay(Option<String>),
    Approval {
        approvers: Vec<String>,
    },
    CheckInventory {
        threshold: Option<i64>,
    },
    CheckReorderPoint,
    /// A type this stand-in knows but cannot configure from plain words.
    Unfamiliar(&'static str),
}

/// Reads the details of a kind of step.
type ReadKind = fn(Clause<'_>) -> Kind;

/// Words that name a step's type; the first that occurs decides.
const TYPE_WORDS: &[(&[&str], ReadKind)] = &[
    (&["allocate_inventory", "allocate", "allocation"], |_| Kind::Unfamiliar("allocate_inventory")),
    (&["commit_allocation"], |_| Kind::Unfamiliar("commit_allocation")),
    (&["release_reservation", "release"], |_| Kind::Unfamiliar("release_reservation")),
    (&["reserve_inventory", "reserve"], |_| Kind::Unfamiliar("reserve_inventory")),
    (&["transition_status", "transition"], |_| Kind::Unfamiliar("transition_status")),
    (&["lookup_entity", "lookup"], |_| Kind::Unfamiliar("lookup_entity")),
    (&["create_entity"], |_| Kind::Unfamiliar("create_entity")),
    (&["check_inventory"], |clause| Kind::CheckInventory { threshold: whole_number(clause) }),
    (&["check_reorder_point", "reorder"], |_| Kind::CheckReorderPoint),
    (&["create_alert", "alert", "alerts", "alarm"], |clause| Kind::Alert {
        severity: severity(clause),
        title: quoted_text(clause),
    }),
    (&["send_email", "email", "emails", "e-mail", "e-mails", "mail", "mails"], |clause| Kind::Email {
        to: texts(clause, |text| {
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        }),
        body: quoted_text(clause),
    }),
    (&["send_notification", "notification", "notify", "notifies", "notifications"], |clause| Kind::Notification {
        to: uuids(clause),
        body: quoted_text(clause),
    }),
    (&["seek_approval", "approval", "approve"], |clause| Kind::Approval { approvers: uuids(clause) }),
    (&["log_audit_entry", "audit", "log", "logs"], |clause| Kind::Audit { message: quoted_text(clause) }),
    (&["delay", "wait", "waits", "pause"], |clause| Kind::Delay(duration(clause))),
    (&["update_field", "update", "updates", "set", "sets"], |clause| Kind::UpdateField(assignment(clause))),
    (&["evaluate_condition", "condition", "check", "checks"], |clause| Kind::Condition(condition(clause))),
];

/// Output ports of the common types, as people and the backend call them.
const PORTS: &[&str] = &[
    "true",
    "false",
    "success",
    "failure",
    "sufficient",
    "insufficient",
    "needs_reorder",
    "approved",
    "rejected",
    "timed_out",
];

impl Step {
    /// The steps `clause` describes: none, one, or a condition and the step that hangs on it.
    pub(super) fn read(clause: Clause<'_>) -> Vec<Self> {
        let name = clause.name_after(&["called", "named"]);
        let after = clause.name_after(&["after", "following"]);
        let port = port(clause);
        let step = |kind, port| Self { kind, name: name.clone(), after: after.clone(), port };
        match (kind(clause), condition(clause)) {
            (None, None) => Vec::new(),
            (None, Some(found)) => vec![step(Kind::Condition(Some(found)), port)],
            (Some(kind @ (Kind::Condition(_) | Kind::UpdateField(_))), _) | (Some(kind), None) => {
                vec![step(kind, port)]
            }
            (Some(kind), Some(found)) => vec![
                Self { kind: Kind::Condition(Some(found)), name: None, after, port },
                Self { kind, name, after: None, port: Some("true") },
            ],
        }
    }
}

impl Kind {
    /// The action type's name at the backend.
    pub(super) fn action_type(&self) -> &'static str {
        match self {
            Self::Condition(_) => "evaluate_condition",
            Self::Alert { .. } => "create_alert",
            Self::Email { .. } => "send_email",
            Self::Notification { .. } => "send_notification",
            Self::UpdateField(_) => "update_field",
            Self::Audit { .. } => "log_audit_entry",
            Self::Delay(_) => "delay",
            Self::Approval { .. } => "seek_approval",
            Self::CheckInventory { .. } => "check_inventory",
            Self::CheckReorderPoint => "check_reorder_point",
            Self::Unfamiliar(name) => name,
        }
    }

    /// A name for a step of this kind.
    pub(super) fn usual_name(&self) -> String {
        match self {
            Self::Condition(Some(found)) => format!("Check {}", words::titled(&found.field)),
            Self::Condition(None) => "Check Condition".to_owned(),
            Self::Alert { .. } => "Raise Alert".to_owned(),
            Self::Email { .. } => "Send Email".to_owned(),
            Self::Notification { .. } => "Send Notification".to_owned(),
            Self::UpdateField(Some((field, _))) => format!("Set {}", words::titled(field)),
            Self::UpdateField(None) => "Update Field".to_owned(),
            Self::Audit { .. } => "Log Audit Entry".to_owned(),
            Self::Delay(_) => "Wait".to_owned(),
            Self::Approval { .. } => "Ask For Approval".to_owned(),
            Self::CheckInventory { .. } => "Check Inventory".to_owned(),
            Self::CheckReorderPoint => "Check Reorder Point".to_owned(),
            Self::Unfamiliar(name) => words::titled(name),
        }
    }

    /// The step's configuration in a workflow called `workflow` that watches `entity`.
    ///
    /// # Errors
    /// A question for the user when a detail is missing.
    pub(super) fn config(&self, workflow: &str, entity: Option<&str>) -> Result<Value, String> {
        let entity = entity.unwrap_or("inventory.inventory_items");
        Ok(match self {
            Self::Condition(found) => {
                let found = found
                    .as_ref()
                    .ok_or_else(|| format!("{} For example: `if quantity < 10`.", questions::CONDITION))?;
                json!({ "conditions": [backend_condition(found)?], "logic_type": "and" })
            }
            Self::Alert { severity, title } => {
                let title = title.clone().unwrap_or_else(|| workflow.to_owned());
                let message = format!("{workflow}: a record of {entity} needs attention.");
                json!({ "alert_type": "workflow_alert", "severity": severity, "title": title, "message": message })
            }
            Self::Email { to, .. } if to.is_empty() => {
                return Err(format!("{} Tell me an address, such as `ops@example.com`.", questions::RECIPIENT));
            }
            Self::Email { to, body } => {
                let body = body.clone().unwrap_or_else(|| format!("A record of {entity} needs attention."));
                json!({ "recipients": to, "subject": workflow, "body": body })
            }
            Self::Notification { to, .. } if to.is_empty() => {
                return Err(format!("{} Tell me the user's id (a UUID).", questions::NOTIFIED));
            }
            Self::Notification { to, body } => {
                let body = body.clone().unwrap_or_else(|| format!("A record of {entity} needs attention."));
                json!({ "recipients": to, "channels": ["in_app"], "title": workflow, "message": body })
            }
            Self::UpdateField(assigned) => {
                let (field, value) = assigned
                    .as_ref()
                    .ok_or_else(|| format!("{} For example: `set status to closed`.", questions::ASSIGNMENT))?;
                json!({ "target_entity": entity, "target_field": field, "new_value": value })
            }
            Self::Audit { message } => {
                let message = message.clone().unwrap_or_else(|| format!("{workflow} ran"));
                json!({ "entity_name": entity, "action": "workflow_run", "message": message })
            }
            Self::Delay(duration) => {
                let duration =
                    duration.as_ref().ok_or_else(|| format!("{} For example: `30 minutes`.", questions::DURATION))?;
                json!({ "duration": duration })
            }
            Self::Approval { approvers } if approvers.is_empty() => {
                return Err(format!("{} Tell me the approvers' ids (UUIDs).", questions::APPROVERS));
            }
            Self::Approval { approvers } => json!({ "approvers": approvers, "approval_type": "any" }),
            Self::CheckInventory { threshold } => match threshold {
                Some(threshold) => json!({ "threshold": threshold }),
                None => Value::Object(Map::new()),
            },
            Self::CheckReorderPoint => Value::Object(Map::new()),
            Self::Unfamiliar(name) => {
                return Err(format!(
                    "A step of type {} needs details that the built-in demo model cannot read from plain words. \
                     Try an alert, an e-mail, a condition, a delay, a field update or an audit entry.",
                    words::code(name)
                ));
            }
        })
    }
}

/// A condition as the backend wants it.
fn backend_condition(found: &Comparison) -> Result<Value, String> {
    // The backend knows no "at most" and "at least"; for whole numbers the neighbours say the same.
    let shifted = |by: i64| found.value.as_i64().and_then(|value| value.checked_add(by)).map(Value::from);
    let inexact = || "Conditions compare with less than or greater than; please say it that way.".to_owned();
    let (operator, value) = match found.operator {
        Operator::Less => ("less_than", found.value.clone()),
        Operator::Greater => ("greater_than", found.value.clone()),
        Operator::LessOrEqual => ("less_than", shifted(1).ok_or_else(inexact)?),
        Operator::GreaterOrEqual => ("greater_than", shifted(-1).ok_or_else(inexact)?),
        Operator::Equal => ("equals", found.value.clone()),
        Operator::NotEqual => ("not_equals", found.value.clone()),
        Operator::Contains => ("contains", found.value.clone()),
        Operator::ChangedTo => ("changed_to", found.value.clone()),
        Operator::Empty => return Ok(json!({ "field_name": found.field, "operator": "is_null" })),
        Operator::NotEmpty => return Ok(json!({ "field_name": found.field, "operator": "is_not_null" })),
    };
    Ok(json!({ "field_name": found.field, "operator": operator, "value": value }))
}

/// What kind of step the words name. What comes after "saying" or "called" is text or a name, and names no type.
pub(super) fn kind(clause: Clause<'_>) -> Option<Kind> {
    let end = clause.position(&["saying", "titled", "called", "named"]).unwrap_or(clause.0.len());
    let (_, read) = TYPE_WORDS.iter().find(|(words, _)| clause.until(end).has(words))?;
    Some(read(clause))
}

/// The comparison a workflow checks. "Stock" means the quantity, and "low" means below 10 unless a number says otherwise.
pub(super) fn condition(clause: Clause<'_>) -> Option<Comparison> {
    const LOW: [&[&str]; 4] =
        [&["low", "stock"], &["running", "low"], &["low", "on", "stock"], &["stock", "runs", "low"]];
    const CHANGES: [&str; 10] =
        ["created", "updated", "deleted", "changed", "placed", "inserted", "removed", "modified", "added", "new"];
    let below = |field: String| {
        let value = Value::from(whole_number(clause).unwrap_or(10));
        Some(Comparison { field, operator: Operator::Less, value })
    };
    if let Some(found) = Comparison::find(clause) {
        let value = found.value.as_str().unwrap_or_default();
        let field = match found.field.as_str() {
            "stock" | "inventory" | "stock_level" => "quantity".to_owned(),
            // "An order over 5000" is about its worth.
            "order" | "orders" if found.value.is_number() => "amount".to_owned(),
            _ => found.field,
        };
        if value == "low" || value == "running" {
            return below(field);
        }
        // "When an order is created" is a trigger and no condition.
        if !CHANGES.contains(&value) {
            return Some(Comparison { field, ..found });
        }
    }
    // "Low Stock" is also what such workflows are called, so the words must stand where a condition stands.
    let is_low = LOW.iter().filter_map(|words| clause.phrase_at(words)).any(|at| {
        let before = clause.until(at);
        before.has(&["if", "when", "whenever", "that", "which"])
            || before.0.last().is_some_and(|t| is_one(t, &["for", "on", "about"]))
    });
    if is_low { below("quantity".to_owned()) } else { None }
}

/// Which output of the step before leads to this one.
fn port(clause: Clause<'_>) -> Option<&'static str> {
    if clause.has(&["otherwise", "else"]) || clause.phrase(&["if", "not"]) {
        return Some("false");
    }
    if clause.phrase(&["it", "fails"]) || clause.phrase(&["on", "error"]) {
        return Some("failure");
    }
    PORTS.iter().copied().find(|port| {
        let branch = ["if", "when", "on", "the"].iter().any(|lead| clause.phrase(&[lead, port]));
        branch || clause.phrase(&[port, "branch"]) || clause.phrase(&["it", "is", port])
    })
}

fn severity(clause: Clause<'_>) -> &'static str {
    const LEVELS: [(&[&str], &str); 4] = [
        (&["critical", "urgent"], "critical"),
        (&["high", "important"], "high"),
        (&["low-severity", "minor"], "low"),
        (&["medium"], "medium"),
    ];
    let named = LEVELS.iter().find(|(words, _)| clause.has(words)).map(|(_, level)| *level);
    let low = clause.phrase(&["low", "severity"])
        || clause.phrase(&["severity", "low"])
        || clause.phrase(&["low", "priority"]);
    named.unwrap_or(if low { "low" } else { "medium" })
}

/// The text after "saying", "titled", "message" and the like.
fn quoted_text(clause: Clause<'_>) -> Option<String> {
    let words = ["saying", "titled", "title", "message", "text", "subject", "body", "says"];
    let at = clause.position(&words)? + 1;
    let rest = clause.from(at);
    rest.quoted().map(str::to_owned).or_else(|| Some(rest.text()).filter(|text| !text.is_empty()))
}

fn texts(clause: Clause<'_>, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let all = clause.0.iter().map(|token| token.text.as_str());
    all.filter(|text| is_wanted(text)).map(str::to_owned).collect()
}

fn uuids(clause: Clause<'_>) -> Vec<String> {
    texts(clause, |text| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok())
}

fn whole_number(clause: Clause<'_>) -> Option<i64> {
    clause.0.iter().find_map(|token| token.text.parse().ok())
}

/// A duration as the backend writes it: `5 minutes` becomes `5m`, `2 days` `48h`.
fn duration(clause: Clause<'_>) -> Option<String> {
    let (at, n) = clause.0.iter().enumerate().find_map(|(i, token)| Some((i, token.low.parse::<u32>().ok()?)))?;
    let unit = clause.0.get(at + 1).map_or("", |token| token.low.as_str());
    match unit.trim_end_matches('s') {
        "second" | "sec" | "" => Some(format!("{n}s")),
        "minute" | "min" | "m" => Some(format!("{n}m")),
        "hour" | "h" => Some(format!("{n}h")),
        "day" | "d" => Some(format!("{}h", n.checked_mul(24)?)),
        "week" => Some(format!("{}h", n.checked_mul(7 * 24)?)),
        _ => None,
    }
}

/// "set status to closed" as field and value.
fn assignment(clause: Clause<'_>) -> Option<(String, Value)> {
    let at = clause.position(&["set", "sets", "update", "updates"])? + 1;
    let rest = clause.from(at);
    let to = rest.position(&["to", "=", "as"])?;
    let noise = ["field", "its", "step", "that", "action", "set", "sets"];
    let field = rest.until(to).phrases(&noise).pop()?;
    let value = rest.from(to + 1).0.first()?;
    let value = if value.quoted { Value::String(value.text.clone()) } else { super::comparison::literal(&value.text) };
    Some((field.to_lowercase().replace(' ', "_"), value))
}
