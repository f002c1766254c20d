//! Reference data for rules: what can trigger one, and which tables it can watch.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The files `triggers.json` and `entities.json`.
#[derive(Debug)]
pub struct Reference {
    /// What can trigger a rule.
    pub triggers: Vec<TriggerType>,
    /// Tables and views.
    pub entities: EntityFile,
}

/// The file `entities.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityFile {
    /// Their kinds.
    pub entity_types: Vec<EntityType>,
    /// Themselves.
    pub entities: Vec<Entity>,
}

/// What can trigger a rule.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerType {
    /// Its id.
    pub id: Uuid,
    /// Its name, such as `on_update`.
    pub name: String,
    description: String,
    is_active: bool,
}

/// A kind of entity: table or view.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityType {
    id: Uuid,
    /// Its name.
    pub name: String,
    description: String,
}

/// A table or view.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// Its id.
    pub id: Uuid,
    /// Its name, unique without the schema.
    pub name: String,
    /// Its kind.
    pub entity_type_id: Uuid,
    /// The schema it lies in.
    pub schema_name: String,
    is_active: bool,
}

impl Reference {
    /// The trigger type with this id.
    pub fn trigger(&self, id: Uuid) -> Option<&TriggerType> {
        self.triggers.iter().find(|trigger| trigger.id == id)
    }

    /// The entity with this id.
    pub fn entity(&self, id: Uuid) -> Option<&Entity> {
        self.entities.entities.iter().find(|entity| entity.id == id)
    }

    /// The entity that `schema.table` names.
    pub fn entity_named(&self, qualified: &str) -> Option<&Entity> {
        let (schema, name) = qualified.split_once('.')?;
        self.entities.entities.iter().find(|entity| entity.schema_name == schema && entity.name == name)
    }

    /// The kind of an entity.
    pub fn entity_type(&self, id: Uuid) -> Option<&EntityType> {
        self.entities.entity_types.iter().find(|kind| kind.id == id)
    }

    /// The first entity of no known type, for the seed's check.
    pub fn entity_of_unknown_type(&self) -> Option<&str> {
        let entities = &self.entities.entities;
        entities.iter().find(|entity| self.entity_type(entity.entity_type_id).is_none()).map(|e| e.name.as_str())
    }
}
