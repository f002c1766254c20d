//! Projects and their tasks, for a set whose tools somebody else's application answers: as much of it as a plan needs.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::stamp::Stamp;

/// The file `ontology.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ontology {
    /// What somebody wants to bring about.
    pub projects: Vec<Project>,
    /// What is to be done for it.
    pub tasks: Vec<Task>,
}

/// A project.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    description: String,
    type_key: String,
    state_key: String,
    start_at: Option<Stamp>,
    end_at: Option<Stamp>,
    created_at: Stamp,
    updated_at: Stamp,
}

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub project_id: Uuid,
    /// What is to be done.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Its type.
    pub type_key: String,
    /// How far it is.
    pub state_key: String,
    /// 1 is the most urgent.
    pub priority: u8,
    /// When it begins.
    pub start_at: Option<Stamp>,
    /// When it is due.
    pub due_at: Option<Stamp>,
    /// When it was made.
    pub created_at: Stamp,
    /// When it was changed last.
    pub updated_at: Stamp,
}

impl Ontology {
    /// The project with this id.
    pub fn project(&self, id: Uuid) -> Option<&Project> {
        self.projects.iter().find(|project| project.id == id)
    }

    /// A task of no project, if there is one.
    pub fn stray(&self) -> Option<Uuid> {
        self.tasks.iter().find(|task| self.project(task.project_id).is_none()).map(|task| task.id)
    }
}
