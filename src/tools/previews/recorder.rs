//! Keeps what tools preview, within the bounds of the settings.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::ports::clock::ms;
use crate::agent::ports::previews::{NewPreview, PreviewStore, RecordError};
use crate::agent::ports::tools::ToolContext;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Base, Change};
use crate::tools::ToolError;

/// How many previews may wait, and how long.
#[derive(Debug, Clone, Copy)]
pub struct PreviewBounds {
    /// How long a preview waits for its decision.
    pub life: Duration,
    /// How many may wait in one conversation; 0 means any number.
    pub most: usize,
}

/// Keeps previews.
#[derive(Clone)]
pub struct Recorder {
    /// The store of previews.
    pub store: Arc<dyn PreviewStore>,
    /// How many, and how long.
    pub bounds: PreviewBounds,
}

impl Recorder {
    /// Keeps a preview that `tool` makes.
    ///
    /// # Errors
    /// [`ToolError::Refused`] where as many wait as may; when the store failed.
    pub async fn record(
        &self,
        cx: &ToolContext<'_>,
        tool: &str,
        change: &Change,
        base: &Base,
    ) -> Result<PreviewId, ToolError> {
        let PreviewBounds { life, most } = self.bounds;
        let new = NewPreview {
            owner: &cx.caller.owner,
            conversation: cx.conversation,
            run: cx.run,
            tool,
            change,
            base,
            life_ms: ms(life),
            most,
        };
        match self.store.record_preview(new).await {
            Ok(id) => Ok(id),
            Err(RecordError::Full) => Err(ToolError::Refused(format!(
                "nothing was shown: {most} previews of this conversation wait for their decision already, and no more may. Tell the \
                 user to accept or reject those first"
            ))),
            Err(RecordError::Store(error)) => Err(error.into()),
        }
    }
}
