//! `set_dialog_title`: a title for a conversation that has none.
//!
//! **Invariant:** a title that somebody gave stays: the tool is not offered then, and the store takes no second one.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::ports::titles::TitleStore;
use crate::agent::ports::tools::{Condition, OnlyIf, ToolContext};
use crate::chat::causes::Causes;
use crate::chat::tool::ToolOutput;
use crate::chat::worded::TOOL_ERROR;
use crate::tools::worded::{Wording, told};
use crate::tools::{Tool, ToolError};

pub(super) const WORDING: Wording = Wording { name: "set_dialog_title", kind: TOOL_ERROR };

/// 50 characters of a title: AgentSmithy protocol.
const TITLE_CHARS: usize = 50;

pub(super) struct SetTitle {
    titles: Arc<dyn TitleStore>,
    only_if: OnlyIf,
}

impl SetTitle {
    pub(super) fn new(titles: Arc<dyn TitleStore>) -> Self {
        Self { only_if: OnlyIf(Arc::new(Untitled(titles.clone()))), titles }
    }
}

#[derive(Deserialize)]
struct Args {
    title: String,
}

/// What the model reads.
#[derive(Serialize)]
#[serde(tag = "type", rename = "success")]
struct Told<'a> {
    tool: &'a str,
    title: &'a str,
    message: &'a str,
}

#[async_trait]
impl Tool for SetTitle {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Args { title } = WORDING.args(args)?;
        let title = title.trim().replace(char::is_control, " ");
        match title.chars().count() {
            0 => return Err(WORDING.error("invalid_title", "a title has at least one word")),
            chars if chars > TITLE_CHARS => {
                let words = format!("a title has at most {TITLE_CHARS} characters, and this one has {chars}");
                return Err(WORDING.error("title_too_long", &words));
            }
            _ => {}
        }
        if !self.titles.entitle(&cx.caller.owner, cx.conversation, &title).await? {
            return Err(WORDING.error("already_titled", "the conversation has a title already, which stays"));
        }
        Ok(told(&Told { tool: WORDING.name, title: &title, message: "the conversation has this title now" }))
    }

    fn wording(&self) -> Option<Wording> {
        Some(WORDING)
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        WORDING.args::<Args>(args).map(drop)
    }

    fn only_if(&self) -> Option<OnlyIf> {
        Some(self.only_if.clone())
    }
}

/// Nobody has given the conversation a title.
struct Untitled(Arc<dyn TitleStore>);

#[async_trait]
impl Condition for Untitled {
    async fn holds(&self, cx: &ToolContext<'_>) -> bool {
        match self.0.is_titled(&cx.caller.owner, cx.conversation).await {
            Ok(is_titled) => !is_titled,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), run.id = %cx.run, "a title was not looked for");
                false
            }
        }
    }
}
