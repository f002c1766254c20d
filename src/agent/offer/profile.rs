//! A profile: who the assistant is on one screen. Plain data, made from files by the configuration.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::menu::Menu;
use crate::agent::clarify::Gate;
use crate::agent::ports::previews::PreviewRights;
use crate::agent::ports::tools::OfferedTool;
use crate::agent::prompt::Prompt;
use crate::agent::recap::RecapKinds;
use crate::chat::caller::Caller;
use crate::chat::input::Screen;
use crate::chat::preview::Origin;
use crate::chat::schema::Schema;
use crate::chat::template::Template;

/// The tool that finds others. It is ours: no handler has it.
pub const FIND_TOOLS: &str = "find_tools";

/// The tool that gives a task to another assistant. It is the loop's own.
pub const DELEGATE: &str = "delegate";

/// The assistant of one screen.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name in logs and in the store.
    pub id: String,
    /// Its name in a request: a `context_type`, or page, tab and subtab joined by slashes.
    pub context_type: String,
    /// Other names that select it, as a `context_type` does.
    pub aliases: Vec<String>,
    /// Whether it is the one for a `context_type` that no other profile has.
    pub is_fallback: bool,
    /// Whether it answers no user: it does a job, or other assistants ask it.
    pub is_internal: bool,
    /// Whether no tool that writes is offered, found or run.
    pub read_only: bool,
    /// Whether it has tools that work on the files of a workspace.
    pub in_workspace: bool,
    /// Its presentation in front ends.
    pub face: Face,
    /// Whether it is of a page, a tab or a tab in a tab, which are found by their names alone.
    pub is_page: bool,
    /// The application that it belongs to, for protocols that list chats by application.
    pub app: String,
    /// The caller's token must list one of them; empty lets everybody.
    pub roles: Vec<String>,
    /// The instructions for the model.
    pub prompt: Prompt,
    /// Data that is loaded from the backend for the prompt, in order.
    pub data: Vec<DataSlot>,
    /// The tools that are offered, in catalogue order.
    pub tools: Vec<OfferedTool>,
    /// Those of all its tools that clients with a model of their own may call by themselves.
    pub exposes: Vec<String>,
    /// Tools of sources that are offered by name, behind those, while their source has them.
    pub sourced: Vec<SourcedTool>,
    /// Tool names that are accepted from a model though they are not offered: aliases.
    pub accepts: Vec<String>,
    /// Sources of tools that are known only while the server runs; all of their tools are offered.
    pub sources: Vec<String>,
    /// How the tools of one run are chosen among many; `None` offers all.
    pub selection: Option<Selection>,
    /// The plans that its model may make; `None`: none.
    pub planning: Option<Planning>,
    /// The assistants that its model may give tasks to; `None`: none.
    pub delegation: Option<Delegation>,
    /// How much of a conversation a model reads before its older part is summarised; `None`: what `limits` say.
    pub context: Option<ContextBudget>,
    /// What runs leave behind of what they were about; `None`: nothing.
    pub recap: Option<Arc<RecapKinds>>,
    /// Whether its users are asked first, and what; `None`: they are not.
    pub clarify: Option<Arc<Gate>>,
    /// The types of payloads that tools make here, and that the model may write.
    pub payload_types: Vec<PayloadType>,
    /// Actions that the front end can carry out when they are suggested.
    pub client_actions: Vec<ClientAction>,
    /// Whether the model may suggest what to say or do next.
    pub suggestions: bool,
    /// The bounds of a run here, where they differ from the settings'.
    pub bounds: ProfileBounds,
    /// Who may see how a run was carried out.
    pub diagnostics: Diagnostics,
    /// The language answers must have, if any.
    pub reply_language: Option<ReplyLanguage>,
    /// Whether a client's own instructions for the model stand behind its own, fenced; else they are left out.
    pub takes_instructions: bool,
    /// Whether a run goes on when its client goes away, where the request does not say.
    pub background: bool,
    /// Whether clients get the model's thinking.
    pub shows_thinking: bool,
    /// Whether users may see what tools were called with, and what they said.
    pub shows_tools: bool,
    /// Which models answer, and what of that a request may choose.
    pub models: Menu,
}

impl Profile {
    /// Whether `caller` may use it.
    pub fn lets(&self, caller: &Caller) -> bool {
        lists_one(caller, &self.roles)
    }

    /// The type of that name.
    pub fn payload_type(&self, name: &str) -> Option<&PayloadType> {
        self.payload_types.iter().find(|kind| kind.name == name)
    }
}

fn lists_one(caller: &Caller, roles: &[String]) -> bool {
    roles.is_empty() || roles.iter().any(|role| caller.has_role(role))
}

/// A profile's presentation in front ends, for users who choose among several.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Face {
    /// Its name for people; `None`: its `context_type`.
    pub title: Option<String>,
    /// Its purpose, in a sentence.
    pub description: Option<String>,
    /// Messages to begin with.
    pub starters: Vec<String>,
    /// A screen state to try it with.
    pub example_context: Option<Map<String, Value>>,
}

/// A tool of a source, which is known only while the server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedTool {
    /// The source.
    pub source: String,
    /// The tool's name as it is offered.
    pub name: String,
}

/// Data for the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSlot {
    /// Its name in templates: `data.<slot>`.
    pub slot: String,
    /// The loader's name.
    pub loader: String,
    /// Whether a run without it fails.
    pub is_required: bool,
}

/// How the tools of one run are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Tools that are always offered.
    pub core: Vec<String>,
    /// How many others are offered at most: those that fit the message best.
    pub most: usize,
}

/// How much of a conversation a model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextBudget {
    /// Estimated tokens. Beyond them the older part is summarised after the run.
    pub tokens: u64,
    /// The newest messages, which no summary stands for.
    pub keep_messages: usize,
    /// From so many percent on it is nearly full.
    pub near_percent: u64,
}

/// Plans that a model may make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planning {
    /// The name of the tool that makes them.
    pub tool: String,
    /// A tool that every plan here has, where others need what it makes.
    pub begins_with: Option<Begins>,
}

/// The tool that a plan begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begins {
    /// Its name.
    pub tool: String,
    /// The argument of other tools that it makes.
    pub gives: String,
}

impl Planning {
    /// Whether a tool is one of the loop's own, which no plan may use.
    pub fn is_own(&self, tool: &str) -> bool {
        [self.tool.as_str(), DELEGATE, FIND_TOOLS].iter().any(|own| own.eq_ignore_ascii_case(tool))
    }
}

/// Tasks that a model may give to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delegation {
    /// Whether an assistant without a name may be asked, with some of the tools of the one who asks.
    pub with_tools: bool,
    /// Those who may be asked by name.
    pub assistants: Vec<Assistant>,
}

/// An assistant that may be asked by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assistant {
    /// Its name for the one who asks.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The `context_type` of its profile.
    pub context_type: String,
}

/// A type of payloads.
#[derive(Debug, Clone)]
pub struct PayloadType {
    /// Its name.
    pub name: String,
    /// Describes it to the model, and is its summary where there is no better one.
    pub description: String,
    /// The text before the JSON when the model writes one, with its colon; `None` for those that only tools make.
    pub marker: Option<String>,
    /// The schema of its data.
    pub schema: Option<Schema>,
    /// When and how the model writes one.
    pub instructions: String,
    /// One line about a payload; its values are `data`.
    pub summary: Option<Template>,
}

/// Something that the front end does by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAction {
    /// Its name.
    pub name: String,
    /// Describes it to the model.
    pub description: String,
}

/// The bounds of a run where a profile sets them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileBounds {
    /// Model calls; `None`: as in the settings.
    pub max_turns: Option<u32>,
    /// Tool calls; `None`: as in the settings.
    pub max_tool_calls: Option<u32>,
    /// Calls that fail one after the other; `None`: any number.
    pub failures_in_a_row: Option<u32>,
    /// What happens after the last turn.
    pub on_limit: OnLimit,
}

/// What happens when a model still calls tools in the last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLimit {
    /// The run fails.
    #[default]
    Fail,
    /// The model is called once more, without tools, to answer with what it has.
    Answer,
}

/// Who may see how a run was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Their shape; `None` hides them from all.
    pub shape: Option<DiagnosticsShape>,
    /// The caller's token must list one of them; empty lets everybody.
    pub roles: Vec<String>,
}

impl Diagnostics {
    /// The shape in which `caller` may see them.
    pub fn shape_for(&self, caller: &Caller) -> Option<DiagnosticsShape> {
        self.shape.filter(|_| lists_one(caller, &self.roles))
    }
}

/// The shape of diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticsShape {
    /// The request, and the raw answer.
    Basic,
    /// Every model call and every tool call.
    Trace,
}

/// Languages that an answer can be held to: one in ideographs is requested again, once a run, where the language is not
/// written in them. `agent/turn/language.rs` has the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReplyLanguage {
    German,
    English,
    Spanish,
    French,
    Italian,
    Japanese,
    Korean,
    Dutch,
    Polish,
    Portuguese,
    Chinese,
}

/// All profiles.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    by_type: HashMap<String, Arc<Profile>>,
    /// By the other names.
    by_alias: HashMap<String, Arc<Profile>>,
    /// The profile of every `context_type` that no other profile has.
    fallback: Option<Arc<Profile>>,
    /// The profile of pages that have none of their own.
    any_page: Option<Arc<Profile>>,
}

impl Profiles {
    /// Profiles by their `context_type`; `any_page` is that of pages without one.
    pub fn new(profiles: impl IntoIterator<Item = Profile>, any_page: Option<&str>) -> Self {
        let by_type: HashMap<_, _> =
            profiles.into_iter().map(|profile| (profile.context_type.clone(), Arc::new(profile))).collect();
        let any_page = any_page.and_then(|context_type| by_type.get(context_type).cloned());
        let aliases = by_type.values().flat_map(|profile| {
            profile.aliases.iter().map(|alias| (alias.clone(), Arc::clone(profile))).collect::<Vec<_>>()
        });
        let by_alias = aliases.collect();
        let fallback = by_type.values().find(|profile| profile.is_fallback).cloned();
        Self { by_type, by_alias, fallback, any_page }
    }

    /// The profile for where a user is. An unknown `context_type` has the fallback, where there is one. An unknown tab has what its page has, an unknown page what all pages have.
    pub fn select(&self, screen: &Screen) -> Option<Arc<Profile>> {
        match screen {
            Screen::Type(context_type) => {
                let found = self.by_type.get(context_type).or_else(|| self.by_alias.get(context_type));
                let found = found.filter(|profile| !profile.is_internal);
                found.or(self.fallback.as_ref()).cloned()
            }
            Screen::OfConversation => self.fallback.clone(),
            Screen::Page { page, tab, subtab } => self.page([page, tab, subtab]).or_else(|| self.any_page.clone()),
        }
    }

    fn page(&self, names: [&Option<String>; 3]) -> Option<Arc<Profile>> {
        let mut path = String::new();
        let mut found = None;
        for name in names {
            // No name has a slash in it, and such a one must not pass for a tab.
            let Some(name) = name.as_deref().filter(|name| !name.is_empty() && !name.contains('/')) else { break };
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
            let Some(profile) = self.by_type.get(&path).filter(|profile| profile.is_page) else { break };
            found = Some(profile.clone());
        }
        found
    }

    /// The profile of that `context_type`.
    pub fn of_type(&self, context_type: &str) -> Option<Arc<Profile>> {
        self.by_type.get(context_type).cloned()
    }

    /// All of them, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Profile> {
        self.by_type.values().map(|profile| &**profile)
    }

    /// All values of `context_type` that select a profile, sorted.
    pub fn context_types(&self) -> Vec<&str> {
        let answering = self.all().filter(|profile| !profile.is_internal);
        let mut types: Vec<&str> = answering.map(|profile| profile.context_type.as_str()).collect();
        types.sort_unstable();
        types
    }
}

impl PreviewRights for Profiles {
    /// A profile that is gone lets no caller through, since its roles are unknown.
    fn lets(&self, caller: &Caller, origin: &Origin) -> bool {
        let Some(context_type) = &origin.context_type else { return true };
        let Some(profile) = self.of_type(context_type) else { return false };
        let tool = profile.tools.iter().find(|tool| origin.tool.as_deref() == Some(tool.def.name.as_str()));
        profile.lets(caller) && tool.is_none_or(|tool| tool.policy.lets(caller))
    }
}
