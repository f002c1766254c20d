//! Who gets an alert, by name: the ids in alert actions are looked up, each once and a few at a time.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::graph::Node;
use super::{Kit, projection};
use crate::chat::caller::Caller;
use crate::tools::backend::Request;
use crate::tools::keys::text;

/// 4 look-ups at a time: quick for a few recipients, gentle to the backend for many.
const CONCURRENT: usize = 4;

/// 100 recipients get their names; who needs more reads the ids.
const MAX_LOOKUPS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    User,
    Role,
}

impl Kind {
    const ALL: [Self; 2] = [Self::User, Self::Role];

    fn key(self) -> &'static str {
        match self {
            Self::User => "users",
            Self::Role => "roles",
        }
    }

    fn unknown(self) -> &'static str {
        match self {
            Self::User => "Unknown User",
            Self::Role => "Unknown Role",
        }
    }
}

type Names = BTreeMap<(Kind, String), Value>;

/// Replaces the recipients' ids in the configurations of alert actions by `{id, name, email?}`. A recipient whom the caller
/// may not see stays unknown; recipients of another shape stay as they are.
pub async fn name_all<'a>(kit: &Kit, caller: &Caller, nodes: impl Iterator<Item = &'a mut Node>) {
    let mut alerts: Vec<&mut Node> = nodes.filter(|node| node.action_type == "create_alert").collect();
    let wanted: BTreeSet<(Kind, String)> = alerts.iter().flat_map(|node| ids(&node.config)).collect();
    let names: Names = futures::stream::iter(wanted.into_iter().take(MAX_LOOKUPS))
        .map(async |(kind, id)| {
            let named = look_up(kit, caller, kind, &id).await;
            ((kind, id), named)
        })
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    for node in &mut alerts {
        put_names(&mut node.config, &names);
    }
}

async fn look_up(kit: &Kit, caller: &Caller, kind: Kind, id: &str) -> Value {
    // Plain users may see no user but themselves: a refusal is an ordinary answer here.
    let found = kit.backend.call(caller, Request::get(["v1", "core", kind.key(), id])).await.unwrap_or_default();
    let name = projection::person(&found).unwrap_or_else(|| kind.unknown().to_owned());
    match (kind, text(&found, "email")) {
        (Kind::User, Some(email)) => json!({"id": id, "name": name, "email": email}),
        (Kind::User, None) | (Kind::Role, _) => json!({"id": id, "name": name}),
    }
}

/// The recipients' ids in an alert's configuration.
fn ids(config: &Value) -> Vec<(Kind, String)> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        if let Some(ids) = id_list(config, kind) {
            all.extend(ids.into_iter().map(|id| (kind, id)));
        }
    }
    all
}

/// The ids of one kind, each once; `None` unless they are a list of texts.
fn id_list(config: &Value, kind: Kind) -> Option<Vec<String>> {
    let list = config.get("recipients")?.get(kind.key())?.as_array()?;
    let mut ids: Vec<String> = Vec::new();
    for id in list {
        let id = id.as_str().filter(|id| !id.is_empty())?;
        if ids.iter().all(|known| known != id) {
            ids.push(id.to_owned());
        }
    }
    Some(ids)
}

/// Replaces recipients written as [`name_all`] shows them by their ids: a model that keeps an action in an update sends back
/// what it has read.
pub fn back_to_ids(config: &mut Map<String, Value>) {
    let Some(recipients) = config.get_mut("recipients") else { return };
    for kind in Kind::ALL {
        let list = recipients.get_mut(kind.key()).and_then(Value::as_array_mut);
        for recipient in list.into_iter().flatten() {
            if let Some(id) = text(recipient, "id").map(Value::from) {
                *recipient = id;
            }
        }
    }
}

fn put_names(config: &mut Value, names: &Names) {
    for kind in Kind::ALL {
        let Some(ids) = id_list(config, kind) else { continue };
        let named = ids.into_iter().map(|id| {
            let key = (kind, id);
            names.get(&key).cloned().unwrap_or_else(|| json!({"id": key.1, "name": key.1}))
        });
        config["recipients"][kind.key()] = named.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_get_names_once_each_and_everything_else_stays() {
        let mut config =
            json!({"alert_type": "stock", "custom": 1, "recipients": {"users": ["u1", "u9", "u1"], "roles": ["r1"]}});
        let names = Names::from([
            ((Kind::User, "u1".to_owned()), json!({"id": "u1", "name": "Ada Byron", "email": "ada@example.com"})),
            ((Kind::Role, "r1".to_owned()), json!({"id": "r1", "name": "Managers"})),
        ]);
        put_names(&mut config, &names);
        assert_eq!(
            config,
            json!({"alert_type": "stock", "custom": 1, "recipients": {
                "users": [{"id": "u1", "name": "Ada Byron", "email": "ada@example.com"}, {"id": "u9", "name": "u9"}],
                "roles": [{"id": "r1", "name": "Managers"}]}})
        );
    }

    #[test]
    fn recipients_with_names_become_ids_again() {
        let rows = [
            (
                json!({"users": [{"id": "u1", "name": "Ada"}], "roles": ["r1"]}),
                json!({"users": ["u1"], "roles": ["r1"]}),
            ),
            (
                json!({"users": [{"name": "Ada"}, 7], "extra": [{"id": "x"}]}),
                json!({"users": [{"name": "Ada"}, 7], "extra": [{"id": "x"}]}),
            ),
            (json!(["u1"]), json!(["u1"])),
            (json!(null), json!(null)),
        ];
        for (named, expected) in rows {
            let mut config = Map::from_iter([("recipients".to_owned(), named)]);
            back_to_ids(&mut config);
            assert_eq!(config.get("recipients"), Some(&expected));
        }
    }

    #[test]
    fn recipients_of_another_shape_stay_as_they_are() {
        for config in [
            json!({"recipients": {"users": "u1", "roles": [1]}}),
            json!({"recipients": ["u1"]}),
            json!({}),
            json!(null),
            json!({"recipients": {"users": [{"id": "u1"}]}}),
        ] {
            let mut same = config.clone();
            put_names(&mut same, &Names::new());
            assert_eq!(same, config);
            assert_eq!(ids(&config), []);
        }
    }
}
