//! The tools of one run: what its profile offers, as far as the caller's roles let them; and, where that is more than a
//! model should read, those that fit, with a way to find the others.
//!
//! **Invariant:** a tool that the caller may not use is not offered, not found and not run; for the model it does not exist.
//! **Invariant:** where a profile only reads, the same holds for every tool that writes, whatever it was before.
//! **Invariant:** the same holds for a tool that its conversation has no use for now, as the tool says itself.
//! **Invariant:** a tool that was listed for the model keeps its position, and new ones are appended, so that vendors'
//! caches of prompts stay good.

pub mod client;
pub mod consent;
pub mod menu;
pub mod profile;
pub mod selection;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use self::profile::{FIND_TOOLS, Profile, Selection};
use self::selection::{Finder, Wanted};
use crate::agent::ports::tools::{OfferedTool, ToolContext, ToolExecutor};
use crate::chat::tool::{Effect, Policy, ToolCall, ToolDef, ToolInput, ToolOutput};

/// 8 tools are found at once, each described in 300 characters.
const FOUND: usize = 8;
const DESCRIPTION_CHARS: usize = 300;

/// The tools that a run may use.
pub(in crate::agent) struct Offer {
    /// The tools listed for the model, in order.
    defs: Vec<Arc<ToolDef>>,
    /// All that the caller may use here.
    tools: Vec<OfferedTool>,
    /// Names that run without being offered.
    accepts: Vec<String>,
    /// The tools that the client runs itself.
    client: Vec<Arc<ToolDef>>,
    /// The loop's own tools, which make plans and ask others.
    own: Vec<Arc<ToolDef>>,
    /// The tools that only others may use.
    denied: Vec<String>,
    /// Whether something was left out, so that the model can look for it.
    finds: bool,
}

/// The meaning of a call's name in this run.
pub(in crate::agent) enum Look {
    /// It may run as its policy says.
    Offered(Policy),
    /// It may be used here, and is not listed for the model yet.
    Unseen,
    /// The client makes it, where its arguments are right; else this is what the model reads.
    Client(Result<(), Box<ToolOutput>>),
    /// It is one of the loop's own.
    Own,
    /// There is such a tool, and none of the caller's roles may use it.
    Denied,
    /// There is no such tool for this caller.
    Unknown,
}

impl Offer {
    /// The tools that `profile` offers for `wanted` there, and behind them all tools of the client, but for names
    /// that the profile has, whoever may use those.
    pub(in crate::agent) async fn prepare(
        profile: &Profile,
        (cx, client_tools): (&ToolContext<'_>, &[Arc<ToolDef>]),
        executor: &dyn ToolExecutor,
        finder: &Finder,
        wanted: Wanted<'_>,
    ) -> Self {
        let (mut tools, mut denied): (Vec<OfferedTool>, Vec<String>) = (Vec::new(), Vec::new());
        // Whoever may not use a tool does not reach it by a name that only runs either.
        let mut accepts = profile.accepts.clone();
        let mut taken: HashSet<String> = accepts.iter().cloned().chain([FIND_TOOLS.to_owned()]).collect();
        for tool in of_profile(profile, executor) {
            accepts.retain(|name| *name != tool.def.name);
            taken.insert(tool.def.name.clone());
            if profile.read_only && tool.effect == Effect::Write {
                continue;
            }
            if !tool.policy.lets(cx.caller) {
                denied.push(tool.def.name.clone());
            } else if !tools.iter().any(|other| other.def.name == tool.def.name) && is_of_use(&tool, cx).await {
                tools.push(tool);
            }
        }
        let chosen = match &profile.selection {
            None => tools.iter().collect(),
            Some(selection) => chosen(selection, &tools, finder, wanted).await,
        };
        let mut defs: Vec<Arc<ToolDef>> = chosen.iter().map(|tool| tool.def.clone()).collect();
        let finds = defs.len() < tools.len() && !tools.iter().any(|tool| tool.def.name == FIND_TOOLS);
        if finds {
            defs.push(Arc::new(find_tools()));
        }
        let client = client_tools.iter().filter(|def| taken.insert(def.name.clone())).cloned();
        let client: Vec<Arc<ToolDef>> = client.collect();
        defs.extend(client.iter().cloned());
        Self { defs, tools, accepts, client, own: Vec::new(), denied, finds }
    }

    /// Takes the client's tools back; whether there are others. Where there are none they stay listed, since the history may
    /// name them.
    pub(in crate::agent) fn withdraw_client(&mut self) -> bool {
        let client = std::mem::take(&mut self.client);
        let has_others = self.defs.len() > client.len();
        if has_others {
            self.defs.retain(|def| !client.iter().any(|of_client| of_client.name == def.name));
        }
        has_others
    }

    /// Whether a tool of the client is offered.
    pub(in crate::agent) fn has_of_client(&self) -> bool {
        !self.client.is_empty()
    }

    /// Whether this one of the client's is offered.
    pub(in crate::agent) fn is_of_client(&self, name: &str) -> bool {
        self.client.iter().any(|def| def.name == name)
    }

    /// These tools and no others, all of them listed.
    pub(in crate::agent) fn only(tools: Vec<OfferedTool>) -> Self {
        let defs = tools.iter().map(|tool| tool.def.clone()).collect();
        Self { defs, tools, accepts: Vec::new(), client: Vec::new(), own: Vec::new(), denied: Vec::new(), finds: false }
    }

    /// Lists the loop's own tools too, behind all others; a tool of the same name does not count any more.
    pub(in crate::agent) fn with_own(mut self, own: Vec<ToolDef>) -> Self {
        for def in own {
            self.defs.retain(|listed| listed.name != def.name);
            self.client.retain(|listed| listed.name != def.name);
            self.own.push(Arc::new(def));
        }
        self.defs.extend(self.own.iter().cloned());
        self
    }

    /// All tools that the caller may use here, listed or not.
    pub(in crate::agent) fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    /// The tools listed for the model.
    pub(in crate::agent) fn defs(&self) -> &[Arc<ToolDef>] {
        &self.defs
    }

    /// The meaning of `call` here.
    pub(in crate::agent) fn look(&self, call: &ToolCall) -> Look {
        let name = call.name.as_str();
        if self.own.iter().any(|def| def.name == name) {
            return Look::Own;
        }
        if let Some(tool) = self.tool(name) {
            return match self.defs.iter().any(|def| def.name == name) {
                true => Look::Offered(tool.policy.clone()),
                false => Look::Unseen,
            };
        }
        match self.accepts.iter().any(|known| known == name) {
            true => Look::Offered(Policy::default()),
            false => match self.client.iter().find(|def| def.name == name) {
                Some(def) => Look::Client(client::check(def, call)),
                None if self.denied.iter().any(|denied| denied == name) => Look::Denied,
                None => Look::Unknown,
            },
        }
    }

    /// The tool of that name, where the caller may use it here.
    pub(in crate::agent) fn tool(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.def.name == name)
    }

    /// Tells the model of a tool from the next turn on.
    pub(in crate::agent) fn add(&mut self, name: &str) {
        let tool = self.tool(name);
        if let Some(tool) = tool.filter(|tool| !self.defs.iter().any(|def| def.name == tool.def.name)) {
            self.defs.push(tool.def.clone());
        }
    }

    /// Takes back what was `called` and is of no use to the conversation any more.
    pub(in crate::agent) async fn withdraw(&mut self, called: &[String], cx: &ToolContext<'_>) {
        for name in called {
            let Some(tool) = self.tool(name) else { continue };
            if !is_of_use(tool, cx).await {
                self.tools.retain(|tool| tool.def.name != *name);
                self.defs.retain(|def| def.name != *name);
            }
        }
    }

    /// The answer to a call that looks for tools; `None` for every other call. What is found is offered from the next turn on.
    pub(in crate::agent) async fn find(&mut self, call: &ToolCall, finder: &Finder) -> Option<ToolOutput> {
        if !self.finds || call.name != FIND_TOOLS {
            return None;
        }
        let query = match &call.input {
            ToolInput::Object(args) => args.get("query").and_then(Value::as_str).unwrap_or_default(),
            ToolInput::Invalid(_) => "",
        };
        if query.trim().is_empty() {
            return Some(ToolOutput::error("bad params: query must say in words what the tool should do"));
        }
        let all: Vec<&OfferedTool> = self.tools.iter().collect();
        let ranked = finder.ranked(Wanted { question: query, recent: &[] }, &all).await;
        let found = ranked.into_iter().take(FOUND).filter_map(|at| self.tools.get(at)).map(|tool| tool.def.clone());
        let found: Vec<Arc<ToolDef>> = found.collect();
        let note = match found.is_empty() {
            true => "no tool has to do with this; say it in other words, or do without",
            false => "these can be called now",
        };
        for def in &found {
            self.add(&def.name);
        }
        let short = |text: &str| text.chars().take(DESCRIPTION_CHARS).collect::<String>();
        let listed = found.iter().map(|def| json!({"name": def.name, "description": short(&def.description)}));
        Some(ToolOutput::ok(json!({"tools": listed.collect::<Value>(), "note": note}).to_string()))
    }
}

/// Whether the conversation has a use for `tool` now.
async fn is_of_use(tool: &OfferedTool, cx: &ToolContext<'_>) -> bool {
    match &tool.only_if {
        Some(only_if) => only_if.0.holds(cx).await,
        None => true,
    }
}

/// All tools of `profile`, those of servers as they are at the moment. Of several with one name the first counts.
pub fn of_profile(profile: &Profile, executor: &dyn ToolExecutor) -> impl Iterator<Item = OfferedTool> {
    let named = profile
        .sourced
        .iter()
        .flat_map(|wanted| executor.sourced(&wanted.source).into_iter().filter(|tool| tool.def.name == wanted.name));
    let sourced = named.chain(profile.sources.iter().flat_map(|source| executor.sourced(source)));
    profile.tools.iter().cloned().chain(sourced)
}

/// The core and as many others as there may be, in the order of the catalogue: first those that fit `wanted`, then the
/// first of the rest, so that the limit is used up.
async fn chosen<'a>(
    selection: &Selection,
    tools: &'a [OfferedTool],
    finder: &Finder,
    wanted: Wanted<'_>,
) -> Vec<&'a OfferedTool> {
    let is_core = |tool: &OfferedTool| selection.core.contains(&tool.def.name);
    let others: Vec<&OfferedTool> = tools.iter().filter(|tool| !is_core(tool)).collect();
    let mut indices = match others.len() <= selection.most {
        true => Vec::new(),
        false => finder.ranked(wanted, &others).await,
    };
    for at in 0..others.len() {
        if !indices.contains(&at) {
            indices.push(at);
        }
    }
    indices.truncate(selection.most);
    let best: Vec<&str> = indices.iter().filter_map(|at| others.get(*at)).map(|tool| tool.def.name.as_str()).collect();
    tools.iter().filter(|tool| is_core(tool) || best.contains(&tool.def.name.as_str())).collect()
}

fn find_tools() -> ToolDef {
    ToolDef {
        name: FIND_TOOLS.to_owned(),
        description: "Finds more tools. Only some of your tools are listed here; when none of them does what is needed, say what you \
                      need, and call what is found."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What the tool should do, in a few words"}},
            "required": ["query"],
            "additionalProperties": false
        }),
    }
}
