//! The tools' port. A failed tool is data for the model, so there is no `Result`.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::{Map, Value};

use super::files::{FileError, Files, Incoming};
use crate::chat::caller::{Caller, Owner};
use crate::chat::directive::DirectiveNotice;
use crate::chat::file::{FileRef, NewFile};
use crate::chat::ids::{ConversationId, RunId, ToolCallId};
use crate::chat::operation::OperationRule;
use crate::chat::place::Place;
use crate::chat::screen::ScreenState;
use crate::chat::tool::{Effect, Policy, Progress, ToolCall, ToolDef, ToolOutput};

/// Runs tool calls.
#[async_trait]
pub trait ToolExecutor: Send + Sync {
    /// The output of `call`: bad arguments, an unknown tool and a failing backend are outputs too, whose
    /// fate says so, and so is a panic inside a tool.
    /// Dropping the future stops the tool at once.
    async fn execute(&self, call: &ToolCall, cx: &ToolContext<'_>) -> ToolOutput;

    /// Checks a call before it is made or waits for approval: what a second, equal one could do.
    ///
    /// # Errors
    /// The output for the model when the call cannot be made: its tool is unknown, or its arguments are wrong.
    fn check(&self, call: &ToolCall) -> Result<Effect, Box<ToolOutput>>;

    /// The arguments of `call` as they would be sent now: with what is filled in, and with ids instead of names. The
    /// person who has to let the call through sees them.
    ///
    /// # Errors
    /// The output for the model when they cannot be made.
    async fn complete(&self, call: &ToolCall, cx: &ToolContext<'_>) -> Result<Map<String, Value>, Box<ToolOutput>>;

    /// The source of the tool of this name: its owner, and what a call of it sends. The same text as long as that is
    /// the same, also after a restart and in another process; empty where there is no such tool.
    fn source(&self, name: &str) -> String;

    /// The tools that the source of this name has at the moment; none while it cannot be reached.
    fn sourced(&self, source: &str) -> Vec<OfferedTool>;
}

/// What a tool needs of a conversation to be offered there.
#[async_trait]
pub trait Condition: Send + Sync {
    /// Whether it is so now.
    async fn holds(&self, cx: &ToolContext<'_>) -> bool;
}

/// A tool as a profile offers it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Its definition for the model.
    pub def: Arc<ToolDef>,
    /// Who may use it.
    pub policy: Policy,
    /// What a second, equal call could do.
    pub effect: Effect,
    /// The `context_type` to which a call of it moves its conversation.
    pub moves_to: Option<String>,
    /// What its calls do to the things that users know.
    pub operation: Option<Arc<OperationRule>>,
    /// Questions that it answers, by which it is found among many.
    pub samples: Vec<String>,
    /// What its conversation has to be like; `None`: as it may be.
    pub only_if: Option<OnlyIf>,
    /// The argument that bare text is in the place of an object; `None`: such a call is not made.
    pub bare_text: Option<String>,
}

/// A condition, which is equal to itself alone.
#[derive(Clone)]
pub struct OnlyIf(pub Arc<dyn Condition>);

impl PartialEq for OnlyIf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for OnlyIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnlyIf")
    }
}

/// Where and for whom a call runs.
#[derive(Debug, Clone, Copy)]
pub struct ToolContext<'a> {
    /// The end user; their bearer goes to the backend.
    pub caller: &'a Caller,
    /// The conversation, which owns drafts, previews and payloads.
    pub conversation: &'a ConversationId,
    /// The number that a page knows the conversation by; tools and data of pages get it instead of the id.
    pub number: Option<i64>,
    /// The run, for logs and for the key of a write.
    pub run: RunId,
    /// The call; a tool always has it. A run has none to give, and the executor takes it from the call that it
    /// executes.
    pub call: Option<&'a ToolCallId>,
    /// The screen state the request brought; untrusted. Tools take ids from it that the model left out.
    pub context: Option<&'a ScreenState>,
    /// Where the conversation is; what clients said of it is untrusted.
    pub place: Option<&'a Place>,
    /// The arguments as they were completed before: a tool that completes arguments sends these as they are. A person may
    /// have let them through.
    pub completed: Option<&'a Map<String, Value>>,
    /// The call of the same run that was the first to try the same write, where the outcome is unknown: the backend
    /// gets the key of that one, so that it can tell that this is the same write.
    pub first_try: Option<&'a ToolCallId>,
    /// Gets the progress of the call.
    pub progress: Reporter<'a>,
    /// Keeps what it makes.
    pub files: KeepsFiles<'a>,
}

/// Keeps files that tools make, where somebody does.
#[derive(Clone, Copy, Default)]
pub struct KeepsFiles<'a>(Option<&'a dyn Files>);

impl<'a> KeepsFiles<'a> {
    /// There.
    pub fn there(files: &'a dyn Files) -> Self {
        Self(Some(files))
    }

    /// Keeps a file of the owner's.
    ///
    /// # Errors
    /// See [`FileError`].
    pub async fn keep(self, owner: &Owner, file: NewFile) -> Result<FileRef, FileError> {
        let files = self.0.ok_or(FileError::Off)?;
        let NewFile { name, media_type, data } = file;
        let content = stream::iter([Ok(Bytes::from(data))]).boxed();
        let incoming = Incoming { name: name.as_deref(), media_type: media_type.as_deref(), terms: None, content };
        Ok(files.keep(owner, incoming).await?.file)
    }
}

impl fmt::Debug for KeepsFiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeepsFiles").field(&self.0.is_some()).finish()
    }
}

impl ToolContext<'_> {
    /// The conversation as templates name it.
    pub fn conversation_id(&self) -> Value {
        self.number.map_or_else(|| Value::from(self.conversation.as_str()), Value::from)
    }

    /// The non-empty string at `key` of the screen state.
    pub fn context_str(&self, key: &str) -> Option<String> {
        self.context?.text(key)
    }
}

/// What a call tells while it is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// How far it has come.
    Progress(Progress),
    /// A directive that it has requested is in another state.
    Directive(DirectiveNotice),
}

/// Takes what a call tells, or nothing.
#[derive(Clone, Copy, Default)]
pub struct Reporter<'a>(Option<&'a (dyn Fn(Report) + Send + Sync)>);

impl<'a> Reporter<'a> {
    /// Tells `report`.
    pub fn to(report: &'a (dyn Fn(Report) + Send + Sync)) -> Self {
        Self(Some(report))
    }

    /// Tells how far the call has come.
    pub fn report(&self, progress: Progress) {
        if let Some(report) = self.0 {
            report(Report::Progress(progress));
        }
    }

    /// Tells where a directive stands that the call has requested.
    pub fn directive(&self, notice: DirectiveNotice) {
        if let Some(report) = self.0 {
            report(Report::Directive(notice));
        }
    }
}

impl fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}
