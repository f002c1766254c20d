//! A profile: who the assistant is on one screen. Plain data, made from files by the configuration.

use std::collections::HashMap;
use std::sync::Arc;

use super::menu::Menu;
use crate::chat::tool::ToolDef;

/// The assistant of one `context_type`.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name in logs and in the store.
    pub id: String,
    /// The request's `context_type` that selects it.
    pub context_type: String,
    /// The system prompt's stable part: role, guidance, formatting rules.
    pub instructions: Arc<str>,
    /// What stands before the screen state in the prompt.
    pub context_preamble: String,
    /// Which id of the screen state is named in words above it.
    pub current_id: Option<CurrentId>,
    /// The tools that are offered, in catalogue order.
    pub tools: Vec<ToolDef>,
    /// Tool names that are accepted from a model though they are not offered: aliases.
    pub accepts: Vec<String>,
    /// The language answers must have, if any.
    pub reply_language: Option<ReplyLanguage>,
    /// Whether a run goes on when its client goes away, where the request does not say.
    pub background: bool,
    /// Which models answer, and what of that a request may choose.
    pub models: Menu,
}

impl Profile {
    /// Whether a call of this tool may run.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.iter().any(|def| def.name == tool) || self.accepts.iter().any(|name| name == tool)
    }
}

/// The id of the thing on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentId {
    /// Its key in the screen state.
    pub key: String,
    /// How the prompt calls it.
    pub label: String,
    /// The key of the thing's name in the screen state.
    pub name_key: String,
}

/// Languages that an answer can be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyLanguage {
    /// An answer in ideographs is asked for again, once a run.
    English,
}

/// All profiles by `context_type`.
#[derive(Debug, Clone, Default)]
pub struct Profiles(HashMap<String, Arc<Profile>>);

impl Profiles {
    /// The profile for a request's `context_type`.
    pub fn select(&self, context_type: &str) -> Option<Arc<Profile>> {
        self.0.get(context_type).cloned()
    }

    /// All of them, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Profile> {
        self.0.values().map(|profile| &**profile)
    }

    /// All known values of `context_type`, sorted.
    pub fn context_types(&self) -> Vec<&str> {
        let mut types: Vec<&str> = self.0.keys().map(String::as_str).collect();
        types.sort_unstable();
        types
    }
}

impl FromIterator<Profile> for Profiles {
    fn from_iter<I: IntoIterator<Item = Profile>>(profiles: I) -> Self {
        Self(profiles.into_iter().map(|profile| (profile.context_type.clone(), Arc::new(profile))).collect())
    }
}
