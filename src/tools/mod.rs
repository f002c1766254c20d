//! The tools: what the model may call, run against the REST backend with the caller's own token.
//!
//! A tool is a definition (`config/tools/*.json`: name, description, schema) and a handler here, joined by name in
//! [`executor::Toolbox`]. Tools that `config/tools/*.toml` and OpenAPI documents declare
//! are handled by [`rest`]. Families of tools with logic of their own are in [`crate::toolsets`]. Handlers get arguments that are already a JSON object and fail with a [`ToolError`].

pub mod args;
pub mod backend;
pub mod executor;
pub mod idempotency;
pub mod keys;
mod made;
pub mod mcp;
pub mod names;
pub mod pages;
pub mod payloads;
pub mod previews;
pub mod rest;
pub mod secret;
pub mod web;
pub mod worded;

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use worded::Wording;

use crate::agent::ports::calls::CallStore;
use crate::agent::ports::drafts::{DraftError, DraftStore};
use crate::agent::ports::payloads::PayloadStore;
use crate::agent::ports::previews::PreviewStore;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::titles::TitleStore;
use crate::agent::ports::tools::{OfferedTool, OnlyIf, ToolContext};
use crate::agent::ports::workspace::Workspaces;
use crate::bounded::intake::Intake;
use crate::chat::approval::Consent;
use crate::chat::fate::{CallError, CallFate};
use crate::chat::tool::{Effect, Policy, ToolOutput};
use backend::{Backend, BackendError};
use previews::Recorder;
use web::WebConfig;

/// What the shipped tools work with.
pub struct Deps {
    /// The REST API of `[backend]`.
    pub backend: Arc<Backend>,
    /// The store of drafts between messages.
    pub drafts: Arc<dyn DraftStore>,
    /// The store of changes that wait for their user's decision.
    pub previews: Arc<dyn PreviewStore>,
    /// How many of them, and how long.
    pub preview_bounds: previews::PreviewBounds,
    /// The store of a conversation's structured data.
    pub payloads: Arc<dyn PayloadStore>,
    /// What tools have said before.
    pub calls: Arc<dyn CallStore>,
    /// What conversations are called.
    pub titles: Arc<dyn TitleStore>,
    /// What the tools of the web may reach.
    pub web: WebConfig,
    /// The files that an agent works on, where there are some.
    pub workspace: Option<Workplace>,
    /// Reads what others send.
    pub intake: Intake,
}

/// Where the tools of files and commands work, and for whom.
#[derive(Clone)]
pub struct Workplace {
    /// The workspaces.
    pub workspaces: Arc<dyn Workspaces>,
    /// The role that they need; empty: none.
    pub role: String,
    /// The consent that a command needs; `None`: none runs.
    pub commands: Option<Consent>,
}

/// Why a family of tools cannot be made ready.
pub type Unready = Box<dyn Error + Send + Sync>;

impl Deps {
    /// What records the previews of a tool.
    pub fn recorder(&self) -> Recorder {
        Recorder { store: self.previews.clone(), bounds: self.preview_bounds }
    }
}

/// A tool's handler.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The tool's output for these arguments.
    ///
    /// # Errors
    /// Whatever the model should read as `{"error": …}`.
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError>;

    /// Looks at arguments before anything is done with them, and before an approval of the call is requested.
    ///
    /// # Errors
    /// The mistakes in them, for the model.
    fn check(&self, _args: &Map<String, Value>) -> Result<(), ToolError> {
        Ok(())
    }

    /// The arguments as they are sent: with what is filled in, and with ids instead of names.
    ///
    /// # Errors
    /// Whatever the model should read as `{"error": …}`.
    async fn complete(
        &self,
        args: &Map<String, Value>,
        _cx: &ToolContext<'_>,
    ) -> Result<Map<String, Value>, ToolError> {
        Ok(args.clone())
    }

    /// What a second, equal call could do. The shipped tools fetch, compute, or keep something in our own store: a
    /// draft that is changed again is the conversation's own and expires, and a second preview is a second question to
    /// the user, who alone decides what is saved. So repeating any of them does no harm, and all of them read.
    fn effect(&self) -> Effect {
        Effect::Read
    }

    /// Who may use it, and the consent that each call needs.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// Whether the settings have it: a profile that lists one that is off goes without.
    fn is_on(&self) -> bool {
        true
    }

    /// How it words its failures, where it has words of its own.
    fn wording(&self) -> Option<Wording> {
        None
    }

    /// Whether it works on the files of a workspace, whose state is kept before each message then.
    fn in_workspace(&self) -> bool {
        false
    }

    /// What a conversation has to be like so that it is offered there; `None`: as it may be.
    fn only_if(&self) -> Option<OnlyIf> {
        None
    }

    /// What stands behind it: whose it is, and what a call of it sends; see
    /// [`crate::agent::ports::tools::ToolExecutor::source`].
    fn source(&self) -> Cow<'_, str> {
        Cow::Borrowed("built in")
    }

    /// Whether a part of its result is of no use: one that is too long is an error then, where others are cut.
    fn is_all_or_nothing(&self) -> bool {
        false
    }
}

/// What a built-in tool says of itself; its texts stand in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltIn {
    /// Who may use it, and the consent that each call needs.
    pub policy: Policy,
    /// What a second, equal call could do.
    pub effect: Effect,
    /// Whether the settings have it.
    pub is_on: bool,
    /// Whether it works on the files of a workspace.
    pub in_workspace: bool,
    /// What a conversation has to be like so that it is offered there.
    pub only_if: Option<OnlyIf>,
}

impl Default for BuiltIn {
    /// One that reads, for everybody.
    fn default() -> Self {
        Self { policy: Policy::default(), effect: Effect::Read, is_on: true, in_workspace: false, only_if: None }
    }
}

/// Tools that come and go while the server runs.
pub trait Source: Send + Sync {
    /// What the source of this name offers at the moment.
    fn offered(&self, source: &str) -> Vec<OfferedTool>;

    /// The tool of this name, whichever source it has; `None` when there is none.
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>>;
}

/// A failed tool call. `Display` is what the model reads: it says what to do differently.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// An argument is missing or of the wrong type.
    #[error("bad params: {0}")]
    BadParams(String),
    /// The same, in the words of whoever declared the tool.
    #[error("{0}")]
    Unfit(String),
    /// The arguments are well formed and still cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The backend did not answer as hoped.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A write whose answer did not come. The advice stands first: what is cut off of a long text is its end.
    #[error(
        "it is not known whether this was done; do not repeat the call: look whether it was, or tell the user that it may \
         have been ({0})"
    )]
    Unconfirmed(#[source] BackendError),
    /// A failure that the tool has put into the words of its own protocol, as JSON.
    #[error("{content}")]
    Worded {
        /// What the model reads.
        content: String,
        /// Why.
        error: CallError,
    },
    /// A list of names could not be fetched; shared, since several calls may have waited for the same fetch.
    #[error("could not look up {what}: {source}")]
    Lookup {
        /// The list, in words.
        what: Cow<'static, str>,
        /// Why not.
        #[source]
        source: Arc<BackendError>,
    },
    /// A server of tools did not answer as hoped.
    #[error(transparent)]
    Mcp(#[from] mcp::McpError),
    /// A draft could not be had or saved.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ToolError {
    /// Why the model reads an error.
    pub fn call_error(&self) -> CallError {
        match self {
            Self::BadParams(_) | Self::Unfit(_) => CallError::BadArguments,
            Self::Worded { error, .. } => *error,
            Self::Backend(error) | Self::Unconfirmed(error) if error.is_timeout() => CallError::TimedOut,
            Self::Refused(_)
            | Self::Backend(_)
            | Self::Unconfirmed(_)
            | Self::Lookup { .. }
            | Self::Mcp(_)
            | Self::Draft(_)
            | Self::Store(_) => CallError::Failed,
        }
    }

    /// The call's fate.
    pub fn fate(&self) -> CallFate {
        match self {
            Self::Unconfirmed(_) | Self::Mcp(mcp::McpError::Unconfirmed(_)) => CallFate::Unknown,
            Self::BadParams(_)
            | Self::Unfit(_)
            | Self::Refused(_)
            | Self::Worded { .. }
            | Self::Backend(_)
            | Self::Lookup { .. }
            | Self::Mcp(_)
            | Self::Draft(_)
            | Self::Store(_) => CallFate::Failed,
        }
    }
}

/// The arguments as a handler's own type; its error names the argument.
///
/// # Errors
/// [`ToolError::BadParams`] with the path of the argument and what is wrong with it.
pub fn parse_args<T: DeserializeOwned>(args: &Map<String, Value>) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(args).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner();
        ToolError::BadParams(if path == "." { reason.to_string() } else { format!("{path}: {reason}") })
    })
}
