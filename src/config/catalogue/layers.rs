//! What the tables of a profile's file say, and how an inner one stands over the one around it: all pages, a page, a tab, a
//! tab in a tab.

use std::sync::Arc;

use crate::agent::clarify::Gate;
use crate::agent::offer::menu::Menu;
use crate::agent::offer::profile::{
    ClientAction, ContextBudget, DataSlot, Delegation, Diagnostics, DiagnosticsShape, Face, OnLimit, PayloadType,
    Planning, Profile, ProfileBounds, ReplyLanguage, Selection, SourcedTool,
};
use crate::agent::ports::tools::OfferedTool;
use crate::agent::prompt::Prompt;
use crate::agent::recap::RecapKinds;
use crate::chat::template::{Template, TemplateError};

/// The application of a page whose file names none.
const DEFAULT_APP: &str = "chat";

/// Eight tools beside the core, where a selection does not say how many.
const DEFAULT_MOST: usize = 8;

/// What one table says, or several over each other.
#[derive(Clone, Default)]
pub(super) struct Layer {
    /// Whether it is of a page.
    pub(super) is_page: bool,
    pub(super) app: Option<String>,
    pub(super) aliases: Vec<String>,
    pub(super) is_fallback: bool,
    pub(super) is_internal: bool,
    pub(super) read_only: Option<bool>,
    pub(super) in_workspace: bool,
    pub(super) face: Face,
    pub(super) roles: Option<Vec<String>>,
    pub(super) identity: Option<Template>,
    pub(super) instructions: Vec<Template>,
    pub(super) closing: Vec<Template>,
    pub(super) tools: Vec<OfferedTool>,
    pub(super) sourced: Vec<SourcedTool>,
    pub(super) accepts: Vec<String>,
    pub(super) exposes: Vec<String>,
    pub(super) sources: Vec<String>,
    pub(super) payload_types: Vec<PayloadType>,
    pub(super) client_actions: Vec<ClientAction>,
    pub(super) suggestions: Option<bool>,
    pub(super) reply_language: Option<ReplyLanguage>,
    pub(super) takes_instructions: Option<bool>,
    pub(super) background: Option<bool>,
    pub(super) shows_thinking: Option<bool>,
    pub(super) shows_tools: Option<bool>,
    pub(super) select: Option<Select>,
    pub(super) context: Option<ContextBudget>,
    pub(super) recap: Option<Arc<RecapKinds>>,
    pub(super) clarify: Option<Arc<Gate>>,
    pub(super) planning: Option<Planning>,
    pub(super) delegation: Option<Delegation>,
    pub(super) max_turns: Option<u32>,
    pub(super) max_tool_calls: Option<u32>,
    pub(super) failures_in_a_row: Option<u32>,
    pub(super) on_limit: Option<OnLimit>,
    /// The inner `None` is `off`.
    pub(super) shape: Option<Option<DiagnosticsShape>>,
    pub(super) diagnostics_roles: Option<Vec<String>>,
    pub(super) menu: Option<Menu>,
    pub(super) data: Vec<DataSlot>,
}

/// `[select_tools]`.
#[derive(Clone, Default)]
pub(super) struct Select {
    pub(super) core: Vec<String>,
    pub(super) most: Option<usize>,
}

impl Layer {
    /// This layer over the one around it.
    pub(super) fn over(self, outer: &Self) -> Self {
        Self {
            is_page: self.is_page || outer.is_page,
            app: self.app.or_else(|| outer.app.clone()),
            // Names are one profile's.
            aliases: self.aliases,
            is_fallback: self.is_fallback,
            is_internal: self.is_internal,
            read_only: self.read_only.or(outer.read_only),
            in_workspace: self.in_workspace || outer.in_workspace,
            // What a page is called says nothing about its tabs.
            face: self.face,
            roles: self.roles.or_else(|| outer.roles.clone()),
            identity: self.identity.or_else(|| outer.identity.clone()),
            instructions: behind(&outer.instructions, self.instructions),
            closing: behind(&outer.closing, self.closing),
            tools: joined(&outer.tools, self.tools, |tool| &tool.def.name),
            sourced: joined(&outer.sourced, self.sourced, |tool| tool),
            accepts: joined(&outer.accepts, self.accepts, |name| name),
            exposes: joined(&outer.exposes, self.exposes, |name| name),
            sources: joined(&outer.sources, self.sources, |name| name),
            payload_types: joined(&outer.payload_types, self.payload_types, |kind| &kind.name),
            client_actions: joined(&outer.client_actions, self.client_actions, |action| &action.name),
            suggestions: self.suggestions.or(outer.suggestions),
            reply_language: self.reply_language.or(outer.reply_language),
            takes_instructions: self.takes_instructions.or(outer.takes_instructions),
            background: self.background.or(outer.background),
            shows_thinking: self.shows_thinking.or(outer.shows_thinking),
            shows_tools: self.shows_tools.or(outer.shows_tools),
            select: match (&outer.select, self.select) {
                (Some(outer), Some(inner)) => {
                    Some(Select { core: joined(&outer.core, inner.core, |name| name), most: inner.most.or(outer.most) })
                }
                (outer, inner) => inner.or_else(|| outer.clone()),
            },
            context: self.context.or(outer.context),
            recap: self.recap.or_else(|| outer.recap.clone()),
            clarify: self.clarify.or_else(|| outer.clarify.clone()),
            planning: self.planning.or_else(|| outer.planning.clone()),
            delegation: self.delegation.or_else(|| outer.delegation.clone()),
            max_turns: self.max_turns.or(outer.max_turns),
            max_tool_calls: self.max_tool_calls.or(outer.max_tool_calls),
            failures_in_a_row: self.failures_in_a_row.or(outer.failures_in_a_row),
            on_limit: self.on_limit.or(outer.on_limit),
            shape: self.shape.or(outer.shape),
            diagnostics_roles: self.diagnostics_roles.or_else(|| outer.diagnostics_roles.clone()),
            menu: self.menu.or_else(|| outer.menu.clone()),
            data: joined(&outer.data, self.data, |slot| &slot.slot),
        }
    }

    /// Whether a tool of that name is offered, as far as that is known before the server runs.
    pub(super) fn may_offer(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.def.name == name)
            || self.sourced.iter().any(|tool| tool.name == name)
            || name.split_once("__").is_some_and(|(source, _)| self.sources.iter().any(|known| known == source))
    }

    /// The profile that it describes; `menu` is that of profiles that say nothing of models.
    ///
    /// # Errors
    /// When its prompt cannot be made.
    pub(super) fn profile(self, id: String, context_type: String, menu: Menu) -> Result<Profile, TemplateError> {
        let blocks = self.identity.into_iter().chain(self.instructions).chain(self.closing);
        let selection = self.select.map(|Select { core, most }| Selection { core, most: most.unwrap_or(DEFAULT_MOST) });
        Ok(Profile {
            id,
            context_type,
            aliases: self.aliases,
            is_fallback: self.is_fallback,
            is_internal: self.is_internal,
            read_only: self.read_only.unwrap_or_default(),
            in_workspace: self.in_workspace,
            face: self.face,
            is_page: self.is_page,
            app: self.app.unwrap_or_else(|| DEFAULT_APP.to_owned()),
            roles: self.roles.unwrap_or_default(),
            prompt: Prompt::new(blocks)?,
            data: self.data,
            tools: self.tools,
            sourced: self.sourced,
            accepts: self.accepts,
            exposes: self.exposes,
            sources: self.sources,
            selection,
            context: self.context,
            recap: self.recap,
            clarify: self.clarify,
            planning: self.planning,
            delegation: self.delegation,
            payload_types: self.payload_types,
            client_actions: self.client_actions,
            suggestions: self.suggestions.unwrap_or_default(),
            bounds: ProfileBounds {
                max_turns: self.max_turns,
                max_tool_calls: self.max_tool_calls,
                failures_in_a_row: self.failures_in_a_row.filter(|most| *most != 0),
                on_limit: self.on_limit.unwrap_or_default(),
            },
            diagnostics: Diagnostics { shape: self.shape.flatten(), roles: self.diagnostics_roles.unwrap_or_default() },
            reply_language: self.reply_language,
            takes_instructions: self.takes_instructions.unwrap_or_default(),
            background: self.background.unwrap_or_default(),
            shows_thinking: self.shows_thinking.unwrap_or_default(),
            shows_tools: self.shows_tools.unwrap_or_default(),
            models: self.menu.unwrap_or(menu),
        })
    }
}

fn behind<T: Clone>(outer: &[T], inner: Vec<T>) -> Vec<T> {
    outer.iter().cloned().chain(inner).collect()
}

/// The outer ones, then the inner ones; an inner one replaces the outer one of its name.
fn joined<T: Clone, K: PartialEq + ?Sized>(outer: &[T], inner: Vec<T>, name: impl Fn(&T) -> &K) -> Vec<T> {
    let mut all = outer.to_vec();
    for item in inner {
        match all.iter_mut().find(|known| name(known) == name(&item)) {
            Some(known) => *known = item,
            None => all.push(item),
        }
    }
    all
}
