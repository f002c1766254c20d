//! Users and roles: who an alert is for.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::chat::caller::Caller;

/// The role that everybody has whose token names none.
pub const USER: &str = "USER";

/// The file `people.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct People {
    users: Vec<User>,
    roles: Vec<Role>,
}

/// A person.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    id: Uuid,
    username: String,
    first_name: String,
    last_name: String,
    /// Their address.
    pub email: String,
    title: String,
    roles: Vec<String>,
    is_enabled: bool,
}

/// A role; its name is what tokens list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    id: Uuid,
    /// Its name.
    pub name: String,
    description: String,
}

impl User {
    /// First and last name.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.first_name, self.last_name)
    }
}

impl People {
    /// The user with this id.
    pub fn user(&self, id: Uuid) -> Option<&User> {
        self.users.iter().find(|user| user.id == id)
    }

    /// The role with this id.
    pub fn role(&self, id: Uuid) -> Option<&Role> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// The user that the token's `sub` names, if it is one of ours.
    pub fn caller(&self, caller: &Caller) -> Option<&User> {
        self.user(Uuid::try_parse(&caller.owner.user).ok()?)
    }

    /// Whether `caller` has the role: everybody is a `USER`, and the others come from the token or from the seed.
    pub fn has_role(&self, caller: &Caller, role: Uuid) -> bool {
        let Some(role) = self.role(role) else {
            return false;
        };
        let seeded = self.caller(caller).is_some_and(|user| user.roles.contains(&role.name));
        role.name == USER || caller.has_role(&role.name) || seeded
    }

    /// The first user who has a role that does not exist, for the seed's check.
    pub fn user_with_unknown_role(&self) -> Option<&str> {
        let known = |name: &String| self.roles.iter().any(|role| role.name == *name);
        self.users.iter().find(|user| !user.roles.iter().all(known)).map(|user| user.username.as_str())
    }
}
