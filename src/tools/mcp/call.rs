//! One tool of a server: its arguments are checked here, its call is sent, and what comes on the way is passed on.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, ErrorCode,
    ProgressNotificationParam, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RoleClient};
use rmcp::{Peer, ServiceError};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::link::{Listener, never_left};
use super::listing::Listed;
use super::look::Failed;
use super::post::Refusal;
use super::program::short;
use super::result::{output_of, text_of};
use crate::agent::ports::tools::{Reporter, ToolContext};
use crate::chat::tool::{Effect, Progress, ToolOutput};
use crate::tools::{Tool, ToolError};

/// 10,000 notices of progress of one call are passed on.
const NOTICES: usize = 10_000;

/// 1,000 characters of a notice are.
const NOTICE_CHARS: usize = 1000;

/// 5 s for a note that a call is not wanted any more.
const FAREWELL: Duration = Duration::from_secs(5);

/// A failed call of a server's tool. `Display` is what the model reads.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// There is no connection.
    #[error("the server of this tool cannot be reached at the moment")]
    Unreachable,
    /// The connection broke before the answer.
    #[error("the connection to the server of this tool broke")]
    Broken,
    /// No answer in time, in seconds.
    #[error("the server of this tool did not answer within {0} s")]
    TimedOut(u64),
    /// It answered with something else than a result.
    #[error("the server of this tool answered with something that is no result")]
    Malformed,
    /// It did not take the call; in its words.
    #[error("the server of this tool refused the call: {0}")]
    Refused(String),
    /// It answered with an error that does not say whether the call was carried out; in its words.
    #[error("the server of this tool answered with an error: {0}")]
    Erred(String),
    /// The tool says that it failed; in its words.
    #[error("{0}")]
    Failed(String),
    /// A write whose outcome is unknown.
    #[error(
        "it is not known whether this was done; do not repeat the call: look whether it was, or tell the user that it may \
         have been ({0})"
    )]
    Unconfirmed(#[source] Box<McpError>),
}

impl McpError {
    /// What the log says of it; nothing where the words are the server's, which may be a user's data.
    pub fn for_log(&self) -> Option<String> {
        match self {
            Self::Unreachable | Self::Broken | Self::TimedOut(_) | Self::Malformed => Some(self.to_string()),
            Self::Refused(_) | Self::Erred(_) | Self::Failed(_) => None,
            Self::Unconfirmed(error) => error.for_log(),
        }
    }
}

/// A tool of a server that was connected when it was listed.
pub(super) struct McpTool {
    pub(super) listed: Listed,
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
    pub(super) patience: Duration,
    /// Sends farewells.
    pub(super) tasks: TaskTracker,
}

#[async_trait]
impl Tool for McpTool {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        self.check(args)?;
        let sent = timeout(self.patience, self.send(args, cx.progress)).await;
        let result = sent.unwrap_or_else(|_| Err(self.gone(McpError::TimedOut(self.patience.as_secs()))));
        let result = result.map_err(|error| ToolError::Mcp(self.confirmed(error)))?;
        Ok(output_of(result, cx).await)
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        let checked = self.listed.schema.check(&Value::Object(args.clone()));
        checked.map_err(|mistakes| ToolError::BadParams(mistakes.join("; ")))
    }

    fn effect(&self) -> Effect {
        self.listed.effect
    }

    fn source(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.listed.source)
    }
}

impl McpTool {
    async fn send(&self, args: &Map<String, Value>, progress: Reporter<'_>) -> Result<CallToolResult, McpError> {
        let params = CallToolRequestParams::new(self.listed.name.clone()).with_arguments(self.listed.arguments(args));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|_| self.gone(McpError::Unreachable))?;
        let mut notices = self.listener.follow(handle.progress_token.clone());
        let mut unanswered = Unanswered { tool: self, id: Some(handle.id.clone()) };
        let mut reported = 0;
        let mut answer = std::pin::pin!(handle.await_response());
        let answer = loop {
            tokio::select! {
                // Progress that came before the answer is reported before it.
                biased;
                Some(notice) = notices.next(), if reported < NOTICES => {
                    reported += 1;
                    progress.report(progress_of(notice));
                }
                answer = &mut answer => break answer,
            }
        };
        unanswered.id = None;
        match answer {
            Ok(ServerResult::CallToolResult(result)) => match result.is_error {
                Some(true) => Err(McpError::Failed(text_of(&result, &mut |_| None))),
                Some(false) | None => Ok(result),
            },
            Ok(_) | Err(ServiceError::UnexpectedResponse) => Err(McpError::Malformed),
            Err(ServiceError::McpError(error)) => {
                let words = error.message.into_owned();
                Err(if proves_nothing_was_done(error.code) { McpError::Refused(words) } else { McpError::Erred(words) })
            }
            Err(error) if never_left(&error) => Err(self.gone(McpError::Unreachable)),
            // The server is there: the others' calls have nothing to do with it.
            Err(error) => Err(answered(&error).unwrap_or_else(|| self.gone(McpError::Broken))),
        }
    }

    /// Asks for a look at whether the server is still there.
    fn gone(&self, error: McpError) -> McpError {
        self.listener.look.notify_one();
        error
    }

    /// An error of a call that may have been carried out says so.
    fn confirmed(&self, error: McpError) -> McpError {
        match (self.listed.effect, &error) {
            (Effect::Write, McpError::Broken | McpError::TimedOut(_) | McpError::Malformed | McpError::Erred(_)) => {
                McpError::Unconfirmed(Box::new(error))
            }
            (Effect::Write | Effect::Read, _) => error,
        }
    }
}

/// The error of a call to which a server over HTTP has answered, though with nothing of the protocol.
fn answered(error: &ServiceError) -> Option<McpError> {
    let ServiceError::TransportSend(error) = error else { return None };
    let words = |words: &dyn std::fmt::Display| short(&words.to_string());
    match error.error.downcast_ref::<Failed>()? {
        // Nobody works for whom they do not let in, or have no time for.
        Failed::AuthRequired(_) => {
            Some(McpError::Refused("HTTP 401: the server does not accept this one's token".to_owned()))
        }
        Failed::SessionExpired => Some(McpError::Refused("the server knows no session of this one's".to_owned())),
        Failed::InsufficientScope(_) => Some(McpError::Refused("HTTP 403: the token has no right to this".to_owned())),
        Failed::Io(error) => {
            let refusal = error.get_ref()?.downcast_ref::<Refusal>()?;
            let is_undone = refusal.proves_nothing_was_done;
            Some(if is_undone { McpError::Refused(words(refusal)) } else { McpError::Erred(words(refusal)) })
        }
        error @ (Failed::UnexpectedServerResponse(_)
        | Failed::UnexpectedContentType(_)
        | Failed::ResponseBodyTooLarge { .. }) => Some(McpError::Erred(words(error))),
        _ => None,
    }
}

/// Whether an error is about the request, and so came before anything was done. Any other, an internal one above all, may
/// have come in the middle of the work.
fn proves_nothing_was_done(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::INVALID_REQUEST | ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_PARAMS)
}

/// Tells the server that a call is not waited for any more, when it is dropped before its answer.
struct Unanswered<'a> {
    tool: &'a McpTool,
    id: Option<RequestId>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.tool.peer.clone();
        let farewell = async move {
            let note = CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".to_owned()));
            // Whether it arrives or not: there is no answer to it.
            let _ = timeout(FAREWELL, peer.notify_cancelled(note)).await;
        };
        self.tool.tasks.spawn_on(farewell, &runtime);
    }
}

fn progress_of(notice: ProgressNotificationParam) -> Progress {
    let ProgressNotificationParam { progress, total, message, .. } = notice;
    let fraction = total.filter(|total| *total > 0.0).map(|total| (progress / total).clamp(0.0, 1.0));
    Progress {
        stage: "running".to_owned(),
        message: message.unwrap_or_default().chars().take(NOTICE_CHARS).collect(),
        fraction: fraction.filter(|fraction| fraction.is_finite()),
        data: None,
    }
}
